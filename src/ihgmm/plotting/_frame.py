"""The axes of a picture: made if none is given, with text that keeps its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "axes",
    "cluster_ticks",
    "font_size",
    "ink",
    "name_width",
    "percent_ticks",
    "quiet",
    "shortened",
    "thin_labels",
    "width_for",
]

LONGEST = 24
"""Characters of a name that are shown."""


def axes(ax: Any, size: tuple[float, float] = (6.0, 4.0), **options: Any) -> Any:
    """Return the axes given, or those of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: pip install matplotlib."
        ) from error
    if ax is not None:
        return ax
    figure = plt.figure(figsize=size, layout="constrained")
    return figure.add_subplot(**options)


def width_for(n_clusters: int) -> float:
    """Return the width, in inches, of a new figure with a column for each cluster."""
    return float(np.clip(1.5 + 0.22 * n_clusters, 6.0, 13.0))


def name_width(names: Sequence[str]) -> float:
    """Return the width, in inches, that names at the left of a picture take."""
    return 0.075 * max(len(shortened(name)) for name in names)


def ink(ax: Any) -> Any:
    """Return the colour of text, which is light in a dark style."""
    return ax.xaxis.label.get_color()


def quiet(ax: Any) -> None:
    """Take away the frame's sides that carry no figures."""
    ax.spines[["top", "right"]].set_visible(False)


def percent_ticks() -> Any:
    """Return a formatter of shares."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0, decimals=0)


def shortened(name: str, longest: int = LONGEST) -> str:
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


def thin_labels(
    labels: Sequence[str], length: float, each: float
) -> tuple[list[int], list[str]]:
    """Return every so many labels, as many as fit side by side.

    Parameters
    ----------
    labels : sequence of str
        All of them.
    length, each : float
        Room for all of them, and what one takes.

    Examples
    --------
    >>> thin_labels(["a", "b", "c", "d"], length=3, each=1)
    ([0, 2], ['a', 'c'])
    """
    step = 1
    # Steps that people count in.
    for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if len(labels) / step * each <= length:
            break
    places = list(range(0, len(labels), step))
    return places, [labels[i] for i in places]


def cluster_ticks(ax: Any, names: Sequence[str], axis: str = "x") -> None:
    """Name the clusters along an axis, at 0, 1, ...; upright where names are long."""
    shown = [shortened(name) for name in names]
    size = font_size(ax)
    box = ax.get_window_extent()
    widest = max(len(name) for name in shown) * 0.6 * size
    if axis == "y":
        places, kept = thin_labels(shown, box.height, 1.25 * size)
        ax.set_yticks(places, labels=kept)
        return
    upright = len(shown) * (widest + 0.4 * size) > box.width and widest > 2 * size
    each = 1.25 * size if upright else widest + 0.4 * size
    places, kept = thin_labels(shown, box.width, each)
    ax.set_xticks(places, labels=kept, rotation=90 if upright else 0)


def font_size(ax: Any) -> float:
    """Return the height of text along the axes in pixels."""
    return float(ax.xaxis.label.get_size() * ax.figure.dpi / 72)
