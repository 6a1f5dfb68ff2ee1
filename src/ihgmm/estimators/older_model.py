"""An older model, ``init``, in whose clusters the rows of a new fit were."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ihgmm.estimators.clusterer import Clusterer
from ihgmm.matrix import to_host


@dataclass(frozen=True, eq=False)
class OlderLabels:
    """Where an older model puts rows."""

    labels: np.ndarray  # (n_samples,): the cluster of each row
    weights: np.ndarray | None  # (n_samples,): how near it is, if the model tells


def labels_of_older(model: Any, X: Any, batch: Any = None) -> OlderLabels:
    """Return the clusters in which an older model puts rows.

    A row is the nearer the more of it the centre of its cluster explains: with the
    cosine c, its weight is ``c^2 / (1 - c^2)``.
    """
    if not isinstance(model, Clusterer):
        raise TypeError(
            f"init={model!r} is no model of this package; give a fitted one, whose "
            "clusters should keep their numbers, or None."
        )

    check_is_fitted(
        model,
        msg="init is a %(name)s that is not fitted; give a fitted model, or None.",
    )

    options = {"batch": batch} if hasattr(model, "batches_") else {}
    labels = to_host(model._place_rows(X, **options)).astype(np.int64)
    if not hasattr(model, "placement_"):
        return OlderLabels(labels=labels, weights=None)

    cosines = to_host(model.transform(X, **options)).astype(np.float64)
    cosines_with_own = cosines[np.arange(len(labels)), labels]

    explained = np.clip(cosines_with_own, 0.0, 0.995) ** 2
    return OlderLabels(labels=labels, weights=explained / (1 - explained))
