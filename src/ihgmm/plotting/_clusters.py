"""What a picture needs of a fitted model, with clear errors where it is missing."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ihgmm._checks import check_labels, is_model, is_outlier, last_step
from ihgmm.matrix import to_host
from ihgmm.metrics import match_labels
from ihgmm.numerics.matching import confusion


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows by cluster."""

    codes: np.ndarray  # of each row, from 0; -1 for outliers, which are in no cluster
    names: list[str]  # of each cluster

    @property
    def n_clusters(self) -> int:
        """Number of clusters, also of those without rows."""
        return len(self.names)

    @property
    def is_clustered(self) -> np.ndarray:
        """Whether each row is in a cluster."""
        return self.codes >= 0

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        codes = self.codes[self.is_clustered]
        return np.bincount(codes, minlength=self.n_clusters)

    @property
    def outliers(self) -> np.ndarray:
        """Rows in no cluster."""
        return np.flatnonzero(~self.is_clustered)

    def with_outliers(self) -> Self:
        """Return clusters of which outliers, if there are any, are the last."""
        if not len(self.outliers):
            return self
        codes = np.where(self.is_clustered, self.codes, self.n_clusters)
        return replace(self, codes=codes, names=[*self.names, "outlier"])

    def rows(self) -> list[np.ndarray]:
        """Return the rows of each cluster, in their order."""
        by_cluster = np.argsort(self.codes, kind="stable")
        clustered_rows = by_cluster[len(self.outliers) :]
        ends = np.cumsum(self.sizes)
        return np.split(clustered_rows, ends[:-1])

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over the rows of each cluster; NaN where there are none."""
        means = np.full((self.n_clusters, values.shape[1]), np.nan)
        for cluster in np.flatnonzero(self.sizes):
            is_in_cluster = self.codes == cluster
            means[cluster] = values[is_in_cluster].mean(axis=0)
        return means

    def table(self, other: Self) -> np.ndarray:
        """Return how many rows each cluster here shares with each one there."""
        shape = (self.n_clusters, other.n_clusters)
        return confusion(self.codes, other.codes, shape)

    def partners(self, other: Self, *, by_majority: bool) -> np.ndarray:
        """Return which of the others each cluster goes with, or -1."""
        if by_majority:
            counts = self.table(other)
            return np.asarray(counts.argmax(axis=1))

        matched = match_labels(other.codes, self.codes)
        matched = np.where(matched < other.n_clusters, matched, -1)

        # The same of each row of a cluster.
        codes = self.codes[self.is_clustered]
        partners = np.full(self.n_clusters, -1)
        partners[codes] = matched[self.is_clustered]
        return partners

    def thinned(self, most: int, least: int) -> list[np.ndarray]:
        """Return at most about so many rows, by cluster, but of each at least some."""
        rows_of_clusters = self.rows()
        n_rows = len(self.codes)
        if n_rows <= most:
            return rows_of_clusters

        # The same share of every cluster, drawn at random, but always the same rows.
        rng = np.random.default_rng(0)
        drawn = []
        for rows in rows_of_clusters:
            even_share = len(rows) * most // n_rows
            size = min(len(rows), max(even_share, least))
            sample = rng.choice(rows, size, replace=False)
            drawn.append(np.sort(sample))
        return drawn


def fitted(model: Any, name: str, picture: str) -> np.ndarray:
    """Return an array of a fitted model, or say why it is not there."""
    return to_host(learnt(model, name, picture))


def learnt(model: Any, name: str, picture: str) -> Any:
    """Return what a model has learnt, or say why it is not there."""
    _, model, *_ = last_step(None, model)
    value = getattr(model, name, None)
    if value is not None:
        return value

    class_name = type(model).__name__
    if hasattr(model, "fit") and not hasattr(model, "labels_"):
        raise ValueError(
            f"This {class_name} is not fitted yet; call fit(X) before {picture}."
        )
    remedy = "give a fitted model that has, such as IhSC"
    if name in ("embedding_", "memberships_"):  # for which data stand in
        remedy = f"give the data as well: {picture}(X, model)"
    if name == "selection_":
        remedy = "fit it with n_clusters='auto', or give select_n_clusters(X)"
    raise TypeError(f"{picture} needs {name}, and {class_name} has none; {remedy}.")


def clusters_of(source: Any, picture: str) -> Clusters:
    """Return the clusters of a fitted model, empty ones too, or those of labels."""
    if not is_model(source):
        name = f"{picture} takes a fitted model or its labels. What it was given"
        labels = check_labels(name, source)
        classes, codes = np.unique(labels, return_inverse=True)
        n_outlier_classes = int(is_outlier(labels).any())  # -1 is the first class
        names = classes[n_outlier_classes:]
        return Clusters(
            codes=codes - n_outlier_classes,
            names=[str(name) for name in names],
        )

    _, model, *_ = last_step(None, source)
    labels = fitted(model, "labels_", picture)
    centers = getattr(model, "cluster_centers_", None)
    n_clusters = int(labels.max(initial=-1)) + 1
    if centers is not None:  # of which some may have no rows
        n_clusters = int(centers.shape[0])
    return Clusters(codes=labels, names=[str(k) for k in range(n_clusters)])
