"""Reading data as users have it, and writing files whole or not at all."""

from ihgmm._tables.reading import BUILT_IN, read_table
from ihgmm._tables.table import Table, TableError
from ihgmm._tables.writing import TEXT, check_output, write_csv, write_whole

__all__ = [
    "BUILT_IN",
    "TEXT",
    "Table",
    "TableError",
    "check_output",
    "read_table",
    "write_csv",
    "write_whole",
]
