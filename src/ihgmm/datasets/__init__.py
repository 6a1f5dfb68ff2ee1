"""The nine labelled data sets of the paper's real-data table."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn import datasets as bundled
from sklearn.utils import Bunch

from ihgmm._checks.parameters import check_choice, check_number
from ihgmm.datasets._cache import DatasetError, fetch
from ihgmm.datasets._catalog import CATALOG, Entry

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
    repository or the LIBSVM data page, which needs the extra ``data``, and kept under
    their upstream file names. What a file holds is checked each time it is read.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`, in upper or lower case.
    data_home : path, optional
        Folder to keep the files in. Default: the environment variable ``IHGMM_DATA``,
        or else the user's cache folder.
    download_if_missing : bool
        Whether a file that is not there yet may be downloaded.
    timeout : float
        Seconds without a byte from the server after which a download is given up.

    Returns
    -------
    sklearn.utils.Bunch
        With the fields

        - ``data``: array of shape (n_samples, n_features), as upstream has it. Rows
          with missing values (8 of Dermatology) are left out.
        - ``X``: the same after the paper's preprocessing.
        - ``preprocessing``: what that is, ``"none"`` or ``"zscore"``: columns with
          mean 0 and standard deviation 1 (n - 1); constant columns become 0.
        - ``target``: the class of each row, from 0.
        - ``target_names``, ``feature_names``: names of classes and columns.
        - ``name``, ``DESCR``, ``citation``: the name, a description, and what to cite.

    Raises
    ------
    DatasetError
        If the file is not there and cannot be downloaded, or is not what it should
        be. It is an OSError; its message says which file to put where.
    ImportError
        If pooch is needed and not installed.

    Examples
    --------
    >>> from ihgmm.datasets import load_dataset
    >>> wine = load_dataset("Wine")
    >>> wine.X.shape, wine.preprocessing
    ((178, 13), 'zscore')
    """
    key = name.lower() if isinstance(name, str) else name
    check_choice("name", key, list(CATALOG))
    timeout = check_number("timeout", timeout, above=0)
    entry = CATALOG[key]
    if entry.home is None:
        data, target, entry = _bundled(key, entry)
    else:
        data, target = fetch(entry, data_home, download_if_missing, timeout)
    return Bunch(
        data=data,
        X=zscore(data) if entry.preprocessing == "zscore" else data.copy(),
        preprocessing=entry.preprocessing,
        target=target,
        target_names=np.array(entry.target_names),
        feature_names=list(entry.feature_names),
        name=key,
        DESCR=_describe(entry, data),
        citation=entry.citation,
    )


def _bundled(key: str, entry: Entry) -> tuple[np.ndarray, np.ndarray, Entry]:
    bunch: Any = bundled.load_iris() if key == "iris" else bundled.load_wine()
    named = entry.renamed(bunch.feature_names, bunch.target_names)
    return (
        np.asarray(bunch.data, dtype=np.float64),
        bunch.target.astype(np.int64),
        named,
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
    # A constant column may have a spread of 1e-17 by rounding, so it is not asked.
    constant = data.min(axis=0) == data.max(axis=0)
    spread = np.where(constant, 1.0, data.std(axis=0, ddof=1))
    return np.where(constant, 0.0, (data - data.mean(axis=0)) / spread)


def _describe(entry: Entry, data: np.ndarray) -> str:
    n, p = data.shape
    source = entry.url or "scikit-learn"
    word = {"none": "none", "zscore": "columns z-scored (n - 1)"}[entry.preprocessing]
    return (
        f"{entry.title}: {n} rows, {p} features, {len(entry.target_names)} classes\n\n"
        f"{entry.about}\n\n"
        f"Source: {source}\n"
        f"Preprocessing in the paper: {word}\n"
        f"Cite:\n{entry.citation}\n"
    )
