"""How far to trust labels: certainty, silhouettes, and known labels beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm._checks import check_labels, check_matrix, complete_matrix
from ihgmm.matrix import Matrix, only, to_host
from ihgmm.metrics import class_agreement, match_labels
from ihgmm.plotting._axes import (
    LIGHT,
    draw_profiles,
    explain_above,
    font_size,
    heatmap,
    ink,
)
from ihgmm.plotting._clusters import (
    Clusters,
    clusters_of,
    data_and_model,
    embedding_of,
    fitted,
)
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
    X, model = data_and_model(X, model)
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
    ax = draw_profiles(ax, values, clusters)
    line: dict[str, Any] = {
        "lw": 0.9,
        "ls": "--",
        "label": f"certain: {sure:.0%} or more",
    }
    ax.axhline(sure, color=ink(ax), **line)
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(ylim=(0, 1.04), ylabel="certainty of the label")
    below = percent(float((values[codes >= 0] < sure).mean()))
    ax.set_title(f"{below} of rows are less than {sure:.0%} certain")
    explain_above(ax)
    return ax


def plot_silhouette(
    X: Any = None, model: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the silhouette of each row on the sphere, sorted within clusters.

    What it is and how it is computed: :doc:`/pictures`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows to compare by cosine. Give the model alone to compare by its
        ``embedding_``, where :class:`ihgmm.IhSC` looks for clusters. Silhouettes of
        data with many features are small, since noise makes all rows nearly orthogonal.
    model : fitted estimator, or array-like of shape (n_samples,)
        A model with ``labels_``, or labels of any kind.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_silhouette(IhSC(3, random_state=0).fit(X)).get_title()
    'mean silhouette 1.00'
    """
    X, model = data_and_model(X, model)
    clusters = clusters_of(model, "plot_silhouette")
    data = (
        check_matrix(embedding_of(model, "plot_silhouette"))
        if X is None
        else complete_matrix(X, model)
    )
    check_labels("labels", clusters.codes, data.shape[0])
    inside = np.flatnonzero(clusters.codes >= 0)
    values = np.full(len(clusters.codes), np.nan)
    values[inside] = _cosine_silhouettes(
        data if len(inside) == len(values) else only(data, inside),
        Clusters(clusters.codes[inside], clusters.names),
    )
    ax = draw_profiles(ax, values, clusters)
    mean = float(np.nanmean(values))
    ax.axhline(mean, color=ink(ax), lw=0.9, ls="--", label="mean of all rows")
    bottom = min(-0.05, 1.08 * float(np.nanmin(values)))
    ax.set(ylim=(bottom, 1.04), ylabel="silhouette by cosine")
    ax.set_title(f"mean silhouette {mean:.2f}")
    explain_above(ax)
    return ax


def _cosine_silhouettes(data: Matrix, clusters: Clusters) -> np.ndarray:
    """Return the silhouette of each row by cosine distance; NaN for zero rows."""
    norms = np.sqrt(to_host(data.sqnorms).astype(np.float64))
    live = norms > 0
    codes, count = clusters.codes, len(clusters.names)
    inverse = np.divide(1.0, norms, where=live, out=np.zeros(len(norms)))
    sizes = np.bincount(codes, weights=live, minlength=count)
    if np.count_nonzero(sizes) < 2:
        raise ValueError(
            "All rows are in one cluster; a silhouette compares two or more."
        )
    own = (np.arange(len(codes)), codes)
    weights = np.zeros((len(codes), count))
    weights[own] = inverse
    sums = to_host(data.adjoint(weights)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = to_host(data @ (sums / sizes)) * inverse[:, None]
        distances = np.where(sizes > 0, 1.0 - cosines, np.inf).astype(np.float64)
        # The row itself is at distance 0 and does not count.
        within = distances[own] * sizes[codes] / (sizes[codes] - 1)
        distances[own] = np.inf
        nearest = distances.min(axis=1)
        values = (nearest - within) / np.maximum(np.maximum(within, nearest), 1e-12)
    values[sizes[codes] < 2] = 0.0
    values[~live] = np.nan
    return values


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
        clusters_of(labels, "plot_confusion").with_outliers("outlier")
        for labels in (labels_true, labels_pred)
    )
    n_true = len(true.names)
    partner = np.empty(len(pred.names), dtype=np.intp)
    partner[pred.codes] = match_labels(true.codes, pred.codes)
    counts = true.table(pred)
    if agreement.by_majority:
        is_class = np.array([[name != "outlier"] for name in true.names])
        partner = np.where(is_class, counts, -1).argmax(axis=0)
    if "outlier" in pred.names:  # outliers are matched with each other alone
        same = true.names.index("outlier") if "outlier" in true.names else n_true
        partner[pred.names.index("outlier")] = same
    order = np.argsort(partner, kind="stable")
    matched = partner[order][partner[order] < n_true]  # these clusters come first
    table = counts[:, order]
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
    if width <= 0.85 * box.width / len(order) and 1.2 * height <= box.height / n_true:
        for (i, j), figure in np.ndenumerate(figures):
            tone = "white" if share[i, j] < 0.5 else "black"
            ax.text(j, i, figure, ha="center", va="center", color=tone)
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
