"""The simulation studies, the paper's four and one beyond them: nothing but data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ihgmm._checks import check_number, generator
from ihgmm.statistics.model import default_separation, make_ihgmm

Noise = Literal["gaussian", "rademacher"]
NOISE_NAMES: dict[Noise, str] = {"gaussian": "GHe", "rademacher": "SHe"}
"""Noise distributions and the paper's names for them."""

COMPARED = ("IhSC", "IhSC, cosine", "PSC", "PSC, restarts", "k-means",
            "spherical k-means")  # fmt: skip
"""The methods of every experiment: the paper's three and what users would try."""


@dataclass(frozen=True)
class Setting:
    """One point of a curve: where it is drawn, and what is sampled there.

    Attributes
    ----------
    experiment, panel : str
        Where the setting belongs.
    x : float
        The value of the parameter that varies.
    noise : str
        Distribution of the noise.
    options : dict
        Arguments of the sampler.
    methods : tuple of str
        What is run there, of :data:`~ihgmm.experiments.methods.METHODS`.
    sampler : callable
        Draws the sample; takes and returns what :func:`ihgmm.make_ihgmm` does.
    """

    experiment: str
    panel: str
    x: float
    noise: Noise
    options: dict[str, Any] = field(hash=False)
    methods: tuple[str, ...]
    sampler: Callable[..., Any] = make_ihgmm

    @property
    def key(self) -> str:
        """A name that is the same in every run and on every machine."""
        return f"{self.experiment}/{self.panel}/{self.x:g}/{self.noise}"


@dataclass(frozen=True)
class Panel:
    """One pair of plots: a parameter varies, the others are fixed.

    Attributes
    ----------
    name, title : str
        A word for tables and a heading for figures.
    varies : str or tuple of str
        The argument of the sampler that takes the values.
    symbol : str
        What it is called under the axis, with the paper's letter.
    values : sequence of float
        The values, in order.
    fixed : dict
        The other arguments.
    sampler : callable
        As in :class:`Setting`.
    """

    name: str
    title: str
    varies: str | tuple[str, ...]
    symbol: str
    values: Sequence[float]
    fixed: dict[str, Any] = field(hash=False)
    sampler: Callable[..., Any] = make_ihgmm


@dataclass(frozen=True)
class Map:
    """Panels that differ in a second parameter, drawn as one heat map.

    Attributes
    ----------
    name, title : str
        A word for files and a heading for figures.
    symbol : str
        What the second parameter is called beside the axis.
    panels : tuple of Panel
        The rows of the map from the bottom up; their titles are the values of the
        second parameter.
    """

    name: str
    title: str
    symbol: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Experiment:
    """A simulation study.

    Attributes
    ----------
    name, title : str
        A word for tables and a heading for figures.
    panels : tuple of Panel
        What varies.
    methods : tuple of str
        What is run, of :data:`~ihgmm.experiments.methods.METHODS`.
    reps : int
        Repetitions of each setting, unless asked for otherwise.
    maps : tuple of Map
        The panels as rows of heat maps; without any, panels are drawn as curves.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    methods: tuple[str, ...] = COMPARED
    reps: int = 200
    maps: tuple[Map, ...] = ()

    def settings(self) -> list[Setting]:
        """Return every setting, noise after noise within a point."""
        settings = []
        for panel in self.panels:
            names = (panel.varies,) if isinstance(panel.varies, str) else panel.varies
            for x in panel.values:
                options = {**panel.fixed, **dict.fromkeys(names, x)}
                place = (self.name, panel.name, x)
                settings += [
                    Setting(*place, noise, options, self.methods, panel.sampler)
                    for noise in NOISE_NAMES
                ]
        return settings


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

    ``cosine`` is that between any two centres, from 0 to 0.99. Their distance does not
    depend on it: it is ``separation_constant`` times the threshold of the paper. Other
    arguments and what is returned are those of :func:`ihgmm.make_ihgmm`.

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
    centers *= distance / np.sqrt(2)
    return make_ihgmm(n_samples, centers=centers, random_state=rng, **options)


N, P, K, R = "n_samples", "n_features", "n_clusters", "scale_ratio"

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (
    Experiment("exp1", "Experiment 1: sample size and dimension", (
        Panel("n>>p", "n ≫ p", N, "rows, n", range(500, 2501, 500), {P: 200, K: 4}),
        Panel("n=p", "n = p", (N, P), "rows, n", range(100, 501, 100), {K: 4}),
        Panel("p>>n", "p ≫ n", P, "features, p", range(1000, 5001, 1000),
              {N: 200, K: 4}),
    )),
    Experiment("exp2", "Experiment 2: number of clusters", (
        Panel("n>>p", "n ≫ p", K, "clusters, K", range(2, 9), {N: 5000, P: 1000}),
        Panel("n=p", "n = p", K, "clusters, K", range(2, 9), {N: 1000, P: 1000}),
        Panel("p>>n", "p ≫ n", K, "clusters, K", range(2, 9), {N: 1000, P: 5000}),
    )),
    Experiment("exp3", "Experiment 3: spread of the scales", (
        Panel("R", "n = 500, p = 1000", R, "spread of scales, R", range(5, 101, 5),
              {N: 500, P: 1000, K: 3}),
    )),
    Experiment("exp4", "Experiment 4: balance of the clusters", (
        Panel("beta", "n = 200, p = 1000", "balance", "balance, β",
              tuple(i / 10 for i in range(1, 11)), {N: 200, P: 1000, K: 3}),
    ), ("IhSC", "IhSC, magnitude", *COMPARED[1:])),
)}  # fmt: skip
"""The paper's experiments. Scales up to 20 and C = 3 are defaults of the sampler; the
separation is the default one throughout, which is what the paper fixes it to in
experiments 3 and 4, since it depends on neither R nor beta."""


def _map(
    name: str,
    title: str,
    symbol: str,
    rows: dict[str, dict[str, Any]],
    sampler: Callable[..., Any] = make_ihgmm,
) -> Map:
    """Make a panel for each row: how it is called, and how it differs from the base."""
    base = {N: 200, P: 500, K: 4, R: 5.0}  # what all maps have in common
    # In units of the paper's condition, nearly even on a log axis.
    constants = (0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0)
    varies, axis = "separation_constant", "separation constant, C"
    panels = (
        Panel(
            f"{name}={row}", row, varies, axis, constants, {**base, **options}, sampler
        )
        for row, options in rows.items()
    )
    return Map(name, title, symbol, tuple(panels))


def _rows(argument: str, *values: float) -> dict[str, dict[str, Any]]:
    return {f"{value:g}": {argument: value} for value in values}


# One level for all rows with the mean square of levels that are uniform from 1/3 to 3.
LOUD = round(float(np.sqrt(np.mean([9, 1, 1 / 9]))), 2)
NOISE_ROWS: dict[str, dict[str, Any]] = {
    "1": {"noise_levels": 1.0},
    "0.5 to 1.5": {"noise_levels": (0.5, 1.5)},
    f"{LOUD:g}": {"noise_levels": LOUD},
    "1/3 to 3": {"noise_levels": (1 / 3, 3.0)},
}
MAPS = (
    _map("p", "Number of features", "features, p",
         _rows(P, 50, 100, 200, 500, 1000, 2000, 5000)),
    _map("K", "Number of clusters", "clusters, K", _rows(K, 2, 3, 4, 6, 8, 12)),
    _map("beta", "Balance of the clusters", "balance, β",
         _rows("balance", 0.1, 0.2, 0.4, 0.7, 1.0)),
    _map("R", "Spread of the scales", "spread of scales, R",
         _rows(R, 1, 2, 5, 10, 20, 50, 100)),
    _map("cosine", "Correlated centres", "cosine of centres",
         _rows("cosine", 0.0, 0.3, 0.6, 0.9), correlated_sample),
    _map("noise", "Noise that differs between rows", "noise levels", NOISE_ROWS),
)  # fmt: skip

PHASE = Experiment(
    "phase",
    "Phase transition",
    tuple(panel for one in MAPS for panel in one.panels),
    ("IhSC", "IhSC, refined", "IhGMM", "PSC, restarts", "spherical, restarts",
     "label oracle", "centre oracle"),
    reps=5,
    maps=MAPS,
)  # fmt: skip
"""From no recovery to exact recovery as the centres part: not in the paper. Panel names
hold the second parameter, as in ``K=12``."""

STUDIES: dict[str, Experiment] = {**EXPERIMENTS, PHASE.name: PHASE}
"""Everything that can be simulated: the paper's experiments and beyond."""
