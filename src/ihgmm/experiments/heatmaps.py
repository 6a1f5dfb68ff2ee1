"""Heat maps of two parameters: error above, exact recovery below, a column a method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.experiments.grids import Experiment, Map, Panel
from ihgmm.experiments.runner import Summary
from ihgmm.theory import thresholds

__all__ = ["draw_map", "grid", "threshold_constants"]

LINES: dict[str, tuple[str, Any]] = {
    "IhSC": ("IhSC, the paper's (C = 1)", "solid"),
    "Chen and Yang 2021": ("Chen and Yang 2021", (0, (4, 1.5))),
    "Zhang and Zhou 2024": ("Zhang and Zhou 2024", (0, (1, 1.2))),
    "Löffler et al. 2021": ("Löffler et al. 2021", "dashdot"),
}
"""Legends and styles of the thresholds. Ndaoud's is there for two clusters only, where
it is the same number as Chen and Yang's."""


def threshold_constants(panel: Panel) -> dict[str, float]:
    """Return the thresholds of the comparison table as separation constants C.

    Parameters
    ----------
    panel : Panel
        A row of a map.

    Returns
    -------
    dict of str to float
        By the names of :func:`ihgmm.theory.thresholds`; IhSC's is 1.
    """
    fixed = panel.fixed
    found = thresholds(fixed["n_samples"], fixed["n_features"], fixed["n_clusters"])
    return {name: value / found["IhSC"] for name, value in found.items()}


def grid(
    one: Map, summary: list[Summary], method: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return errors and shares of exact recovery, a row for each panel.

    Parameters
    ----------
    one : Map
        Which map.
    summary : list of Summary
        What :func:`~ihgmm.experiments.summarize` returned for its experiment; the
        noises are pooled.
    method : str
        Which method.

    Returns
    -------
    errors, shares : ndarray of shape (n_panels, n_values)
        NaN where nothing was run.
    """
    shape = (len(one.panels), len(one.panels[0].values))
    errors, shares, reps = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    place = {
        (panel.name, float(x)): (row, column)
        for row, panel in enumerate(one.panels)
        for column, x in enumerate(panel.values)
    }
    for s in summary:
        if s.method == method and (s.panel, s.x) in place:
            cell = place[s.panel, s.x]
            errors[cell] += s.reps * s.rate
            shares[cell] += s.reps * s.exact_share
            reps[cell] += s.reps
    reps[reps == 0] = np.nan
    return errors / reps, shares / reps


def draw_map(
    experiment: Experiment, one: Map, summary: list[Summary], path: Path
) -> None:
    """Draw a map of an experiment to a file.

    Parameters
    ----------
    experiment : Experiment
        Which experiment.
    one : Map
        One of its maps.
    summary : list of Summary
        What :func:`~ihgmm.experiments.summarize` returned for it.
    path : Path
        PNG, PDF or SVG file.
    """
    try:
        from matplotlib.colors import PowerNorm
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install matplotlib") from None
    methods, rows = experiment.methods, len(one.panels)
    height = 2 * (0.45 + 0.24 * rows) + 1.35
    figure = Figure(figsize=(1.62 * len(methods) + 1.5, height), layout="constrained")
    axes = figure.subplots(2, len(methods), sharex=True, sharey=True, squeeze=False)
    values = np.array(one.panels[0].values)
    middles = np.sqrt(values[1:] * values[:-1])
    edges = np.r_[values[0] ** 2 / middles[0], middles, values[-1] ** 2 / middles[-1]]
    grids = [grid(one, summary, method) for method in methods]
    worst = max(np.nanmax(errors) for errors, _ in grids)
    # Square roots, since one row in a hundred or in twenty is the question.
    norms = (PowerNorm(0.5, 0, max(worst, 0.1)), PowerNorm(1, 0, 1))
    for row, name in enumerate(("error", "exact recovery")):
        # Good is bright in both, in a map that the colour-blind can read.
        cmap = ("cividis_r", "cividis")[row]
        for ax, cells in zip(axes[row], grids, strict=True):
            mesh = ax.pcolormesh(
                edges, np.arange(rows + 1) - 0.5, cells[row], cmap=cmap, norm=norms[row]
            )
            ax.set_facecolor("#dddddd")
            drawn = _draw_thresholds(ax, one, edges)
        bar = figure.colorbar(mesh, ax=axes[row], aspect=12, pad=0.01)
        bar.ax.tick_params(labelsize=7)
        if row == 0:
            ticks = [t for t in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8) if t <= worst]
            bar.set_ticks(ticks, labels=[f"{t:g}" for t in ticks])
        bar.set_label(name, fontsize=8)
        axes[row, 0].set_ylabel(one.symbol, fontsize=9)
    for ax, method in zip(axes[0], methods, strict=True):
        ax.set_title(method, fontsize=9)
    for ax in axes.flat:
        ax.set_xscale("log")
        ax.set_xlim(edges[0], edges[-1])
        ax.set_xticks([0.1, 0.3, 1, 3], labels=["0.1", "0.3", "1", "3"])
        ax.minorticks_off()
        ax.set_yticks(range(rows), labels=[panel.title for panel in one.panels])
        ax.tick_params(labelsize=7.5)
    axes[1, len(methods) // 2].set_xlabel(one.panels[0].symbol, fontsize=9)
    figure.legend(
        drawn.values(),
        drawn.keys(),
        loc="outside lower center",
        ncols=len(drawn),
        frameon=False,
        fontsize=8,
        title="thresholds for exact recovery",
        title_fontsize=8,
        handlelength=3.5,
    )
    panels = {panel.name for panel in one.panels}
    reps = (
        sum(s.reps for s in summary if s.panel in panels and s.method == methods[0])
        / np.isfinite(grids[0][0]).sum()
    )
    figure.suptitle(f"{one.title} ({reps:.3g} draws a cell)", fontsize=11)
    figure.savefig(path, dpi=110)


def _draw_thresholds(ax: Any, one: Map, edges: np.ndarray) -> dict[str, Any]:
    """Draw the thresholds that fall on the map as steps; return them by legend."""
    from matplotlib.patheffects import withStroke

    drawn = {}
    constants = [threshold_constants(panel) for panel in one.panels]
    heights = np.repeat(np.arange(len(constants) + 1) - 0.5, 2)[1:-1]
    for name, (legend, style) in LINES.items():
        x = np.repeat([c[name] for c in constants], 2)
        x[(x < edges[0]) | (x > edges[-1])] = np.nan
        if np.isnan(x).all():
            continue
        if np.isin([c["Ndaoud 2022"] for c in constants], x).any():
            legend += "; Ndaoud 2022 at K = 2"
        (drawn[legend],) = ax.plot(
            x,
            heights,
            color="white",
            linewidth=1.2,
            linestyle=style,
            path_effects=[withStroke(linewidth=2.6, foreground="black")],
        )
    return drawn
