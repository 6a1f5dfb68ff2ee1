"""Matrix Market files, read without trust in what they say of themselves."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

NUMBERS = ("real", "double", "integer", "unsigned-integer", "pattern")
MIRRORED = {"general": 0, "symmetric": 1, "hermitian": 1, "skew-symmetric": -1}


def read_matrix_market(path: Path) -> tuple[Any, bool]:
    """Return the matrix of a file and whether it is sparse.

    It is CSR if the file lists entries, else an array.

    A ValueError says what is wrong with it. The reader of scipy ends the process at
    some damaged files; this one takes twice its time, because pyarrow parses the lines
    and all places are checked.
    """
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rb") as file:
        layout, field, symmetry = _kind(file.readline(1024))
        line = b"%"
        while line.startswith(b"%") or line.isspace():
            line = file.readline(2**16)
        body = file.read()
    if not re.fullmatch(rb"(\s*\d{1,18}){2,3}\s*", line):
        raise ValueError(f"it gives {line[:40]!r} where its size should be")
    size = [int(word) for word in line.split()]
    if len(size) != (3 if layout == "coordinate" else 2):
        raise ValueError(f"its size is {size}, which does not fit {layout!r}")
    n, p = size[:2]
    if symmetry != "general" and n != p:
        raise ValueError(f"it is {symmetry}, and has {n} rows and {p} columns")
    if layout == "array":
        return _array(_columns(body, ["x"], field)[0], n, p, symmetry), False
    # So few entries that nearly all rows or columns are empty: it is the size that is
    # wrong, and to make room for it could take all memory.
    if max(n, p) > 1000 * (size[2] + 1):
        raise ValueError(f"it says that it has {n} x {p} cells and {size[2]} entries")
    names = ["i", "j"] if field == "pattern" else ["i", "j", "x"]
    i, j, *x = _columns(body, names, field)
    if len(i) != size[2]:
        raise ValueError(f"it should have {size[2]} entries and has {len(i)}")
    for places, length in ((i, n), (j, p)):
        if len(i) and not 1 <= places.min() <= places.max() <= length:
            raise ValueError(
                f"it has places from {places.min()} to {places.max()} where there are "
                f"{length}"
            )
    values = x[0] if x else np.ones(len(i))
    mirror = MIRRORED[symmetry]
    if mirror:
        off = i != j
        i, j = np.append(i, j[off]), np.append(j, i[off])
        values = np.append(values, mirror * values[off])
    return sp.csr_array((values, (i - 1, j - 1)), shape=(n, p)), True


def _kind(line: bytes) -> list[str]:
    """Return layout, field and symmetry, from the first line of a file."""
    words = line.decode("latin-1").lower().split()
    if words[:2] != ["%%matrixmarket", "matrix"] or len(words) != 5:
        raise ValueError("it does not begin with %%MatrixMarket matrix and three words")
    layout, field, symmetry = words[2:]
    numbers = NUMBERS[:-1] if layout == "array" else NUMBERS
    known = layout in ("coordinate", "array") and symmetry in MIRRORED
    if not known or field not in numbers:
        raise ValueError(
            f"it holds a matrix of kind '{' '.join(words[2:])}'; known are coordinate "
            f"or array, {', '.join(NUMBERS)}, {', '.join(MIRRORED)}"
        )
    return [layout, field, symmetry]


def _columns(body: bytes, names: list[str], field: str) -> list[np.ndarray]:
    """Return the columns of numbers in lines that have one blank between them."""
    import pyarrow as pa
    import pyarrow.csv

    body = body.strip()
    if any(odd in body for odd in (b"  ", b"\t", b"\r", b"\n ", b" \n")):
        body = re.sub(rb"[^\S\n]+", b" ", body)
        body = re.sub(rb"^ | $", b"", body, flags=re.MULTILINE)
    if not body:
        return [np.empty(0, np.int64) for _ in names]
    number = pa.int64() if "integer" in field else pa.float64()
    types = {"i": pa.int64(), "j": pa.int64(), "x": number}
    table = pa.csv.read_csv(
        io.BytesIO(body),
        pa.csv.ReadOptions(column_names=names),
        pa.csv.ParseOptions(delimiter=" ", quote_char=False),
        pa.csv.ConvertOptions(column_types=types, null_values=[]),
    )
    return [column.to_numpy() for column in table.columns]


def _array(values: np.ndarray, n: int, p: int, symmetry: str) -> np.ndarray:
    """Return an array from its columns, or from the lower halves of these."""
    mirror = MIRRORED[symmetry]
    expected = n * (n + mirror) // 2 if mirror else n * p
    if len(values) != expected:
        raise ValueError(f"it should have {expected} entries and has {len(values)}")
    if not mirror:
        return values.reshape((n, p), order="F")
    # The lower triangle by columns is the upper one by rows.
    columns, rows = np.triu_indices(n, int(mirror < 0))
    X = np.zeros((n, n), values.dtype)
    X[columns, rows] = mirror * values
    X[rows, columns] = values
    return X
