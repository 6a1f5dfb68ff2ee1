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
    scales = fitted(model, "scales_", "plot_scales").astype(np.float64)
    clusters = clusters_of(model, "plot_scales")
    ax = draw.column_axes(ax, clusters.names)
    ax.axhline(1.0, color=draw.ink(ax), lw=0.8, ls=":", zorder=0)

    is_positive = scales > 0
    for cluster, rows in enumerate(clusters.rows()):
        shown_rows = rows[is_positive[rows]]
        _draw_scales(ax, cluster, np.sort(scales[shown_rows]))

    draw.plain_log_axis(ax)
    label = "cluster; bar: middle half, dot: median"
    n_not_shown = np.count_nonzero(~is_positive)
    if n_not_shown:
        label += f"\nrows of scale 0, not shown: {n_not_shown:,}"
    ax.set_xlabel(label)
    ax.set_ylabel("scale (cluster mean 1)")
    ax.set_title("scales of the rows of each cluster")
    return draw.quiet(ax)


def _draw_scales(ax: Axes, cluster: int, scales: np.ndarray) -> None:
    """Draw sorted, positive scales as a violin, or few or equal ones as points."""
    # A density of fewer than ten rows would be a guess.
    are_few = len(scales) < 10
    if are_few or scales[0] == scales[-1]:
        places = np.full(len(scales), cluster)
        ax.plot(places, scales, "o", ms=4, color=draw.color(cluster, ax))
    else:
        _draw_violin(ax, cluster, scales)


def _draw_violin(ax: Axes, cluster: int, scales: np.ndarray) -> None:
    """Draw the density of sorted, positive scales, with their quartiles."""
    from scipy.stats import gaussian_kde

    # The density is that of the logarithms, which is what a log axis shows. A
    # thousand quantiles of a larger cluster look the same, and cost less.
    n_quantiles = min(len(scales), 1000)
    shares = np.linspace(0, 1, n_quantiles)
    logs = np.log(np.quantile(scales, shares))
    grid = np.linspace(logs[0], logs[-1], 100)
    density = gaussian_kde(logs)(grid)

    share_of_peak = density / density.max()
    half_width = 0.4 * share_of_peak
    ax.fill_betweenx(
        np.exp(grid),
        cluster - half_width,
        cluster + half_width,
        color=draw.color(cluster, ax),
        alpha=0.55,
        lw=0,
    )

    ink = draw.ink(ax)
    quartile, median, upper_quartile = np.quantile(scales, [0.25, 0.5, 0.75])
    bar = [cluster, cluster]
    ax.plot(bar, [quartile, upper_quartile], color=ink, lw=2.5, solid_capstyle="butt")
    ground = ax.get_facecolor()
    ax.plot(cluster, median, "o", mfc=ground, mec=ink, ms=4.5, mew=1.2)


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
    n_clusters = len(top.clusters)
    if n_features is None:
        n_features = max(20, n_clusters)
    features = _features_to_show(top, check_count("n_features", n_features))

    contrasts = top.contrasts[:, features].T  # (n_shown, n_clusters)
    largest_contrast = float(np.abs(contrasts).max())
    largest = min(largest_contrast or 1.0, Contrasts.MOST)
    width = max(1.9 + 0.22 * n_clusters, 6.4)
    height = max(1.2 + 0.24 * len(features), 3.0)

    ax, bar = draw.heatmap(
        ax,
        np.clip(contrasts, -largest, largest),
        rows=[top.names[feature] for feature in features],
        columns=[str(cluster) for cluster in top.clusters],
        size=(width, height),
        largest=largest,
    )

    ax.set_title("features that set clusters apart")
    measure = "noise levels" if top.has_noise else "share of the mean's length"
    bar.set_label(f"above all other rows\n({measure})")
    return ax


def _features_to_show(top: TopFeatures, count: int) -> np.ndarray:
    """Return so many features, by the cluster that they describe best."""
    # The best feature of every cluster, then the second of each, ...
    order = np.argsort(-top.scores, axis=1, kind="stable")[:, :count]
    in_turns = order.T.ravel().tolist()
    distinct = [*dict.fromkeys(in_turns)]
    features = np.array(distinct[:count])

    strengths = np.abs(top.contrasts[:, features])
    strongest_cluster = strengths.argmax(axis=0)
    by_cluster = np.lexsort((-strengths.max(axis=0), strongest_cluster))
    return features[by_cluster]


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
        model = X
        X = None
    clusters = clusters_of(model, "plot_confidence")
    certainty = _certainty(X, model, clusters.codes)

    ax = draw.column_axes(ax, clusters.names)
    for cluster, rows in enumerate(clusters.rows()):
        _draw_sorted(ax, cluster, certainty[rows])

    threshold = Diagnosis.certain_from
    ax.axhline(0, color=draw.ink(ax), lw=0.8)
    ax.axhline(threshold, color=draw.ink(ax), lw=0.9, ls="--")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(ylim=(0, 1.04), ylabel="certainty of the label")
    ax.set_xlabel("cluster; rows sorted within")

    is_uncertain = certainty[clusters.is_clustered] < threshold
    share = percent(float(is_uncertain.mean()))
    ax.set_title(f"{share} of rows are less than {threshold:.0%} certain")
    return draw.quiet(ax)


def _certainty(X: Any, model: Any, codes: np.ndarray) -> np.ndarray:
    """Return how certain each row's label is, by a diagnosis or by memberships."""
    if X is not None:
        return to_host(diagnose(X, model).certainty)

    memberships = fitted(model, "memberships_", "plot_confidence")
    rows = np.arange(len(codes))
    of_its_cluster = memberships[rows, codes]
    return np.where(codes < 0, np.nan, of_its_cluster)


def _draw_sorted(ax: Axes, cluster: int, certainty: np.ndarray) -> None:
    """Draw the certainties of a cluster's rows as steps that go down."""
    certainty = certainty[~np.isnan(certainty)]
    # A column has no more pixels than 400.
    n_steps = min(len(certainty), 400)
    steps = certainty
    if n_steps:
        steps = np.quantile(certainty, np.linspace(1, 0, n_steps), method="nearest")

    # All columns are equally wide, so that small clusters can be seen.
    edges = np.linspace(cluster - 0.42, cluster + 0.42, n_steps + 1)
    color = draw.color(cluster, ax)
    ax.stairs(steps, edges, fill=True, color=color, alpha=0.55, lw=0)
    ax.stairs(steps, edges, baseline=None, color=color, lw=1.2)


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
    classes = clusters_of(labels_true, "plot_confusion")
    clusters = clusters_of(labels_pred, "plot_confusion")
    partners = clusters.partners(classes, by_majority=agreement.by_majority)
    if len(clusters.outliers):  # which are matched with outliers alone
        has_partner = len(classes.outliers) > 0
        partners = np.append(partners, classes.n_clusters if has_partner else -1)
    classes = classes.with_outliers()
    clusters = clusters.with_outliers()

    # Clusters stand in the order of their labels; those without a label come last.
    order = np.lexsort((partners, partners < 0))
    table = classes.table(clusters)[:, order]  # (n_labels, n_clusters)
    shares = table / table.sum(axis=1, keepdims=True)

    side = max(2.0 + 0.32 * max(table.shape), 4.2)
    ax, bar = draw.heatmap(
        ax,
        shares,
        rows=classes.names,
        columns=[clusters.names[cluster] for cluster in order],
        size=(side + 0.8, side),
    )
    bar.set_label("share of the known label")
    bar.ax.yaxis.set_major_formatter("{x:.0%}")

    _write_counts(ax, table, shares)
    partners = partners[order]
    n_matched = np.count_nonzero(partners >= 0)
    _frame_matches(ax, partners[:n_matched], n_columns=len(order))

    rate = percent(agreement.rate)
    title = f"{rate} of rows misplaced"
    if agreement.by_majority:
        title = f"{rate} of rows not of their cluster's main class, "
        title += f"adjusted Rand index {agreement.adjusted_rand_index:.2f}"
    draw.wrap_title(ax, title)
    ax.set_xlabel("cluster; framed where it goes with a label")
    ax.set_ylabel("known label")
    return ax


def _write_counts(ax: Axes, table: np.ndarray, shares: np.ndarray) -> None:
    """Write the counts into the cells of a table, if all of them fit."""
    write = np.vectorize(lambda count: f"{count:,}" if count else "")
    texts = write(table)

    letter = draw.font_size(ax)
    longest_text = max(len(text) for text in texts.flat)
    text_width = 0.65 * letter * (longest_text + 1)
    box = ax.get_window_extent()
    n_rows, n_columns = table.shape
    cell_width = 0.85 * box.width / n_columns  # the colour bar may take a little yet
    cell_height = box.height / n_rows
    if text_width > cell_width or 1.2 * letter > cell_height:
        return

    is_dark = shares < 0.5
    for (row, column), text in np.ndenumerate(texts):
        tone = "white" if is_dark[row, column] else "black"
        ax.text(column, row, text, ha="center", va="center", color=tone)


def _frame_matches(ax: Axes, label_of_column: np.ndarray, n_columns: int) -> None:
    """Draw a frame around the cell of the label that each of the first columns has."""
    ax.bar(
        range(len(label_of_column)),
        height=1,
        width=1,
        bottom=label_of_column - 0.5,
        fill=False,
        ec="#d55e00",
        lw=1.5 if n_columns <= 20 else 0.8,
    )
