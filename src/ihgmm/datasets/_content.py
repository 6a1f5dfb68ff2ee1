"""Reading a file and checking that it holds the data set it should."""

from __future__ import annotations

import bz2
import io
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from ihgmm.datasets._catalog import Entry

__all__ = ["ContentError", "class_sums", "read"]


class ContentError(ValueError):
    """A file that does not hold what it should; the message says what is wrong."""


def read(entry: Entry, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the data and the class of each row, from 0.

    Raises
    ------
    ContentError
        If the file cannot be parsed, or what it holds is not this data set.
    """
    try:
        packed = path.read_bytes()
        raw = bz2.decompress(packed) if entry.file.endswith(".bz2") else packed
        if not raw.strip():
            raise ValueError("it is empty")
        data, labels = _parse(entry, raw)
    except (ValueError, OSError, EOFError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ContentError(f"it cannot be read ({reason})") from error
    target = labels - entry.first_label
    _check(entry, data, target)
    return data, target.astype(np.int64)


def _parse(entry: Entry, raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    if entry.layout == "svmlight":
        features, labels = load_svmlight_file(
            io.BytesIO(raw), n_features=len(entry.feature_names), zero_based=False
        )
        return features.toarray(), labels
    table = np.loadtxt(
        raw.decode("ascii").splitlines(),
        delimiter="," if entry.layout == "commas" else None,
        converters=lambda word: np.nan if word.strip() == "?" else float(word),
        encoding="ascii",
        ndmin=2,
    )
    table = table[~np.isnan(table).any(axis=1)]
    return np.ascontiguousarray(table[:, :-1]), table[:, -1]


def class_sums(data: np.ndarray, target: np.ndarray, n_classes: int) -> np.ndarray:
    """Return one number for each class that tells its content.

    It is the sum of ``cos(x @ w)`` over the rows x of the class, with fixed weights w
    between 1/2 and 1 in size. Every value counts, the order of rows does not, and
    copies that differ by rounding give nearly the same numbers. A hash of rounded
    values could not do that: among a million values some lie on a rounding edge.
    """
    j = np.arange(data.shape[1])
    weights = (-1.0) ** j * (0.5 + 0.5 * (0.6180339887498949 * j % 1.0))
    with np.errstate(all="ignore"):
        waves = np.cos(data @ weights)
    return np.bincount(target.astype(np.intp), waves, n_classes)


def _check(entry: Entry, data: np.ndarray, target: np.ndarray) -> None:
    n, p, k = sum(entry.counts), len(entry.feature_names), len(entry.counts)
    if data.shape != (n, p):
        raise ContentError(
            f"it holds {data.shape[0]} complete rows of {data.shape[1]} features, "
            f"not {n} of {p}"
        )
    strange = np.setdiff1d(target, np.arange(k))
    if strange.size:
        raise ContentError(
            f"it has the class {strange[0] + entry.first_label:g}, not only "
            f"{entry.first_label} to {entry.first_label + k - 1}"
        )
    counts = np.bincount(target.astype(np.intp), minlength=k)
    if tuple(counts) != entry.counts:
        raise ContentError(
            f"its classes have {counts.tolist()} rows, not {list(entry.counts)}"
        )
    # Rounding differences of that size in all values add up to less than this.
    allowed = entry.precision * counts * np.sqrt(p)
    wrong = ~(np.abs(class_sums(data, target, k) - entry.sums) <= allowed)
    if wrong.any():
        classes = (np.flatnonzero(wrong) + entry.first_label).tolist()
        raise ContentError(
            f"its values are not the right ones in the classes {classes}"
        )
