"""The nine labelled data sets of the paper's real-data table."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from ihgmm._parameters import check_choice, check_number
from ihgmm.datasets._cache import CATALOG, DatasetError, fetch

if TYPE_CHECKING:
    from sklearn.utils import Bunch

__all__ = ["DatasetError", "list_datasets", "load_dataset", "zscore"]


def list_datasets() -> list[str]:
    """Return the names :func:`load_dataset` knows, in the order of the paper.

    Examples
    --------
    >>> from ihgmm.datasets import list_datasets
    >>> list_datasets()[:3]
    ['iris', 'wine', 'seeds']
    """
    return list(CATALOG)


def load_dataset(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    timeout: float = 30.0,
) -> Bunch:
    """Load one of the paper's data sets, downloading it the first time.

    Iris and Wine come with scikit-learn. The others are downloaded once from the UCI
    repository or the LIBSVM data page, and kept under their upstream file names. What a
    file holds is checked each time it is read.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`, in upper or lower case.
    data_home : path, optional
        Folder to keep the files in. Default: the environment variable ``IHGMM_DATA``,
        or else ``~/.cache/ihgmm``.
    download_if_missing : bool
        Whether a file that is not there yet may be downloaded.
    timeout : float
        Seconds without a byte from the server after which a download is given up.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data``, the values as upstream has them, without incomplete rows (8 of
        Dermatology); ``X``, the same after the paper's ``preprocessing``, "none" or
        "zscore"; ``target``, the class of each row, from 0; ``target_names`` and
        ``feature_names``; ``name``, ``DESCR`` and ``citation``. A file that cannot be
        had raises a :class:`DatasetError`, which says what to put where.

    Examples
    --------
    >>> from ihgmm.datasets import load_dataset
    >>> wine = load_dataset("Wine")
    >>> wine.X.shape, wine.preprocessing
    ((178, 13), 'zscore')
    """
    from sklearn import datasets as bundled
    from sklearn.utils import Bunch

    key = name.lower() if isinstance(name, str) else name
    check_choice("name", key, list(CATALOG))
    timeout = check_number("timeout", timeout, above=0)
    entry = CATALOG[key]
    if entry.url:
        data, target = fetch(entry, data_home, download_if_missing, timeout)
        feature_names = entry.feature_names
        target_names = entry.target_names
    else:
        bunch = bundled.load_iris() if key == "iris" else bundled.load_wine()
        data = np.asarray(bunch.data, float)
        target = bunch.target.astype("int64")
        feature_names = bunch.feature_names
        target_names = bunch.target_names

    is_scaled = entry.preprocessing == "zscore"
    return Bunch(
        data=data,
        X=zscore(data) if is_scaled else data.copy(),
        preprocessing=entry.preprocessing,
        target=target,
        target_names=np.array(target_names),
        feature_names=list(feature_names),
        name=key,
        DESCR=_description(entry, data.shape, is_scaled),
        citation=entry.citation,
    )


def _description(
    entry: SimpleNamespace, shape: tuple[int, ...], is_scaled: bool
) -> str:
    """Return the text that tells what a data set is, and where it is from."""
    n_rows, n_features = shape
    return (
        f"{entry.title}: {n_rows} rows, {n_features} features, "
        f"{len(entry.counts)} classes\n\n"
        f"{entry.about}\n\n"
        f"Source: {entry.url or 'scikit-learn'}\n"
        f"Preprocessing in the paper: "
        f"{'columns z-scored (n - 1)' if is_scaled else 'none'}\n"
        f"Cite:\n{entry.citation}\n"
    )


def zscore(data: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and standard deviation 1 (n - 1); constant ones 0.

    Examples
    --------
    >>> import numpy as np
    >>> zscore(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 0.,  0.],
           [ 1.,  0.]])
    """
    # By rounding, the deviation of a constant column may be 1e-17 instead of 0.
    is_constant = data.min(axis=0) == data.max(axis=0)
    deviations = np.where(is_constant, 1.0, data.std(axis=0, ddof=1))
    return np.where(is_constant, 0.0, (data - data.mean(axis=0)) / deviations)
