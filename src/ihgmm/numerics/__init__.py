"""Operators, eigenpairs and labels: arrays in, arrays or small results out."""
