"""Arrays in files of NumPy and SciPy, in memory or read block by block."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.files.raw_table import RawArray, check_size, explain_damage
from ihgmm.cli.tables.names import quote_all
from ihgmm.cli.tables.request import Request
from ihgmm.matrix import as_matrix


@dataclass(frozen=True)
class _Stored:
    """An array as it is in a file."""

    X: Any  # of NumPy or scipy.sparse
    is_sparse: bool = False
    is_archive: bool = False  # else its rows may be read block by block


def read_array(path: Path, request: Request) -> RawArray:
    """Read an array, a scipy.sparse matrix, or the X or only array of an archive."""
    stored = _load(path)
    X = stored.X
    if stored.is_sparse:
        check_size(path, request.memory, 8 * sum(X.shape))  # also of empty rows
        with explain_damage(path):
            X = sparse_by_rows(X)

    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} has shape {X.shape} and {X.dtype} entries; give real numbers, "
            "rows by columns."
        )

    may_stay = not (stored.is_archive or request.transpose) and X.flags.c_contiguous
    if may_stay and X.nbytes > request.memory:
        return RawArray(X=as_matrix(X), notes=[notes.BY_BLOCKS])

    X = X.T if request.transpose else X
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = sp.csr_array(X, dtype=dtype) if stored.is_sparse else np.array(X, dtype)
    return RawArray(X=X, is_sparse=stored.is_sparse)


def _load(path: Path) -> _Stored:
    """Return the array of a file, which need not be in memory yet."""
    with explain_damage(path), path.open("rb") as file:
        is_archive = file.peek(2)[:2] == b"PK"
        if not is_archive:
            X = np.load(path, mmap_mode="r", allow_pickle=False)
            return _Stored(X=X)

        # NumPy leaves an archive that it opened itself open where it is cut off.
        with np.load(file, mmap_mode="r", allow_pickle=False) as archive:
            names = archive.files
            is_sparse = "format" in names and "X" not in names
            if not is_sparse:
                # A member that is no array comes as bytes.
                X = np.asarray(archive[_name_of_array(names)])
                return _Stored(X=X, is_archive=True)
        return _Stored(X=sp.load_npz(path), is_sparse=True, is_archive=True)


def _name_of_array(names: list[str]) -> str:
    """Return which array of an archive holds the data."""
    if "X" in names:
        return "X"
    if len(names) == 1:
        return names[0]
    if "header.json" in names:
        raise ValueError("it is a saved model; give the data that it is for")
    raise ValueError(f"of its arrays, {quote_all(names)}, none is X")


def sparse_by_rows(X: Any) -> sp.csr_array:
    """Return a sparse matrix by rows; places beyond it would crash later."""
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)
    return sp.csr_array(X)
