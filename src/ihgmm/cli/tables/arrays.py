"""Arrays and sparse matrices in files, whose columns have no names."""

from __future__ import annotations

import gzip
import re
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

    The reader of scipy ends the process at some damaged files. This one takes twice its
    time, because all places are checked.
    """
    import pyarrow as pa
    from pyarrow import csv

    request.refuse("--label-column", *COLUMN_OPTIONS)
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with (
        explain_damage(path, ValueError, EOFError, zlib.error, pa.ArrowInvalid),
        opened(path, "rb") as file,
    ):
        words = file.readline(1024).decode("latin-1").lower().split()
        kinds = {"coordinate", "array"}, {"real", "double", "integer", "pattern"}
        known = len(words) == 5 and words[2] in kinds[0] and words[3] in kinds[1]
        if not known or words[:2] != ["%%matrixmarket", "matrix"]:
            raise ValueError(
                "it does not begin with %%MatrixMarket matrix and its kind"
            )
        if words[4] != "general":
            raise ValueError(
                f"it is {words[4]}; store all entries, as a general matrix"
            )
        line = b"%"
        while line.startswith(b"%") or line.isspace():
            line = file.readline(2**16)
        if not re.fullmatch(rb"(\s*\d{1,18}){2,3}\s*", line):
            raise ValueError(f"it gives {line[:40]!r} where its size should be")
        # One blank stands between numbers then.
        body = re.sub(rb"[^\S\n]+", b" ", file.read().strip())
        body = re.sub(rb"^ | $", b"", body, flags=re.MULTILINE) + b"\n"
        n, p, *n_entries = map(int, line.split())
        is_sparse = words[2] == "coordinate"
        names = ["i", "j", "x"][: 2 if words[3] == "pattern" else 3]
        names = names if is_sparse else ["x"]
        expected = n_entries[0] if n_entries else n * p
        # So few entries that nearly all rows or columns are empty: it is the size that
        # is wrong, and to make room for it could take all memory.
        if bool(n_entries) != is_sparse or max(n, p) > 1000 * (expected + 1):
            raise ValueError(f"its size is {line.decode().strip()!r}")
        places = {"i": pa.int64(), "j": pa.int64(), "x": pa.float64()}
        columns = [np.empty(0, int)] * len(names)
        if body != b"\n":
            cells = csv.read_csv(
                pa.BufferReader(body),
                csv.ReadOptions(column_names=names),
                csv.ParseOptions(delimiter=" ", quote_char=False),
                csv.ConvertOptions(column_types=places, null_values=[]),
            )
            columns = [column.to_numpy() for column in cells.columns]
        if len(columns[0]) != expected:
            text = f"it should have {expected} entries and has {len(columns[0])}"
            raise ValueError(text)
        for values, length in zip(columns[:2], (n, p), strict=False):
            if (
                is_sparse
                and len(values)
                and not 1 <= values.min() <= values.max() <= length
            ):
                ends = f"{values.min()} to {values.max()}"
                raise ValueError(f"it has places from {ends} where there are {length}")
    read = f"X = scipy.io.mmread({str(path)!r}){'.tocsr()' * is_sparse}"
    lines = ("import scipy.io", "", read)
    if not is_sparse:
        return _from_matrix(columns[0].reshape((n, p), order="F"), request, lines)
    i, j, *x = columns
    entries = x[0] if x else np.ones(len(i))
    X = sp.csr_array((entries, (i - 1, j - 1)), shape=(n, p))
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
