"""The paper's figures: error above, share of exact recovery below, both noises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ihgmm.experiments.grids import NOISES, Experiment
from ihgmm.experiments.runner import Summary

__all__ = ["draw_experiment"]

STYLES: dict[str, dict[str, Any]] = {
    "IhSC": {"color": "#0072B2", "marker": "o", "linewidth": 2.0, "zorder": 5},
    "PSC": {"color": "#D55E00", "marker": "s"},
    "PSC, restarts": {"color": "#E69F00", "marker": "D", "linestyle": "--"},
    "k-means": {"color": "#009E73", "marker": "^"},
    "IhSC, magnitude": {"color": "#56B4E9", "marker": "d", "linestyle": "--"},
    "IhSC, cosine": {"color": "#CC79A7", "marker": "v", "linestyle": "--"},
    "spherical k-means": {"color": "#777777", "marker": "x", "linestyle": ":"},
}
"""Colours that the colour-blind can tell apart, and markers that print in grey."""


def draw_experiment(
    experiment: Experiment,
    summary: list[Summary],
    path: Path,
) -> None:
    """Draw the curves of an experiment to a file.

    Parameters
    ----------
    experiment : Experiment
        Which experiment.
    summary : list of Summary
        What :func:`~ihgmm.experiments.summarize` returned for it.
    path : Path
        PNG, PDF or SVG file.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install matplotlib") from None
    panels = [p for p in experiment.panels if any(s.panel == p.name for s in summary)]
    columns = [(panel, noise) for panel in panels for noise in NOISES]
    figure = Figure(figsize=(2.6 * len(columns) + 0.6, 5.4), layout="constrained")
    axes = figure.subplots(2, len(columns), sharex="col", sharey="row", squeeze=False)
    drawn: dict[str, Any] = {}
    for column, (panel, noise) in enumerate(columns):
        for method in STYLES:
            curve = sorted(
                (s for s in summary
                 if (s.panel, s.noise, s.method) == (panel.name, noise, method)),
                key=lambda s: s.x,
            )  # fmt: skip
            if not curve:
                continue
            x = [s.x for s in curve]
            style: dict[str, Any] = {
                "linewidth": 1.3,
                "markersize": 4.5,
                **STYLES[method],
            }
            for row, values in enumerate(
                ([s.rate for s in curve], [s.exact_share for s in curve])
            ):
                (drawn[method],) = axes[row, column].plot(x, values, **style)
        axes[0, column].set_title(
            f"{panel.title}\n{noise.capitalize()} noise ({NOISES[noise]})", fontsize=9
        )
        axes[1, column].set_xlabel(panel.symbol)
    for row, name in enumerate(("misclassification rate", "exact recovery")):
        axes[row, 0].set_ylabel(name)
        axes[row, 0].set_ylim((-0.02, None) if row == 0 else (-0.05, 1.05))
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.tick_params(labelsize=8)
    # Six names side by side need the width of at least four panels.
    per_row = len(drawn) if len(columns) >= 4 else 3
    figure.legend(
        drawn.values(),
        drawn.keys(),
        loc="outside lower center",
        ncols=per_row,
        frameon=False,
        fontsize=9,
    )
    reps = sorted({s.reps for s in summary})
    count = f"{reps[0]}" if len(reps) == 1 else f"{reps[0]} to {reps[-1]}"
    figure.suptitle(f"{experiment.title} ({count} repetitions)", fontsize=11)
    figure.savefig(path, dpi=130)
