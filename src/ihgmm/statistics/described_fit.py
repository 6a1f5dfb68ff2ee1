"""Rows of a fit beside what it says of them, for all that describes clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm import _checks as checks
from ihgmm.matrix import Matrix, to_host
from ihgmm.statistics.estimation import estimate_parameters


@dataclass(frozen=True, eq=False)
class DescribedFit:
    """Rows of a fit in their own units, and what the fit says of them."""

    data: Matrix  # missing cells filled in, and rows turned towards their centre
    labels: np.ndarray  # numbers of clusters, -1 for outliers
    clusters: np.ndarray  # their labels, also of those without rows
    scales: np.ndarray
    centers: np.ndarray  # (n_clusters, n_features)

    @property
    def n_rows(self) -> int:
        """Number of rows, also of outliers."""
        return len(self.labels)

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        labels = self.labels[self.labels >= 0]
        return np.bincount(labels, minlength=len(self.clusters))


def described_fit(X: Any, model: Any) -> DescribedFit:
    """Return rows with labels, scales and centres: the model's own, or estimates."""
    X, model, *_ = checks.last_step(X, model)
    X, labels_of_rows = checks.data_and_labels(X, model)
    data = checks.check_matrix(X)

    if checks.is_model(model):
        checks.check_fit_shape("X", data, model)
        labels = to_host(labels_of_rows).astype(np.intp)
        n_centers = len(to_host(getattr(model, "cluster_centers_", [])))
        clusters = np.arange(max(n_centers, int(labels.max()) + 1))
    else:
        clusters, codes, outliers = checks.labelled_rows(labels_of_rows, data)
        labels = to_host(codes)
        if outliers is not None:
            labels = np.where(to_host(outliers), -1, labels)

    if hasattr(model, "scales_"):
        scales = model.scales_
        centers = model.cluster_centers_
    else:  # a method that knows nothing of scales
        estimates = estimate_parameters(data, labels, len(clusters))
        scales = estimates.scales
        centers = estimates.centers

    return DescribedFit(
        data=data,
        labels=labels,
        clusters=clusters,
        scales=to_host(scales).astype(np.float64),
        centers=to_host(centers).astype(np.float64),
    )
