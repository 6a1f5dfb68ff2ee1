"""Operators, eigenpairs and labels: arrays go in, arrays or frozen results come out."""
