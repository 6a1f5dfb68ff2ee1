"""Files of every format, as frames of columns with names or as arrays."""
