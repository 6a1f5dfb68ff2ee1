"""Eigenvalues, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm.numerics.recipe import Recipe
from ihgmm.plotting._axes import color, explain, given_or_new, ink, quiet
from ihgmm.plotting._clusters import fitted
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.phrases import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_scree(
    source: Any, count: ClusterCount | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the leading eigenvalues; of a count, with noise and gap as well.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    source : fitted estimator or ClusterCount
        For noise, ``select_n_clusters(X)``. A model with ``eigenvalues_`` knows few
        beyond those of its clusters, and no noise, unless it is given with a count.
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
        recipe, centers = (
            getattr(source, f, None) for f in ("recipe", "cluster_centers_")
        )
        n_clusters = len(values) if centers is None else int(centers.shape[0])
        gram: str = "" if recipe is None else Recipe.of(recipe).gram
        count = count or getattr(source, "selection_", None)
    ax = given_or_new(ax, (6.0, 4.0))
    k, names = n_clusters, ("clusters", "the next")
    if count is not None:
        k, gram, names = count.rank, count.gram, ("above", "not above")
        # Far more may be known, which are all noise.
        values = count.eigenvalues[: max(k + 5, 10, n_clusters + 1)]
        lowest, noise = count.null.min(initial=count.edge), color(1, ax)
        copies = ax.axhspan(lowest, count.edge, color=noise, alpha=0.25, lw=0)
        copies.set_label("sign-flipped copies")
        ax.axhline(count.edge, color=noise, lw=1.2, label="edge of noise")
    place, size = np.arange(1, len(values) + 1), 7 if len(values) <= 25 else 4
    label = f"{names[0]}: {k}" if k else None
    ax.plot(place[:k], values[:k], "o", color=color(0, ax), ms=size, label=label)
    if len(values) > k:
        # A grey that can be seen on white and on black.
        grey: dict[str, Any] = {"mfc": "none", "color": "#777777", "ms": size}
        ax.plot(place[k:], values[k:], "o", label=names[1], **grey)
    if 0 < n_clusters < len(values) and values[n_clusters] > 0:
        last, after = ends = values[n_clusters - 1 :][:2]
        style: dict[str, Any] = {"color": ink(ax), "lw": 1.2, "marker": "_", "ms": 8}
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
    ax.locator_params("x", integer=True, min_n_ticks=1)
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
            f"the model's own {counted(len(values), 'eigenvalue')} only;\n"
            "pass select_n_clusters(X) to see noise beside them"
        )
        ax.set_title(note, fontsize="small", color=ink(ax), alpha=0.75)
    return quiet(ax)
