"""Lines on standard error: what went wrong, and what should not be missed."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text


def clean(text: str) -> str:
    """Return text that cannot steer a terminal.

    Control characters, escape sequences, overrides of the direction of writing and
    other invisible characters are spelled out.
    """
    # Joiners are invisible, but harmless: Persian and emoji cannot be written without.
    joiners = "\u200c\u200d"
    return "".join(
        c
        if c.isprintable() or c in joiners or c == "\n"
        else c.encode("unicode_escape", "backslashreplace").decode()
        for c in text
    )


def print_message(kind: str, message: str, style: str = "red") -> None:
    """Print one line to standard error."""
    line = Text.assemble((f"{kind}:", style), " ", clean(message))
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)


def print_warning(message: object, *_: Any, **__: Any) -> None:
    """Print a warning, be it one of Python's with its class and place, or a text."""
    print_message("warning", " ".join(str(message).split()), "yellow")
