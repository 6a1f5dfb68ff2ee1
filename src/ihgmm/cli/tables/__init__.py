"""Tables as users have them: reading, choice of columns, missing cells."""

from ihgmm.cli.tables.reading import read_table

__all__ = ["read_table"]
