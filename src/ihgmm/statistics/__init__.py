"""The model, its estimates and the tests of a clustering: results as plain data."""
