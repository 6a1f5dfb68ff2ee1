"""The model, its parameters and what data say of them: results as plain data."""
