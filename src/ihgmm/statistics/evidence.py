"""What speaks for each number of clusters: figures from several sides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored
from ihgmm.matrix import to_host
from ihgmm.matrix.tall import unit_rows
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.hetero import impute_diagonal


class Side(Enum):
    """A side from which a number of clusters can be supported."""

    DIRECTIONS = "directions"  # as many directions stand out from sign-flipped data
    SPHERE = "sphere"  # k-means fits directions far better than those of noise
    STABILITY = "stability"  # halves of the rows agree
    LIKELIHOOD = "likelihood"  # a mixture is worth what its centres cost


class Confidence(Enum):
    """How far the sides agree on the number of clusters."""

    HIGH = "high"  # two sides or more name the number, the sphere among them
    LOW = "low"  # the sides name several numbers
    NONE = "none"  # they name numbers that lie far apart: it is not known


@dataclass(frozen=True)
class CountEvidence:
    """What speaks for one number of clusters.

    Attributes
    ----------
    n_clusters : int
        The number.
    sides : tuple of Side
        The sides that name this very number as their best.
    support : float
        The sum of what all sides say, each from 0 to 1, less a price for many clusters.
    gaps : tuple of float
        How far the k-means inertia of directions lies below that of noise with the same
        spread, as a difference of logarithms: among unit rows of the eigenvectors, and
        among those of the projected rows.
    strength : float
        Prediction strength of halves of the rows: that of the worst cluster, from 0
        to 1.
    gain : float
        Log-likelihood for each row of a mixture with one shared covariance over that of
        one Gaussian, less twice the penalty of BIC.
    """

    n_clusters: int
    sides: tuple[Side, ...]
    support: float
    gaps: tuple[float, float]
    strength: float
    gain: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """The figures of all numbers tried, and what follows from them."""

    numbers: tuple[CountEvidence, ...]  # all that were tried, increasing
    deviation: float  # of a gap in noise
    n_rows: int  # that were looked at

    @property
    def has_clusters(self) -> bool:
        """Whether some gap is larger than noise alone would show."""
        # The largest of many gaps, so that it takes more than two deviations; and a
        # gap of a few percent is no clusters, however sure it may be.
        least = max(5 * self.deviation, 0.03)
        return any(max(number.gaps) > least for number in self.numbers)


def plausible(evidence: Evidence, most: int = 3) -> tuple[CountEvidence, ...]:
    """Return the numbers with most support, best first, none close to a better one."""
    chosen: list[CountEvidence] = []
    for number in sorted(evidence.numbers, key=lambda number: -number.support):
        k = number.n_clusters
        # Neighbours of a large number say the same as it does.
        if all(abs(k - c.n_clusters) > 0.12 * max(k, c.n_clusters) for c in chosen):
            chosen.append(number)
    return tuple(chosen[:most])


def gather_evidence(
    G: GramOperator, rank: int, max_clusters: int, rng: np.random.Generator
) -> Evidence | None:
    """Look at numbers of clusters from 2 upwards; return None where none can be tried.

    ``G`` is the hollow Gram matrix of few rows. Large numbers are tried only where the
    best of the small ones is among the largest of these.
    """
    n, p = G.A.shape
    most = min(max_clusters, n // 4, max(50, rank + 1))
    few = min(12, most)
    near = {k for k in (rank - 1, rank, rank + 1) if 2 <= k <= most}
    if few < 2:
        return None
    figures: dict[int, _Figures] = {}
    with one_thread(), ignored(ConvergenceWarning):
        spectrum = _spectrum(G, 2 * max(few, *near, 2) + 2, rng)
        for k in sorted({*range(2, few + 1), *near}):
            figures[k] = _figures(spectrum, k, rng)
        if most > few and max(_best(figures)) > 0.7 * few:
            # Steps of about a tenth: more is not known of large numbers.
            steps = (round(few * 1.1**i) for i in range(1, 100))
            more = sorted({k for k in steps if k <= most} - set(figures))
            spectrum = _spectrum(G, max(most + 12, 2 * few + 2), rng)
            for k in more:
                figures[k] = _figures(spectrum, k, rng)
    return _combine(dict(sorted(figures.items())), rank, n, min(p, n))


@dataclass(frozen=True)
class _Figures:
    gaps: tuple[float, float]
    strength: float
    gain: float
    price: float  # in units of the gain: that of one more cluster
    deviation: float


@dataclass(frozen=True)
class _Spectrum:
    """Leading eigenpairs of a Gram matrix with imputed diagonal, on the host."""

    values: np.ndarray
    vectors: np.ndarray

    def spaces(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return unit rows of eigenvectors, and of projected rows, for k clusters.

        The first k directions count fully, as many again and two less and less.
        """
        m = min(2 * k + 2, len(self.values))
        values, vectors = self.values[:m], self.vectors[:, :m]
        if k < m:
            last, base = values[k - 1], values[-1]
            share = (values[k:] - base) / max(last - base, np.finfo(float).tiny)
            weights = np.append(np.ones(k), np.sqrt(np.clip(share, 0.0, 1.0)))
            vectors = vectors * weights
        return unit_rows(vectors), self.projected(vectors)

    def projected(self, vectors: np.ndarray) -> np.ndarray:
        """Return unit rows of projected data, given leading eigenvectors."""
        return unit_rows(vectors * np.sqrt(self.values[: vectors.shape[1]]))


def _spectrum(G: GramOperator, k: int, rng: np.random.Generator) -> _Spectrum:
    n, p = G.A.shape
    k = max(1, min(k, p, n - 1))
    # A digit or two are enough to compare numbers of clusters.
    pairs = impute_diagonal(G, k, tol=0.05, max_iter=20, quiet=True, rng=rng).pairs
    values = np.maximum(pairs.values.astype(np.float64), 0.0)
    # What rounding left of a direction would count as one among eigenvectors.
    kept = max(1, int((values > 1e-6 * values[0]).sum()))
    vectors = to_host(pairs.vectors).astype(np.float64)[:, :kept]
    return _Spectrum(values[:kept], vectors)


def _figures(
    spectrum: _Spectrum,
    k: int,
    rng: np.random.Generator,
    *,
    n_references: int = 3,
    n_splits: int = 2,
    n_directions: int = 12,
) -> _Figures:
    """Measure k clusters from all sides."""
    spaces = spectrum.spaces(k)
    gaps, deviations = zip(
        *(_gap(rows, k, rng, n_references) for rows in spaces), strict=True
    )
    strength = max(
        float(np.mean([prediction_strength(rows, k, rng) for _ in range(n_splits)]))
        for rows in spaces
    )
    # All numbers are compared in one space.
    rows = spectrum.projected(spectrum.vectors[:, :n_directions])
    n, d = rows.shape
    labels = _kmeans(rows, k, rng).labels_
    gain = _mixture(rows, labels, k) - _mixture(rows, np.zeros(n, dtype=np.intp), 1)
    # Clusters of real data are no Gaussians: with the penalty of BIC itself a mixture
    # goes on to describe their shape. Twice that keeps to the clusters.
    price = (d + 1) * float(np.log(n)) / n
    gain -= (k - 1) * price
    return _Figures(gaps, strength, gain, price, float(np.mean(deviations)))


def _best(figures: dict[int, _Figures]) -> list[int]:
    """Return the best numbers by the gap in either space and by the likelihood."""
    spaces = [max(figures, key=lambda k: figures[k].gaps[j]) for j in range(2)]
    return [*spaces, max(figures, key=lambda k: figures[k].gain)]


def _combine(figures: dict[int, _Figures], rank: int, n: int, d: int) -> Evidence:
    """Add up what the sides say of each number."""
    tried = np.array(list(figures))
    gaps = np.array([f.gaps for f in figures.values()])
    gain = np.array([f.gain for f in figures.values()])
    price = next(iter(figures.values())).price
    sides = {
        Side.SPHERE: np.max([_peaks(gaps[:, j]) for j in range(2)], axis=0),
        Side.STABILITY: np.array([f.strength for f in figures.values()]),
        # Worth less by the price of two clusters: a third of the support.
        Side.LIKELIHOOD: np.exp((gain - gain.max()) / (2 * price)),
    }
    # Directions count where directions of rows gather around as many.
    near = (gaps >= 0.9 * np.maximum(gaps.max(axis=0), 1e-9)).any(axis=1)
    sides[Side.DIRECTIONS] = ((tried == rank) & near).astype(float)
    # Of numbers that explain rows alike, the smaller one is likelier: twice as many
    # clusters have to bring a quarter of a side's support.
    support = sum(sides.values()) - 0.4 * np.log(tried)
    numbers = []
    for i, (k, f) in enumerate(figures.items()):
        named = tuple(
            side
            for side, says in sides.items()
            if says[i] > 0 and says[i] == says.max()
        )
        figure = (f.gaps, f.strength, f.gain)
        numbers.append(CountEvidence(k, named, float(support[i]), *figure))
    deviation = float(np.mean([f.deviation for f in figures.values()]))
    return Evidence(tuple(numbers), deviation, n)


def _peaks(gaps: np.ndarray) -> np.ndarray:
    """Return each local maximum as a share of the largest, and 0 elsewhere."""
    padded = np.concatenate([[0.0], gaps, [-np.inf]])
    is_peak = (gaps > 0) & (gaps >= padded[:-2]) & (gaps >= padded[2:])
    return np.where(is_peak, gaps / max(gaps.max(), 1e-9), 0.0)


def _kmeans(rows: np.ndarray, k: int, rng: np.random.Generator) -> KMeans:
    """Return the better of two k-means runs."""
    seeds = [int(rng.integers(2**31 - 1)) for _ in range(2)]
    options = {"n_init": 1, "max_iter": 50, "tol": 1e-3}
    runs = [KMeans(k, random_state=seed, **options).fit(rows) for seed in seeds]
    return min(runs, key=attrgetter("inertia_"))


def _gap(
    rows: np.ndarray, k: int, rng: np.random.Generator, n_references: int
) -> tuple[float, float]:
    """Compare the inertia of directions with that of noise of the same spread.

    Beside the gap the standard deviation of the noise's inertia is returned.
    """
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    logs = []
    for _ in range(n_references):
        noise = unit_rows(mean + deviation * rng.standard_normal(rows.shape))
        logs.append(_log_inertia(noise, k, rng))
    gap = float(np.mean(logs)) - _log_inertia(rows, k, rng)
    return gap, float(np.std(logs, ddof=1))


def _log_inertia(rows: np.ndarray, k: int, rng: np.random.Generator) -> float:
    # Rows that coincide have no inertia; this is about the rounding of float32.
    least = 1e-7 * len(rows)
    return float(np.log(_kmeans(rows, k, rng).inertia_ + least))


def prediction_strength(rows: np.ndarray, k: int, rng: np.random.Generator) -> float:
    """Return how well one half of the rows predicts which of the other go together.

    For each cluster of the other half, the share of its pairs of rows that the centres
    of the first half keep together; the smallest of these counts.
    """
    order, half = rng.permutation(len(rows)), len(rows) // 2
    train, test = rows[order[:half]], rows[order[half:]]
    own, others = _kmeans(test, k, rng).labels_, _kmeans(train, k, rng).predict(test)
    table = np.zeros((k, k))
    np.add.at(table, (own, others), 1)
    size = table.sum(axis=1)
    pairs = np.maximum(size * (size - 1), 1)  # a row alone is no evidence
    return float(((table * (table - 1)).sum(axis=1) / pairs).min())


def _mixture(rows: np.ndarray, labels: np.ndarray, k: int, max_iter: int = 30) -> float:
    """Return the log-likelihood of a row, on average, up to a constant, after EM.

    The clusters share one covariance.
    """
    n, d = rows.shape
    member, before = np.eye(k)[labels], -np.inf
    ridge = 1e-6 * max(float(rows.var(axis=0).mean()), 1e-12) * np.eye(d)
    for _ in range(max_iter):
        sizes = member.sum(axis=0) + 1e-10
        means = member.T @ rows / sizes[:, None]
        scatter = (rows.T @ rows - (means.T * sizes) @ means) / n + ridge
        root = np.linalg.cholesky(scatter)
        white = solve_triangular(root, rows.T, lower=True).T
        centers = solve_triangular(root, means.T, lower=True).T
        score = white @ centers.T - np.square(centers).sum(axis=1) / 2
        score += np.log(sizes / n)
        lengths = np.square(white).sum(axis=1) / 2
        total = logsumexp(score, axis=1)
        likelihood = float((total - lengths).mean() - np.log(np.diag(root)).sum())
        member = np.exp(score - total[:, None])
        if likelihood - before < 1e-4:
            break
        before = likelihood
    return likelihood
