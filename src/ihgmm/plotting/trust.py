"""How far to trust labels: their certainty, and known labels beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm._checks import complete_matrix
from ihgmm.matrix import to_host
from ihgmm.metrics import class_agreement
from ihgmm.plotting._axes import (
    LIGHT,
    color,
    column_axes,
    font_size,
    heatmap,
    ink,
    quiet,
)
from ihgmm.plotting._clusters import clusters_of, fitted
from ihgmm.statistics.diagnosis import Diagnosis, diagnose
from ihgmm.words.phrases import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_confidence(
    X: Any = None, model: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw how certain the label of each row is, sorted within clusters.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data that was clustered, for :func:`ihgmm.diagnose`. Give the model alone
        if it is an :class:`ihgmm.IhGMM`, which has ``memberships_``.
    model : fitted estimator, or array-like of shape (n_samples,)
        A model with ``labels_``, or labels of any kind.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_confidence(X, IhSC(3, random_state=0).fit(X)).get_title()
    '0% of rows are less than 90% certain'
    """
    if model is None:
        X, model = None, X
    clusters = clusters_of(model, "plot_confidence")
    codes, sure = clusters.codes, Diagnosis.certain_from
    if X is not None:
        data = complete_matrix(X, model, whitened=True)
        values = to_host(diagnose(data, codes).certainty)
    elif hasattr(model, "memberships_"):
        memberships = fitted(model, "memberships_", "plot_confidence")
        values = np.where(codes < 0, np.nan, memberships[np.arange(len(codes)), codes])
    else:
        raise TypeError(
            "plot_confidence needs the data that were clustered; call "
            "plot_confidence(X, model)."
        )
    ax = column_axes(ax, clusters.names)
    for k, rows in enumerate(clusters.rows()):
        known = values[rows][~np.isnan(values[rows])]
        # A column has no more pixels than 400.
        shares = np.linspace(1, 0, min(len(known), 400))
        steps = np.quantile(known, shares, method="nearest") if len(known) else known
        # All columns are equally wide, so that small clusters can be seen.
        edges = np.linspace(k - 0.42, k + 0.42, len(steps) + 1)
        ax.stairs(steps, edges, fill=True, color=color(k, ax), alpha=0.55, lw=0)
        ax.stairs(steps, edges, baseline=None, color=color(k, ax), lw=1.2)
    ax.axhline(0, color=ink(ax), lw=0.8)
    ax.axhline(sure, color=ink(ax), lw=0.9, ls="--")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(ylim=(0, 1.04), ylabel="certainty of the label")
    ax.set_xlabel("cluster; rows sorted within")
    below = percent(float((values[codes >= 0] < sure).mean()))
    ax.set_title(f"{below} of rows are less than {sure:.0%} certain")
    return quiet(ax)


def plot_confusion(
    labels_true: Any, labels_pred: Any, *, ax: Axes | None = None
) -> Axes:
    """Draw how known labels and clusters go together, as a table of counts.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Known labels and those of a clustering, of any kind.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> ax = plot_confusion(["a", "a", "b", "b"], [1, 1, 0, 1])
    >>> ax.get_title(), [label.get_text() for label in ax.get_xticklabels()]
    ('25.0% of rows misplaced', ['1', '0'])
    """
    agreement = class_agreement(labels_true, labels_pred)
    true, pred = (
        clusters_of(labels, "plot_confusion") for labels in (labels_true, labels_pred)
    )
    partners = pred.partners(true, by_majority=agreement.by_majority)
    if len(pred.outliers):  # which are matched with outliers alone
        same = len(true.names) if len(true.outliers) else -1
        partners = np.append(partners, same)
    true, pred = true.with_outliers(), pred.with_outliers()
    order = np.lexsort((partners, partners < 0))  # those without a partner come last
    table = true.table(pred)[:, order]
    share = table / table.sum(axis=1, keepdims=True)
    columns = [pred.names[j] for j in order]
    side = float(np.clip(2.0 + 0.32 * max(table.shape), 4.2, 11.0))
    ax, bar = heatmap(ax, share, true.names, columns, (side + 0.8, side), largest=1.0)
    bar.set_label("share of the known label")
    bar.ax.yaxis.set_major_formatter("{x:.0%}")
    # Counts are written if all of them fit; the colour bar may take a little room yet.
    figures = np.vectorize(lambda count: f"{count:,}" if count else "")(table)
    box, height = ax.get_window_extent(), font_size(ax)
    width = 0.65 * height * (max(map(len, figures.flat)) + 1)
    room = 0.85 * box.width / len(order), box.height / len(true.names)
    if width <= room[0] and 1.2 * height <= room[1]:
        for (i, j), figure in np.ndenumerate(figures):
            tone = "white" if share[i, j] < 0.5 else "black"
            ax.text(j, i, figure, ha="center", va="center", color=tone)
    matched = partners[order][: np.count_nonzero(partners >= 0)]
    stroke = 1.5 if len(order) <= 20 else 0.8
    frame: dict[str, Any] = {"fill": False, "ec": LIGHT[1], "lw": stroke}
    ax.bar(range(len(matched)), 1, 1, matched - 0.5, **frame)
    title = f"{percent(agreement.rate)} of rows misplaced"
    if agreement.by_majority:
        title = f"{percent(agreement.rate)} of rows not of their cluster's main class, "
        title += f"adjusted Rand index {agreement.adjusted_rand_index:.2f}"
    ax.set(ylabel="known label", title=title)
    ax.set_xlabel("cluster; framed where it goes with a label")
    return ax
