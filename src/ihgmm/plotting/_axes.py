"""The axes of a picture: made if none is given, with text that keeps its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ihgmm.plotting._clusters import Clusters
from ihgmm.plotting._colors import color


def given_or_new(
    ax: Any, size: tuple[float, float], *place: int, **options: Any
) -> Any:
    """Return the axes given, or new ones in a figure of a size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install matplotlib") from error
    figure = plt.figure(figsize=size, layout="constrained")
    return figure.add_subplot(*place, **options)


def column_axes(ax: Any, n_clusters: int) -> Any:
    """Return axes with a column for each cluster; new ones are wide enough for all."""
    # In inches: 0.22 hold a number of two digits and fifty clusters fit a page.
    ax = given_or_new(ax, (float(np.clip(1.5 + 0.22 * n_clusters, 6.0, 13.0)), 4.0))
    ax.set_xlim(-0.6, n_clusters - 0.4)
    return ax


def heatmap(
    ax: Any,
    cells: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    size: tuple[float, float],
    *,
    largest: float,
    signed: bool = False,
) -> Any:
    """Draw cells with named rows and columns; return their axes and the colour bar.

    Cells go from 0 to the largest number, or to minus that if they are signed.
    """
    # Names at the left take 0.075 inches a character.
    names = 0.075 * max(len(shortened(name)) for name in rows)
    ax = given_or_new(ax, (size[0] + names, size[1]))
    # Dark is low and bright is high, in colour and in grey print. Signed numbers are
    # red above and blue below, and pale near 0.
    colors = {"cmap": "RdBu_r" if signed else "cividis", "vmax": largest}
    colors["vmin"] = -largest if signed else 0.0
    mesh = ax.imshow(cells, aspect="auto", rasterized=True, **colors)
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.06, pad=0.03)
    name_ticks(ax, columns)
    name_ticks(ax, rows, "y")
    ax.set_xlabel("cluster")
    return ax, bar


def draw_profiles(ax: Any, values: np.ndarray, clusters: Clusters) -> Any:
    """Draw a figure for each row but NaN, the largest first, a column by cluster."""
    ax = column_axes(ax, len(clusters.names))
    for k, rows in enumerate(clusters.rows()):
        one = values[rows]
        one = -np.sort(-one[~np.isnan(one)])
        if len(one) == 0:
            continue
        if len(one) > 400:  # more steps than a column has pixels
            one = one[np.linspace(0, len(one) - 1, 400).round().astype(int)]
        # All columns are equally wide, so that small clusters can be seen.
        edges = np.linspace(k - 0.42, k + 0.42, len(one) + 1)
        ax.stairs(one, edges, fill=True, color=color(k, ax), alpha=0.55, lw=0)
        ax.stairs(one, edges, baseline=None, color=color(k, ax), lw=1.2)
    ax.axhline(0, color=ink(ax), lw=0.8)
    name_ticks(ax, clusters.names)
    ax.set_xlabel("cluster; rows sorted within")
    return quiet(ax)


def explain(ax: Any, **options: Any) -> None:
    """Say what lines and marks mean, in a box that what is drawn cannot hide."""
    legend = ax.legend(fontsize="small", framealpha=0.9, edgecolor="#aaaaaa", **options)
    legend.set_zorder(6)


def ink(ax: Any) -> Any:
    """Return the colour of text, which is light in a dark style."""
    return ax.xaxis.label.get_color()


def quiet(ax: Any) -> Any:
    """Take away the frame's sides that carry no figures; return the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def font_size(ax: Any) -> float:
    """Return the height of text along the axes in pixels."""
    return float(ax.xaxis.label.get_size() * ax.figure.dpi / 72)


def shortened(name: str, longest: int = 24) -> str:
    """Return a name on one line, with an ellipsis in its middle if it is too long."""
    name = " ".join(name.split())
    if len(name) > longest:
        # Names that start alike often differ at their end, so both are kept.
        tail = 2 * longest // 5
        name = name[: longest - 1 - tail] + "…" + name[-tail:]
    # A dollar sign would start a formula.
    return name.replace("$", r"\$")


def name_ticks(ax: Any, names: Sequence[str], axis: str = "x") -> None:
    """Write names along an axis, at 0, 1, ..., as many as fit; upright if long."""
    shown = [shortened(name) for name in names]
    size, box = font_size(ax), ax.get_window_extent()
    # Characters are 0.6 times as wide as they are high, on average.
    widest = max(len(name) for name in shown) * 0.6 * size
    lines, columns = 1.25 * size, widest + 0.4 * size
    upright = len(shown) * columns > box.width and widest > 2 * size
    room = box.width / (lines if upright else columns)
    room = box.height / lines if axis == "y" else room
    # Every so many names, in steps that people count in.
    steps = (1, 2, 5, 10, 20, 50, 100, 200, 500)
    step = next((step for step in steps if len(shown) / step <= room), 1000)
    places, labels = range(0, len(shown), step), shown[::step]
    if axis == "y":
        ax.set_yticks(places, labels=labels)
    else:
        ax.set_xticks(places, labels=labels, rotation=90 if upright else 0)
