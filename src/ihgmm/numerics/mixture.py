"""Gaussian clusters of one covariance, by expectation and maximisation.

Nothing is random: the same rows and starts give the same clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.threads import in_parts
from ihgmm.policy import Labelling, Small


@dataclass(frozen=True, eq=False)
class TiedClusters:
    """Gaussian clusters of one covariance, and how well they fit.

    The score of a row in each cluster is ``row @ coefficients + intercepts``: the
    logarithm of its density times the share of the cluster, up to a term that all
    clusters have in common.
    """

    coefficients: np.ndarray  # (m, k)
    intercepts: np.ndarray  # (k,)
    bic_gain: float  # log-likelihood of a row over one Gaussian, less BIC's penalty
    shrinkage: float  # of the covariance towards a sphere
    n_iter: int

    def memberships(
        self, ops: Ops, rows: Tall, *, signed: bool, prior: Tall | None
    ) -> Tall:
        """Return memberships of rows, (k, n).

        With ``signed`` they are negative where a row points away from its centre.
        """
        expected = _expected_memberships(
            ops,
            rows,
            self.coefficients.T[None],
            self.intercepts[None],
            signed=signed,
            prior=prior,
        )
        return expected.signed[0, ...]


def tied_clusters(
    rows: Tall,
    starts: Sequence[Tall],
    weights: np.ndarray,
    *,
    shrinkages: Sequence[float] = (Labelling.PULL,),
    least_gain: float = -np.inf,
    signed: bool = False,
    prior: Tall | None = None,
    max_iter: int = 300,
    ops: Ops = HOST,
) -> TiedClusters | None:
    """Fit Gaussian clusters that share one covariance, from several starts at once.

    Parameters
    ----------
    rows : array of shape (n, m)
        The rows.
    starts : sequence of arrays of shape (k, n)
        Memberships of the rows to start from; with ``signed`` these are negative where
        a row is at the opposite of a centre.
    weights : array of shape (n,)
        How much rows count.
    shrinkages : sequence of float
        Shares by which the covariance is pulled towards a sphere, or few rows in many
        directions would give one that fits their noise. Each start runs with each.
    least_gain : float
        A ``bic_gain`` that clusters have to pass.
    signed : bool
        Whether opposite rows are of one cluster.
    prior : array of shape (k, n), optional
        What is known of rows beforehand: logarithms that are added to their scores.
    max_iter : int
        Cap on the iterations of a run.
    ops : Ops
        What serves the rows.

    Returns
    -------
    clusters : TiedClusters or None
        Those of largest ``bic_gain``, the first of equals; None where clusters vanish
        or no run passes ``least_gain``.

    Notes
    -----
    BIC's penalty is ``log(n) / 2`` for each parameter, over n rows. Only the shape of
    the covariance counts, ``m (m + 1) / 2 - 1`` numbers that a sphere does not have:
    all runs have the same number of centres.
    """
    em = _TiedEM.of_rows(ops, rows, weights, signed=signed, prior=prior)
    runs = em.start(starts, shrinkages)
    ends: list[_End] = []
    best_gain = least_gain
    n_iter = 0

    # Not the loop of `iterate`: runs go on side by side and end one by one, and those
    # that are far behind another are given up.
    while len(runs.numbers):
        n_iter += 1
        clusters = em.maximise(runs)
        moments = em.expect(clusters)

        gains = em.gains(clusters, moments)
        improvements = gains - runs.gains
        bic_gains = gains - runs.penalties

        has_ended = (improvements < Labelling.GAIN) | (n_iter >= max_iter)
        for i in np.flatnonzero(has_ended):
            fitted = TiedClusters(
                coefficients=clusters.coefficients[i].T,
                intercepts=clusters.intercepts[i],
                bic_gain=float(bic_gains[i]),
                shrinkage=float(runs.shrinkages[i]),
                n_iter=n_iter,
            )
            ends.append(_End(clusters=fitted, run=int(runs.numbers[i])))

        # A run that loses a cluster has not won.
        has_all_clusters = moments.sizes.min(axis=1) * em.n_rows >= 1
        best_gain = max(best_gain, bic_gains[has_all_clusters].max(initial=-np.inf))
        within_reach = bic_gains + Labelling.AHEAD * improvements >= best_gain
        runs = runs.next_round(~has_ended & within_reach, moments, gains)

    return _best_clusters(em, ends, least_gain)


@dataclass(frozen=True, eq=False)
class _End:
    """Where a run has ended."""

    clusters: TiedClusters
    run: int  # its number

    def rank(self) -> tuple[int, int]:
        """Return what orders ends: those that are one but for rounding, by number."""
        return -round(self.clusters.bic_gain / Labelling.SAME_WORTH), self.run


def _best_clusters(
    em: _TiedEM, ends: list[_End], least_gain: float
) -> TiedClusters | None:
    """Return the best of the clusters in which every cluster has rows, if one does."""
    ops = em.ops
    for end in sorted(ends, key=_End.rank):
        clusters = end.clusters
        if clusters.bic_gain <= least_gain + Labelling.SAME_WORTH:
            break
        members = clusters.memberships(ops, em.rows, signed=em.signed, prior=em.prior)
        labels = ops.xp.argmax(ops.xp.abs(members), axis=0)
        if ops.group_sums(labels, len(clusters.intercepts)).all():
            return clusters
    return None


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs that go on, r of them: what the next round starts from."""

    numbers: np.ndarray  # (r,)
    shrinkages: np.ndarray  # (r,)
    penalties: np.ndarray  # (r,): BIC's, for the shape of the covariance
    sizes: np.ndarray  # (r, k): share of the rows in each cluster
    sums: np.ndarray  # (r, k, m): weighted sum of the rows of each cluster
    gains: np.ndarray  # (r,): of the round before

    def next_round(
        self, goes_on: np.ndarray, moments: _Moments, gains: np.ndarray
    ) -> _Runs:
        """Return the runs that go on, with what the last round has found."""
        return _Runs(
            numbers=self.numbers[goes_on],
            shrinkages=self.shrinkages[goes_on],
            penalties=self.penalties[goes_on],
            sizes=moments.sizes[goes_on],
            sums=moments.sums[goes_on],
            gains=gains[goes_on],
        )


@dataclass(frozen=True, eq=False)
class _Clusters:
    """Gaussian clusters of each run: what maximisation finds."""

    coefficients: np.ndarray  # (r, k, m)
    intercepts: np.ndarray  # (r, k)
    # Minus twice the mean, over rows, of what their log-densities have in common.
    common_terms: np.ndarray  # (r,)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums over rows by their memberships: what expectation finds."""

    sizes: np.ndarray  # (r, k): share of the rows in each cluster
    sums: np.ndarray  # (r, k, m): weighted sums of the rows of each cluster
    log_scores: np.ndarray  # (r,): mean logarithm of the sum of exponential scores


def _added(first: _Moments, second: _Moments) -> _Moments:
    """Return the moments of two parts of the rows together."""
    return _Moments(
        sizes=first.sizes + second.sizes,
        sums=first.sums + second.sums,
        log_scores=first.log_scores + second.log_scores,
    )


@dataclass(frozen=True, eq=False)
class _TiedEM:
    """The steps of expectation and maximisation, for several runs on the same rows.

    In all arrays runs come first, then clusters, then rows or directions.

    Notes
    -----
    With sizes s and means μ of clusters, their covariance C, and weights w of rows that
    add up to 1,

        log(size times density) of a row x = score(x) - (x'C⁻¹x + log|C|) / 2
        score(x) = x'C⁻¹μ - μ'C⁻¹μ / 2 + log s

    up to a constant that all Gaussians share. The mean of ``x'C⁻¹x + log|C|`` over rows
    is ``trace(C⁻¹M) + log|C|``, where the second moments M are the sum of ``w x x'``.
    """

    ops: Ops
    rows: Tall  # (n, m)
    n_rows: int
    row_weights: Tall  # (n,): they add up to 1
    weighted_rows: Tall  # (n, m)
    second_moments: np.ndarray  # (m, m)
    least_variance: float  # of a direction: less is rounding
    single_term: float  # twice the log-likelihood of one Gaussian, a row
    signed: bool  # whether opposite rows are of one cluster
    prior: Tall | None  # (k, n): added to scores

    @classmethod
    def of_rows(
        cls,
        ops: Ops,
        rows: Tall,
        weights: np.ndarray,
        *,
        signed: bool,
        prior: Tall | None,
    ) -> _TiedEM:
        """Prepare what all runs have in common."""
        n_rows, n_directions = rows.shape
        row_weights = ops.cast_like(weights / weights.sum(), rows)
        weighted_rows = rows * row_weights[:, None]
        second_moments = ops.tall_dot(rows, weighted_rows)
        mean = ops.tall_dot(rows, row_weights[:, None])[:, 0]

        # All rows may be zero, as one alone is.
        total = np.trace(second_moments)
        least_variance = float(Labelling.FLATTEST * total / n_directions) or 1.0

        # One Gaussian: minus trace(C⁻¹(M - mean mean')) + log|C|.
        floor = least_variance * np.eye(n_directions)
        covariance = second_moments - np.outer(mean, mean) + floor
        inverse = np.linalg.inv(covariance)
        single_term = mean @ inverse @ mean - (inverse * second_moments).sum()
        single_term -= np.linalg.slogdet(covariance)[1]

        return cls(
            ops=ops,
            rows=rows,
            n_rows=n_rows,
            row_weights=row_weights,
            weighted_rows=weighted_rows,
            second_moments=second_moments,
            least_variance=least_variance,
            single_term=single_term,
            signed=signed,
            prior=prior,
        )

    def start(self, starts: Sequence[Tall], shrinkages: Sequence[float]) -> _Runs:
        """Return the runs that begin: each start with each shrinkage."""
        ops = self.ops
        n, m = self.rows.shape
        members = ops.xp.stack(list(starts))  # (starts, k, n)
        sizes = ops.to_host(ops.xp.abs(members) @ self.row_weights)
        sums = ops.to_host(members @ self.weighted_rows)

        shrinkage_of_runs = np.array(list(shrinkages) * len(starts), dtype=float)
        n_shape_parameters = m * (m + 1) / 2 - 1
        has_shape = shrinkage_of_runs < 1
        return _Runs(
            numbers=np.arange(len(shrinkage_of_runs)),
            shrinkages=shrinkage_of_runs,
            penalties=has_shape * n_shape_parameters * np.log(n) / (2 * n),
            sizes=np.repeat(sizes, len(shrinkages), axis=0),
            sums=np.repeat(sums, len(shrinkages), axis=0),
            gains=np.full(len(shrinkage_of_runs), -np.inf),
        )

    def maximise(self, runs: _Runs) -> _Clusters:
        """Return the clusters that are most likely, given the moments of members.

        Within clusters the covariance W is M less the sum of ``s μμ'``. Pulled by a
        share a towards a sphere it is ``C = (1 - a) W + (a trace(W) / m) I``.
        """
        m = self.rows.shape[1]
        sizes = runs.sizes + Small.ROUNDING / self.n_rows
        centers = runs.sums / sizes[:, :, None]

        weighted_centers = centers * sizes[:, :, None]
        between_clusters = weighted_centers.swapaxes(1, 2) @ centers  # (r, m, m)
        within_clusters = self.second_moments - between_clusters
        traces = np.einsum("rii->r", within_clusters)
        sphere = runs.shrinkages * traces / m + self.least_variance
        covariance = (1 - runs.shrinkages)[:, None, None] * within_clusters
        diagonal = np.arange(m)
        covariance[:, diagonal, diagonal] += sphere[:, None]

        inverse = np.linalg.inv(covariance)
        coefficients = centers @ inverse
        mean_squares = (inverse * self.second_moments).sum(axis=(1, 2))
        return _Clusters(
            coefficients=coefficients,
            intercepts=np.log(sizes) - (centers * coefficients).sum(axis=2) / 2,
            common_terms=mean_squares + np.linalg.slogdet(covariance)[1],
        )

    def expect(self, clusters: _Clusters) -> _Moments:
        """Return the moments of rows by their expected memberships."""
        n = self.n_rows
        n_products = clusters.coefficients.size * n
        if self.ops is HOST and n_products >= Labelling.THREADS:
            parts = in_parts(n, lambda part: self._expect_part(clusters, part))
            return reduce(_added, parts)
        return self._expect_part(clusters, slice(0, n))

    def _expect_part(self, clusters: _Clusters, part: slice) -> _Moments:
        """Return what a range of the rows adds to the moments."""
        ops = self.ops
        row_weights = self.row_weights[part]
        expected = _expected_memberships(
            ops,
            self.rows[part, ...],
            clusters.coefficients,
            clusters.intercepts,
            signed=self.signed,
            prior=None if self.prior is None else self.prior[:, part],
        )

        # One product for all runs.
        n_part = expected.signed.shape[2]
        members = ops.xp.reshape(expected.signed, (-1, n_part))
        sums = members @ self.weighted_rows[part, ...]
        return _Moments(
            sizes=ops.to_host(expected.shares @ row_weights),
            sums=ops.to_host(ops.xp.reshape(sums, clusters.coefficients.shape)),
            log_scores=ops.to_host(expected.log_totals @ row_weights),
        )

    def gains(self, clusters: _Clusters, moments: _Moments) -> np.ndarray:
        """Return log-likelihoods of a row, (r,), over that of one Gaussian."""
        return moments.log_scores - (clusters.common_terms + self.single_term) / 2


@dataclass(frozen=True, eq=False)
class _Memberships:
    """How far each row is of each cluster, in several runs."""

    shares: Tall  # (r, k, n): they add up to 1 over clusters
    signed: Tall  # (r, k, n): the part at one end of a cluster less that at the other
    log_totals: Tall  # (r, n): logarithm of the sum of exponential scores


def _expected_memberships(
    ops: Ops,
    rows: Tall,
    coefficients: np.ndarray,
    intercepts: np.ndarray,
    *,
    signed: bool,
    prior: Tall | None,
) -> _Memberships:
    """Return memberships of rows, given coefficients (r, k, m) and intercepts (r, k).

    Shares are exponentials of scores, over their sum. A signed cluster has two ends, of
    scores ``±product + intercept``, each with half of its rows: the nearer end has
    ``1 / (1 + exp(-2 |product|))`` of its share in a row.
    """
    xp = ops.xp
    n_runs, k, m = coefficients.shape
    flat_coefficients = ops.cast_like(coefficients.reshape(n_runs * k, m), rows)
    products = xp.reshape(flat_coefficients @ rows.T, (n_runs, k, -1))

    scores = xp.abs(products) if signed else products
    scores += ops.cast_like(intercepts, rows)[:, :, None]
    if prior is not None:
        scores += prior

    peaks = xp.max(scores, axis=1, keepdims=True)
    scores -= peaks
    shares = xp.exp(scores)
    if signed:
        # The score is that of the nearer end; both ends together are a cluster.
        shares *= (1 + xp.exp(-2 * xp.abs(products))) / 2
    totals = xp.sum(shares, axis=1, keepdims=True)
    shares /= totals

    return _Memberships(
        shares=shares,
        signed=shares * xp.tanh(products) if signed else shares,
        log_totals=(peaks + xp.log(totals))[:, 0, :],
    )
