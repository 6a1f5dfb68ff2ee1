"""The evidence for each number of clusters, by several criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored
from ihgmm.matrix import to_host
from ihgmm.matrix.tall import unit_rows
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.numerics.kmeans import Run, lloyd, plus_plus
from ihgmm.numerics.krylov import signal_weights
from ihgmm.numerics.labels import fit_clusters, log_likelihood_of_one, nearest_center


class Side(Enum):
    """A criterion that can support a number of clusters.

    Examples
    --------
    >>> from ihgmm.statistics.evidence import Side
    >>> [side.value for side in Side]
    ['directions', 'gap', 'halves', 'likelihood']
    """

    DIRECTIONS = "directions"  # as many directions stand out from sign-flipped data
    GAP = "gap"  # k-means fits directions far better than those of noise
    HALVES = "halves"  # halves of the rows agree
    LIKELIHOOD = "likelihood"  # a mixture is worth what its centres cost


class Confidence(Enum):
    """How far the criteria agree on the number of clusters.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> from ihgmm.statistics.evidence import Confidence
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> select_n_clusters(X, random_state=0).confidence is Confidence.HIGH
    True
    """

    HIGH = "high"  # sides agree, and the gap falls on both sides of the number
    LOW = "low"  # the sides name several numbers
    NONE = "none"  # they name numbers that lie far apart: it is not known


@dataclass(frozen=True)
class CountEvidence:
    """The evidence for one number of clusters.

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
    sharpness : float
        By which share of the largest gap this one exceeds those of its neighbours, in
        the space where it does so less; negative where it does not.
    strength : float
        Prediction strength of halves of the rows: that of the worst cluster, from 0
        to 1.
    gain : float
        Log-likelihood for each row of a mixture with one shared covariance over that of
        one Gaussian, less twice the penalty of BIC.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> best = select_n_clusters(X, random_state=0).plausible[0]
    >>> best.n_clusters, [side.value for side in best.sides]
    (3, ['directions', 'gap', 'halves'])
    """

    n_clusters: int
    sides: tuple[Side, ...]
    support: float
    gaps: tuple[float, float]
    sharpness: float
    strength: float
    gain: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """The figures of all numbers tried, and what follows from them."""

    numbers: tuple[CountEvidence, ...]  # all that were tried, increasing
    deviations: tuple[float, float]  # of a gap in noise, in the two spaces
    firsts: tuple[int, ...]  # the number with most support in each draw of rows

    @property
    def noise_shares(self) -> tuple[float, float]:
        """The deviation of a gap over the largest gap, in the two spaces."""
        gaps = np.array([number.gaps for number in self.numbers]).max(axis=0)
        first, second = np.array(self.deviations) / np.maximum(gaps, 1e-9)
        return float(first), float(second)

    def has_clusters(self, rank: int) -> bool:
        """Whether some gap is larger than noise alone would show."""
        # The largest of many gaps has to exceed noise by more than two deviations, the
        # more so among projected rows, where few directions dominate; and a gap of a
        # few percent is no clusters, however sure it may be. Rows that share one
        # direction have a gap of up to .06 where their scales differ twentyfold.
        floor = 0.03 if rank > 1 else 0.1
        least = np.maximum(np.array([5, 7]) * self.deviations, floor)
        for number in self.numbers:
            eigenvectors, projected = np.array(number.gaps) > least
            # Rows that share one direction are turned by noise, small ones more. One
            # space or the other shows that as groups, but not both.
            if rank > 1 and (eigenvectors or projected):
                return True
            if eigenvectors and number.gaps[1] > 0:
                return True
        return False


@dataclass(frozen=True, eq=False)
class Verdict:
    """The number of clusters, the plausible numbers, and how far they are known."""

    n_clusters: int
    plausible: tuple[CountEvidence, ...]  # the best first
    confidence: Confidence
    evidence: tuple[CountEvidence, ...] = ()  # of all numbers tried, increasing

    @classmethod
    def from_one_side(cls, n_clusters: int, side: Side) -> Verdict:
        """Return what one side alone says; nobody has confirmed it."""
        return cls(n_clusters, (_named_by(n_clusters, side),), Confidence.LOW)


def _named_by(n_clusters: int, *sides: Side) -> CountEvidence:
    """Return a number that was not tried, but is named by some sides."""
    nan = float("nan")
    return CountEvidence(n_clusters, sides, nan, (nan, nan), nan, nan, nan)


def judge(evidence: Evidence | None, rank: int, *, few_features: bool) -> Verdict:
    """Weigh the evidence; ``rank`` directions stand out from noise.

    In few features little stands out, and that there are no clusters is not known.
    """
    if evidence is None:  # rows are too few for clusters to be compared
        return Verdict.from_one_side(rank, Side.DIRECTIONS)
    tried = evidence.numbers
    numbers = plausible(evidence)
    if not evidence.has_clusters(rank):
        # Directions without clusters: noise is correlated, or hides them.
        one = _named_by(min(rank, 1), Side.GAP)
        if rank > 1:
            return Verdict(1, (one, *numbers[:2]), Confidence.NONE, tried)
        # Gaps that are not yet clusters, but more than noise, leave a doubt.
        if few_features or min(evidence.noise_shares) < 1 / 3:
            return Verdict(rank, (one, *numbers[:2]), Confidence.LOW, tried)
        return Verdict(rank, (one,), Confidence.HIGH, tried)
    confidence = _confidence(numbers, max(evidence.noise_shares))
    if set(evidence.firsts) != {numbers[0].n_clusters} and (
        confidence is Confidence.HIGH
    ):
        confidence = Confidence.LOW  # other rows would have said another number
    return Verdict(numbers[0].n_clusters, numbers, confidence, tried)


def _confidence(numbers: Sequence[CountEvidence], noise: float) -> Confidence:
    """Return how far the first of the plausible numbers can be relied on.

    ``noise`` is the deviation of a gap as a share of the largest.
    """
    first = numbers[0]
    # Where data follow the model the gap falls at once on both sides of the number, by
    # about the part of a cluster in it. Few real data show that.
    agreed = {Side.HALVES, Side.LIKELIHOOD} <= set(first.sides)
    sharp = first.sharpness >= max(1 / (first.n_clusters + 2), 3 * noise)
    if sharp and (Side.DIRECTIONS in first.sides or agreed):
        return Confidence.HIGH
    # All sides named one number in 9 of 109 designs and real sets, the true one in all.
    if set(first.sides) == set(Side):
        return Confidence.HIGH
    named = {n.n_clusters for n in numbers if n.sides}
    lone = len(first.sides) < 2
    far = bool(named) and max(named) >= 3 * min(named)
    return Confidence.NONE if lone and far else Confidence.LOW


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
    grams: Sequence[GramOperator],
    rank: int,
    max_clusters: int,
    rng: np.random.Generator,
) -> Evidence | None:
    """Look at numbers of clusters from 2 upwards; return None where none can be tried.

    ``grams`` are hollow Gram matrices of few rows each, drawn from the same data; what
    they say of a number is averaged. Large numbers are tried only where the best of the
    small ones is among the largest of these.
    """
    n = min(G.shape[0] for G in grams)
    most = min(max_clusters, n // 4, max(50, rank + 1))
    few = min(12, most)
    near = {k for k in (rank - 1, rank, rank + 1) if 2 <= k <= most}
    if few < 2:
        return None
    draws: list[dict[int, _Figures]] = [{} for _ in grams]

    def look(numbers: list[int], n_directions: int) -> dict[int, _Figures]:
        for G, figures in zip(grams, draws, strict=True):
            spectrum = _spectrum(G, n_directions, rng)
            figures.update({k: _figures(spectrum, k, rng) for k in numbers})
        return _average(draws)

    with one_thread(), ignored(ConvergenceWarning):
        numbers = sorted({*range(2, few + 1), *near})
        figures = look(numbers, max(2 * few + 2, *(k + 12 for k in near), 0))
        # Large numbers are tried where large ones are best, unless there is a reason.
        best = _best(figures)
        if most > few and min(best) > 0.7 * few and set(best) != {rank}:
            # Steps of a fifth: no more than a tenth from any number.
            steps = (round(few * 1.2**i) for i in range(1, 100))
            more = sorted({k for k in steps if k <= most} - set(figures))
            figures = look(more, most + 12)
    is_open = most > 3
    singly = [_combine(each, rank, is_open)[0] for each in draws]
    firsts = [max(each, key=attrgetter("support")).n_clusters for each in singly]
    return Evidence(*_combine(figures, rank, is_open), tuple(firsts))


@dataclass(frozen=True)
class _Figures:
    gaps: tuple[float, float]
    strength: float
    gain: float
    price: float  # in units of the gain: that of one more cluster
    deviations: tuple[float, float]


def _average(draws: Sequence[dict[int, _Figures]]) -> dict[int, _Figures]:
    """Return the mean figures of each number, the numbers in order."""

    def mean(k: int) -> _Figures:
        each = [draw[k] for draw in draws]
        first, second = np.mean([f.gaps for f in each], axis=0)
        squares = np.mean(np.square([f.deviations for f in each]), axis=0)
        deviations = float(np.sqrt(squares[0])), float(np.sqrt(squares[1]))
        strength, gain, price = (
            float(np.mean([getattr(f, name) for f in each]))
            for name in ("strength", "gain", "price")
        )
        gaps = float(first), float(second)
        return _Figures(gaps, strength, gain, price, deviations)

    return {k: mean(k) for k in sorted(draws[0])}


@dataclass(frozen=True)
class _Spectrum:
    """Leading eigenpairs of a Gram matrix with imputed diagonal, on the host."""

    values: np.ndarray
    vectors: np.ndarray

    def spaces(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the recipe's two spaces for k clusters, of any length.

        They are rows of weighted eigenvectors, and projected rows.
        """
        m = min(2 * k + 2, len(self.values))
        vectors = self.vectors[:, :m] * signal_weights(self.values[:m], min(k, m))
        return vectors, vectors * np.sqrt(self.values[:m])


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
    n_references: int = 2,
    n_splits: int = 2,
    n_directions: int = 12,
) -> _Figures:
    """Measure k clusters from all sides."""
    spaces = spectrum.spaces(k)
    gaps, deviations = _gaps(spaces, k, rng, n_references)
    strength = _strength([unit_rows(rows) for rows in spaces], k, rng, n_splits)
    # All numbers are compared in one space.
    rows = spectrum.vectors[:, :n_directions] * np.sqrt(spectrum.values[:n_directions])
    n, d = rows.shape
    gain = _gain(unit_rows(rows), k, rng)
    # Clusters of real data are no Gaussians: with the penalty of BIC itself a mixture
    # goes on to describe their shape. Twice that keeps to the clusters.
    price = (d + 1) * float(np.log(n)) / n
    gain -= (k - 1) * price
    return _Figures(gaps, strength, gain, price, deviations)


def _best(figures: dict[int, _Figures]) -> list[int]:
    """Return the number with the largest gap in each space."""
    return [max(figures, key=lambda k: figures[k].gaps[j]) for j in range(2)]


def _combine(
    figures: dict[int, _Figures], rank: int, is_open: bool
) -> tuple[tuple[CountEvidence, ...], tuple[float, float]]:
    """Add up what the sides say of each number; return it and the deviations of gaps.

    The largest number tried is no peak of the gap if larger ones are open.
    """
    figures = dict(sorted(figures.items()))
    tried = np.array(list(figures))
    gaps = np.array([f.gaps for f in figures.values()])
    # Rows without noise are infinitely likely, whatever their clusters.
    gain = np.array([f.gain for f in figures.values()])
    gain = np.clip(np.where(np.isnan(gain), -np.inf, gain), -1e99, 1e99)
    price = next(iter(figures.values())).price
    share = gaps / np.maximum(gaps.max(axis=0), 1e-9)  # of the largest in its space
    sphere = (_peaks(share, is_open).mean(axis=1) + _nearly(share).max(axis=1)) / 2
    # Halves may agree on a number, and a mixture may be likely, where rows do not
    # gather more than noise does: that counts less.
    grouped = np.clip(share.max(axis=1) / 0.3, 0.0, 1.0)
    strength = np.array([f.strength for f in figures.values()])
    # Worth less by the price of two clusters: a third of the support.
    likelihood = np.exp((gain - gain.max()) / 2 / max(price, 1e-6))
    # Directions count where rows gather around as many.
    directions = (tried == rank) & (share >= 0.9).any(axis=1)
    sides = {
        Side.DIRECTIONS: directions.astype(float),
        Side.GAP: sphere,
        Side.HALVES: grouped * strength,
        Side.LIKELIHOOD: grouped * likelihood,
    }
    # Of numbers that explain rows alike, the smaller one is likelier: twice as many
    # clusters have to bring a quarter of a side's support. Among large numbers this
    # would outweigh what is seen.
    support = sum(sides.values()) - 0.4 * np.log(np.minimum(tried, 8))
    sharp = _sharpness(share).min(axis=1)
    numbers = []
    for i, (k, f) in enumerate(figures.items()):
        named = tuple(
            side
            for side, says in sides.items()
            # Halves that differ about every number name none of them.
            if says[i] > (0.5 if side is Side.HALVES else 0) and says[i] >= says.max()
        )
        figure = (f.gaps, float(sharp[i]), f.strength, f.gain)
        numbers.append(CountEvidence(k, named, float(support[i]), *figure))
    squares = np.square([f.deviations for f in figures.values()])
    deviations = np.sqrt(squares.mean(axis=0))
    return tuple(numbers), (float(deviations[0]), float(deviations[1]))


def _peaks(share: np.ndarray, is_open: bool) -> np.ndarray:
    """Return local maxima along the first axis, and 0 elsewhere."""
    before, after = _neighbours(share, np.inf if is_open else 0.0)
    return np.where((share > 0) & (share >= before) & (share >= after), share, 0.0)


def _nearly(share: np.ndarray) -> np.ndarray:
    """Return 1 for the largest gap, and less for others: 0 from seven tenths of it."""
    return np.clip(1 - (1 - share) / 0.3, 0.0, 1.0)


def _sharpness(share: np.ndarray) -> np.ndarray:
    """Return how far gaps exceed those of both neighbours."""
    return share - np.maximum(*_neighbours(share, 0.0))


def _neighbours(share: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what comes before and after, 0 before the first."""
    first, last = np.zeros((1, share.shape[1])), np.full((1, share.shape[1]), end)
    return np.vstack([first, share[:-1]]), np.vstack([share[1:], last])


def _kmeans(rows: Sequence[np.ndarray], draws: Sequence[np.ndarray]) -> list[Run]:
    """Return the best k-means run on unit rows of each space, as many in each."""
    spaces = np.stack(rows)
    starts = plus_plus(spaces, np.stack(draws)[..., None])
    runs = lloyd(spaces, starts, max_iter=30, tol=1e-3)
    return [min(each, key=attrgetter("inertia")) for each in runs]


def _draws(n: int, k: int, rng: np.random.Generator, n_runs: int = 2) -> np.ndarray:
    """Return what k-means++ draws k of n rows by, in some runs."""
    return np.array(
        [[(rng.integers(n) + 0.5) / n, *rng.random(k - 1)] for _ in range(n_runs)]
    )


def _gaps(
    spaces: Sequence[np.ndarray], k: int, rng: np.random.Generator, n_references: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Compare the inertia of directions with that of noise of the same spread.

    Beside the gaps, in two spaces, the standard deviations of the noise's inertia are
    returned.
    """
    units, draws = [], []
    for rows in spaces:
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        for _ in range(n_references):
            noise = mean + deviation * rng.standard_normal(rows.shape)
            units.append(unit_rows(noise))
            draws.append(_draws(len(rows), k, rng))
        units.append(unit_rows(rows))
        draws.append(_draws(len(rows), k, rng))
    # Rows that coincide have no inertia; this is about the rounding of float32.
    least = 1e-7 * len(units[0])
    inertias = [run.inertia + least for run in _kmeans(units, draws)]
    logs = np.log(inertias).reshape(len(spaces), -1)
    gaps = logs[:, :-1].mean(axis=1) - logs[:, -1]
    deviations = logs[:, :-1].std(axis=1, ddof=1)
    first, second = zip(gaps.tolist(), deviations.tolist(), strict=True)
    return (first[0], second[0]), (first[1], second[1])


def _strength(
    spaces: Sequence[np.ndarray], k: int, rng: np.random.Generator, n_splits: int
) -> float:
    """Return how well one half of the rows predicts which of the other go together.

    For each cluster of the other half, the share of its pairs of rows that the centres
    of the first half keep together; the smallest of these counts, on average over some
    splits, in the space where that is more.
    """
    tests, trains, draws, others = [], [], [], []
    for rows in spaces:
        for _ in range(n_splits):
            order, half = rng.permutation(len(rows)), len(rows) // 2
            trains.append(rows[order[:half]])
            tests.append(rows[order[half:]])
            draws.append(_draws(len(tests[-1]), k, rng, 1))
            others.append(_draws(half, k, rng, 1))
    found = zip(tests, _kmeans(tests, draws), _kmeans(trains, others), strict=True)
    strengths = [
        _kept_together(own.labels, nearest_center(other.centers)(test), k)
        for test, own, other in found
    ]
    return float(np.reshape(strengths, (len(spaces), -1)).mean(axis=1).max())


def _kept_together(own: np.ndarray, others: np.ndarray, k: int) -> float:
    """Return the least share of pairs of a cluster that other labels keep together."""
    table = np.zeros((k, k))
    np.add.at(table, (own, others), 1)
    size = table.sum(axis=1)
    pairs = np.maximum(size * (size - 1), 1)  # a row alone is no evidence
    return float(((table * (table - 1)).sum(axis=1) / pairs).min())


def _gain(rows: np.ndarray, k: int, rng: np.random.Generator) -> float:
    """Return the log-likelihood of a mixture over that of one Gaussian, for each row.

    Its clusters share one covariance; it is minus infinity where some are empty.
    """
    labels = _kmeans([rows], [_draws(len(rows), k, rng)])[0].labels
    members = (labels[:, None] == np.arange(k)).astype(np.float64)
    (several,) = fit_clusters([(rows, members)], pull=0.0, max_iter=30)
    return several.log_likelihood - log_likelihood_of_one(rows)
