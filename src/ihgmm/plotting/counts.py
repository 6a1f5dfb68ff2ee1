"""What speaks for each number of clusters, drawn; and the eigenvalues of a model."""

from typing import Any

import numpy as np

from ihgmm._parameters import option
from ihgmm.plotting import _axes as draw
from ihgmm.plotting._axes import Axes
from ihgmm.plotting._clusters import fitted, learnt
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.counts import count_headline
from ihgmm.words.phrases import counted


def plot_count(source: Any, *, ax: Axes | None = None) -> Axes:
    """Draw what speaks for each number of clusters, and clouds without clusters beside.

    Parameters
    ----------
    source : ClusterCount or fitted estimator
        What :func:`ihgmm.select_n_clusters` returned, or a model that was fitted with
        ``n_clusters="auto"``.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_count(select_n_clusters(X, random_state=0)).get_title()
    '3 clusters (confidence high)'
    """
    count = source
    if not isinstance(source, ClusterCount):
        count = learnt(source, "selection_", "plot_count")
    if not count.evidence:
        raise ValueError(
            "This count tried no number of clusters beyond one; give more rows, or a "
            f"larger {option('max_clusters')}."
        )
    ax = draw.given_or_new(ax, (6.0, 4.0))
    ax.margins(y=0.12)  # for numbers above the dots

    numbers = [evidence.n_clusters for evidence in count.evidence]
    scores = [evidence.score for evidence in count.evidence]
    modularity = [evidence.modularity for evidence in count.evidence]
    gaps = [evidence.silhouette for evidence in count.evidence]
    ax.plot(numbers, scores, "o-", color=draw.color(0, ax), label="score", ms=4)
    ax.plot(
        numbers, modularity, "-", color=draw.color(1, ax), label="links beyond chance"
    )
    ax.plot(numbers, gaps, ":", color=draw.color(2, ax), label="silhouette")
    _draw_clouds(ax, count)
    _mark_plausible(ax, count)

    ax.set_xscale("log")
    ax.set_xlim(1.8, 1.1 * numbers[-1])
    ticks = [k for k in (2, 3, 4, 6, 8, 12, 20, 35, 50, 100) if k <= numbers[-1]]
    ax.set_xticks(ticks, [str(k) for k in ticks])
    ax.minorticks_off()
    ax.margins(y=0.1)  # for the numbers above the curve
    ax.set_xlabel("number of clusters")
    # Below, where it hides no curve.
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.17),
        ncols=2,
        fontsize="small",
        frameon=False,
    )
    confidence = count.confidence.value
    draw.wrap_title(ax, f"{count_headline(count)} (confidence {confidence})")
    return draw.quiet(ax)


def _draw_clouds(ax: Axes, count: ClusterCount) -> None:
    """Draw how modular clouds without clusters are, from the least to the most."""
    clouds = count.clouds
    if not clouds.numbers:
        return
    means = clouds.of_clouds.mean(axis=0)
    ax.fill_between(
        clouds.numbers,
        clouds.of_clouds.min(axis=0),
        clouds.of_clouds.max(axis=0),
        color=draw.NEUTRAL,
        alpha=0.3,
        lw=0,
    )
    ax.plot(
        clouds.numbers,
        means,
        "--",
        color=draw.NEUTRAL,
        label="links beyond chance, clouds without clusters",
    )


def _mark_plausible(ax: Axes, count: ClusterCount) -> None:
    """Mark the number that was chosen, and write the plausible ones at their score."""
    for place, k in enumerate(count.plausible):
        evidence = count.evidence_for(k)
        if evidence is None:
            continue
        if place == 0:
            ax.axvline(k, color=draw.ink(ax), lw=0.8, alpha=0.5)
        ax.annotate(
            str(k),
            (k, evidence.score),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            weight="bold" if place == 0 else "normal",
        )


def plot_scree(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the leading eigenvalues of a fitted model, and the gap after its clusters.

    Parameters
    ----------
    model : fitted estimator
        A model with ``eigenvalues_``, which are those of its clusters and few more.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_scree(IhSC(3).fit(X)).get_ylabel()
    'eigenvalue'
    """
    ax = draw.given_or_new(ax, (6.0, 4.0))
    values = fitted(model, "eigenvalues_", "plot_scree").astype(np.float64)
    centers = getattr(model, "cluster_centers_", values)
    n_leading = int(centers.shape[0])
    ax.set_title(f"{counted(len(values), 'eigenvalue')} of the model")
    _draw_eigenvalues(ax, values, n_leading)

    n_further = len(values) - n_leading
    if n_leading and n_further > 0 and values[n_leading] > 0:
        _draw_gap(ax, values, n_leading)
    _scale_eigenvalue_axis(ax, values)

    ax.locator_params("x", integer=True, min_n_ticks=1)
    ax.set_xlim(0.4, len(values) + 0.6)
    ax.set_xlabel("eigenvalue number")
    ax.set_ylabel("eigenvalue")
    marks, _ = ax.get_legend_handles_labels()
    if len(marks) > 1:
        # In a frame no mark passes for an eigenvalue. Where there is one series and no
        # gap, the title says all.
        legend = ax.legend(fontsize="small", framealpha=0.9, edgecolor="#aaaaaa")
        legend.set_zorder(6)
    return draw.quiet(ax)


def _draw_eigenvalues(
    ax: Axes,
    values: np.ndarray,
    n_leading: int,
) -> None:
    """Draw filled marks for the leading eigenvalues, and hollow ones for the others."""
    n_values = len(values)
    number = np.arange(1, n_values + 1)
    mark_size = 7 if n_values <= 25 else 4

    ax.plot(
        number[:n_leading],
        values[:n_leading],
        "o",
        color=draw.color(0, ax),
        ms=mark_size,
        label=f"clusters: {n_leading}" if n_leading else None,
    )
    if n_values > n_leading:
        ax.plot(
            number[n_leading:],
            values[n_leading:],
            "o",
            mfc="none",
            color="#777777",  # a grey that can be seen on white and on black
            ms=mark_size,
            label="the next",
        )


def _draw_gap(ax: Axes, values: np.ndarray, n_leading: int) -> None:
    """Draw a line from the last leading eigenvalue down to the next."""
    upper = values[n_leading - 1]
    lower = values[n_leading]
    ax.plot(
        [n_leading + 0.5, n_leading + 0.5],
        [upper, lower],
        "_-",
        color=draw.ink(ax),
        lw=1.2,
        ms=8,
        label=f"gap: {upper / lower:.1f}-fold",
    )


def _scale_eigenvalue_axis(ax: Axes, values: np.ndarray) -> None:
    """Use a log axis where the largest eigenvalue would dwarf all others."""
    largest = values.max()
    smallest = values.min()

    if smallest > 0 and largest > 20 * smallest:
        ax.set_yscale("symlog", linthresh=smallest)  # straight near 0, as noise is
        bottom, top = ax.get_ylim()
        ticks = np.asarray(ax.get_yticks())
        is_in_view = (ticks >= bottom) & (ticks <= top)
        # Powers of ten within the threshold would overlap.
        is_outside = np.abs(ticks) > 1.5 * smallest
        is_shown = is_in_view & (is_outside | (ticks == 0))
        ax.set_yticks(ticks[is_shown])
        return

    ax.set_ylim(bottom=min(0.0, 1.1 * smallest))
    if largest > 0:
        ax.set_ylim(top=1.08 * largest)
