"""The mixture fitted by expectation and maximisation, each row left out in its turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from ihgmm._arrays import Array
from ihgmm._devices import to_host
from ihgmm._progress import Say
from ihgmm._tall import Tall
from ihgmm.memberships import (
    Directions,
    Noise,
    Projections,
    column_scaled,
    indicators,
    leave_one_out,
    log_evidence,
    precision_weights,
    unit_weights,
)

__all__ = ["Mixture", "evaluate_mixture", "fit_mixture", "joint_log_likelihood"]

SETTLING = 20
"""Rounds after which memberships go only half the way, lest they swing."""


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture.

    Attributes
    ----------
    memberships : ndarray of shape (n_samples, n_clusters)
        Probability of each cluster for each row, given the other rows.
    mixing_weights : ndarray of shape (n_clusters,)
        Shares of the clusters.
    noise_variances : ndarray of shape (n_clusters,) or None
        Variance of the noise in each cluster; None where every row has its own.
    directions : Directions
        The centres' directions, all rows included.
    log_likelihood : float
        Of the rows, each given the others.
    n_iter : int
        Rounds that were run.
    change : float
        How much the memberships of a row moved in the last round, on average.
    """

    memberships: np.ndarray
    mixing_weights: np.ndarray
    noise_variances: np.ndarray | None
    directions: Directions
    log_likelihood: float
    n_iter: int
    change: float

    def in_order(self, order: np.ndarray) -> Mixture:
        """Return the mixture with its clusters in another order."""
        variances, directions = self.noise_variances, self.directions
        return replace(
            self,
            memberships=self.memberships[:, order],
            mixing_weights=self.mixing_weights[order],
            noise_variances=None if variances is None else variances[order],
            directions=Directions(
                directions.sums[:, order],
                directions.sqnorms[order],
                directions.loads[order],
            ),
        )


def fit_mixture(
    X: Array,
    labels: Tall,
    n_clusters: int,
    sqnorms: Tall,
    *,
    noise: Noise = "individual",
    max_iter: int = 100,
    tol: float = 1e-4,
    say: Say | None = None,
) -> Mixture:
    """Fit centres, shares and noise from a start that is given by labels.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    labels : array of shape (n_samples,)
        The start: integers from 0 to ``n_clusters - 1``.
    n_clusters : int
        Number of clusters.
    sqnorms : array of shape (n_samples,)
        Squared row norms of X.
    noise : {"common", "class", "individual"}
        Whether the noise has one variance, one for each cluster or one for each row.
    max_iter : int
        Cap on the number of rounds.
    tol : float
        Memberships that move less than this, on average over rows, have converged.
    say : callable, optional
        Takes a few words on the progress, after each round.

    Returns
    -------
    Mixture

    Notes
    -----
    The likelihood of the model has no maximum where every row has its own noise: a
    centre through one row makes that row's noise vanish. Here every row is judged by
    centres learnt without it, which has no such flaw, and which keeps memberships
    honest where features outnumber rows.
    """
    sqnorms = to_host(sqnorms)
    memberships = indicators(to_host(labels), n_clusters)
    found = _first_look(X, sqnorms, memberships)
    # Shares that follow the memberships would feed on themselves: where clusters are
    # hard to tell apart, the largest would swallow the others.
    shares = mixing_weights(memberships, sqnorms)
    n_iter, change = 0, np.inf
    while n_iter < max_iter and change > tol:
        state, found = _round(X, memberships, found, sqnorms, noise, shares)
        likely = _keep_all(state.memberships, memberships)
        n_iter += 1
        if n_iter > SETTLING:
            likely = (likely + memberships) / 2
        change = float(np.abs(likely - memberships).sum(axis=1).mean() / 2)
        memberships = likely
        if say is not None:
            rounds = f"{n_iter} round{'s' * (n_iter != 1)}"
            say(f"{rounds}, memberships moved by {change:.2g}")
    return replace(
        state,
        memberships=memberships,
        mixing_weights=mixing_weights(memberships, sqnorms),
        n_iter=n_iter,
        change=change,
    )


def evaluate_mixture(
    X: Array, memberships: np.ndarray, sqnorms: Tall, noise: Noise
) -> Mixture:
    """Return the mixture that rows with given memberships make, without moving them."""
    sqnorms = to_host(sqnorms)
    found = _first_look(X, sqnorms, memberships)
    shares = mixing_weights(memberships, sqnorms)
    for _ in range(3):
        state, found = _round(X, memberships, found, sqnorms, noise, shares)
    return state


def _first_look(X: Array, sqnorms: np.ndarray, memberships: np.ndarray) -> Projections:
    return leave_one_out(X, sqnorms, unit_weights(memberships, sqnorms))[0]


def _round(
    X: Array,
    memberships: np.ndarray,
    found: Projections,
    sqnorms: np.ndarray,
    noise: Noise,
    shares: np.ndarray,
) -> tuple[Mixture, Projections]:
    """Sum up the centres from memberships, and look from them at every row."""
    p = X.shape[1]
    weights = _weights(memberships, found, sqnorms, noise)
    found, directions = leave_one_out(X, sqnorms, weights)
    variances = _noise_variances(memberships, found, sqnorms, p, noise)
    joint = joint_log_likelihood(found, sqnorms, p, shares, variances)
    total = logsumexp(joint, axis=1, keepdims=True)
    state = Mixture(
        np.exp(joint - total),
        shares,
        variances,
        directions,
        float(total[sqnorms > 0].sum()),
        1,
        np.inf,
    )
    return state, found


def mixing_weights(memberships: np.ndarray, sqnorms: np.ndarray) -> np.ndarray:
    """Return the shares of the clusters, pulled towards equal ones.

    They are pulled as far as chance alone would have moved them (James and Stein), and
    no further: sizes that differ by no more than chance count as equal, since rows that
    fit nowhere well would otherwise all go to the largest cluster.
    """
    live = memberships[sqnorms > 0]
    n, k = live.shape
    sizes = (live.sum(axis=0) + 1) * n / (n + k)
    even = n / k
    distance = float(np.square(sizes - even).sum() / even)
    kept = max(0.0, 1 - (k - 1) / distance) if distance > 0 else 0.0
    return np.asarray((even + kept * (sizes - even)) / n)


def joint_log_likelihood(
    found: Projections,
    sqnorms: np.ndarray,
    n_features: int,
    shares: np.ndarray,
    variances: np.ndarray | None,
) -> np.ndarray:
    """Return the log-likelihood of each row together with each cluster."""
    evidence = log_evidence(found, sqnorms, n_features, variances)
    return np.asarray(evidence + np.log(shares))


def _noise_variances(
    memberships: np.ndarray,
    found: Projections,
    sqnorms: np.ndarray,
    n_features: int,
    noise: Noise,
) -> np.ndarray | None:
    """Return the noise variance of each cluster; None for individual noise.

    The noise is what rows have beyond their signal, and the squared length of the
    signal is that along the centre over the centre's accuracy, which itself depends on
    the noise: more noise in the centres means more signal in the rows. What is left
    falls as the variance rises, so that one value agrees with itself.
    """
    if noise == "individual":
        return None
    along = np.maximum(found.cosines, 0.0) ** 2
    length = memberships * sqnorms[:, None]
    entries = memberships[sqnorms > 0].sum(axis=0) * max(n_features - 1, 1)

    def excess(variances: np.ndarray) -> np.ndarray:
        signal = np.minimum(along / found.accuracy(variances, n_features), 1.0)
        left = (length * (1.0 - signal)).sum(axis=0) - variances * entries
        return np.full_like(left, left.sum()) if noise == "common" else left

    overall = length.sum() / entries.sum()
    low, high = np.zeros(len(entries)), length.sum(axis=0) / np.maximum(entries, 1e-9)
    if noise == "common":
        high[:] = overall
    for _ in range(60):
        middle = (low + high) / 2
        more = excess(middle) > 0
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.maximum((low + high) / 2, 1e-12 * overall)


def _weights(
    memberships: np.ndarray,
    found: Projections,
    sqnorms: np.ndarray,
    noise: Noise,
) -> np.ndarray:
    if noise == "individual":
        return precision_weights(memberships, found, sqnorms)
    # Within a cluster the noise is the same: rows count with their length.
    length = np.maximum(found.cosines, 0.0) * np.sqrt(sqnorms)[:, None]
    return column_scaled(memberships * length)


def _keep_all(likely: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Keep clusters from vanishing: the last row of one stays."""
    for k in np.flatnonzero(likely.sum(axis=0) < 0.5):
        last = before[:, k].argmax()
        likely[last] = 0.0
        likely[last, k] = 1.0
    return likely
