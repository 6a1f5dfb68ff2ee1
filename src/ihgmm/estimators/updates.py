"""Updates by ``partial_fit``: what a model and its rows need, and what it warns of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm import _checks as checks
from ihgmm._parameters import option
from ihgmm._warnings import DriftWarning, warn
from ihgmm.matrix import Matrix
from ihgmm.numerics.incremental import IncrementalFit
from ihgmm.numerics.recipe import Recipe
from ihgmm.policy import Growing

if TYPE_CHECKING:
    from ihgmm.estimators.ihsc import IhSC


def check_can_grow(model: IhSC) -> None:
    """Raise unless a model has options with which it can go on with more rows."""
    recipe = Recipe.of(model.recipe)
    has_linear_rule = recipe.labels == "tied" and recipe.placement == "embedding"
    can_grow = has_linear_rule and recipe.rows == "unit" and recipe.unit_norm

    obstacles = {
        "batch": hasattr(model, "batches_"),
        option("signed", model.signed): bool(model.signed),
        option("columns", model.columns): model.columns in ("counts", "noise"),
        option("outliers", model.outliers): model.outliers is not None,
        f"{recipe!r}, in the place of the default": not can_grow,
    }

    for obstacle, is_there in obstacles.items():
        if is_there:
            raise ValueError(
                f"partial_fit cannot go on with {obstacle}; leave that out, or fit to "
                "all rows at once."
            )


def check_growing(X: Matrix, sample_weight: Any) -> np.ndarray:
    """Return weights; raise if sums over calls would overflow, in float32 too."""
    if not Growing.LEAST_UNIT < X.unit < 1 / Growing.LEAST_UNIT:
        raise ValueError(
            f"Numbers of X are about {X.unit:.0e} in size, and sums of their squares "
            f"over all batches overflow; divide every batch by {X.unit:.0e}."
        )

    weights = checks.check_weights(sample_weight, X.shape[0])

    is_extreme = (weights > 0) & ((weights < 1e-9) | (weights > 1e9))
    if is_extreme.any():
        raise ValueError(
            f"sample_weight has {weights[is_extreme][0]:.3g}. Weights of all calls of "
            "partial_fit are added up: give 0, or numbers from 1e-9 to 1e9."
        )

    return weights


def warn_of_drift(fit: IncrementalFit, n_clusters: int) -> None:
    """Say that clusters have emptied or appeared; a model says each once."""
    promise = "clusters that are still there keep their numbers."

    if fit.emptied:
        n_others = max(n_clusters - len(fit.emptied), 1)
        warn(
            "Hardly any new row comes to clusters "
            f"{', '.join(map(str, fit.emptied))}. The model stays that of all rows "
            "seen. To forget old ones, fit to recent rows, "
            f"IhSC({n_others}, init=model).fit(X): {promise}",
            DriftWarning,
        )

    if fit.novel_share:
        warn(
            f"{fit.novel_share:.0%} of the new rows are far from all clusters: one may "
            "have appeared. To give it a number, fit with one more, "
            f"IhSC({n_clusters + 1}, init=model).fit(X): {promise}",
            DriftWarning,
        )
