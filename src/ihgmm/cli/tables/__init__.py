"""Reading data as users have it: what is built in, and files in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.tables.formats import DELIMITERS, READERS, suffix_of
from ihgmm.cli.tables.missing import without_missing
from ihgmm.cli.tables.request import Request
from ihgmm.cli.tables.table import Note, Table, numbered_table, quote, shorten

__all__ = [
    "BUILT_IN",
    "DELIMITERS",
    "Note",
    "Request",
    "Table",
    "numbered_table",
    "quote",
    "read_table",
    "shorten",
]

BUILT_IN = ("iris", "wine", "digits", "demo")


def read_table(request: Request, *, drop_missing: bool = False) -> Table:
    """Read a built-in data set or a file.

    Parameters
    ----------
    request : Request
        The source, which is the path of a file in one of the formats of ``READERS``
        (text also gzipped) or the name of a data set, and what is asked of its columns.
    drop_missing : bool
        Leave out rows with missing cells instead of refusing them.

    Raises
    ------
    ValueError
        If the file is missing, empty or damaged, or lacks what is asked for.
    """
    path = Path(request.source)
    if path.exists():
        table = _reader(path)(path, request)
    else:
        request.refuse_names()
        table = request.order(_built_in(request.source))
    return without_missing(table, request, drop=drop_missing)


def _reader(path: Path) -> Any:
    """Return the reader of a file by its name."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give one file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    suffix = suffix_of(path)
    if suffix in (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"):
        raise ValueError(
            f"{path} is a spreadsheet; save the sheet with the data as CSV (UTF-8) and "
            "give that file."
        )
    if suffix not in READERS:
        raise ValueError(
            f"{path}: unknown format {path.suffix or '(no suffix)'!r}; give one of "
            f"{', '.join(READERS)}."
        )
    return READERS[suffix]


def _built_in(name: str) -> Table:
    """Return a data set that is known by its name."""
    from sklearn import datasets

    from ihgmm.datasets import list_datasets, load_dataset
    from ihgmm.model import make_ihgmm

    if name == "demo":
        X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
        return numbered_table(X, labels=labels)
    if name in BUILT_IN:
        bunch = getattr(datasets, f"load_{name}")()
    elif name in list_datasets():
        bunch = load_dataset(name)
    else:
        known = ", ".join(dict.fromkeys([*BUILT_IN, *list_datasets()]))
        raise ValueError(f"{name}: no such file, nor a built-in data set ({known}).")
    return numbered_table(
        np.asarray(bunch.data, dtype=np.float64),
        labels=np.asarray(bunch.target_names)[bunch.target],
        names=[str(feature) for feature in bunch.feature_names],
    )
