"""Eigenvalues, and the other evidence for a number of clusters, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.numerics.recipe import Recipe
from ihgmm.plotting._axes import color, explain, given_or_new, ink, quiet
from ihgmm.plotting._clusters import fitted
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.counts import count_headline
from ihgmm.words.phrases import counted


def plot_scree(
    source: Any, count: ClusterCount | None = None, *, ax: Any = None
) -> Any:
    """Draw the leading eigenvalues; of a count, with noise and gap as well.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    source : fitted estimator or ClusterCount
        For noise and gap, ``select_n_clusters(X)``. A model with ``eigenvalues_`` knows
        those of its clusters and none beyond: it shows neither, unless it is given with
        a count.
    count : ClusterCount, optional
        With a model: what :func:`ihgmm.select_n_clusters` returned, to draw noise and
        the gap at the model's number of clusters. A model fitted with
        ``n_clusters="auto"`` has it already, as ``selection_``.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm, select_n_clusters
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> count = select_n_clusters(X, random_state=0)
    >>> plot_scree(count).get_title()
    '3 eigenvalues above noise'
    >>> ax = plot_scree(IhSC(3, random_state=0).fit(X), count)
    """
    if isinstance(source, ClusterCount):
        count, n_clusters = source, source.rank
    else:
        values = fitted(source, "eigenvalues_", "plot_scree").astype(np.float64)
        n_clusters, recipe = len(values), getattr(source, "recipe", None)
        gram: str = "" if recipe is None else Recipe.of(recipe).gram
        count = count or getattr(source, "selection_", None)
    ax = given_or_new(ax, (6.0, 4.0))
    k, names = n_clusters, ("clusters", "the next")
    if count is not None:
        k, gram, names = count.rank, count.gram, ("above", "not above")
        # Far more may be known, which are all noise.
        values = count.eigenvalues[: max(k + 5, 10, n_clusters + 1)]
        lowest, noise = count.null.min(initial=count.edge), color(1, ax)
        band = {"alpha": 0.25, "lw": 0, "label": "sign-flipped copies"}
        ax.axhspan(lowest, count.edge, color=noise, **band)
        ax.axhline(count.edge, color=noise, lw=1.2, label="edge of noise")
    place, size = np.arange(1, len(values) + 1), 7 if len(values) <= 25 else 4
    label = f"{names[0]}: {k}" if k else None
    ax.plot(place[:k], values[:k], "o", color=color(0, ax), ms=size, label=label)
    if len(values) > k:
        # A grey that can be seen on white and on black.
        style = {"mfc": "none", "color": "#777777", "ms": size}
        ax.plot(place[k:], values[k:], "o", label=names[1], **style)
    if 0 < n_clusters < len(values) and values[n_clusters] > 0:
        last, after = ends = values[n_clusters - 1 :][:2]
        style = {"color": ink(ax), "lw": 1.2, "marker": "_", "ms": 8}
        label = f"gap: {last / after:.1f}-fold"
        ax.plot([n_clusters + 0.5] * 2, ends, label=label, **style)
    top, bottom = values.max(), values.min()
    least = bottom if count is None else count.edge
    if least > 0 and top > 20 * least:  # the largest would dwarf all others
        ax.set_yscale("symlog", linthresh=least)  # straight around 0, where noise lies
        low, high = ax.get_ylim()
        ticks = [tick for tick in ax.get_yticks() if low <= tick <= high]
        # Powers of ten within the edge would overlap.
        ax.set_yticks([t for t in ticks if t == 0 or abs(t) > 1.5 * least])
    elif count is None:
        ax.set_ylim(min(0.0, 1.1 * bottom), 1.08 * max(top, 0) or None)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    ax.set(xlim=(0.4, len(values) + 0.6), xlabel="eigenvalue number")
    ax.set_ylabel(f"eigenvalue ({gram} Gram)" if gram else "eigenvalue")
    if len(ax.get_legend_handles_labels()[0]) > 1:
        # In a frame no mark passes for an eigenvalue. Where there is one series and no
        # gap, the title says all.
        explain(ax)
    if count is not None:
        above = counted(k, "eigenvalue") if k else "none"
        ax.set_title(f"{above} above noise")
    else:
        note = (
            f"eigenvalues of the model's {counted(k, 'cluster')} only;\n"
            "pass select_n_clusters(X) to see noise and gap"
        )
        ax.set_title(note, fontsize="small", color=ink(ax), alpha=0.75)
    return quiet(ax)


def plot_count(count: ClusterCount, ax: Any = None) -> Any:
    """Draw the eigenvalues of a count; in a new figure, more evidence beside them."""
    if ax is None and (count.evidence or count.strengths):
        ax = given_or_new(None, (10.0, 4.0), 1, 2, 1)
        plot_evidence(count, ax=ax.figure.add_subplot(1, 2, 2))
    return plot_scree(count, ax=ax)


def plot_evidence(count: ClusterCount, *, ax: Any = None) -> Any:
    """Draw what speaks for each number of clusters that was tried.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    count : ClusterCount
        What :func:`ihgmm.select_n_clusters` returned, by ``method="auto"`` or
        ``method="stability"``.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_evidence(select_n_clusters(X, random_state=0)).get_title()
    '3 clusters (confidence high)'
    """
    if not (count.evidence or count.strengths):
        raise ValueError(
            f"This count (method={count.method!r}, rank={count.rank}) used one "
            "criterion, or too few rows; plot_scree draws its eigenvalues. "
            "select_n_clusters(X, method='auto') compares several criteria."
        )
    ax = given_or_new(ax, (6.0, 4.0))
    draw = _draw_evidence if count.evidence else _draw_strengths
    draw(ax, count)
    ax.set_xlabel("number of clusters")
    return quiet(ax)


def _draw_evidence(ax: Any, count: ClusterCount) -> None:
    """Draw what the sides say of each number tried, and mark the plausible ones."""
    tried = [number.n_clusters for number in count.evidence]
    gaps = np.array([number.gaps for number in count.evidence]).T
    curves = {
        "gap": gaps[0],
        "gap, projected": gaps[1],
        "halves": [number.strength for number in count.evidence],
    }
    for i, (label, values) in enumerate(curves.items()):
        style = {"color": color(i, ax), "mfc": ax.get_facecolor(), "ms": 5}
        ax.plot(tried, values, "-o", label=label, **style)
    support = [number.support for number in count.evidence]
    ax.plot(tried, support, "--", color=ink(ax), lw=1.2, label="support")
    for place, number in enumerate(count.plausible):
        if number.n_clusters in tried:
            style = {"color": ink(ax), "alpha": 0.4, "lw": 1.0}
            if place == 0:
                style |= {"lw": 2.0, "label": "plausible"}
            ax.axvline(number.n_clusters, **style)
    if max(tried) > 20:
        ax.set_xscale("log")
        ticks = [k for k in (2, 3, 5, 10, 20, 50, 100, 200, 500) if k <= max(tried)]
        ax.set_xticks(ticks, [str(k) for k in ticks], minor=False)
        ax.xaxis.minorticks_off()
    else:
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylabel("evidence")
    ax.set_title(f"{count_headline(count)} (confidence {count.confidence.value})")
    # Below the axes: curves leave no corner free.
    style = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 5}
    ax.legend(frameon=False, fontsize="small", columnspacing=1.2, **style)


def _draw_strengths(ax: Any, count: ClusterCount) -> None:
    """Draw how far halves of the data agree on each number of clusters tried."""
    style = {"color": color(0, ax), "ms": 7}
    tried, strengths = list(count.strengths), list(count.strengths.values())
    ax.plot(tried, strengths, "-o", mfc=ax.get_facecolor(), **style)
    stable = "no number"
    if count.is_stable:
        stable, k = counted(count.n_clusters, "cluster"), count.n_clusters
        label = f"halves agree on {stable}"
        ax.plot(k, count.strengths[k], "o", label=label, **style)
    least = count.required_strength
    ax.axhline(least, color=color(1, ax), lw=1.2, label=f"asked for: {least}")
    ax.set_ylim(-0.04, 1.06)  # whole circles at 0 and 1
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylabel("prediction strength")
    ax.set_title(f"stable: {stable}")
    ax.legend(frameon=False)
