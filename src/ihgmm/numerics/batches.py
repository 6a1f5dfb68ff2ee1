"""Batches: rows of one lab, kit or country, whose columns carry factors of their own.

Factors are learnt from rows of one cluster in several batches, by turns with labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ihgmm.matrix import HOST, Matrix, Scaled, Tall, as_matrix, to_host
from ihgmm.policy import Batching


@dataclass(frozen=True, eq=False)
class Batches:
    """Factors of the columns in each batch, and what other batches get theirs by."""

    names: tuple[str, ...]
    factors: np.ndarray  # (n_batches, p)
    means: np.ndarray  # (k, p): of unit rows of each cluster, without factors
    noise: np.ndarray  # (p,): variance of unit rows inside of clusters

    def codes(self, names: np.ndarray) -> np.ndarray:
        """Return the number of each row's batch, -1 for one that is not known."""
        known = {name: code for code, name in enumerate(self.names)}
        return np.array([known.get(str(name), -1) for name in names])

    def factors_of_new(self, X: Matrix, label: Callable[[Matrix], Tall]) -> np.ndarray:
        """Return factors, (1, p), of the rows of a batch that the fit did not have."""
        (n, _), k = X.shape, len(self.means)
        one = np.zeros(n, dtype=int)
        factors = _ratio(_sums(X, one, 1) / n, self.means.mean(axis=0))
        for _ in range(Batching.ROUNDS):
            labels = to_host(label(without(X, factors, one)))
            sums = _sums(X, labels, k)[None]
            counts = np.bincount(labels, minlength=k)[None].astype(float)
            factors, _ = _factors(sums, counts, self.noise, self.means)
        return factors


def without(X: Matrix, factors: np.ndarray, codes: np.ndarray) -> Matrix:
    """Return rows without the factors of their batch, in memory."""
    array = cast(Any, X.to_memory()).array
    inverse = (1 / factors).astype(X.dtype)
    if X.sparse:
        array = array.tocsr().copy()
        owners = np.repeat(codes, np.diff(array.indptr))
        array.data = array.data * inverse[owners, array.indices]
    else:
        array = array * inverse[codes]
    return as_matrix(array).with_metadata(X.metadata)


def learn_batches(
    X: Matrix, codes: np.ndarray, names: tuple[str, ...], label: Callable[[Matrix], Any]
) -> tuple[Batches, np.ndarray]:
    """Learn factors by turns with labels, and tell which clusters share batches.

    ``label`` clusters a matrix and returns labels and how many clusters there are. The
    first labels are those of rows that were divided by the means of their batch.
    """
    n_batches, unit = len(names), Scaled(X, rows=_inverse_lengths(X))
    sizes = np.bincount(codes, minlength=n_batches)
    means = _sums(X, codes, n_batches) / sizes[:, None]
    factors = _ratio(means, sizes @ means / sizes.sum())
    labels = None
    for _ in range(Batching.ROUNDS):
        before, (tall, k) = labels, label(without(X, factors, codes))
        labels = to_host(tall)
        if before is not None and np.mean(labels != before) < Batching.SETTLED:
            break
        groups = codes * k + labels
        counts = np.bincount(groups, minlength=n_batches * k).reshape(n_batches, k)
        sums = _sums(X, groups, n_batches * k).reshape(n_batches, k, -1)
        # The variance of columns of unit rows inside of groups.
        means = HOST.ratio(1.0, counts.astype(float))[:, :, None] * sums**2
        left = np.maximum(unit.column_sqnorms() - means.sum(axis=(0, 1)), 0.0)
        noise = left / max(counts.sum() - np.count_nonzero(counts), 1)
        shared = (counts >= Batching.ROWS).sum(axis=0) >= 2
        used = np.where(shared & (counts >= Batching.ROWS), counts, 0).astype(float)
        new, centers = _factors(sums, used, noise)
        # Half a step, once labels are about right: else they may go to and fro.
        factors = new if before is None else np.sqrt(new * factors)
    alone = ~shared & (counts.sum(axis=0) > 0)
    # Clusters of one batch: what is theirs and what is the batch's, nothing tells.
    own = HOST.ratio(1.0, counts[:, alone].sum(axis=0).astype(float))
    centers[alone] = (sums[:, alone] / factors[:, None]).sum(axis=0) * own[:, None]
    learnt = Batches(names, factors, centers, noise)
    return learnt, np.where(shared, -1, np.argmax(counts, axis=0))


def _sums(X: Matrix, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the sums of unit rows of each group, (n_groups, p)."""
    rows = X.ops.groups(X.to_device(groups), n_groups)
    return rows.weighted_sums(X, _inverse_lengths(X)).astype(np.float64)


def _inverse_lengths(X: Matrix) -> Tall:
    return X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms))


def _ratio(means: np.ndarray, overall: np.ndarray) -> np.ndarray:
    """Return means over others; small ones count less, or noise would be blown up."""
    least = Batching.FLOOR * overall
    return HOST.ratio(means + least, np.broadcast_to(overall + least, means.shape), 1.0)


def _factors(
    sums: np.ndarray, counts: np.ndarray, noise: np.ndarray, centers: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return factors of batches, shrunk by their noise, and centres of clusters."""
    means = sums * HOST.ratio(1.0, counts)[:, :, None]
    logs, used = np.zeros((len(sums), sums.shape[2])), counts.sum(axis=0) > 0
    shares = counts * HOST.ratio(1.0, counts.sum(axis=0))
    for _ in range(Batching.ROUNDS):
        plain = means / np.exp(logs)[:, None]
        middle = np.einsum("bk,bkp->kp", shares, plain) if centers is None else centers
        # Unit rows of a cluster with factors are longer or shorter by a number.
        squares = np.einsum("kp,kp->k", middle, middle)
        gains = np.einsum("bkp,kp->bk", plain, middle) * HOST.ratio(1.0, squares)
        if centers is None:
            middle = np.einsum("bk,bkp->kp", shares * HOST.ratio(1.0, gains), plain)
        expected = np.einsum("bk,kp->bp", counts * gains, middle)
        typical = middle[used].mean(axis=0) if used.any() else np.zeros_like(noise)
        # One row more, of a factor of 1, stands in where there are hardly any entries.
        total = expected + typical
        found = HOST.ratio(np.einsum("bk,bkp->bp", counts, means) + typical, total, 1.0)
        found = (found + Batching.FLOOR) / (1 + Batching.FLOOR)
        spread = np.sqrt(counts.sum(axis=1)[:, None] * noise)
        # By what is expected: found ones would be thought surer if they are too large.
        variances = HOST.ratio(spread, total, np.inf) ** 2
        # Not shrunk yet, or centres would take over what factors lose.
        logs = np.log(found)
    # About their mean in each batch, shrunk by their noise.
    usual = np.minimum(np.median(variances, axis=1, keepdims=True), 1.0)
    weights = 1 / (variances + usual + 1e-12) ** 2
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    logs = logs - (weights * logs).sum(axis=1, keepdims=True)
    finite = np.where(np.isfinite(variances), variances, 0.0)
    excess = (weights * (logs**2 - finite)).sum(axis=1, keepdims=True)
    # If batches have an effect at all, columns that clearly differ are shrunk less.
    clear = logs**2 - Batching.CLEAR**2 * variances
    excess = np.maximum(np.maximum(excess, clear), 0.0) * (excess > 0).any()
    return np.exp(logs * HOST.ratio(excess, excess + variances)), middle
