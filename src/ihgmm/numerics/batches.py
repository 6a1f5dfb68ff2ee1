"""Batches: rows of one lab, kit or country, whose columns carry factors of their own.

Factors are learnt from rows of one cluster in several batches, by turns with labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np

from ihgmm.matrix import HOST, Dense, Matrix, Scaled, Sparse, Tall, as_matrix, to_host
from ihgmm.policy import Batching, Small

#: How batches were taken out of the rows of a fit.
TakenOutBy = Literal["nothing", "factors", "neighbors", "factors and neighbors"]


@dataclass(frozen=True, eq=False)
class Batches:
    """What batches do to rows, and what other batches get theirs by."""

    names: tuple[str, ...]
    factors: np.ndarray  # (n_batches, n_features)
    # (n_clusters, n_features): of unit rows of each cluster, without factors.
    means: np.ndarray
    noise: np.ndarray  # (n_features,): variance of unit rows inside of clusters
    taken_out_by: TakenOutBy = "factors"
    # Near rows of other batches in clusters found without batches, over what their
    # number would be if batches did not matter there.
    mixing: float = 1.0
    # (n_batches, m): of rows of the embedding; None where factors were enough.
    shifts: np.ndarray | None = None
    # (s, m): rows of the fit in the embedding, less shifts, that new batches look for
    # neighbours among.
    sample: np.ndarray | None = None

    @property
    def has_factors(self) -> bool:
        """Whether some factor is not 1."""
        return bool((self.factors != 1).any())

    def codes(self, names: np.ndarray) -> np.ndarray:
        """Return the number of each row's batch, -1 for one that is not known."""
        code_of_name = {name: code for code, name in enumerate(self.names)}
        return np.array([code_of_name.get(str(name), -1) for name in names])

    def factors_of_new(self, X: Matrix, label: Callable[[Matrix], Tall]) -> np.ndarray:
        """Return factors, (1, n_features), of a batch that the fit did not have.

        ``X`` has its rows; ``label`` places rows without factors in the clusters of the
        fit, by turns with the factors.
        """
        n_samples = X.shape[0]
        n_clusters = len(self.means)
        codes = np.zeros(n_samples, dtype=int)
        mean = _sums_of_unit_rows(X, codes, 1) / n_samples
        factors = _first_factors(mean, self.means.mean(axis=0))
        for _ in range(Batching.ROUNDS):
            labels = to_host(label(without_factors(X, factors, codes)))
            groups = BatchGroups.of(X, codes, labels, 1, n_clusters)
            counts = groups.counts.astype(float)
            fit = _fit_factors(groups.sums, counts, self.noise, self.means)
            factors = fit.factors

        return factors


def no_factors(
    X: Matrix, codes: np.ndarray, names: tuple[str, ...], labels: np.ndarray, k: int
) -> Batches:
    """Return batches that do nothing to columns, given clusters of the rows."""
    squares = Scaled(X, rows=_inverse_lengths(X)).column_sqnorms()
    groups = BatchGroups.of(X, codes, labels, len(names), k)
    sizes = groups.counts.sum(axis=0).astype(float)

    return Batches(
        names=names,
        factors=np.ones((len(names), X.shape[1])),
        means=groups.sums.sum(axis=0) * HOST.ratio(1.0, sizes)[:, None],
        noise=groups.noise(squares),
        taken_out_by="nothing",
    )


def without_factors(X: Matrix, factors: np.ndarray, codes: np.ndarray) -> Matrix:
    """Return rows divided by the factors of their batch, in memory.

    Parameters
    ----------
    X : Matrix
        The rows.
    factors : ndarray of shape (n_batches, n_features)
        Factors of each batch.
    codes : ndarray of int of shape (n_samples,)
        The batch of each row.
    """
    rows = cast(Dense | Sparse, X.to_memory())
    inverse_factors = (1 / factors).astype(X.dtype)
    if isinstance(rows, Sparse):
        array = rows.array.tocsr().copy()
        codes_of_entries = np.repeat(codes, np.diff(array.indptr))
        array.data = array.data * inverse_factors[codes_of_entries, array.indices]
    else:
        array = rows.array * inverse_factors[codes]

    return as_matrix(array).with_metadata(X.metadata)


def learn_batches(
    X: Matrix,
    codes: np.ndarray,
    names: tuple[str, ...],
    label: Callable[[Matrix], tuple[Tall, int]],
) -> tuple[Batches, np.ndarray]:
    """Learn factors by turns with labels, and tell which clusters share batches.

    Parameters
    ----------
    X : Matrix
        The rows.
    codes : ndarray of int of shape (n_samples,)
        The batch of each row, a position in ``names``.
    names : tuple of str
        Names of the batches.
    label : callable
        Clusters the rows of a matrix; returns their labels, and how many clusters there
        are. It is asked about rows without the factors known so far; at first these are
        the means of batches, over those of all.

    Returns
    -------
    batches : Batches
        Factors of the batches.
    homes : ndarray of int of shape (n_clusters,)
        The batch that alone has a cluster; -1 for clusters that batches share, which
        alone tell factors.
    """
    squares = Scaled(X, rows=_inverse_lengths(X)).column_sqnorms()
    batch_sizes = np.bincount(codes, minlength=len(names))
    batch_means = _sums_of_unit_rows(X, codes, len(names)) / batch_sizes[:, None]
    factors = _first_factors(batch_means, batch_sizes @ batch_means / batch_sizes.sum())

    previous_labels = None
    for _ in range(Batching.ROUNDS):
        tall_labels, n_clusters = label(without_factors(X, factors, codes))
        labels = to_host(tall_labels)
        is_first_round = previous_labels is None
        if not is_first_round and np.mean(labels != previous_labels) < Batching.SETTLED:
            break
        previous_labels = labels

        groups = BatchGroups.of(X, codes, labels, len(names), n_clusters)
        noise = groups.noise(squares)
        fit = _fit_factors(groups.sums, groups.telling_counts, noise)
        # Half a step, once labels are about right: else they may go to and fro.
        factors = fit.factors if is_first_round else np.sqrt(fit.factors * factors)

    batches = Batches(
        names=names,
        factors=factors,
        means=_with_means_of_unshared_clusters(fit.centers, groups, factors),
        noise=noise,
    )
    return batches, np.where(groups.is_shared, -1, np.argmax(groups.counts, axis=0))


@dataclass(frozen=True, eq=False)
class BatchGroups:
    """The unit rows of each cluster in each batch."""

    sums: np.ndarray  # (n_batches, n_clusters, n_features)
    counts: np.ndarray  # (n_batches, n_clusters)

    @classmethod
    def of(
        cls,
        X: Matrix,
        codes: np.ndarray,
        labels: np.ndarray,
        n_batches: int,
        n_clusters: int,
    ) -> BatchGroups:
        """Return the groups that batches and labels of rows make."""
        n_groups = n_batches * n_clusters
        groups = codes * n_clusters + labels
        counts = np.bincount(groups, minlength=n_groups)
        sums = _sums_of_unit_rows(X, groups, n_groups)

        return cls(
            sums=sums.reshape(n_batches, n_clusters, -1),
            counts=counts.reshape(n_batches, n_clusters),
        )

    @property
    def is_shared(self) -> np.ndarray:
        """Which clusters have rows in two batches at least, (n_clusters,)."""
        has_rows = self.counts >= Batching.ROWS
        return np.asarray(has_rows.sum(axis=0) >= 2)

    @property
    def telling_counts(self) -> np.ndarray:
        """Rows of the groups that tell factors: those of shared clusters."""
        is_telling = self.is_shared & (self.counts >= Batching.ROWS)
        return np.where(is_telling, self.counts, 0).astype(float)

    def noise(self, squares: np.ndarray) -> np.ndarray:
        """Return variances of unit rows inside of groups, (n_features,).

        ``squares`` are sums of squares of all rows in each column.
        """
        inverse_counts = HOST.ratio(1.0, self.counts.astype(float))
        squares_of_means = inverse_counts[:, :, None] * self.sums**2
        residuals = squares - squares_of_means.sum(axis=(0, 1))

        n_groups = np.count_nonzero(self.counts)
        freedom = max(self.counts.sum() - n_groups, 1)
        return np.maximum(residuals, 0.0) / freedom


def _with_means_of_unshared_clusters(
    centers: np.ndarray, groups: BatchGroups, factors: np.ndarray
) -> np.ndarray:
    """Return means of clusters, also of those that are in one batch alone.

    What is theirs and what is the batch's, nothing tells: factors are those of others.
    """
    totals = groups.counts.sum(axis=0)
    is_unshared = ~groups.is_shared & (totals > 0)
    sums = (groups.sums[:, is_unshared] / factors[:, None]).sum(axis=0)
    inverse_totals = HOST.ratio(1.0, totals[is_unshared].astype(float))

    means = centers.copy()
    means[is_unshared] = sums * inverse_totals[:, None]
    return means


def _sums_of_unit_rows(X: Matrix, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the sums of unit rows of each group, (n_groups, n_features)."""
    row_groups = X.ops.groups(X.to_device(groups), n_groups)
    return row_groups.weighted_sums(X, _inverse_lengths(X)).astype(np.float64)


def _inverse_lengths(X: Matrix) -> Tall:
    return X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms))


def _first_factors(means: np.ndarray, overall: np.ndarray) -> np.ndarray:
    """Return means of batches over those of all rows, (n_batches, n_features).

    Small ones count less, or noise would be blown up.
    """
    floor = Batching.FLOOR * overall
    floored_overall = np.broadcast_to(overall + floor, means.shape)
    return HOST.ratio(means + floor, floored_overall, 1.0)


class FactorFit(NamedTuple):
    """Factors of batches, and the centres of clusters without them."""

    factors: np.ndarray  # (n_batches, n_features)
    centers: np.ndarray  # (n_clusters, n_features)


def _fit_factors(
    sums: np.ndarray,
    counts: np.ndarray,
    noise: np.ndarray,
    centers: np.ndarray | None = None,
) -> FactorFit:
    """Return factors of batches, shrunk by their noise, and centres of clusters.

    Parameters
    ----------
    sums : ndarray of shape (n_batches, n_clusters, n_features)
        Sums of unit rows.
    counts : ndarray of shape (n_batches, n_clusters)
        How many rows these are, as far as they tell factors.
    noise : ndarray of shape (n_features,)
        Variance of unit rows inside of clusters.
    centers : ndarray of shape (n_clusters, n_features), optional
        Centres of clusters, if they are known.

    Notes
    -----
    The mean of cluster k in batch b is taken for ``gain[b, k] * factor[b] * center[k]``
    and noise: unit rows of a cluster with factors are longer or shorter by a number.
    Gains, centres and factors follow from each other, by turns.
    """
    means = sums * HOST.ratio(1.0, counts)[:, :, None]
    shares = counts * HOST.ratio(1.0, counts.sum(axis=0))
    is_used = counts.sum(axis=0) > 0
    observed = np.einsum("bk,bkp->bp", counts, means)

    log_factors = np.zeros((len(sums), sums.shape[2]))
    for _ in range(Batching.ROUNDS):
        means_without_factors = means / np.exp(log_factors)[:, None]
        estimate = _centers_and_gains(means_without_factors, shares, centers)
        current_centers = estimate.centers
        expected = np.einsum("bk,kp->bp", counts * estimate.gains, current_centers)

        # One row more, of a factor of 1, stands in where there are hardly any entries.
        mean_center = np.zeros_like(noise)
        if is_used.any():
            mean_center = current_centers[is_used].mean(axis=0)
        total = expected + mean_center
        factors = HOST.ratio(observed + mean_center, total, 1.0)
        # Not shrunk yet, or centres would take over what factors lose.
        log_factors = np.log((factors + Batching.FLOOR) / (1 + Batching.FLOOR))

    # By what is expected: large factors would be thought surer by what was found.
    deviations = np.sqrt(counts.sum(axis=1)[:, None] * noise)
    variances = HOST.ratio(deviations, total, np.inf) ** 2

    return FactorFit(
        factors=np.exp(_shrunk_log_factors(log_factors, variances)),
        centers=current_centers,
    )


class _CentersAndGains(NamedTuple):
    centers: np.ndarray  # (n_clusters, n_features)
    gains: np.ndarray  # (n_batches, n_clusters)


def _centers_and_gains(
    means: np.ndarray, shares: np.ndarray, centers: np.ndarray | None
) -> _CentersAndGains:
    """Return centres of clusters, and how long their means are in each batch.

    Parameters
    ----------
    means : ndarray of shape (n_batches, n_clusters, n_features)
        Means of clusters in batches, without factors.
    shares : ndarray of shape (n_batches, n_clusters)
        Share of each batch in the rows of a cluster.
    centers : ndarray of shape (n_clusters, n_features), optional
        Centres, if they are known.
    """
    references = centers
    if references is None:
        references = np.einsum("bk,bkp->kp", shares, means)

    sqnorms = np.einsum("kp,kp->k", references, references)
    products = np.einsum("bkp,kp->bk", means, references)
    gains = products * HOST.ratio(1.0, sqnorms)

    if centers is None:
        weights = shares * HOST.ratio(1.0, gains)
        references = np.einsum("bk,bkp->kp", weights, means)

    return _CentersAndGains(centers=references, gains=gains)


def _shrunk_log_factors(log_factors: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return logarithms of factors about their mean in a batch, shrunk by their noise.

    Both arrays are of shape (n_batches, n_features).

    Notes
    -----
    With v the variance of a logarithm and e the variance of true ones, which is what
    they vary more than that, each is multiplied by ``e / (e + v)``.
    """
    usual_variances = np.median(variances, axis=1, keepdims=True)
    weights = 1 / (variances + np.minimum(usual_variances, 1.0) + Small.EXACT) ** 2
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), Small.TINY)
    log_factors = log_factors - (weights * log_factors).sum(axis=1, keepdims=True)

    finite_variances = np.where(np.isfinite(variances), variances, 0.0)
    excess = weights * (log_factors**2 - finite_variances)
    excess = excess.sum(axis=1, keepdims=True)  # (n_batches, 1)
    has_effect = (excess > 0).any()

    # If batches have an effect at all, columns that clearly differ are shrunk less.
    clear_excess = log_factors**2 - Batching.CLEAR**2 * variances
    excess = np.maximum(np.maximum(excess, clear_excess), 0.0) * has_effect
    return log_factors * HOST.ratio(excess, excess + variances)
