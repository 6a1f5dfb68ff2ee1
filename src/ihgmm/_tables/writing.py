"""Writing files so that no reader ever sees, or is left with, a part of one."""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ihgmm._tables.table import TableError

__all__ = ["TEXT", "check_output", "like_a_formula", "write_csv", "write_whole"]

TEXT = {".csv": ",", ".tsv": "\t"}
"""Suffixes of tables as text, and what stands between their cells."""

NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
FORMULA = re.compile(rf"(?!{NUMBER}\Z)[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]", re.ASCII)
"""How a formula begins, also in the wide letters of East Asia; numbers are none."""


def like_a_formula(cell: object) -> bool:
    """Tell whether a spreadsheet would run a cell, where it is not told otherwise."""
    return isinstance(cell, str) and FORMULA.match(cell) is not None


def write_csv(path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    """Write columns to a CSV or TSV file, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=TEXT.get(path.suffix.lower(), ","), lineterminator="\n"
    )
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    write_whole(path, text.getvalue())


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader ever sees, or is left with, a part of it."""
    raw = content.encode() if isinstance(content, str) else content
    try:
        _write(path, raw)
    except OSError as error:
        why = error.strerror or str(error)
        raise type(error)(
            f"{path} could not be written ({why}); what was there before is unchanged."
        ) from error


def _write(path: Path, raw: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def check_output(
    path: Path,
    option: str,
    *,
    suffixes: Iterable[str] = (),
    sources: Iterable[str | Path] = (),
) -> None:
    """Refuse an output that could not be written, before any work is done.

    Parameters
    ----------
    path : Path
        Where to write.
    option : str
        The option that gave it, for the message.
    suffixes : iterable of str
        What the name may end in; anything, if empty.
    sources : iterable of str or Path
        Files that are read and must not be written over.

    Raises
    ------
    TableError
        With what is wrong and what to do.
    """
    allowed = list(suffixes)
    if allowed and path.suffix.lower() not in allowed:
        raise TableError(
            f"{option} {path}: give a name that ends in {' or '.join(allowed)}."
        )
    if not path.parent.is_dir():
        raise TableError(f"{option} {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise TableError(f"{option} {path} is a folder; give a file name.")
    for source in map(Path, sources):
        if path.exists() and source.exists() and path.samefile(source):
            raise TableError(
                f"{option} {path} is a file that is read; give another name."
            )
