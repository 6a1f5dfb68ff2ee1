"""The simulation studies, the paper's four and one beyond them: nothing but data."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ihgmm._parameters import check_count, check_number, generator
from ihgmm.paper.methods import METHODS, Method
from ihgmm.statistics.model import default_separation, make_ihgmm

# Noise distributions and the paper's names for them.
NOISE_NAMES = {"gaussian": "GHe", "rademacher": "SHe"}
# The methods of every experiment: the paper's three and what users would try.
COMPARED = [
    "IhSC",
    "IhSC, cosine",
    "PSC",
    "PSC, restarts",
    "k-means",
    "spherical k-means",
]
N = "n_samples"
P = "n_features"
K = "n_clusters"
R = "scale_ratio"
# Arguments that vary, and what they are called along an axis, with the paper's letters.
ROWS = ((N,), "rows, n")
FEATURES = ((P,), "features, p")
CLUSTERS = ((K,), "clusters, K")
BALANCE = (("balance",), "balance, β")
SPREAD = ((R,), "spread of scales, R")
COSINE = (("cosine",), "cosine of centres")
NOISE = (("noise_levels",), "noise levels")
SEPARATION = (("separation_constant",), "separation constant, C")


@dataclass(frozen=True)
class Simulation:
    """One point of a curve: where it is drawn, and what is sampled there."""

    study: str
    panel: str
    x: float  #: the value of the parameter that varies
    noise: str  #: distribution of the noise
    options: dict[str, Any] = field(hash=False)  #: arguments of the sampler
    sampler: Callable[..., Any] = make_ihgmm  #: takes and returns what make_ihgmm does

    @property
    def key(self) -> str:
        """A name that is the same in every run and on every machine."""
        return f"{self.study}/{self.panel}/{self.x:g}/{self.noise}"

    @property
    def n_entries(self) -> int:
        """The number of entries of a sample."""
        return int(self.options[N] * self.options[P])

    def draw(self, rep: int) -> tuple[Any, int]:
        """Return a sample and its seed, which depends on key and number only."""
        digest = hashlib.sha256(f"{self.key}/{rep}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big") >> 1
        options = {**self.options, "noise": self.noise, "random_state": seed}
        return self.sampler(**options, return_params=True), seed


@dataclass(frozen=True)
class Panel:
    """One pair of plots: a parameter varies, the others are fixed."""

    name: str  #: a word for tables
    title: str  #: a heading for figures
    varies: tuple[str, ...]  #: the arguments of the sampler that take the values
    symbol: str  #: what it is called under the axis, with the paper's letter
    values: Sequence[float]  #: in order
    fixed: dict[str, Any] = field(hash=False)  #: the other arguments
    sampler: Callable[..., Any] = make_ihgmm  #: as in Simulation


class Map(NamedTuple):
    """Panels that differ in a second parameter, drawn as one heat map."""

    name: str  #: a word for files
    title: str  #: a heading for figures
    symbol: str  #: what the second parameter is called beside the axis
    panels: tuple[Panel, ...]  #: rows from the bottom up; their titles are its values


@dataclass(frozen=True)
class Study:
    """Methods that are compared at many settings.

    A setting has a ``key``, which is the same on every machine, a number of entries,
    and ``draw(rep)``, which returns a sample with ``X`` and ``labels``, and a seed.
    """

    name: str  #: a word for files
    title: str  #: a heading for figures
    settings: tuple[Any, ...]  #: of simulations, or of real data
    methods: dict[str, Method] = field(hash=False)  #: by the names that tables show
    reps: int = 200  #: repetitions of each setting, unless asked for otherwise
    quick_reps: int = 5  #: for a look
    panels: tuple[Panel, ...] = ()  #: what varies, in a simulation
    maps: tuple[Map, ...] = ()  #: panels as rows of heat maps; else drawn as curves

    def choose(self, only: str = "", *, quick: bool = False) -> list[Any]:
        """Return the settings with a word in their key, without large ones if quick."""
        settings = [setting for setting in self.settings if only in setting.key]
        if quick:  # less than a second
            settings = [s for s in settings if s.n_entries <= 1_500_000]
        return settings


def simulation_study(
    name: str,
    title: str,
    panels: Sequence[Panel],
    methods: Sequence[str] = tuple(COMPARED),
    **more: Any,
) -> Study:
    """Return a study of panels: every point of each, noise after noise."""
    settings = []
    for panel in panels:
        for x, noise in product(panel.values, NOISE_NAMES):
            options = panel.fixed | dict.fromkeys(panel.varies, x)
            setting = Simulation(
                study=name,
                panel=panel.name,
                x=x,
                noise=noise,
                options=options,
                sampler=panel.sampler,
            )
            settings.append(setting)

    return Study(
        name=name,
        title=title,
        settings=tuple(settings),
        methods={method: METHODS[method] for method in methods},
        panels=tuple(panels),
        **more,
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

    ``cosine`` is that between any two centres, from 0 to 0.99; their distance does not
    depend on it. All else is as in :func:`ihgmm.make_ihgmm`.
    """
    check_number("cosine", cosine, least=0, most=0.99)
    rng = generator(random_state)
    check_count("n_samples", n_samples)
    check_count("n_clusters", n_clusters)
    check_count("n_features", n_features, least=n_clusters + 1)

    distance = default_separation(
        n_samples, n_features, n_clusters, separation_constant
    )
    random_axes = rng.standard_normal((n_features, n_clusters + 1))
    axes = np.linalg.qr(random_axes)[0].T
    common_part = np.sqrt(cosine / (1 - cosine)) * axes[-1]
    centers = axes[:-1] + common_part
    centers *= distance / np.sqrt(2)
    return make_ihgmm(n_samples, centers=centers, random_state=rng, **options)


Axis = tuple[tuple[str, ...], str]
"""Arguments that vary together, and what they are called along an axis."""


def _panel(
    name: str,
    title: str,
    axis: Axis,
    *,
    values: Sequence[float],
    fixed: dict[str, Any],
    sampler: Callable[..., Any] = make_ihgmm,
) -> Panel:
    """Return a panel along an axis."""
    varies, symbol = axis
    return Panel(
        name=name,
        title=title,
        varies=varies,
        symbol=symbol,
        values=values,
        fixed=fixed,
        sampler=sampler,
    )


SQUARE = ((N, P), ROWS[1])  # as many features as rows
WIDE = {P: 1000, K: 3}
TENTHS = tuple(i / 10 for i in range(1, 11))
EXPERIMENTS = (
    simulation_study(
        "exp1",
        "Experiment 1: sample size and dimension",
        (
            _panel(
                "n>>p",
                "n ≫ p",
                ROWS,
                values=range(500, 2501, 500),
                fixed={P: 200, K: 4},
            ),
            _panel("n=p", "n = p", SQUARE, values=range(100, 501, 100), fixed={K: 4}),
            _panel(
                "p>>n",
                "p ≫ n",
                FEATURES,
                values=range(1000, 5001, 1000),
                fixed={N: 200, K: 4},
            ),
        ),
    ),
    simulation_study(
        "exp2",
        "Experiment 2: number of clusters",
        tuple(
            _panel(name, title, CLUSTERS, values=range(2, 9), fixed={N: n, P: p})
            for name, title, n, p in (
                ("n>>p", "n ≫ p", 5000, 1000),
                ("n=p", "n = p", 1000, 1000),
                ("p>>n", "p ≫ n", 1000, 5000),
            )
        ),
    ),
    simulation_study(
        "exp3",
        "Experiment 3: spread of the scales",
        (
            _panel(
                "R",
                "n = 500, p = 1000",
                SPREAD,
                values=range(5, 101, 5),
                fixed={N: 500, **WIDE},
            ),
        ),
    ),
    simulation_study(
        "exp4",
        "Experiment 4: balance of the clusters",
        (
            _panel(
                "beta",
                "n = 200, p = 1000",
                BALANCE,
                values=TENTHS,
                fixed={N: 200, **WIDE},
            ),
        ),
        ["IhSC", "IhSC, magnitude", *COMPARED[1:]],
    ),
)
"""The paper's experiments: scales up to 20, C = 3 and the separation are defaults."""


def _map(
    name: str,
    title: str,
    axis: Axis,
    values: Sequence[Any] | dict[str, Any],
    sampler: Callable[..., Any] = make_ihgmm,
) -> Map:
    """Make a panel for each value of a second argument, by the name of its row."""
    varies, symbol = axis
    base = {N: 200, P: 500, K: 4, R: 5.0}  # what all maps have in common
    # In units of the paper's condition, nearly even on a log axis.
    constants = (0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0)
    rows = values if isinstance(values, dict) else {f"{v:g}": v for v in values}

    panels = []
    for row, value in rows.items():
        panel = _panel(
            f"{name}={row}",
            row,
            SEPARATION,
            values=constants,
            fixed={**base, **dict.fromkeys(varies, value)},
            sampler=sampler,
        )
        panels.append(panel)
    return Map(name=name, title=title, symbol=symbol, panels=tuple(panels))


# One level for all rows with the mean square of levels that are uniform from 1/3 to 3.
LOUD = round(float(np.sqrt(np.mean([9, 1, 1 / 9]))), 2)
LEVELS = {"1": 1.0, "0.5 to 1.5": (0.5, 1.5), f"{LOUD:g}": LOUD, "1/3 to 3": (1 / 3, 3)}
COSINES = (0.0, 0.3, 0.6, 0.9)
MAPS = (
    _map("p", "Number of features", FEATURES, (50, 100, 200, 500, 1000, 2000, 5000)),
    _map("K", "Number of clusters", CLUSTERS, (2, 3, 4, 6, 8, 12)),
    _map("beta", "Balance of the clusters", BALANCE, (0.1, 0.2, 0.4, 0.7, 1.0)),
    _map("R", "Spread of the scales", SPREAD, (1, 2, 5, 10, 20, 50, 100)),
    _map("cosine", "Correlated centres", COSINE, COSINES, correlated_sample),
    _map("noise", "Noise that differs between rows", NOISE, LEVELS),
)
PHASE = simulation_study(
    "phase",
    "Phase transition",
    [panel for chart in MAPS for panel in chart.panels],
    [
        *("IhSC", "IhSC, refined", "IhGMM", "PSC, restarts", "spherical, restarts"),
        *("label oracle", "centre oracle"),
    ],
    reps=5,
    quick_reps=1,
    maps=MAPS,
)
"""From no recovery to exact recovery as the centres part: not in the paper."""

STUDIES: dict[str, Study] = {study.name: study for study in (*EXPERIMENTS, PHASE)}
"""All simulations by name: the paper's experiments, and one beyond them."""
