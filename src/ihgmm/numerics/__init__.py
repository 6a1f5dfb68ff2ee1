"""Operators, eigenpairs and labels: arrays go in, arrays or a frozen result come out."""
