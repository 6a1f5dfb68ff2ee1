"""Reading data as users have it, and writing files whole or not at all."""

from ihgmm._tables.reading import BUILT_IN, read_table
from ihgmm._tables.table import Note, Table, TableError, quoted
from ihgmm._tables.writing import (
    TEXT,
    check_output,
    like_a_formula,
    write_csv,
    write_whole,
)

__all__ = [
    "BUILT_IN",
    "TEXT",
    "Note",
    "Table",
    "TableError",
    "check_output",
    "like_a_formula",
    "quoted",
    "read_table",
    "write_csv",
    "write_whole",
]
