"""The phase-transition study: from no recovery to exact recovery as centres part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ihgmm._checks.parameters import check_number, generator
from ihgmm.experiments.grids import Experiment, Map, Panel
from ihgmm.model import default_separation, make_ihgmm

__all__ = ["PHASE", "correlated_sample"]

CONSTANTS = (0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0)
"""Separations in units of the paper's condition, nearly even on a log axis."""

BASE: dict[str, Any] = {
    "n_samples": 200,
    "n_features": 500,
    "n_clusters": 4,
    "scale_ratio": 5.0,
}
"""The point that all maps have in common; each varies one thing around it."""

METHODS = (
    "IhSC",
    "IhSC, refined",
    "IhGMM",
    "PSC, restarts",
    "spherical, restarts",
    "label oracle",
    "centre oracle",
)


def correlated_sample(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    cosine: float,
    separation_constant: float,
    random_state: Any = None,
    **options: Any,
) -> Any:
    """Sample from the model with centres that have a part in common.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Size of the sample, with more features than clusters.
    cosine : float
        Cosine between any two centres, from 0 to 0.99.
    separation_constant : float
        The distance between centres does not depend on the cosine: it is this
        constant times the threshold of the paper.
    random_state : int, RandomState, Generator or None
        Seed of centres and sample.
    **options
        Further arguments of :func:`ihgmm.make_ihgmm`.

    Returns
    -------
    tuple or IhGMMSample
        What :func:`ihgmm.make_ihgmm` returns.

    Examples
    --------
    >>> sample = correlated_sample(
    ...     50, 20, 3, cosine=0.6, separation_constant=1.0, random_state=0,
    ...     return_params=True,
    ... )
    >>> a, b, _ = sample.centers
    >>> round(float(a @ b / np.sqrt((a @ a) * (b @ b))), 6)
    0.6
    """
    check_number("cosine", cosine, least=0, most=0.99)
    rng = generator(random_state)
    distance = default_separation(
        n_samples, n_features, n_clusters, separation_constant
    )
    axes = np.linalg.qr(rng.standard_normal((n_features, n_clusters + 1)))[0].T
    centers = axes[:-1] + np.sqrt(cosine / (1 - cosine)) * axes[-1]
    return make_ihgmm(
        n_samples,
        centers=distance / np.sqrt(2) * centers,
        random_state=rng,
        **options,
    )


def _map(
    name: str,
    title: str,
    symbol: str,
    rows: dict[str, dict[str, Any]],
    sampler: Callable[..., Any] = make_ihgmm,
) -> Map:
    """Make a panel for each row: how it is called, and how it differs from the base."""
    panels = tuple(
        Panel(
            f"{name}={row}",
            row,
            "separation_constant",
            "separation constant, C",
            CONSTANTS,
            {**BASE, **options},
            sampler,
        )
        for row, options in rows.items()
    )
    return Map(name, title, symbol, panels)


def _rows(argument: str, *values: float) -> dict[str, dict[str, Any]]:
    return {f"{value:g}": {argument: value} for value in values}


LOUD = round(float(np.sqrt(np.mean([9, 1, 1 / 9]))), 2)
"""Root mean square of levels that are uniform from 1/3 to 3."""

MAPS = (
    _map(
        "p",
        "Number of features",
        "features, p",
        _rows("n_features", 50, 100, 200, 500, 1000, 2000, 5000),
    ),
    _map(
        "K",
        "Number of clusters",
        "clusters, K",
        _rows("n_clusters", 2, 3, 4, 6, 8, 12),
    ),
    _map(
        "beta",
        "Balance of the clusters",
        "balance, β",
        _rows("balance", 0.1, 0.2, 0.4, 0.7, 1.0),
    ),
    _map(
        "R",
        "Spread of the scales",
        "spread of scales, R",
        _rows("scale_ratio", 1, 2, 5, 10, 20, 50, 100),
    ),
    _map(
        "cosine",
        "Correlated centres",
        "cosine of centres",
        _rows("cosine", 0.0, 0.3, 0.6, 0.9),
        correlated_sample,
    ),
    _map(
        "noise",
        "Noise that differs between rows",
        "noise levels",
        {
            "1": {"noise_levels": 1.0},
            "0.5 to 1.5": {"noise_levels": (0.5, 1.5)},
            f"{LOUD:g}": {"noise_levels": LOUD},
            "1/3 to 3": {"noise_levels": (1 / 3, 3.0)},
        },
    ),
)

PHASE = Experiment(
    "phase",
    "Phase transition",
    tuple(panel for one in MAPS for panel in one.panels),
    METHODS,
    reps=5,
    maps=MAPS,
)
"""Not in the paper. Panel names hold the second parameter, as in ``K=12``."""
