"""The number of clusters of an estimator that counts for itself."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._arrays import Array
from ihgmm.selection.count import choose
from ihgmm.selection.found import ClusterCount
from ihgmm.selection.words import clusters, is_capped

__all__ = ["resolve"]


def resolve(
    n_clusters: int | Literal["auto"],
    X: Array,
    sqnorms: np.ndarray,
    gram: str,
    rng: np.random.Generator,
    *,
    refined: bool = False,
) -> tuple[int, ClusterCount | None]:
    """Return the number of clusters of an estimator, counted if it is "auto".

    ``refined`` tells that its labels do not rest on the eigenvectors of ``gram`` alone.
    """
    if n_clusters != "auto":
        return n_clusters, None
    found = choose(X, sqnorms, "cosine" if gram == "cosine" else "auto", rng)
    unseen = found.gram == "cosine" and gram != "cosine" and not refined
    for caution in _cautions(found, gram if unseen else None):
        warnings.warn(caution, ConvergenceWarning, stacklevel=4)
    return max(found.n_clusters, 1), found


def _cautions(found: ClusterCount, blind: str | None) -> list[str]:
    """Return what is to be told, given the Gram matrix that does not see the count."""
    if found.n_clusters == 0:
        return [
            f"{found.summary} All rows are put in one cluster; give n_clusters if you "
            "know better."
        ]
    cautions = []
    if is_capped(found):
        cautions.append(
            f"n_clusters='auto' looks for {clusters(found.max_clusters)} at most and "
            "found as many; there may be more. Count them with "
            f"select_n_clusters(X, max_clusters={10 * found.max_clusters}) and give "
            "the number."
        )
    if blind is not None and found.n_clusters > 1:
        cautions.append(
            f"The cosines of rows show {clusters(found.n_clusters)}, gram={blind!r} "
            "shows fewer and can mix them up. Fit with gram='cosine' or refine=True."
        )
    return cautions
