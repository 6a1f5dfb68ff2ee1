"""Rows as they are, or their roots: what shows clusters more clearly.

Where most entries are zero, roots are taken at once. Else both are clustered, and roots
are taken where their clusters are clearer by a margin. Where entries are negative, rows
stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ihgmm._progress import Steps
from ihgmm.matrix import Matrix
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.roots import RootColumns, look_at_roots
from ihgmm.numerics.spectral import SpectralFit, spectral_clustering
from ihgmm.policy import Roots

RootReason = Literal[
    "asked", "negative", "zeros", "not compared", "clearer", "not clearer"
]


@dataclass(frozen=True)
class RootChoice:
    """Whether a fit has taken the roots of rows, and why.

    Attributes
    ----------
    roots : bool
        Whether roots were taken.
    reason : {"asked", "negative", "zeros", "not compared", "clearer", "not clearer"}
        A parameter asked for it; entries are negative; most entries are zero; rows or
        clusters are too few to compare, or cells are missing; or both were clustered,
        and clusters of roots are clearer or not.
    clearness_as_given, clearness_of_roots : float or None
        How clear clusters are, where both were clustered: what the mixture of rows that
        neighbours have moved gains over one Gaussian, in log-likelihood a row.
    """

    roots: bool
    reason: RootReason
    clearness_as_given: float | None = None
    clearness_of_roots: float | None = None


@dataclass(frozen=True, eq=False)
class RootTrial:
    """What was found by trying roots."""

    choice: RootChoice
    columns: RootColumns | None  # how roots are taken; None: rows stay as they are
    fit: SpectralFit | None = None  # the clusters that were chosen, of all rows


AS_GIVEN = RootTrial(choice=RootChoice(roots=False, reason="asked"), columns=None)


def can_be_rooted(X: Matrix, recipe: Recipe) -> bool:
    """Tell whether a recipe may take roots: it finds tied clusters of unit rows."""
    has_unit_rows = recipe.rows == "unit" and recipe.unit_norm
    return has_unit_rows and recipe.labels == "tied" and not X.signed


def try_roots(
    X: Matrix,
    n_clusters: int,
    recipe: Recipe,
    *,
    always: bool = False,
    seed: int = 0,
    known_labels: KnownLabels = NOTHING_KNOWN,
    steps: Steps | None = None,
) -> RootTrial:
    """Choose between the rows of X and their roots; ``always`` takes roots if it can.

    Of many rows a sample is clustered twice, and no fit is returned.
    """
    if not can_be_rooted(X, recipe):
        return AS_GIVEN

    data = look_at_roots(X, n_clusters)
    if data is None:
        return RootTrial(
            choice=RootChoice(roots=False, reason="negative"), columns=None
        )
    if always or data.is_mostly_zeros:
        reason: RootReason = "asked" if always else "zeros"
        return RootTrial(
            choice=RootChoice(roots=True, reason=reason), columns=data.columns
        )

    # Few rows do not show how clear clusters are, and cells that were filled in show
    # what they were filled in with. One cluster is no clearer than all rows are.
    is_too_few = n_clusters < 2 or X.shape[0] < Roots.LEAST_ROWS
    if is_too_few or X.gaps is not None:
        return RootTrial(
            choice=RootChoice(roots=False, reason="not compared"), columns=None
        )

    def cluster(roots: RootColumns | None) -> SpectralFit:
        if data.sample is None:
            return spectral_clustering(
                X,
                n_clusters,
                recipe,
                seed=seed,
                known_labels=known_labels,
                roots=roots,
                measure_clearness=True,
                steps=steps,
            )

        # Of a sample only the choice is kept: what is known serves the fit to all rows,
        # and roots are taken once. Only one of the two samples is held at a time.
        rows = X if roots is None else roots(X)
        return spectral_clustering(
            rows.copy_rows(data.sample),
            n_clusters,
            recipe,
            seed=seed,
            measure_clearness=True,
        )

    fit_as_given = cluster(None)
    fit_of_roots = cluster(data.columns)
    is_clearer = _is_clearer(fit_of_roots.clearness, fit_as_given.clearness)
    fit = fit_of_roots if is_clearer else fit_as_given

    return RootTrial(
        choice=RootChoice(
            roots=is_clearer,
            reason="clearer" if is_clearer else "not clearer",
            clearness_as_given=fit_as_given.clearness,
            clearness_of_roots=fit_of_roots.clearness,
        ),
        columns=data.columns if is_clearer else None,
        fit=fit if data.sample is None else None,
    )


def _is_clearer(clearness: float, other: float) -> bool:
    """Tell whether clusters are clearer by a margin; not where neither shows any."""
    return bool(np.isfinite(clearness) and clearness > other + Roots.CLEARER)
