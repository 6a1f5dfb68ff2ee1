"""The group of commands: how errors, warnings and interrupts end them.

Exit codes: 0 success, 1 the work could not be done (a download, a disk, memory, a
package that is not installed), 2 wrong use or data that cannot be used, 130
interrupted.
"""

from __future__ import annotations

import warnings
from typing import Any

import typer
from numpy.linalg import LinAlgError
from typer.core import TyperCommand, TyperGroup

from ihgmm._tables import TableError
from ihgmm.cli._screen import tell

__all__ = ["EXIT_CODES", "Command", "Commands", "Group"]

EXIT_CODES = (
    "Exit codes: 0 success; 1 the work could not be done: a download, a disk, memory, "
    "a package that is not installed; 2 wrong use, or data that cannot be used; 130 "
    "interrupted."
)


class _PlainFlags:
    """Help in which an option that takes no value shows no type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, the one for help too."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A command with others below it."""


class Commands(Group):
    """Commands that end with one line and a status that means something."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                tell("stopped", "no file was left half written.", "yellow")
                raise typer.Exit(130) from None
            except BrokenPipeError:
                raise  # the reader has gone: nobody to tell
            except MemoryError as error:
                tell("error", f"not enough memory: {error}")
                raise typer.Exit(1) from None
            except (LinAlgError, ArithmeticError, ImportError, OSError) as error:
                tell("error", str(error))
                raise typer.Exit(1) from None
            except (TableError, ValueError, TypeError) as error:
                tell("error", str(error))
                raise typer.Exit(2) from None


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    tell("warning", " ".join(str(message).split()), "yellow")
