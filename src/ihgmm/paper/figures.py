"""Figures of the studies: error above, share of exact recovery below."""

from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import atomic_write
from ihgmm.paper.runner import Summary
from ihgmm.paper.studies import NOISE_NAMES, Map, Panel, Study
from ihgmm.paper.theory import exact_recovery_limit, thresholds

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
        if drawn & {panel.name for panel in chart.panels}:
            figures[f"{study.name}-{chart.name}"] = _heat_map(study, chart, summary)
    files = []
    for name, figure in figures.items():
        for suffix in ("png", "pdf"):
            files.append(f"{name}.{suffix}")
            with atomic_write(folder / files[-1]) as file:
                figure.savefig(file, format=suffix, dpi=120)
    return files


def _curves(study: Study, summary: list[Summary]) -> Any:
    """Return a figure of both figures of each method over what varies."""
    from matplotlib.figure import Figure

    panels = [p for p in study.panels if any(s.panel == p.name for s in summary)]
    columns = [(panel, noise) for panel in panels for noise in NOISE_NAMES]
    figure = Figure((2.6 * len(columns) + 0.6, 5.4), layout="constrained")
    axes = figure.subplots(2, len(columns), squeeze=False, sharex="col", sharey="row")
    lines: dict[str, Any] = {}
    for column, (panel, noise) in enumerate(columns):
        for method, style in CURVES.items():
            place = (panel.name, noise, method)
            curve = [s for s in summary if (s.panel, s.noise, s.method) == place]
            if curve:
                style = {"linewidth": 1.3, "markersize": 4.5, **style}
                rows = [s.rate for s in curve], [s.exact_share for s in curve]
                for ax, values in zip(axes[:, column], rows, strict=True):
                    (lines[method],) = ax.plot([s.x for s in curve], values, **style)
        noise_title = f"{noise.capitalize()} noise ({NOISE_NAMES[noise]})"
        axes[0, column].set_title(f"{panel.title}\n{noise_title}", fontsize=9)
        axes[1, column].set_xlabel(panel.symbol)
    axes[0, 0].set(ylabel="misclassification rate", ylim=(-0.02, None))
    axes[1, 0].set(ylabel="exact recovery", ylim=(-0.05, 1.05))
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.tick_params(labelsize=8)
    reps = sorted({s.reps for s in summary})
    count = f"{reps[0]}" if len(reps) == 1 else f"{reps[0]} to {reps[-1]}"
    # Six names side by side need the width of at least four panels.
    ncols = len(lines) if len(columns) >= 4 else 3
    figure.legend(lines.values(), lines.keys(), **LEGEND, ncols=ncols, fontsize=9)
    figure.suptitle(f"{study.title} ({count} repetitions)", fontsize=11)
    return figure


def grid(chart: Map, summary: list[Summary], method: str) -> np.ndarray:
    """Return errors, exact shares and draws by panel and value; NaN if not run."""
    rows = {panel.name: row for row, panel in enumerate(chart.panels)}
    columns = {float(x): column for column, x in enumerate(chart.panels[0].values)}
    sums = np.zeros((3, len(rows), len(columns)))
    for s in summary:
        if s.method == method and s.panel in rows and s.x in columns:
            figures = s.reps * np.array([s.rate, s.exact_share, 1])
            sums[:, rows[s.panel], columns[s.x]] += figures
    sums[:, sums[2] == 0] = np.nan
    sums[:2] /= sums[2]
    return sums


def _heat_map(study: Study, chart: Map, summary: list[Summary]) -> Any:
    """Return a figure of a map, with a column for each method."""
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke

    methods, n_rows = list(study.methods), len(chart.panels)
    values = np.array(chart.panels[0].values)
    middles = np.sqrt(values[1:] * values[:-1])
    edges = np.r_[values[0] ** 2 / middles[0], middles, values[-1] ** 2 / middles[-1]]
    heights = np.arange(n_rows + 1) - 0.5
    grids = [grid(chart, summary, method) for method in methods]
    worst = max(np.nanmax(errors) for errors, *_ in grids)
    # Square roots, since one row in a hundred or in twenty is the question. Good is
    # bright in both rows, in a map that the colour-blind can read.
    looks = [("error", "cividis_r", PowerNorm(0.5, 0, max(worst, 0.1)))]
    looks += [("exact recovery", "cividis", PowerNorm(1, 0, 1))]
    outline = [withStroke(linewidth=2.6, foreground="black")]
    steps = _threshold_steps(chart, edges)
    size = 1.62 * len(methods) + 1.5, 2.25 + 0.48 * n_rows
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(2, len(methods), squeeze=False, sharex=True, sharey=True)
    lines: dict[str, Any] = {}
    for row, (name, cmap, norm) in enumerate(looks):
        for ax, cells in zip(axes[row], grids, strict=True):
            mesh = ax.pcolormesh(edges, heights, cells[row], cmap=cmap, norm=norm)
            ax.set_facecolor("#dddddd")
            for label, (x, style) in steps.items():
                style = {"color": "white", "linewidth": 1.2, **style}
                y = np.repeat(heights, 2)[1:-1]
                (lines[label],) = ax.plot(x, y, path_effects=outline, **style)
        bar = figure.colorbar(mesh, ax=axes[row], aspect=12, pad=0.01)
        bar.ax.tick_params(labelsize=7)
        if row == 0:
            ticks = [t for t in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8) if t <= worst]
            bar.set_ticks(ticks, labels=[f"{t:g}" for t in ticks])
        bar.set_label(name, fontsize=8)
        axes[row, 0].set_ylabel(chart.symbol, fontsize=9)
    for ax, method in zip(axes[0], methods, strict=True):
        ax.set_title(method, fontsize=9)
    for ax in axes.flat:
        ax.set(xscale="log", xlim=(edges[0], edges[-1]))
        ax.set_xticks([0.1, 0.3, 1, 3], labels=["0.1", "0.3", "1", "3"])
        ax.minorticks_off()
        ax.set_yticks(range(n_rows), labels=[panel.title for panel in chart.panels])
        ax.tick_params(labelsize=7.5)
    axes[1, len(methods) // 2].set_xlabel(chart.panels[0].symbol, fontsize=9)
    draws = np.nanmean(grids[0][2])
    figure.suptitle(f"{chart.title} ({draws:.3g} draws a cell)", fontsize=11)
    legend = LEGEND | {"title": "thresholds for exact recovery", "title_fontsize": 8}
    legend |= {"ncols": len(steps), "fontsize": 8, "handlelength": 3.5}
    figure.legend(lines.values(), lines.keys(), **legend)
    return figure


def threshold_constants(panel: Panel) -> dict[str, float]:
    """Return thresholds, and the limit with known centres, in units of IhSC's."""
    n, p, k = (panel.fixed[f"n_{name}"] for name in ("samples", "features", "clusters"))
    # Many rows, for figures that hardly depend on the draw (50,000 leave 0.5%, 1.5% at
    # R = 100), and few features, on which nothing that the limit knows depends.
    many = {"n_samples": 50_000, "n_features": k + 1, "separation_constant": 1.0}
    s = panel.sampler(**{**panel.fixed, **many}, random_state=0, return_params=True)
    model = s.labels, s.scales, s.centers, s.noise_levels
    values = {LIMIT: exact_recovery_limit(*model, n_samples=n), **thresholds(n, p, k)}
    return {name: value / values["IhSC"] for name, value in values.items()}


def _threshold_steps(chart: Map, edges: np.ndarray) -> dict[str, tuple[Any, Any]]:
    """Return the thresholds that fall on a map as steps, with their styles."""
    steps = {}
    constants = [threshold_constants(panel) for panel in chart.panels]
    for name, style in THRESHOLDS.items():
        x = np.repeat([c[name] for c in constants], 2)
        x[(x < edges[0]) | (x > edges[-1])] = np.nan
        if np.isnan(x).all():
            continue
        legend = "IhSC, the paper's (C = 1)" if name == "IhSC" else name
        if np.isin([c["Ndaoud 2022"] for c in constants], x).any():
            legend += "; Ndaoud 2022 at K = 2"
        steps[legend] = (x, style)
    return steps
