"""The axes of a picture: made if none is given, with text that keeps its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ihgmm.plotting._clusters import Clusters
from ihgmm.plotting._colors import color


def new_axes(size: tuple[float, float], n_axes: int = 1, **options: Any) -> Any:
    """Return the axes of a new figure, beside each other if they are several."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: pip install 'ihgmm[plot]'."
        ) from error
    figure = plt.figure(figsize=size, layout="constrained")
    made = [figure.add_subplot(1, n_axes, i + 1, **options) for i in range(n_axes)]
    return made if n_axes > 1 else made[0]


def cluster_axes(ax: Any, n_clusters: int) -> Any:
    """Return axes with a column for each cluster; new ones are wide enough for all."""
    if ax is None:
        # In inches: 0.22 hold a number of two digits and fifty clusters fit a page.
        ax = new_axes((float(np.clip(1.5 + 0.22 * n_clusters, 6.0, 13.0)), 4.0))
    ax.set_xlim(-0.6, n_clusters - 0.4)
    return ax


def heat_map(
    ax: Any, cells: np.ndarray, size: tuple[float, float], rows: Sequence[str],
    columns: Sequence[str], label: str, low: float, high: float,
) -> tuple[Any, Any]:  # fmt: skip
    """Draw cells with named rows and columns; return the axes and the colour bar."""
    if ax is None:
        # Names at the left take 0.075 inches a character.
        names = 0.075 * max(len(shortened(name)) for name in rows)
        ax = new_axes((size[0] + names, size[1]))
    # Dark is low and bright is high, in colour and in grey print.
    mesh = ax.imshow(cells, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    mesh.set_rasterized(True)
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.06, pad=0.03)
    bar.set_label(label)
    name_ticks(ax, columns)
    name_ticks(ax, rows, "y")
    ax.set_xlabel("cluster")
    return ax, bar


def draw_profiles(ax: Any, values: np.ndarray, clusters: Clusters) -> Any:
    """Draw one figure for each row, the largest first, a column for each cluster.

    All columns are equally wide, so that small clusters can be seen; across a column
    goes the share of its rows. NaN is left out.
    """
    ax = cluster_axes(ax, len(clusters.names))
    for k, rows in enumerate(clusters.rows()):
        one = values[rows]
        one = -np.sort(-one[~np.isnan(one)])
        if len(one) == 0:
            continue
        if len(one) > 400:  # more steps than a column has pixels
            one = one[np.linspace(0, len(one) - 1, 400).round().astype(int)]
        edges = np.linspace(k - 0.42, k + 0.42, len(one) + 1)
        ax.stairs(one, edges, fill=True, color=color(k, ax), alpha=0.55, lw=0)
        ax.stairs(one, edges, baseline=None, color=color(k, ax), lw=1.2)
    ax.axhline(0, color=ink(ax), lw=0.8)
    name_ticks(ax, clusters.names)
    ax.set_xlabel("cluster; rows sorted within")
    return quiet(ax)


def ink(ax: Any) -> Any:
    """Return the colour of text, which is light in a dark style."""
    return ax.xaxis.label.get_color()


def halo(ax: Any) -> Any:
    """Return an outline in the background's colour, which sets text off from points."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground=ax.get_facecolor())]


def quiet(ax: Any) -> Any:
    """Take away the frame's sides that carry no figures; return the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def percent_ticks(axis: Any) -> None:
    """Write the figures of an axis as percentages."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def font_size(ax: Any) -> float:
    """Return the height of text along the axes in pixels."""
    return float(ax.xaxis.label.get_size() * ax.figure.dpi / 72)


def shortened(name: str, longest: int = 24) -> str:
    """Return a name on one line, with an ellipsis in its middle if it is too long.

    Names that start alike often differ at their end, so both are kept.

    Examples
    --------
    >>> shortened("temperature of sensor 12", 16)
    'temperatu…sor 12'
    """
    name = " ".join(name.split())
    if len(name) > longest:
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
    if axis == "y":
        places = _spaced(len(shown), box.height / lines)
        ax.set_yticks(places, labels=[shown[i] for i in places])
        return
    upright = len(shown) * columns > box.width and widest > 2 * size
    places = _spaced(len(shown), box.width / (lines if upright else columns))
    labels = [shown[i] for i in places]
    ax.set_xticks(places, labels=labels, rotation=90 if upright else 0)


def _spaced(count: int, most: float) -> range:
    """Return every so many places, in steps that people count in.

    Examples
    --------
    >>> list(_spaced(4, most=3))
    [0, 2]
    """
    steps = (1, 2, 5, 10, 20, 50, 100, 200, 500)
    return range(0, count, next((s for s in steps if count / s <= most), 1000))
