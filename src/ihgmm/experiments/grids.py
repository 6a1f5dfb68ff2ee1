"""What the simulation studies are made of, and the paper's four: nothing but data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ihgmm.model import make_ihgmm

__all__ = ["EXPERIMENTS", "NOISES", "Experiment", "Map", "Panel", "Setting"]

Noise = Literal["gaussian", "rademacher"]

COMPARED = (
    "IhSC",
    "IhSC, cosine",
    "PSC",
    "PSC, restarts",
    "k-means",
    "spherical k-means",
)
"""The methods of every experiment: the paper's three and what users would try."""

NOISES: dict[Noise, str] = {"gaussian": "GHe", "rademacher": "SHe"}
"""Noise distributions and the paper's names for them."""


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
    values : tuple of float
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
    values: tuple[float, ...]
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
        found = []
        for panel in self.panels:
            names = (panel.varies,) if isinstance(panel.varies, str) else panel.varies
            for value in panel.values:
                options = {**panel.fixed, **dict.fromkeys(names, value)}
                found += [
                    Setting(
                        self.name,
                        panel.name,
                        value,
                        noise,
                        options,
                        self.methods,
                        panel.sampler,
                    )
                    for noise in NOISES
                ]
        return found


def _panel(
    name: str,
    title: str,
    varies: str | tuple[str, ...],
    symbol: str,
    values: Any,
    **fixed: Any,
) -> Panel:
    return Panel(name, title, varies, symbol, tuple(values), fixed)


N, P, K, R = "n_samples", "n_features", "n_clusters", "scale_ratio"

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        Experiment(
            "exp1",
            "Experiment 1: sample size and dimension",
            (
                _panel(
                    "n>>p",
                    "n ≫ p",
                    N,
                    "rows, n",
                    range(500, 2501, 500),
                    **{P: 200, K: 4},
                ),
                _panel(
                    "n=p", "n = p", (N, P), "rows, n", range(100, 501, 100), **{K: 4}
                ),
                _panel(
                    "p>>n",
                    "p ≫ n",
                    P,
                    "features, p",
                    range(1000, 5001, 1000),
                    **{N: 200, K: 4},
                ),
            ),
        ),
        Experiment(
            "exp2",
            "Experiment 2: number of clusters",
            (
                _panel(
                    "n>>p", "n ≫ p", K, "clusters, K", range(2, 9), **{N: 5000, P: 1000}
                ),
                _panel(
                    "n=p", "n = p", K, "clusters, K", range(2, 9), **{N: 1000, P: 1000}
                ),
                _panel(
                    "p>>n", "p ≫ n", K, "clusters, K", range(2, 9), **{N: 1000, P: 5000}
                ),
            ),
        ),
        Experiment(
            "exp3",
            "Experiment 3: spread of the scales",
            (
                _panel(
                    "R",
                    "n = 500, p = 1000",
                    R,
                    "spread of scales, R",
                    range(5, 101, 5),
                    **{N: 500, P: 1000, K: 3},
                ),
            ),
        ),
        Experiment(
            "exp4",
            "Experiment 4: balance of the clusters",
            (
                _panel(
                    "beta",
                    "n = 200, p = 1000",
                    "balance",
                    "balance, β",
                    (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
                    **{N: 200, P: 1000, K: 3},
                ),
            ),
            ("IhSC", "IhSC, magnitude", *COMPARED[1:]),
        ),
    )
}
"""The paper's experiments. Scales up to 20 and C = 3 are defaults of the sampler; the
separation is the default one throughout, which is what the paper fixes it to in
experiments 3 and 4, since it depends on neither R nor beta."""
