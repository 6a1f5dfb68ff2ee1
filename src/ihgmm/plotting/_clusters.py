"""What a picture needs of a fitted model, with clear errors where it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks import check_labels, is_model, is_outlier, refuse_model
from ihgmm.matrix import to_host
from ihgmm.words.phrases import counted


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows by cluster: the code of each row, from 0, and the name of each cluster.

    Outliers have the code -1 and are in no cluster.
    """

    codes: np.ndarray
    names: list[str]

    def __str__(self) -> str:
        """Return how many rows there are, and how many clusters."""
        rows = counted(len(self.codes), "row")
        return f"{rows} in {counted(len(self.names), 'cluster')}"

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    @property
    def outliers(self) -> np.ndarray:
        """Rows in no cluster."""
        return np.flatnonzero(self.codes < 0)

    def with_outliers(self, name: str) -> Clusters:
        """Return clusters of which outliers, if there are any, are the last."""
        if not len(self.outliers):
            return self
        codes = np.where(self.codes < 0, len(self.names), self.codes)
        return Clusters(codes, [*self.names, name])

    def rows(self) -> list[np.ndarray]:
        """Return the rows of each cluster, in their order."""
        order = np.argsort(self.codes, kind="stable")[len(self.outliers) :]
        return np.split(order, np.cumsum(self.sizes)[:-1])

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over the rows of each cluster; NaN where there are none."""
        nothing = np.full(values.shape[1], np.nan)
        return np.array(
            [
                values[rows].mean(axis=0) if len(rows) else nothing
                for rows in self.rows()
            ]
        )

    def table(self, other: Clusters) -> np.ndarray:
        """Return how many rows each cluster here shares with each one there."""
        counts = np.zeros((len(self.names), len(other.names)), dtype=np.intp)
        both = (self.codes >= 0) & (other.codes >= 0)
        np.add.at(counts, (self.codes[both], other.codes[both]), 1)
        return counts

    def thinned(self, most: int, least: int) -> list[np.ndarray]:
        """Return at most about so many rows, by cluster, but of each at least some."""
        rows, total = self.rows(), len(self.codes)
        if total <= most:
            return rows
        # The same share of every cluster, drawn at random, but always the same rows.
        rng = np.random.default_rng(0)
        counts = [min(len(one), max(len(one) * most // total, least)) for one in rows]
        pairs = zip(rows, counts, strict=True)
        return [np.sort(rng.choice(one, n, replace=False)) for one, n in pairs]


def data_and_model(X: Any, model: Any) -> tuple[Any, Any]:
    """Return data, or None, and the model: what is given alone is the model."""
    if model is None:
        return None, X
    refuse_model(X)
    return X, model


def fitted(model: Any, name: str, picture: str) -> np.ndarray:
    """Return an attribute of a fitted model, or say why it is not there."""
    value = getattr(model, name, None)
    if value is not None:
        return to_host(value)
    who = type(model).__name__
    if hasattr(model, "fit") and not hasattr(model, "labels_"):
        raise ValueError(f"This {who} is not fitted yet; call fit(X) before {picture}.")
    raise TypeError(
        f"{picture} needs {name}, and {who} has none; give a fitted model that has, "
        "such as IhSC."
    )


def embedding_of(model: Any, picture: str) -> np.ndarray:
    """Return the embedding of a fitted model, or say that the data are needed."""
    is_fitted = hasattr(model, "labels_") or not hasattr(model, "fit")
    if is_fitted and getattr(model, "embedding_", None) is None:
        raise TypeError(
            f"{type(model).__name__} has no embedding_; give the data as well: "
            f"{picture}(X, model)."
        )
    return fitted(model, "embedding_", picture).astype(np.float64)


def clusters_of(source: Any, picture: str) -> Clusters:
    """Return the clusters of a fitted model, empty ones too, or those of labels."""
    if not is_model(source):
        name = f"{picture} takes a fitted model or its labels. What it was given"
        labels = check_labels(name, source)
        classes, codes = np.unique(labels, return_inverse=True)
        first = int(is_outlier(labels).any())
        return Clusters(codes - first, [str(name) for name in classes[first:]])
    labels = fitted(source, "labels_", picture)
    centers = getattr(source, "cluster_centers_", None)
    count = int(labels.max()) + 1 if centers is None else int(centers.shape[0])
    return Clusters(labels, [str(k) for k in range(count)])


def names_of(what: str, given: Any, count: int = 0, of: str = "") -> list[str]:
    """Return texts, one for each row or feature, or as many as there are."""
    if isinstance(given, str | bytes):
        one, every = (
            ("name", f"one for each {of}") if of else ("note", "a list of them")
        )
        raise TypeError(f"{what}={given!r} is one {one}; give {every}.")
    names = [text_of(name) for name in given]
    if of and len(names) != count:
        raise ValueError(
            f"{what} has {len(names)} entries and X has {count} {of}s; give one for "
            f"each {of}."
        )
    return names


def text_of(name: Any) -> str:
    """Return a name of any kind as text."""
    if name is None:
        return ""
    if isinstance(name, tuple):  # of an index of several levels
        return ", ".join(map(text_of, name))
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
