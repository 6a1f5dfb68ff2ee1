"""Labels by the nearest of k-means' centres, as in the paper."""

from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored, sklearn_filters
from ihgmm.numerics.rules import FittedRule, LinearRule
from ihgmm.policy import Labelling


def kmeans_rule(
    rows: np.ndarray,
    k: int,
    weights: np.ndarray,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = Labelling.STEPS,
    seed: int = 0,
) -> FittedRule:
    """Run scikit-learn's k-means; of most small data the seed then does not matter.

    ``n_init="auto"`` takes as many starts as are cheap.
    """
    from sklearn.cluster import KMeans  # few fits need it, and it takes long

    if n_init == "auto":
        affordable_starts = Labelling.KMEANS_WORK // (rows.size * k)
        n_init = int(np.clip(affordable_starts, *Labelling.KMEANS_STARTS))

    n_centers = min(k, len(rows))
    kmeans = KMeans(n_centers, n_init=n_init, max_iter=max_iter, random_state=seed)
    # It warns of empty clusters, which estimators count.
    with ignored(ConvergenceWarning), sklearn_filters:
        kmeans.fit(rows, sample_weight=weights)

    # Of equal centres the first has the rows: clusters without any stay empty.
    used_centers = kmeans.cluster_centers_[np.unique(kmeans.labels_)]
    centers = used_centers[np.arange(k) % len(used_centers)]
    return FittedRule(rule=LinearRule.nearest(centers), n_iter=int(kmeans.n_iter_))
