"""Reading matrices of numbers: NPY, NPZ and MTX files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from ihgmm._tables.table import Table, TableError, listed, plain
from ihgmm._tables.wanted import Wanted

__all__ = ["MATRICES", "read_matrix"]

MATRICES = (".npy", ".npz", ".mtx")


def read_matrix(source: str, path: Path, suffix: str, wanted: Wanted) -> Table:
    """Return a matrix; the labels that are wanted are an array of an NPZ file."""
    label = labels = None
    if suffix == ".mtx":
        _check_end(path)
        X = scipy.io.mmread(path)
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    elif suffix == ".npy":
        X = np.load(path, allow_pickle=False)
    else:
        X, label, labels = _read_archive(source, path, wanted)
    if X.ndim != 2:
        raise TableError(f"{source} has shape {X.shape}; give rows by columns.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise TableError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise TableError(f"{source} holds {X.dtype} entries; give real numbers.")
    if labels is not None and labels.shape != X.shape[:1]:
        if wanted.label is not None:
            raise TableError(
                f"--label-column {label!r}: {source} holds {labels.shape} labels for "
                f"{X.shape[0]} rows; give one for each row."
            )
        label = labels = None  # the usual ones, which nobody asked for
    numbers = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    notes = wanted.notes(replace(wanted, label=label))
    return replace(plain(numbers, labels), notes=notes)


def _read_archive(
    source: str, path: Path, wanted: Wanted
) -> tuple[Any, str | None, np.ndarray | None]:
    """Return the data, the name of the labels, and the labels."""
    # NumPy leaves a file that it opened itself open where it is cut off.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        names = list(archive)
        label = wanted.settled(names if len(names) > 1 else ()).label
        if label is not None and label not in names:
            raise TableError(
                f"--label-column {label!r}: {source} has no such array; it has "
                f"{listed(names)}."
            )
        labels = None if label is None else archive[label]
        if "format" in names:
            stored = sp.load_npz(path)
            if hasattr(stored, "check_format"):
                stored.check_format(full_check=True)  # places beyond X crash later
            return sp.csr_array(stored), label, labels
        others = [name for name in names if name != label]
        if not others:
            raise TableError(f"{source} holds no array beside {label!r}.")
        if len(others) != 1 and "X" not in others:
            raise TableError(
                f"{source} holds several arrays ({listed(others)}); name the data X, "
                "or save it alone."
            )
        return archive["X" if "X" in others else others[0]], label, labels


def _check_end(path: Path) -> None:
    """Raise where a file ends within an exponent, at which scipy's reader crashes."""
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() in b"eE" and not path.name.lower().endswith(".gz"):
            raise ValueError("it ends in the middle of a number.")
