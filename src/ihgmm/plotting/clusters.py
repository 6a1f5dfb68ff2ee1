"""Clusters side by side: scales, patterns, certainty, and known labels."""

from typing import Any

import numpy as np

from ihgmm._parameters import check_count
from ihgmm.matrix import to_host
from ihgmm.metrics import class_agreement
from ihgmm.plotting import _axes as draw
from ihgmm.plotting._axes import Axes
from ihgmm.plotting._clusters import clusters_of, fitted
from ihgmm.policy import Contrasts
from ihgmm.statistics.contrasts import TopFeatures
from ihgmm.statistics.diagnosis import Diagnosis, diagnose
from ihgmm.words.phrases import percent


def plot_scales(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how scales are spread within each cluster, as violins on a log axis.

    Parameters
    ----------
    model : fitted estimator
        A model with ``scales_``: :class:`ihgmm.IhSC` or :class:`ihgmm.IhGMM`.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_scales(IhSC(3, random_state=0).fit(X)).get_yscale()
    'log'
    """
    from scipy.stats import gaussian_kde

    scales = fitted(model, "scales_", "plot_scales").astype(np.float64)
    clusters = clusters_of(model, "plot_scales")
    ax = draw.column_axes(ax, clusters.names)
    ink, ground = draw.ink(ax), ax.get_facecolor()
    ax.axhline(1.0, color=ink, lw=0.8, ls=":", zorder=0)
    for k, rows in enumerate(clusters.rows()):
        values = np.sort(scales[rows])
        values = values[values > 0]
        # A density of fewer than ten rows would be a guess.
        if len(values) < 10 or values[0] == values[-1]:
            ax.plot(np.full(len(values), k), values, "o", ms=4, color=draw.color(k, ax))
            continue
        # The density is that of the logarithms, which is what a log axis shows. A
        # thousand quantiles of a larger cluster look the same, and cost less.
        logs = np.log(np.quantile(values, np.linspace(0, 1, min(len(values), 1000))))
        grid = np.linspace(logs[0], logs[-1], 100)
        width = gaussian_kde(logs)(grid)
        ends = k + np.outer([-0.4, 0.4], width / width.max())
        ax.fill_betweenx(np.exp(grid), *ends, color=draw.color(k, ax), alpha=0.55, lw=0)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        ax.plot([k, k], [low, high], color=ink, lw=2.5, solid_capstyle="butt")
        ax.plot(k, middle, "o", mfc=ground, mec=ink, ms=4.5, mew=1.2)
    draw.plain_log_axis(ax)
    zero = int((~(scales > 0)).sum())
    label = "cluster; bar: middle half, dot: median"
    ax.set_xlabel(label + (f"\nrows of scale 0, not shown: {zero:,}" if zero else ""))
    ax.set(ylabel="scale (cluster mean 1)", title="scales of the rows of each cluster")
    return draw.quiet(ax)


def plot_top_features(
    top: TopFeatures, *, n_features: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how far clusters are above or below other rows, as a heat map.

    Parameters
    ----------
    top : TopFeatures
        What :func:`ihgmm.top_features` returns.
    n_features : int, optional
        How many features to show. Default: 20, or one for each cluster if more.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm, top_features
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> top = top_features(X, IhSC(3, random_state=0).fit(X))
    >>> len(plot_top_features(top, n_features=6).get_yticks())
    6
    """
    if not isinstance(top, TopFeatures):
        raise TypeError(
            f"plot_top_features takes what top_features returns, not a "
            f"{type(top).__name__}; write plot_top_features(top_features(X, model))."
        )
    k = len(top.clusters)
    count = check_count("n_features", max(20, k) if n_features is None else n_features)
    # The best feature of every cluster, then the second of each, ...
    order = np.argsort(-top.scores, axis=1, kind="stable")[:, :count]
    shown = np.array([*dict.fromkeys(order.T.ravel().tolist())][:count])
    # ... by the cluster that they describe best.
    sizes = np.abs(top.contrasts[:, shown])
    shown = shown[np.lexsort((-sizes.max(axis=0), sizes.argmax(axis=0)))]
    rows, columns = [top.names[j] for j in shown], [*map(str, top.clusters)]
    largest = min(float(sizes.max()) or 1.0, Contrasts.MOST)
    cells = np.clip(top.contrasts[:, shown].T, -largest, largest)
    size = max(1.9 + 0.22 * k, 6.4), max(1.2 + 0.24 * len(shown), 3.0)
    ax, bar = draw.heatmap(ax, cells, rows, columns, size, largest)
    ax.set_title("features that set clusters apart")
    measure = "noise levels" if top.has_noise else "share of the mean's length"
    bar.set_label(f"above all other rows\n({measure})")
    return ax


def plot_confidence(
    X: Any = None, model: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw how certain the label of each row is, sorted within clusters.

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
        values = to_host(diagnose(X, model).certainty)
    else:
        memberships = fitted(model, "memberships_", "plot_confidence")
        values = np.where(codes < 0, np.nan, memberships[np.arange(len(codes)), codes])
    ax = draw.column_axes(ax, clusters.names)
    for k, rows in enumerate(clusters.rows()):
        known = values[rows][~np.isnan(values[rows])]
        # A column has no more pixels than 400.
        shares = np.linspace(1, 0, min(len(known), 400))
        steps = np.quantile(known, shares, method="nearest") if len(known) else known
        # All columns are equally wide, so that small clusters can be seen.
        edges = np.linspace(k - 0.42, k + 0.42, len(steps) + 1)
        ax.stairs(steps, edges, fill=True, color=draw.color(k, ax), alpha=0.55, lw=0)
        ax.stairs(steps, edges, baseline=None, color=draw.color(k, ax), lw=1.2)
    ax.axhline(0, color=draw.ink(ax), lw=0.8)
    ax.axhline(sure, color=draw.ink(ax), lw=0.9, ls="--")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(ylim=(0, 1.04), ylabel="certainty of the label")
    ax.set_xlabel("cluster; rows sorted within")
    below = percent(float((values[codes >= 0] < sure).mean()))
    ax.set_title(f"{below} of rows are less than {sure:.0%} certain")
    return draw.quiet(ax)


def plot_confusion(
    labels_true: Any, labels_pred: Any, *, ax: Axes | None = None
) -> Axes:
    """Draw how known labels and clusters go together, as a table of counts.

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
    true = clusters_of(labels_true, "plot_confusion")
    pred = clusters_of(labels_pred, "plot_confusion")
    partners = pred.partners(true, by_majority=agreement.by_majority)
    if len(pred.outliers):  # which are matched with outliers alone
        partners = np.append(partners, len(true.names) if len(true.outliers) else -1)
    true, pred = true.with_outliers(), pred.with_outliers()
    order = np.lexsort((partners, partners < 0))  # those without a partner come last
    table = true.table(pred)[:, order]
    share = table / table.sum(axis=1, keepdims=True)
    columns = [pred.names[j] for j in order]
    side = max(2.0 + 0.32 * max(table.shape), 4.2)
    ax, bar = draw.heatmap(ax, share, true.names, columns, (side + 0.8, side))
    bar.set_label("share of the known label")
    bar.ax.yaxis.set_major_formatter("{x:.0%}")
    # Counts are written if all of them fit; the colour bar may take a little room yet.
    figures = np.vectorize(lambda count: f"{count:,}" if count else "")(table)
    box, height = ax.get_window_extent(), draw.font_size(ax)
    width = 0.65 * height * (max(map(len, figures.flat)) + 1)
    room = 0.85 * box.width / len(order), box.height / len(true.names)
    if width <= room[0] and 1.2 * height <= room[1]:
        for (i, j), figure in np.ndenumerate(figures):
            tone = "white" if share[i, j] < 0.5 else "black"
            ax.text(j, i, figure, ha="center", va="center", color=tone)
    matched = partners[order][: np.count_nonzero(partners >= 0)]
    lw = 1.5 if len(order) <= 20 else 0.8
    ax.bar(range(len(matched)), 1, 1, matched - 0.5, fill=False, ec="#d55e00", lw=lw)
    title = f"{percent(agreement.rate)} of rows misplaced"
    if agreement.by_majority:
        title = f"{percent(agreement.rate)} of rows not of their cluster's main class, "
        title += f"adjusted Rand index {agreement.adjusted_rand_index:.2f}"
    draw.wrap_title(ax, title)
    ax.set(xlabel="cluster; framed where it goes with a label", ylabel="known label")
    return ax
