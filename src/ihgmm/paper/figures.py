"""Figures of the studies: error above, share of exact recovery below."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm._files import atomic_write
from ihgmm.paper.runner import Summary
from ihgmm.paper.studies import NOISE_NAMES, Map, Panel, Study
from ihgmm.paper.theory import exact_recovery_limit, thresholds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Colours that the colour-blind can tell apart, and markers that print in grey.
CURVES: dict[str, dict[str, Any]] = {
    "IhSC": {"color": "#0072B2", "marker": "o", "linewidth": 2.0, "zorder": 5},
    "PSC": {"color": "#D55E00", "marker": "s"},
    "PSC, restarts": {"color": "#E69F00", "marker": "D", "linestyle": "--"},
    "k-means": {"color": "#009E73", "marker": "^"},
    "IhSC, magnitude": {"color": "#56B4E9", "marker": "d", "linestyle": "--"},
    "IhSC, cosine": {"color": "#CC79A7", "marker": "v", "linestyle": "--"},
    "spherical k-means": {"color": "#777777", "marker": "x", "linestyle": ":"},
}
# Styles of the thresholds, and of where one who knows the centres is exact in half of
# the samples. Ndaoud's is there for two clusters only, where it is Chen and Yang's.
LIMIT = "limit with known centres (even odds)"
THRESHOLDS: dict[str, Any] = {
    LIMIT: {"color": "#ff5a36", "zorder": 3},
    "IhSC": {"linestyle": "solid"},
    "Chen and Yang 2021": {"linestyle": (0, (4, 1.5))},
    "Zhang and Zhou 2024": {"linestyle": (0, (1, 1.2))},
    "Löffler et al. 2021": {"linestyle": "dashdot"},
}
LEGEND: dict[str, Any] = {"loc": "outside lower center", "frameon": False}


def draw_study(study: Study, summary: list[Summary], folder: Path) -> list[str]:
    """Draw every figure of a study to look at and for print; return the file names."""
    figures = {} if study.maps else {study.name: _curves(study, summary)}

    drawn = {s.panel for s in summary}
    for chart in study.maps:
        names = {panel.name for panel in chart.panels}
        if drawn & names:
            figures[f"{study.name}-{chart.name}"] = _heat_map(study, chart, summary)

    files = []
    for name, figure in figures.items():
        for suffix in ("png", "pdf"):
            file_name = f"{name}.{suffix}"
            with atomic_write(folder / file_name) as file:
                figure.savefig(file, format=suffix, dpi=120)
            files.append(file_name)
    return files


def _curves(study: Study, summary: list[Summary]) -> Figure:
    """Return a figure of both figures of each method over what varies."""
    from matplotlib.figure import Figure

    drawn = {s.panel for s in summary}
    panels = [panel for panel in study.panels if panel.name in drawn]
    columns = list(product(panels, NOISE_NAMES))
    n_columns = len(columns)
    figure = Figure((2.6 * n_columns + 0.6, 5.4), layout="constrained")
    axes = figure.subplots(2, n_columns, squeeze=False, sharex="col", sharey="row")

    lines: dict[str, Line2D] = {}
    for (panel, noise), (upper, lower) in zip(columns, axes.T, strict=True):
        points = [s for s in summary if (s.panel, s.noise) == (panel.name, noise)]
        lines |= _draw_methods(upper, lower, points)
        _name_column(upper, lower, panel, noise)

    axes[0, 0].set(ylabel="misclassification rate", ylim=(-0.02, None))
    axes[1, 0].set(ylabel="exact recovery", ylim=(-0.05, 1.05))
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.tick_params(labelsize=8)

    # Six names side by side need the width of at least four panels.
    n_names = len(lines) if n_columns >= 4 else 3
    figure.legend(lines.values(), lines.keys(), **LEGEND, ncols=n_names, fontsize=9)
    figure.suptitle(f"{study.title} ({_count_of_reps(summary)})", fontsize=11)
    return figure


def _name_column(upper: Axes, lower: Axes, panel: Panel, noise: str) -> None:
    """Write above a panel what it shows, and below it what varies."""
    noise_title = f"{noise.capitalize()} noise ({NOISE_NAMES[noise]})"
    upper.set_title(f"{panel.title}\n{noise_title}", fontsize=9)
    lower.set_xlabel(panel.symbol)


def _count_of_reps(summary: list[Summary]) -> str:
    """Return how often samples were drawn, at least and at most."""
    reps = [s.reps for s in summary]
    minimum = min(reps)
    maximum = max(reps)
    count = f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"
    return f"{count} repetitions"


def _draw_methods(upper: Axes, lower: Axes, points: list[Summary]) -> dict[str, Line2D]:
    """Draw errors above and exact shares below; return a line of each method."""
    lines = {}
    for method, style in CURVES.items():
        curve = [point for point in points if point.method == method]
        if not curve:
            continue

        x = [point.x for point in curve]
        rates = [point.rate for point in curve]
        shares = [point.exact_share for point in curve]

        style = {"linewidth": 1.3, "markersize": 4.5, **style}
        upper.plot(x, rates, **style)
        (lines[method],) = lower.plot(x, shares, **style)
    return lines


def grid(chart: Map, summary: list[Summary], method: str) -> np.ndarray:
    """Return errors, exact shares and draws by panel and value; NaN if not run."""
    rows = {panel.name: row for row, panel in enumerate(chart.panels)}
    columns = {float(x): column for column, x in enumerate(chart.panels[0].values)}

    sums = np.zeros((3, len(rows), len(columns)))
    for s in summary:
        if s.method == method and s.panel in rows and s.x in columns:
            row = rows[s.panel]
            column = columns[s.x]
            figures = np.array([s.rate, s.exact_share, 1])
            sums[:, row, column] += s.reps * figures

    # Sums over draws become means.
    n_draws = sums[2]
    sums[:, n_draws == 0] = np.nan
    sums[:2] /= n_draws
    return sums


def _heat_map(study: Study, chart: Map, summary: list[Summary]) -> Figure:
    """Return a figure of a map, with a column for each method."""
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    methods = list(study.methods)
    edges = _cell_edges(np.array(chart.panels[0].values))
    grids = np.array([grid(chart, summary, method) for method in methods])
    errors = grids[:, 0]  # (n_methods, n_panels, n_values)
    exact_shares = grids[:, 1]
    n_draws = grids[0, 2]

    height = 2.25 + 0.48 * len(chart.panels)
    figure = Figure((1.62 * len(methods) + 1.5, height), layout="constrained")
    axes = figure.subplots(2, len(methods), squeeze=False, sharex=True, sharey=True)

    # Square roots, since one row in a hundred or in twenty is the question. Good is
    # bright in both rows, in a map that the colour-blind can read.
    worst = np.nanmax(errors)
    norm = PowerNorm(0.5, 0, max(worst, 0.1))
    bar = _draw_row(axes[0], edges, errors, "error", "cividis_r", norm)
    _mark_rates(bar, worst)

    norm = PowerNorm(1, 0, 1)
    _draw_row(axes[1], edges, exact_shares, "exact recovery", "cividis", norm)

    lines = {}
    steps = _threshold_steps(chart, edges)
    for ax in axes.flat:
        lines = _draw_steps(ax, steps, n_rows=len(chart.panels))
    _name_axes(axes, chart, methods, edges)

    figure.suptitle(
        f"{chart.title} ({np.nanmean(n_draws):.3g} draws a cell)", fontsize=11
    )
    figure.legend(
        lines.values(),
        lines.keys(),
        **LEGEND,
        title="thresholds for exact recovery",
        title_fontsize=8,
        ncols=len(steps),
        fontsize=8,
        handlelength=3.5,
    )
    return figure


def _mark_rates(bar: Colorbar, highest: float) -> None:
    """Write rates beside a colour bar, none of them above the highest."""
    rates = [r for r in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8) if r <= highest]
    bar.set_ticks(rates, labels=[f"{rate:g}" for rate in rates])


def _cell_edges(values: np.ndarray) -> np.ndarray:
    """Return the edges of cells around values, on a log axis."""
    middles = np.sqrt(values[1:] * values[:-1])
    first = values[0] ** 2 / middles[0]
    last = values[-1] ** 2 / middles[-1]
    return np.concatenate([[first], middles, [last]])


def _draw_row(
    axes: np.ndarray,
    edges: np.ndarray,
    grids: np.ndarray,
    name: str,
    colors: str,
    norm: Normalize,
) -> Colorbar:
    """Draw a figure of all methods as maps side by side; return their colour bar."""
    for ax, cells in zip(axes, grids, strict=True):
        heights = np.arange(len(cells) + 1) - 0.5
        mesh = ax.pcolormesh(edges, heights, cells, cmap=colors, norm=norm)
        ax.set_facecolor("#dddddd")

    bar = axes[0].figure.colorbar(mesh, ax=axes, aspect=12, pad=0.01)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(name, fontsize=8)
    return bar


def _draw_steps(
    ax: Axes, steps: dict[str, tuple[np.ndarray, dict[str, Any]]], n_rows: int
) -> dict[str, Line2D]:
    """Draw thresholds over a map; return their lines by name."""
    from matplotlib.patheffects import withStroke

    outline = withStroke(linewidth=2.6, foreground="black")
    row_edges = np.arange(n_rows + 1) - 0.5
    y = np.repeat(row_edges, 2)[1:-1]

    lines = {}
    for name, (x, style) in steps.items():
        style = {"color": "white", "linewidth": 1.2, **style}
        (lines[name],) = ax.plot(x, y, path_effects=[outline], **style)
    return lines


def _name_axes(
    axes: np.ndarray, chart: Map, methods: list[str], edges: np.ndarray
) -> None:
    """Write what stands along the axes of all maps."""
    for ax, method in zip(axes[0], methods, strict=True):
        ax.set_title(method, fontsize=9)

    titles = [panel.title for panel in chart.panels]
    for ax in axes.flat:
        ax.set(xscale="log", xlim=(edges[0], edges[-1]))
        ax.set_xticks([0.1, 0.3, 1, 3], labels=["0.1", "0.3", "1", "3"])
        ax.minorticks_off()
        ax.set_yticks(range(len(titles)), labels=titles)
        ax.tick_params(labelsize=7.5)

    axes[0, 0].set_ylabel(chart.symbol, fontsize=9)
    axes[1, 0].set_ylabel(chart.symbol, fontsize=9)
    axes[1, len(methods) // 2].set_xlabel(chart.panels[0].symbol, fontsize=9)


def threshold_constants(panel: Panel) -> dict[str, float]:
    """Return thresholds, and the limit with known centres, in units of IhSC's."""
    n = panel.fixed["n_samples"]
    p = panel.fixed["n_features"]
    k = panel.fixed["n_clusters"]

    # Many rows, for figures that hardly depend on the draw (50,000 leave 0.5%, 1.5% at
    # R = 100), and few features, on which nothing that the limit knows depends.
    changes = {"n_samples": 50_000, "n_features": k + 1, "separation_constant": 1.0}
    options = {**panel.fixed, **changes}
    sample = panel.sampler(**options, random_state=0, return_params=True)

    limit = exact_recovery_limit(
        sample.labels, sample.scales, sample.centers, sample.noise_levels, n_samples=n
    )
    values = {LIMIT: limit, **thresholds(n, p, k)}
    return {name: value / values["IhSC"] for name, value in values.items()}


def _threshold_steps(chart: Map, edges: np.ndarray) -> dict[str, tuple[Any, Any]]:
    """Return the thresholds that fall on a map as steps, with their styles."""
    constants = [threshold_constants(panel) for panel in chart.panels]

    steps = {}
    for name, style in THRESHOLDS.items():
        x = np.repeat([c[name] for c in constants], 2)
        x[(x < edges[0]) | (x > edges[-1])] = np.nan
        if np.isnan(x).all():
            continue

        legend = "IhSC, the paper's (C = 1)" if name == "IhSC" else name
        of_ndaoud = [c["Ndaoud 2022"] for c in constants]
        if np.isin(of_ndaoud, x).any():
            legend += "; Ndaoud 2022 at K = 2"
        steps[legend] = (x, style)
    return steps
