"""What people read: results as sentences, and as tables for notebooks.

Functions here take a result and return text. No other code reads that text back.
"""
