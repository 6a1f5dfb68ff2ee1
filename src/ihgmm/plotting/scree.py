"""Eigenvalues: how far the signal stands out from the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.plotting._colors import color
from ihgmm.plotting._fitted import fitted
from ihgmm.plotting._frame import axes, ink, quiet
from ihgmm.statistics.diagnosis import Diagnosis
from ihgmm.statistics.selection import ClusterCount

__all__ = ["plot_scree"]


def plot_scree(
    source: Any, count: ClusterCount | None = None, *, ax: Any = None
) -> Any:
    """Draw the leading eigenvalues; of a count, with noise and gap as well.

    Parameters
    ----------
    source : fitted estimator, ClusterCount or Diagnosis
        For noise and gap, ``select_n_clusters(X)``. For the gap alone,
        ``diagnose(X, labels)``. A model with ``eigenvalues_`` knows those of its
        clusters and none beyond: it shows neither, unless it is given with a count.
    count : ClusterCount, optional
        With a model: what :func:`ihgmm.select_n_clusters` returned, to draw noise and
        the gap at the model's number of clusters. A model fitted with
        ``n_clusters="auto"`` has it already, as ``selection_``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    A count brings the band of sign-flipped data, which is noise, and eigenvalues
    beyond the clusters; a diagnosis brings one eigenvalue beyond. With either the gap
    is marked: eigenvalue K over the next one. The picture of a model alone says what
    it lacks, in the place of a title, and needs no legend.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm, select_n_clusters
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_scree(select_n_clusters(X, random_state=0))
    >>> ax.get_title()
    '3 clusters, rank 3'
    >>> model = IhSC(3, random_state=0).fit(X)
    >>> print(plot_scree(model).get_title())
    eigenvalues of the model's 3 clusters only;
    pass select_n_clusters(X) to see noise and gap
    >>> ax = plot_scree(model, select_n_clusters(X, random_state=0))
    """
    if isinstance(source, ClusterCount):
        ax = source.plot(axes(ax))
        _mark_gap(ax, source.eigenvalues, source.rank)
    elif isinstance(source, Diagnosis):
        ax = axes(ax)
        _draw(ax, source.eigenvalues, source.n_clusters, source.gram)
    else:
        values = fitted(source, "eigenvalues_", "plot_scree").astype(np.float64)
        count = getattr(source, "selection_", None) if count is None else count
        if count is None:
            ax = axes(ax)
            _draw(ax, values, len(values), getattr(source, "gram", ""))
            _say_what_is_missing(ax, len(values))
        else:
            ax = count.plot(axes(ax))
            _mark_gap(ax, count.eigenvalues, len(values))
    quiet(ax)
    return ax


def _draw(ax: Any, values: np.ndarray, k: int, gram: str) -> None:
    """Draw eigenvalues, those of the clusters filled."""
    place = np.arange(1, len(values) + 1)
    size = 7 if len(values) <= 25 else 4
    ax.plot(
        place[:k], values[:k], "o", color=color(0, ax), ms=size, label=f"clusters: {k}"
    )
    if len(values) > k:
        ax.plot(place[k:], values[k:], "o", mfc="none", color="#888888", ms=size,
                label="the next")  # fmt: skip
    if values.min() > 0 and values.max() > 20 * values.min():
        ax.set_yscale("log")
    else:
        ax.set_ylim(min(0.0, 1.1 * values.min()), 1.08 * max(values.max(), 0) or None)
    ax.set_xlim(0.4, len(values) + 0.6)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    ax.set_xlabel("eigenvalue number")
    ax.set_ylabel(f"eigenvalue ({gram} Gram)" if gram else "eigenvalue")
    # Values fall: early, then they leave the upper right corner, or late.
    falls_late = np.median(values) > values.max() / 2
    _mark_gap(ax, values, k, "lower left" if falls_late else "upper right")


def _say_what_is_missing(ax: Any, k: int) -> None:
    """Say how to see more, above the axes, where nothing is drawn."""
    clusters = "1 cluster" if k == 1 else f"{k} clusters"
    ax.set_title(
        f"eigenvalues of the model's {clusters} only;\n"
        "pass select_n_clusters(X) to see noise and gap",
        fontsize="small",
        color=ink(ax),
        alpha=0.75,
    )


def _mark_gap(ax: Any, values: np.ndarray, k: int, place: str = "best") -> None:
    """Mark the drop from eigenvalue k to the next, if both are there and above 0.

    The legend names the gap. Where there is one series and no gap, the title says all,
    and the mark of a legend would pass for an eigenvalue.
    """
    if 0 < k < len(values) and values[k] > 0:
        ends = values[k - 1 : k + 1]
        ax.plot(
            [k + 0.5, k + 0.5],
            ends,
            color=ink(ax),
            lw=1.2,
            marker="_",
            ms=8,
            label=f"gap: {ends[0] / ends[1]:.1f}-fold",
        )
    if len(ax.get_legend_handles_labels()[0]) > 1:
        # A frame, so that no mark in it passes for an eigenvalue.
        ax.legend(fontsize="small", loc=place, framealpha=0.9, edgecolor="#aaaaaa")
