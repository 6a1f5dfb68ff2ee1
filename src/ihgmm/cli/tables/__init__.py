"""Tables as users have them: reading, choice of columns, missing cells."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ihgmm.cli.tables.reading import read_table

__all__ = ["read_table"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # what reads tables is loaded when it is asked for
        from ihgmm.cli.tables import reading

        return getattr(reading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
