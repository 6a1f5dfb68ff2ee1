"""How sure the label of each row is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._text import percent
from ihgmm.plotting._fitted import Clusters, clusters_of, fitted, host
from ihgmm.plotting._frame import axes, ink, percent_ticks, width_for
from ihgmm.plotting._profiles import draw_profiles
from ihgmm.statistics.diagnosis import Diagnosis, diagnose

__all__ = ["plot_confidence"]


def plot_confidence(
    model: Any, X: Any = None, *, certainty: Any = None, ax: Any = None
) -> Any:
    """Draw how certain the label of each row is, sorted within clusters.

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

    Notes
    -----
    Each cluster has a column of the same width, in which its rows are sorted from the
    most to the least certain. The dashed line is at 90%; the title says how many rows
    are below it.

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
    count = len(clusters.names)
    ax = axes(ax, (width_for(count), 4.0))
    draw_profiles(ax, values, clusters)
    ax.axhline(Diagnosis.certain_from, color=ink(ax), lw=0.9, ls="--")
    ax.set_ylim(0, 1.04)
    ax.yaxis.set_major_formatter(percent_ticks())
    ax.set_xlabel("cluster; rows sorted within")
    ax.set_ylabel("certainty of the label")
    below = float((values < Diagnosis.certain_from).mean())
    sure = f"{Diagnosis.certain_from:.0%}"
    ax.set_title(f"{percent(below)} of rows are less than {sure} certain")
    return ax


def _certainty(model: Any, X: Any, given: Any, clusters: Clusters) -> np.ndarray:
    n = len(clusters.codes)
    if given is not None:
        values = host(given).astype(np.float64)
        if values.shape != (n,) or not ((values >= 0) & (values <= 1)).all():
            raise ValueError(
                f"certainty has shape {values.shape}; give {n} numbers between 0 and "
                "1, one for each row."
            )
        return values
    if X is not None:
        return diagnose(X, clusters.codes).certainty
    if hasattr(model, "memberships_"):
        memberships = fitted(model, "memberships_", "plot_confidence")
        return np.asarray(memberships[np.arange(n), clusters.codes])
    raise TypeError(
        "plot_confidence needs the data that was clustered; call "
        "plot_confidence(model, X)."
    )
