"""Clusters against known labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._checks.rows import check_labels
from ihgmm._text import percent
from ihgmm.metrics import match_labels, misclassification_rate
from ihgmm.plotting._frame import (
    axes,
    cluster_ticks,
    font_size,
    name_width,
    percent_ticks,
)

__all__ = ["plot_confusion"]


def plot_confusion(labels_true: Any, labels_pred: Any, *, ax: Any = None) -> Any:
    """Draw how known labels and clusters go together, as a table of counts.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Known labels and those of a clustering, of any kind.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    Clusters are put in the order of the known labels that they go with best
    (:func:`ihgmm.metrics.match_labels`): those pairs are framed. Clusters that find no
    partner come last. The colour is the share of a known label's rows; counts are
    written where there is room. The title is the share of rows outside the frames, the
    misclassification rate.

    Examples
    --------
    >>> ax = plot_confusion(["a", "a", "b", "b"], [1, 1, 0, 1])
    >>> ax.get_title()
    '25.0% of rows misplaced'
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '0']
    """
    rate = misclassification_rate(labels_true, labels_pred)
    names, true = np.unique(check_labels("", labels_true), return_inverse=True)
    found, pred = np.unique(check_labels("", labels_pred), return_inverse=True)
    true, pred = np.ravel(true), np.ravel(pred)
    partner = np.empty(len(found), dtype=np.intp)
    partner[pred] = match_labels(true, pred, unmatched=len(names))
    order = np.argsort(partner, kind="stable")
    table = np.zeros((len(names), len(found)), dtype=np.intp)
    np.add.at(table, (true, pred), 1)
    table = table[:, order]
    side = float(np.clip(2.0 + 0.32 * max(table.shape), 4.2, 11.0))
    rows, columns = [str(name) for name in names], [str(found[j]) for j in order]
    ax = axes(ax, (side + 0.8 + name_width(rows), side))
    share = table / table.sum(axis=1, keepdims=True)
    mesh = ax.imshow(share, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.06, pad=0.03)
    bar.set_label("share of the known label")
    bar.ax.yaxis.set_major_formatter(percent_ticks())
    cluster_ticks(ax, columns)
    cluster_ticks(ax, rows, "y")
    _counts(ax, table, share)
    _frames(ax, partner[order], len(names))
    ax.set_xlabel("cluster")
    ax.set_ylabel("known label")
    ax.set_title(f"{percent(rate)} of rows misplaced")
    return ax


def _counts(ax: Any, table: np.ndarray, share: np.ndarray) -> None:
    """Write counts into the cells if all of them fit."""
    words = [[f"{count:,}" if count else "" for count in row] for row in table]
    box, size = ax.get_window_extent(), font_size(ax)
    longest = max(len(word) for row in words for word in row)
    # The colour bar may take a little of the room yet.
    if 0.65 * size * (longest + 1) > 0.85 * box.width / table.shape[1]:
        return
    if 1.2 * size > box.height / table.shape[0]:
        return
    for i, row in enumerate(words):
        for j, word in enumerate(row):
            dark = share[i, j] < 0.5
            ax.text(
                j, i, word, ha="center", va="center", color="white" if dark else "black"
            )


def _frames(ax: Any, partner: np.ndarray, n_true: int) -> None:
    from matplotlib.patches import Rectangle

    width = 1.5 if len(partner) <= 20 else 0.8
    for j, i in enumerate(partner):
        if i < n_true:
            corner = (j - 0.5, i - 0.5)
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, ec="#D55E00", lw=width))
