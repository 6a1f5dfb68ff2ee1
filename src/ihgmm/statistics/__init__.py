"""The model and what the data say about it: results are plain data."""
