"""Models that go on with more rows: which can, what they begin from, what they say."""

from __future__ import annotations

from typing import Any

from ihgmm._parameters import option
from ihgmm._warnings import DriftWarning, warn
from ihgmm.numerics.growing import Grown, Growth, growth_of_fit
from ihgmm.numerics.recipe import Recipe


def check_can_grow(model: Any) -> None:
    """Raise unless a model has options with which it can grow."""
    usual = {"signed": False, "whiten": None, "refine": False, "outliers": None}
    for name, value in {**usual, "missing": "error"}.items():
        if getattr(model, name) != value:
            raise ValueError(
                f"partial_fit cannot be combined with "
                f"{option(name, getattr(model, name))}; leave that out, or fit to all "
                "rows at once."
            )
    if hasattr(model, "batches_"):
        raise ValueError(
            "partial_fit cannot go on with a model that was fitted with batches; fit "
            "to all rows at once."
        )
    recipe = Recipe.of(model.recipe)
    grows = recipe.rows == "unit" and recipe.labels == "tied" and recipe.unit_norm
    if not grows or recipe.placement != "embedding":
        raise ValueError(
            f"partial_fit cannot go on with {recipe!r}; it takes unit rows, "
            "labels='tied' and placement='embedding', as the default has."
        )


def grown_before(model: Any) -> tuple[Growth, Any, Any]:
    """Return what a fitted model remembers, and how it places rows."""
    growth = getattr(model, "growth_", None)
    if growth is None:
        growth = growth_of_fit(model.placement_, model, model.n_clusters_)
    return growth, model.placement_, model.space_


def warn_of_drift(grown: Grown, n_clusters: int) -> None:
    """Say that clusters have emptied or appeared; a model says each once."""
    again = "IhSC({k}, init=model).fit(X)"
    if grown.emptied:
        names = ", ".join(map(str, grown.emptied))
        many = len(grown.emptied) > 1
        warn(
            f"Hardly any new row comes to cluster{'s' * many} {names}. The model stays "
            "that of all rows seen. To forget old ones, fit to recent rows, "
            f"{again.format(k=max(n_clusters - len(grown.emptied), 1))}: clusters that "
            "are still there keep their numbers.",
            DriftWarning,
        )
    if grown.novel:
        warn(
            f"{grown.novel:.0%} of the new rows are far from all clusters: one may "
            "have appeared. To give it a number, fit with one more cluster, "
            f"{again.format(k=n_clusters + 1)}: the others keep theirs.",
            DriftWarning,
        )
