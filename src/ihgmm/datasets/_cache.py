"""Files of data sets: where they are kept, how they get there, what they hold."""

import bz2
import io
import os
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ihgmm._files import atomic_write

_text = Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8")
_usual = {"url": "", "layout": "svmlight", "first_label": 1, "precision": 1e-8}
CATALOG = {
    name: SimpleNamespace(**(_usual | table))
    for name, table in tomllib.loads(_text).items()
}
"""The data sets by name, in the order of the paper."""


class DatasetError(OSError):
    """A data set that cannot be had; the message says which file to put where."""


def fetch(
    entry: SimpleNamespace,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
    timeout: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return data and classes from the cache, filling it first where needed."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    home = data_home if data_home is not None else os.environ.get("IHGMM_DATA")
    folder = Path(home or Path.home() / ".cache" / "ihgmm").expanduser().absolute()
    path = folder / entry.url.rpartition("/")[2]
    is_kept = path.exists()
    if not is_kept and not download_if_missing:
        raise DatasetError(
            f"{path} does not exist. Allow its download with download_if_missing=True, "
            f"or get {entry.url} and save it there."
        )

    try:
        if is_kept:
            return parse(entry, path.read_bytes())

        with urlopen(entry.url, timeout=timeout) as response:
            raw = response.read()  # all files are small enough for memory
        content = parse(entry, raw)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(raw)
        return content
    except (ValueError, OSError, EOFError, OverflowError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()  # it is the answer of the server, too
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        if "timed out" in reason:
            reason = f"the server sent nothing for {timeout:g} seconds"
        problem = f"The {entry.title} data cannot be downloaded ({reason}). Try again"
        if is_kept:
            problem = f"{path} is not the {entry.title} data ({reason}). Move it away"
        raise DatasetError(
            f"{problem}, or get {entry.url} and save it as {path}; data_home or the "
            "environment variable IHGMM_DATA name another folder."
        ) from error


def parse(entry: SimpleNamespace, raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return the data and the class of each row, from 0, without incomplete rows."""
    if entry.url.endswith(".bz2"):
        raw = bz2.decompress(raw)
    if not raw.strip():
        raise ValueError("it is empty")
    if entry.layout == "svmlight":
        from sklearn.datasets import load_svmlight_file

        features, labels = load_svmlight_file(
            io.BytesIO(raw), n_features=len(entry.feature_names), zero_based=False
        )
        data = features.toarray()
    else:
        table = np.loadtxt(
            raw.decode("ascii").splitlines(),
            delimiter="," if entry.layout == "commas" else None,
            encoding="ascii",
            ndmin=2,
            converters=lambda word: float("nan" if word.strip() == "?" else word),
        )
        table = table[~np.isnan(table).any(axis=1)]
        data = np.ascontiguousarray(table[:, :-1])
        labels = table[:, -1]

    target = labels - entry.first_label
    check_content(entry, data, target)
    return data, target.astype(np.int64)


def class_sums(data: np.ndarray, target: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the sum of ``cos(x @ w)`` over the rows x of each class."""
    # Unlike a hash, it hardly changes with the rounding of copies.
    j = np.arange(data.shape[1])
    # Multiples of the golden ratio modulo 1 never repeat, and are spread evenly.
    weights = (-1.0) ** j * (0.5 + 0.5 * (0.6180339887498949 * j % 1.0))
    with np.errstate(all="ignore"):
        waves = np.cos(data @ weights)
    return np.bincount(target.astype(np.intp), waves, n_classes)


def check_content(entry: SimpleNamespace, data: np.ndarray, target: np.ndarray) -> None:
    """Raise unless these are the rows, classes and values of the data set."""
    n_rows, n_features = data.shape
    n_classes = len(entry.counts)
    classes, counts = np.unique(target, return_counts=True)
    has_classes = classes.tolist() == [*range(n_classes)]
    has_counts = counts.tolist() == [*entry.counts]
    if not (has_classes and has_counts) or n_features != len(entry.feature_names):
        raise ValueError(
            f"it holds {n_rows} complete rows of {n_features} features, in classes of "
            f"{counts.tolist()!r:.200} rows, not {sum(entry.counts)} of "
            f"{len(entry.feature_names)}, in classes of {[*entry.counts]}"
        )

    # Rounding differences of that size in all values add up to less than this.
    tolerance = entry.precision * counts * np.sqrt(n_features)
    difference = np.abs(class_sums(data, target, n_classes) - entry.sums)
    is_different = ~(difference <= tolerance)
    if is_different.any():
        names = (np.flatnonzero(is_different) + entry.first_label).tolist()
        raise ValueError(f"its values are not the right ones in the classes {names}")
