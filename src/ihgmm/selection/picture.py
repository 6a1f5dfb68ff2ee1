"""The evidence for a number of clusters, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm._text import count_headline, counted

if TYPE_CHECKING:
    from ihgmm.statistics.selection import ClusterCount

__all__ = ["draw_eigenvalues", "draw_strengths", "new_axes"]

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"


def new_axes(panels: int) -> Any:
    """Return the axes of a new figure, beside each other."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plot needs matplotlib: pip install 'ihgmm[plot]'."
        ) from error
    size = (6 if panels == 1 else 5 * panels, 4)
    return plt.subplots(1, panels, figsize=size, layout="constrained", squeeze=False)[
        1
    ][0]


def draw_eigenvalues(count: ClusterCount, ax: Any) -> None:
    """Draw the leading eigenvalues and the band of the null."""
    shown = count.eigenvalues[: max(count.rank + 5, 10)]
    place = np.arange(1, len(shown) + 1)
    above = place <= count.rank
    low = min(count.null.min(initial=count.edge), count.edge)
    ax.axhspan(
        low, count.edge, color=ORANGE, alpha=0.25, lw=0, label="sign-flipped copies"
    )
    ax.axhline(count.edge, color=ORANGE, lw=1.2, label="edge of noise")
    size = 7 if len(shown) <= 25 else 4
    ax.plot(
        place[above],
        shown[above],
        "o",
        color=BLUE,
        ms=size,
        label=f"above: {count.rank}" if count.rank else None,
    )
    ax.plot(
        place[~above],
        shown[~above],
        "o",
        mfc="none",
        color=GREY,
        ms=size,
        label="not above",
    )
    positive = shown[shown > 0]
    if count.edge > 0 and len(positive) and positive[0] > 20 * count.edge:
        if min(shown.min(), low) > 0:
            ax.set_yscale("log")
        else:  # straight around zero, where the noise lies
            ax.set_yscale("symlog", linthresh=count.edge)
            ax.set_yticks(_powers(count.edge, shown))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("eigenvalue number")
    ax.set_ylabel(f"eigenvalue of the {count.gram} Gram matrix")
    ax.set_title(f"{count_headline(count)}, rank {count.rank}")
    ax.legend(frameon=False)


def _powers(edge: float, values: np.ndarray) -> list[float]:
    """Return 0 and the powers of ten beyond the edge: those within would overlap."""
    ends = np.maximum([values.max(), -values.min()], edge)
    first, *last = np.ceil(np.log10([1.5 * edge, *ends])).astype(int)
    above, below = (10.0 ** np.arange(first, stop + 1) for stop in last)
    kept = below[below <= ends[1]]
    return [*-kept[::-1], 0.0, *above]


def draw_strengths(count: ClusterCount, ax: Any) -> None:
    """Draw how far halves of the data agree on each number of clusters tried."""
    tried = np.array(list(count.strengths))
    strengths = np.array(list(count.strengths.values()))
    ax.plot(tried, strengths, "-o", color=BLUE, mfc=ax.get_facecolor(), ms=7)
    if count.is_stable:
        ax.plot(
            count.n_clusters,
            count.strengths[count.n_clusters],
            "o",
            color=BLUE,
            ms=7,
            label=f"halves agree on {counted(count.n_clusters, 'cluster')}",
        )
    required = count.required_strength
    ax.axhline(required, color=ORANGE, lw=1.2, label=f"asked for: {required}")
    ax.set_ylim(-0.04, 1.06)  # whole circles at 0 and 1
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("prediction strength")
    found = counted(count.n_clusters, 'cluster') if count.is_stable else "no number"
    ax.set_title(f"stable: {found}")
    ax.legend(frameon=False)
