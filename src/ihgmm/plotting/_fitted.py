"""What a picture needs of a fitted model, with clear errors where it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks.data import check_data
from ihgmm._checks.rows import check_labels
from ihgmm._devices import is_device, to_host
from ihgmm._products import matmul
from ihgmm.rounding import normalize_rows

__all__ = [
    "Clusters",
    "check_rows",
    "clusters_of",
    "directions_of",
    "fitted",
    "host",
]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows by cluster.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        The cluster of each row, from 0.
    names : list of str
        What each cluster is called.
    """

    codes: np.ndarray
    names: list[str]

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        return np.bincount(self.codes, minlength=len(self.names))

    def rows(self) -> list[np.ndarray]:
        """Return the rows of each cluster, in their order."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])


def host(values: Any) -> np.ndarray:
    """Return an array of any library as NumPy's."""
    return to_host(values) if is_device(values) else np.asarray(values)


def fitted(model: Any, name: str, picture: str) -> np.ndarray:
    """Return an attribute of a fitted model, or say why it is not there."""
    value = getattr(model, name, None)
    if value is not None:
        return host(value)
    who = type(model).__name__
    if hasattr(model, "fit") and not hasattr(model, "labels_"):
        raise ValueError(f"This {who} is not fitted yet; call fit(X) before {picture}.")
    raise TypeError(
        f"{picture} needs {name}, and {who} has none; give a fitted model that has, "
        "such as IhSC."
    )


def clusters_of(source: Any, picture: str) -> Clusters:
    """Return the clusters of a fitted model, or those that labels make.

    Clusters of a model are its numbers from 0, also those without rows.
    """
    if isinstance(source, str) or not (
        hasattr(source, "fit") or hasattr(source, "labels_")
    ):
        classes, codes = np.unique(check_labels("labels", source), return_inverse=True)
        return Clusters(np.ravel(codes), [str(name) for name in classes])
    labels = fitted(source, "labels_", picture)
    centers = getattr(source, "cluster_centers_", None)
    count = int(labels.max()) + 1 if centers is None else int(centers.shape[0])
    return Clusters(labels, [str(k) for k in range(count)])


def directions_of(model: Any, X: Any, clusters: Clusters, picture: str) -> np.ndarray:
    """Return a row of few coordinates for each row of the fit.

    The embedding of the model; with X, the cosines of the rows of X with the centres,
    at unit length.
    """
    if X is None:
        if hasattr(model, "labels_") and not hasattr(model, "embedding_"):
            raise TypeError(
                f"{type(model).__name__} has no embedding_; give the data as well, "
                f"{picture}(model, X), to see its rows by their cosines with the "
                "centres."
            )
        return fitted(model, "embedding_", picture)
    centers = normalize_rows(fitted(model, "cluster_centers_", picture))
    data = check_data(X, blocks=True, devices=True)
    check_rows(data.X.shape[0], clusters)
    return normalize_rows(host(matmul(data.X, centers.T)))


def check_rows(n_samples: int, clusters: Clusters) -> None:
    """Raise unless there is a label for each row."""
    if n_samples != len(clusters.codes):
        raise ValueError(
            f"X has {n_samples} rows and there are {len(clusters.codes)} labels; give "
            "the rows that were clustered."
        )
