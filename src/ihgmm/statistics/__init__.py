"""The model and what data say about it: results as plain data."""
