"""Labels made better by looking at every row once more."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from ihgmm._arrays import Array
from ihgmm._devices import moved, to_host
from ihgmm._norms import row_sqnorms
from ihgmm._tall import Tall
from ihgmm.memberships import (
    Projections,
    indicators,
    leave_one_out,
    log_evidence,
    precision_weights,
    unit_weights,
)

__all__ = ["Refinement", "refine_labels"]

SOFT_ROUNDS = 30
"""Rounds in which a row may belong to several clusters, at most."""

TEMPER = 0.5
"""Power of the likelihood in those rounds: half sure, so that early errors can mend."""


@dataclass(frozen=True)
class Refinement:
    """Refined labels.

    Attributes
    ----------
    labels : array of shape (n_samples,)
        The cluster of each row, where the data is.
    n_iter : int
        Rounds that were run.
    converged : bool
        Whether the rounds ended by themselves: nothing changed any more, or labels
        came back that had been there before.
    """

    labels: Tall
    n_iter: int
    converged: bool


def refine_labels(
    X: Array,
    labels: Tall,
    n_clusters: int,
    *,
    sqnorms: Tall | None = None,
    max_iter: int = 100,
) -> Refinement:
    """Reassign rows to the centres that the other rows give, until nothing changes.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    labels : array of shape (n_samples,)
        Where to start: integers from 0 to ``n_clusters - 1``, every one in use.
    n_clusters : int
        Number of clusters; none of them is ever emptied.
    sqnorms : array of shape (n_samples,), optional
        Squared row norms of X, if known already.
    max_iter : int
        Cap on the number of rounds.

    Returns
    -------
    Refinement

    Notes
    -----
    In a centre a row counts with its length over its noise variance, both as they
    appear from the centres of the round before. The first rounds are soft: rows count
    in several centres, by their likelihood, so that one wrong label does not keep
    others wrong. Then every row goes to the centre with the largest cosine. Rounds
    that repeat earlier labels end the search, since they would go round in a circle.
    A round costs two products with X of ``n_clusters`` columns.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> X, labels = make_ihgmm(60, 40, 2, separation=4.0, random_state=0)
    >>> start = labels.copy()
    >>> start[:5] = 1 - start[:5]
    >>> bool((refine_labels(X, start, 2).labels == labels).all())
    True
    """
    sqnorms = to_host(row_sqnorms(X) if sqnorms is None else sqnorms)
    found = _refine(X, to_host(labels), n_clusters, sqnorms, max_iter)
    return replace(found, labels=moved(found.labels, X))


def _refine(
    X: Array,
    labels: np.ndarray,
    n_clusters: int,
    sqnorms: np.ndarray,
    max_iter: int,
) -> Refinement:
    """Refine labels that are on the host, wherever X is."""
    if n_clusters == 1:
        return Refinement(np.zeros(len(labels), dtype=np.intp), 0, True)
    p = X.shape[1]
    memberships = indicators(labels, n_clusters)
    found, _ = leave_one_out(X, sqnorms, unit_weights(memberships, sqnorms))
    n_iter = 1
    soft = True
    seen: set[bytes] = set()
    while n_iter < max_iter:
        weights = precision_weights(memberships, found, sqnorms)
        found, _ = leave_one_out(X, sqnorms, weights)
        n_iter += 1
        if soft:
            likely = softmax(TEMPER * log_evidence(found, sqnorms, p), axis=1)
            change = np.abs(likely - memberships).max()
            memberships = likely
            soft = change > 1e-2 and n_iter <= SOFT_ROUNDS
            if soft:
                continue
        new = _largest(found, labels, sqnorms, n_clusters)
        memberships = indicators(new, n_clusters)
        if (new == labels).all():
            return Refinement(labels, n_iter, True)
        labels = new
        key = labels.tobytes()
        if key in seen:
            return Refinement(labels, n_iter, True)
        seen.add(key)
    return Refinement(labels, n_iter, False)


def _largest(
    found: Projections, labels: np.ndarray, sqnorms: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return the cluster of largest cosine; rows that would leave one empty stay."""
    new = found.cosines.argmax(axis=1)
    # Zero rows fit everywhere alike; by the rule of the package they are in cluster 0.
    new[sqnorms == 0] = labels[sqnorms == 0]
    sizes = np.bincount(new, minlength=n_clusters)
    for k in np.flatnonzero(sizes == 0):
        rows = np.flatnonzero(labels == k)
        if len(rows) == 0:
            continue
        lost = found.cosines[rows].max(axis=1) - found.cosines[rows, k]
        stays = rows[lost.argmin()]
        if sizes[new[stays]] > 1:
            sizes[new[stays]] -= 1
            new[stays] = k
            sizes[k] = 1
    return np.asarray(new)
