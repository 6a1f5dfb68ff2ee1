"""Arrays and sparse matrices in files, whose columns have no names."""

from __future__ import annotations

import gzip
import math
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.table import Note, Request, Table, numbered_table, quote_all
from ihgmm.matrix import as_matrix
from ihgmm.matrix.faults import damaged, explain_damage
from ihgmm.matrix.files import HEADER_ERRORS

COLUMN_OPTIONS = ("--id-column", "--columns", "--drop-columns")


def read_npy(path: Path, request: Request, memory: float) -> Table:
    """Read an array, or leave it on disk if it would take more bytes than memory."""
    request.refuse("--label-column", *COLUMN_OPTIONS)
    with open(path, "rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise damaged(path, "it is an archive of arrays; name it .npz.")
    with explain_damage(path, *HEADER_ERRORS):
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    if X.nbytes > memory and X.ndim == 2 and X.flags.c_contiguous and X.size:
        notes = [Note("The data are read block by block."), *request.resolve(())[1]]
        return request.order(numbered_table(request.source, as_matrix(X), notes=notes))
    lines = ("import numpy as np", "", f"X = np.load({str(path)!r})")
    return _from_matrix(np.array(X), request, lines)


def read_npz(path: Path, request: Request, memory: float) -> Table:
    """Read an archive of one array, of X and labels, or of a scipy.sparse matrix."""
    request.refuse(*COLUMN_OPTIONS)
    if not zipfile.is_zipfile(path):
        raise damaged(path, "it is no archive of arrays, or only a part of one")
    # An archive that is damaged or encrypted fails in the ways of zipfile.
    zip_errors = (NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
    errors = (*HEADER_ERRORS, *zip_errors, KeyError, TypeError, IndexError)
    # NumPy leaves a file that it opened itself open where it is cut off.
    with explain_damage(path, *errors), open(path, "rb") as file:
        with np.load(file, allow_pickle=False) as archive:
            names = list(archive)
            label = request.resolve(names if len(names) > 1 else ())[0].label
            others = [name for name in names if name != label]
            data = "X" if "X" in others else next(iter(others), None)
            is_sparse = "format" in names
            wanted = {label, None if is_sparse else data}.intersection(names)
            # A member that is no array comes as bytes.
            arrays = {name: np.asarray(archive[name]) for name in wanted}
        if is_sparse:
            matrix = sp.load_npz(path)
            if hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)  # places beyond X crash later
            arrays[data] = sp.csr_array(matrix)
    if label is not None and label not in names:
        raise ValueError(
            f"--label-column {label!r}: {path} has no such array; it has "
            f"{quote_all(names)}."
        )
    if data is None:
        raise ValueError(f"{path} holds no array beside {label!r}.")
    if len(others) > 1 and data != "X" and not is_sparse:
        raise ValueError(
            f"{path} holds several arrays ({quote_all(others)}); name the data X, or "
            "save it alone."
        )
    lines = ("import numpy as np", "", f"X = np.load({str(path)!r})[{data!r}]")
    if is_sparse:
        call = f"X = scipy.sparse.load_npz({str(path)!r}).tocsr()"
        lines = ("import scipy.sparse", "", call)
    labels = arrays.get(label)
    return _from_matrix(arrays[data], request, lines, is_sparse, labels, label)


def read_mtx(path: Path, request: Request, memory: float) -> Table:
    """Read a Matrix Market file: CSR if it lists entries, else an array.

    The reader of scipy ends the process at some damaged files.
    """
    request.refuse("--label-column", *COLUMN_OPTIONS)
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with (
        explain_damage(path, ValueError, EOFError, zlib.error, Warning),
        warnings.catch_warnings(action="error"),
        opened(path, "rt", encoding="latin-1") as file,
    ):
        kind = file.readline(1024).lower().split()
        is_sparse, is_pattern = kind[2:3] == ["coordinate"], kind[3:4] == ["pattern"]
        if kind[:2] != ["%%matrixmarket", "matrix"] or kind[4:] != ["general"]:
            what = " ".join(kind[:5])
            raise ValueError(f"it begins with {what!r}, not as a general matrix does")
        line = next((row for row in file if row.strip() and row[0] != "%"), "")
        size = [int(word) for word in line.split() if len(word) < 19]
        n_expected = size[-1] if is_sparse and size else math.prod(size)
        # So few entries that nearly all rows or columns are empty: it is the size that
        # is wrong, and to make room for it could take all memory.
        if len(size) != 2 + is_sparse or max(size[:2]) > 1000 * (n_expected + 1):
            raise ValueError(f"its size is {line.strip()!r}")
        width = 3 - is_pattern if is_sparse else 1
        cells = np.empty((0, width))
        if n_expected:
            cells = np.loadtxt(file, comments="%", ndmin=2)
        if cells.shape != (n_expected, width):
            raise ValueError(
                f"it has {len(cells)} entries, and {n_expected} by its size"
            )
        places = cells[:, : 2 * is_sparse].astype(np.int64) - 1
        if (places != cells[:, : 2 * is_sparse] - 1).any() or (places < 0).any():
            raise ValueError(
                "it has entries in places that are no whole numbers from 1"
            )
        if (places >= size[: 2 * is_sparse]).any():
            raise ValueError(
                f"it has entries beyond {size[0]} rows and {size[1]} columns"
            )
    read = f"X = scipy.io.mmread({str(path)!r}){'.tocsr()' * is_sparse}"
    lines = ("import scipy.io", "", read)
    if not is_sparse:
        return _from_matrix(cells.reshape(size, order="F"), request, lines)
    entries = np.ones(len(cells)) if is_pattern else cells[:, 2]
    X = sp.csr_array((entries, tuple(places.T)), shape=tuple(size[:2]))
    return _from_matrix(X, request, lines, is_sparse)


def _from_matrix(
    X: Any,
    request: Request,
    python: tuple[str, ...],
    is_sparse: bool = False,
    labels: np.ndarray | None = None,
    label: str | None = None,
) -> Table:
    """Return a table of a matrix whose columns have no names, with its labels."""
    source = request.source
    if X.ndim != 2:
        raise ValueError(f"{source} has shape {X.shape}; give rows by columns.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{source} holds {X.dtype} entries; give real numbers.")
    if labels is not None and labels.shape != X.shape[:1]:
        if request.label is not None:
            raise ValueError(
                f"--label-column {label!r}: {source} holds {labels.shape} labels for "
                f"{X.shape[0]} rows; give one for each row."
            )
        label = labels = None  # those of the fit, which nobody asked for
    table = numbered_table(
        source,
        X if X.dtype in (np.float32, np.float64) else X.astype(np.float64),
        labels=labels,
        notes=request.resolve([] if label is None else [label])[1],
        is_sparse=is_sparse,
        python=python,
    )
    return request.order(table)
