"""How far to trust labels: certainty, silhouettes, and known labels beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._checks import check_labels, check_matrix, complete_matrix
from ihgmm.matrix import Matrix, only, to_host
from ihgmm.metrics import match_labels, misclassification_rate
from ihgmm.plotting._axes import draw_profiles, explain, font_size, heatmap, ink
from ihgmm.plotting._clusters import Clusters, clusters_of, fitted
from ihgmm.plotting._colors import LIGHT
from ihgmm.statistics.diagnosis import Diagnosis, diagnose
from ihgmm.words.phrases import percent


def plot_confidence(
    model: Any, X: Any = None, *, certainty: Any = None, ax: Any = None
) -> Any:
    """Draw how certain the label of each row is, sorted within clusters.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_samples,)
        A model with ``labels_``, or labels of any kind.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data that was clustered, for :func:`ihgmm.diagnose`. Not needed for
        :class:`ihgmm.IhGMM`, which has ``memberships_``.
    certainty : array-like of shape (n_samples,), optional
        The certainty of each row, if it is known: ``diagnose(X, labels).certainty``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_confidence(IhSC(3, random_state=0).fit(X), X)
    >>> ax.get_title()
    '0% of rows are less than 90% certain'
    """
    clusters = clusters_of(model, "plot_confidence")
    values = _certainty(model, X, certainty, clusters)
    ax = draw_profiles(ax, values, clusters)
    sure = Diagnosis.certain_from
    line = {"lw": 0.9, "ls": "--", "label": f"certain: {sure:.0%} or more"}
    ax.axhline(sure, color=ink(ax), **line)
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(ylim=(0, 1.04), ylabel="certainty of the label")
    below = percent(float((values[clusters.codes >= 0] < sure).mean()))
    ax.set_title(f"{below} of rows are less than {sure:.0%} certain")
    explain(ax, loc="lower right")
    return ax


def _certainty(model: Any, X: Any, given: Any, clusters: Clusters) -> np.ndarray:
    n = len(clusters.codes)
    if given is not None:
        values = to_host(given).astype(np.float64)
        inside = values[clusters.codes >= 0] if values.shape == (n,) else values
        if values.shape != (n,) or not ((inside >= 0) & (inside <= 1)).all():
            raise ValueError(
                f"certainty has shape {values.shape}; give {n} numbers between 0 and "
                "1, one for each row."
            )
        return values
    if X is not None:
        data = complete_matrix(X, model, whitened=True)
        return to_host(diagnose(data, clusters.codes).certainty)
    if hasattr(model, "memberships_"):
        memberships = fitted(model, "memberships_", "plot_confidence")
        own = memberships[np.arange(n), clusters.codes]
        return np.where(clusters.codes >= 0, own, np.nan)
    raise TypeError(
        "plot_confidence needs the data that were clustered; call "
        "plot_confidence(model, X)."
    )


def plot_silhouette(model: Any, X: Any = None, *, ax: Any = None) -> Any:
    """Draw the silhouette of each row on the sphere, sorted within clusters.

    What it is and how it is computed: :doc:`/pictures`.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_samples,)
        A model with ``labels_``, or labels of any kind.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows to compare by cosine. Default: the ``embedding_`` of the model, which is
        where :class:`ihgmm.IhSC` looks for clusters. Silhouettes of data with many
        features are small, since noise makes all rows nearly orthogonal.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_silhouette(IhSC(3, random_state=0).fit(X))
    >>> ax.get_title()
    'mean silhouette 1.00'
    """
    clusters = clusters_of(model, "plot_silhouette")
    rows = getattr(model, "embedding_", None)
    if X is None and rows is None:
        raise TypeError(
            f"{type(model).__name__} has no embedding_; give the rows to compare: "
            "plot_silhouette(model, X)."
        )
    data = check_matrix(rows) if X is None else complete_matrix(X, model)
    check_labels("labels", clusters.codes, data.shape[0])
    values = _cosine_silhouettes(data, clusters)
    ax = draw_profiles(ax, values, clusters)
    mean = float(np.nanmean(values))
    ax.axhline(mean, color=ink(ax), lw=0.9, ls="--", label="mean of all rows")
    bottom = min(-0.05, 1.08 * float(np.nanmin(values)))
    ax.set(ylim=(bottom, 1.04), ylabel="silhouette by cosine")
    ax.set_title(f"mean silhouette {mean:.2f}")
    explain(ax, loc="lower right")
    return ax


def _cosine_silhouettes(data: Matrix, clusters: Clusters) -> np.ndarray:
    """Return the silhouette of each row by cosine distance; NaN for zero rows."""
    if len(clusters.outliers):
        inside = np.flatnonzero(clusters.codes >= 0)
        values = np.full(data.shape[0], np.nan)
        few = Clusters(clusters.codes[inside], clusters.names)
        values[inside] = _cosine_silhouettes(only(data, inside), few)
        return values
    norms = np.sqrt(to_host(data.sqnorms).astype(np.float64))
    live = norms > 0
    codes, count = clusters.codes, len(clusters.names)
    inverse = np.divide(1.0, norms, where=live, out=np.zeros(len(norms)))
    sizes = np.bincount(codes, weights=live, minlength=count)
    if np.count_nonzero(sizes) < 2:
        raise ValueError(
            "All rows are in one cluster; a silhouette compares two or more."
        )
    here = (np.arange(len(codes)), codes)
    weights = np.zeros((len(codes), count))
    weights[here] = inverse
    sums = to_host(data.adjoint(weights)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = to_host(data @ (sums / sizes)) * inverse[:, None]
        distances = np.where(sizes > 0, 1.0 - cosines, np.inf).astype(np.float64)
        # The row itself is at distance 0 and does not count.
        own = distances[here] * sizes[codes] / (sizes[codes] - 1)
        distances[here] = np.inf
        nearest = distances.min(axis=1)
        values = (nearest - own) / np.maximum(np.maximum(own, nearest), 1e-12)
    values[sizes[codes] < 2] = 0.0
    values[~live] = np.nan
    return values


def _classes(labels: Any) -> Clusters:
    """Return classes, outliers as the last one."""
    clusters = clusters_of(labels, "plot_confusion")
    if not len(clusters.outliers):
        return clusters
    last = len(clusters.names)
    codes = np.where(clusters.codes < 0, last, clusters.codes)
    return Clusters(codes, [*clusters.names, "outlier"])


def plot_confusion(labels_true: Any, labels_pred: Any, *, ax: Any = None) -> Any:
    """Draw how known labels and clusters go together, as a table of counts.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Known labels and those of a clustering, of any kind.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_confusion(["a", "a", "b", "b"], [1, 1, 0, 1])
    >>> ax.get_title()
    '25.0% of rows misplaced'
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '0']
    """
    rate = misclassification_rate(labels_true, labels_pred)
    true, pred = _classes(labels_true), _classes(labels_pred)
    n_true = len(true.names)
    partner = np.empty(len(pred.names), dtype=np.intp)
    partner[pred.codes] = match_labels(true.codes, pred.codes, unmatched=n_true)
    for j in np.flatnonzero([name == "outlier" for name in pred.names]):
        same = "outlier" in true.names  # outliers are matched with each other alone
        partner[j] = true.names.index("outlier") if same else n_true
    order = np.argsort(partner, kind="stable")
    matched = partner[order][partner[order] < n_true]  # these clusters come first
    table = true.table(pred)[:, order]
    share = table / table.sum(axis=1, keepdims=True)
    columns = [pred.names[j] for j in order]
    side = float(np.clip(2.0 + 0.32 * max(table.shape), 4.2, 11.0))
    size = (side + 0.8, side)
    ax, bar = heatmap(ax, share, true.names, columns, size, largest=1.0)
    bar.set_label("share of the known label")
    bar.ax.yaxis.set_major_formatter("{x:.0%}")
    _write_counts(ax, table, share)
    frame = {"fill": False, "ec": LIGHT[1], "lw": 1.5 if len(order) <= 20 else 0.8}
    ax.bar(range(len(matched)), 1, 1, matched - 0.5, **frame)
    ax.set(ylabel="known label", title=f"{percent(rate)} of rows misplaced")
    ax.set_xlabel("cluster; framed where it goes with a label")
    return ax


def _write_counts(ax: Any, table: np.ndarray, share: np.ndarray) -> None:
    """Write counts into the cells if all of them fit."""
    words = np.vectorize(lambda count: f"{count:,}" if count else "")(table)
    box, size = ax.get_window_extent(), font_size(ax)
    width = 0.65 * size * (max(map(len, words.flat)) + 1)
    # The colour bar may take a little of the room yet.
    if width > 0.85 * box.width / len(words[0]) or 1.2 * size > box.height / len(words):
        return
    for (i, j), word in np.ndenumerate(words):
        tone = "white" if share[i, j] < 0.5 else "black"
        ax.text(j, i, word, ha="center", va="center", color=tone)
