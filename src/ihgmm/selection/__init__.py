"""Pictures of a number of clusters."""
