"""The evidence for each number of clusters, by several criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored
from ihgmm.matrix import HOST, to_host
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.clusters import Run, lloyd, mixture
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.numerics.krylov import signal_weights
from ihgmm.numerics.labels import kmeans, nearest_center
from ihgmm.policy import Counting, Small


class Side(Enum):
    """A criterion that can support a number of clusters."""

    DIRECTIONS = "directions"  # as many directions stand out from sign-flipped data
    GAP = "gap"  # k-means fits directions far better than those of noise
    HALVES = "halves"  # halves of the rows agree
    LIKELIHOOD = "likelihood"  # a mixture is worth what its centres cost


class Confidence(Enum):
    """How far the criteria agree on the number of clusters."""

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
    deviations: np.ndarray  # of a gap in noise, in the two spaces
    firsts: tuple[int, ...]  # the number with most support in each draw of rows

    @property
    def noise_shares(self) -> np.ndarray:
        """The deviation of a gap over the largest gap, in the two spaces."""
        gaps = np.array([number.gaps for number in self.numbers]).max(axis=0)
        return np.asarray(self.deviations / np.maximum(gaps, Counting.NO_GAP))

    def has_clusters(self, rank: int) -> bool:
        """Whether some gap is larger than noise alone would show."""
        floor = Counting.LEAST_GAP if rank > 1 else Counting.LEAST_GAP_OF_ONE
        least = np.maximum(np.array(Counting.DEVIATIONS) * self.deviations, floor)
        for number in self.numbers:
            eigenvectors, projected = np.array(number.gaps) > least
            # Rows that share one direction are turned by noise, small ones more. One
            # space or the other shows that as groups, but not both.
            if rank > 1 and (eigenvectors or projected):
                return True
            if eigenvectors and number.gaps[1] > 0:
                return True
        return False


class Answer(NamedTuple):
    """The number of clusters, the plausible numbers, and how far they are known."""

    n_clusters: int
    plausible: tuple[CountEvidence, ...]  # the best first
    confidence: Confidence
    evidence: tuple[CountEvidence, ...] = ()  # of all numbers tried, increasing

    @classmethod
    def from_one_side(cls, n_clusters: int, side: Side) -> Answer:
        """Return what one side alone says; nobody has confirmed it."""
        return cls(n_clusters, (_named_by(n_clusters, side),), Confidence.LOW)


def _named_by(n_clusters: int, *sides: Side) -> CountEvidence:
    """Return a number that was not tried, but is named by some sides."""
    nan = float("nan")
    return CountEvidence(n_clusters, sides, nan, (nan, nan), nan, nan, nan)


def judge(evidence: Evidence | None, rank: int, *, few_features: bool) -> Answer:
    """Weigh the evidence; ``rank`` directions stand out from noise.

    In few features little stands out, and that there are no clusters is not known.
    """
    if evidence is None:  # rows are too few for clusters to be compared
        return Answer.from_one_side(rank, Side.DIRECTIONS)
    tried = evidence.numbers
    numbers = plausible(evidence)
    if not evidence.has_clusters(rank):
        # Directions without clusters: noise is correlated, or hides them.
        one = _named_by(min(rank, 1), Side.GAP)
        if rank > 1:
            return Answer(1, (one, *numbers[:2]), Confidence.NONE, tried)
        # Gaps that are not yet clusters, but more than noise, leave a doubt.
        if few_features or min(evidence.noise_shares) < Counting.QUIET:
            return Answer(rank, (one, *numbers[:2]), Confidence.LOW, tried)
        return Answer(rank, (one,), Confidence.HIGH, tried)
    confidence = _confidence(numbers, max(evidence.noise_shares))
    if set(evidence.firsts) != {numbers[0].n_clusters} and (
        confidence is Confidence.HIGH
    ):
        confidence = Confidence.LOW  # other rows would have said another number
    return Answer(numbers[0].n_clusters, numbers, confidence, tried)


def _confidence(numbers: Sequence[CountEvidence], noise: float) -> Confidence:
    """Return how far the first of the plausible numbers can be relied on.

    ``noise`` is the deviation of a gap as a share of the largest.
    """
    first = numbers[0]
    # Where data follow the model the gap falls at once on both sides of the number, by
    # about the part of a cluster in it. Few real data show that.
    agreed = {Side.HALVES, Side.LIKELIHOOD} <= set(first.sides)
    least = max(1 / (first.n_clusters + 2), Counting.SHARP * noise)
    if first.sharpness >= least and (Side.DIRECTIONS in first.sides or agreed):
        return Confidence.HIGH
    # All sides named one number in 9 of 109 designs and real sets, the true one in all.
    if set(first.sides) == set(Side):
        return Confidence.HIGH
    named = {n.n_clusters for n in numbers if n.sides}
    lone = len(first.sides) < 2
    far = bool(named) and max(named) >= Counting.FAR_APART * min(named)
    return Confidence.NONE if lone and far else Confidence.LOW


def plausible(evidence: Evidence) -> tuple[CountEvidence, ...]:
    """Return the numbers with most support, best first, none close to a better one."""
    chosen: list[CountEvidence] = []
    for number in sorted(evidence.numbers, key=lambda number: -number.support):
        others = [(number.n_clusters, better.n_clusters) for better in chosen]
        # Neighbours of a large number say the same as it does.
        if all(abs(k - other) > Counting.ALIKE * max(k, other) for k, other in others):
            chosen.append(number)
    return tuple(chosen[: Counting.PLAUSIBLE])


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
    most = min(max_clusters, n // 4, max(Counting.MOST, rank + 1))
    few, spare = min(Counting.FEW, most), Counting.SPARE
    near = {k for k in (rank - 1, rank, rank + 1) if 2 <= k <= most}
    if few < 2:
        return None
    draws: list[dict[int, _Figures]] = [{} for _ in grams]

    def look(numbers: list[int], n_directions: int) -> dict[int, _Figures]:
        for G, figures in zip(grams, draws, strict=True):
            spectrum = _spectrum(G, n_directions, rng)
            figures.update({k: _figures(*spectrum, k, rng) for k in numbers})
        return {
            k: _Figures(*(np.mean(part, axis=0) for part in zip(*same, strict=True)))
            for k, same in ((k, [draw[k] for draw in draws]) for k in sorted(draws[0]))
        }

    with one_thread(), ignored(ConvergenceWarning):
        numbers = sorted({*range(2, few + 1), *near})
        figures = look(numbers, max(2 * few + 2, *(k + spare for k in near), 0))
        # Large numbers are tried where large ones are best, unless there is a reason.
        best = [max(figures, key=lambda k: figures[k].gaps[j]) for j in range(2)]
        large = min(best) > Counting.TRY_LARGE * few and set(best) != {rank}
        if most > few and large:
            # Steps of a fifth: no more than a tenth from any number.
            steps = (round(few * 1.2**i) for i in range(1, 100))
            more = sorted({k for k in steps if k <= most} - set(figures))
            figures = look(more, most + spare)
    is_open = most > 3
    singly = [_combine(draw, rank, is_open) for draw in draws]
    firsts = [max(each, key=attrgetter("support")).n_clusters for each in singly]
    variances = np.mean([f.variances for f in figures.values()], axis=0)
    numbers_tried = _combine(figures, rank, is_open)
    return Evidence(numbers_tried, np.sqrt(variances), tuple(firsts))


class _Figures(NamedTuple):
    """What was measured for one number of clusters."""

    gaps: np.ndarray  # in the two spaces
    variances: np.ndarray  # of these in noise
    strength: float
    gain: float
    price: float  # in units of the gain: that of one more cluster


def _spectrum(
    G: GramOperator, k: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenpairs with imputed diagonal, on the host."""
    n, p = G.A.shape
    k = max(1, min(k, p, n - 1))
    # A digit or two are enough to compare numbers of clusters.
    pairs = impute_diagonal(G, k, tol=0.05, max_iter=20, quiet=True, rng=rng).pairs
    values = np.maximum(pairs.values.astype(np.float64), 0.0)
    # What rounding left of a direction would count as one among eigenvectors.
    kept = max(1, int((values > Small.LOAD * values[0]).sum()))
    return values[:kept], to_host(pairs.vectors).astype(np.float64)[:, :kept]


def _figures(
    values: np.ndarray, vectors: np.ndarray, k: int, rng: np.random.Generator
) -> _Figures:
    """Measure k clusters from all sides.

    Its spaces are the recipe's two: rows of weighted eigenvectors, and projected rows.
    """
    m = min(2 * k + 2, len(values))
    weighted = vectors[:, :m] * signal_weights(values[:m], min(k, m))
    spaces = [weighted, weighted * np.sqrt(values[:m])]
    gaps, variances = _gaps(spaces, k, rng)
    strength = _strength([HOST.unit_rows(rows) for rows in spaces], k, rng)
    # All numbers are compared in one space.
    d = min(Counting.MIXTURE_DIRECTIONS, len(values))
    rows = HOST.unit_rows(vectors[:, :d] * np.sqrt(values[:d]))
    # Clusters of real data are no Gaussians: with the penalty of BIC itself a mixture
    # goes on to describe their shape. Twice that keeps to the clusters.
    price = (d + 1) * float(np.log(len(rows))) / len(rows)
    gain = _gain(rows, k, rng) - (k - 1) * price
    return _Figures(gaps, variances, strength, gain, price)


def _combine(
    figures: dict[int, _Figures], rank: int, is_open: bool
) -> tuple[CountEvidence, ...]:
    """Add up what the sides say of each number.

    The largest number tried is no peak of the gap if larger ones are open.
    """
    figures = dict(sorted(figures.items()))
    tried = np.array(list(figures))
    gaps = np.array([f.gaps for f in figures.values()])
    # Rows without noise are infinitely likely, whatever their clusters.
    gain = np.array([f.gain for f in figures.values()])
    gain = np.clip(np.where(np.isnan(gain), -np.inf, gain), -Small.HUGE, Small.HUGE)
    price = max(next(iter(figures.values())).price, Small.LOAD)
    # Of the largest gap in its space; and those of the numbers before and after.
    share = gaps / np.maximum(gaps.max(axis=0), Counting.NO_GAP)
    end = np.full((1, 2), np.inf if is_open else 0.0)
    before = np.vstack([np.zeros((1, 2)), share[:-1]])
    after = np.vstack([share[1:], np.zeros((1, 2))])
    peak = (share > 0) & (share >= before) & (share >= np.vstack([share[1:], end]))
    # 1 for the largest gap, and less for others: 0 from seven tenths of it.
    nearly = np.clip(1 - (1 - share) / Counting.NEARLY, 0.0, 1.0)
    sphere = (np.where(peak, share, 0.0).mean(axis=1) + nearly.max(axis=1)) / 2
    # Halves may agree on a number, and a mixture may be likely, where rows do not
    # gather more than noise does: that counts less.
    grouped = np.clip(share.max(axis=1) / Counting.GROUPED, 0.0, 1.0)
    strength = np.array([f.strength for f in figures.values()])
    # Worth less by the price of two clusters: a third of the support.
    likelihood = np.exp((gain - gain.max()) / 2 / price)
    # Directions count where rows gather around as many.
    directions = (tried == rank) & (share >= Counting.AT_RANK).any(axis=1)
    sides = {
        Side.DIRECTIONS: directions.astype(float),
        Side.GAP: sphere,
        Side.HALVES: grouped * strength,
        Side.LIKELIHOOD: grouped * likelihood,
    }
    # Of numbers that explain rows alike, the smaller one is likelier. Among large
    # numbers this would outweigh what is seen.
    dear = Counting.MANY_PRICE * np.log(np.minimum(tried, Counting.MANY))
    support = sum(sides.values()) - dear
    sharpness = (share - np.maximum(before, after)).min(axis=1)
    # Halves that differ about every number name none of them.
    least = {Side.HALVES: Counting.NAMED_BY_HALVES}
    numbers = []
    for i, (k, f) in enumerate(figures.items()):
        named = (
            side
            for side, says in sides.items()
            if says[i] > least.get(side, 0) and says[i] >= says.max()
        )
        gap = float(f.gaps[0]), float(f.gaps[1])
        rest = float(sharpness[i]), float(f.strength), float(f.gain)
        numbers.append(CountEvidence(k, tuple(named), float(support[i]), gap, *rest))
    return tuple(numbers)


def _kmeans(rows: np.ndarray, k: int, rng: np.random.Generator, n_runs: int = 2) -> Run:
    """Return the best of some short k-means runs."""
    from sklearn.cluster import kmeans_plusplus  # few fits need it, and it takes long

    ones, state = np.ones(len(rows)), np.random.RandomState(rng.integers(2**31))
    runs = [
        lloyd(
            rows,
            kmeans_plusplus(rows, k, random_state=state, n_local_trials=1)[0],
            ones,
            by_angle=False,
            max_iter=30,
        )
        for _ in range(n_runs)
    ]
    return max(runs, key=attrgetter("score"))


def _inertia(rows: np.ndarray, run: Run) -> float:
    return float(np.square(rows - run.centers[run.labels]).sum())


def _gaps(
    spaces: Sequence[np.ndarray], k: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Compare the inertia of directions with that of noise of the same spread.

    Beside the gaps, in two spaces, the variances of the noise's inertia are returned.
    """
    logs = []
    for rows in spaces:
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        samples = [
            mean + deviation * rng.standard_normal(rows.shape)
            for _ in range(Counting.REFERENCES)
        ]
        for sample in (*samples, rows):
            units = HOST.unit_rows(sample)
            least = Counting.LEAST_INERTIA * len(units)  # rows may coincide
            logs.append(np.log(_inertia(units, _kmeans(units, k, rng)) + least))
    by_space = np.reshape(logs, (len(spaces), -1))
    noise = by_space[:, :-1]
    return noise.mean(axis=1) - by_space[:, -1], noise.var(axis=1, ddof=1)


def _strength(spaces: Sequence[np.ndarray], k: int, rng: np.random.Generator) -> float:
    """Return how well one half of the rows predicts which of the other go together.

    It is the mean over some splits, in the space where that is more.
    """
    strengths = []
    for rows in spaces:
        for _ in range(Counting.SPLITS):
            order, half = rng.permutation(len(rows)), len(rows) // 2
            train, test = rows[order[:half]], rows[order[half:]]
            own, other = (_kmeans(part, k, rng, 1) for part in (test, train))
            others = nearest_center(other.centers)(HOST, test)
            strengths.append(_kept_together(own.labels, others, k))
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
    members = np.eye(k)[:, _kmeans(rows, k, rng).labels]
    several = mixture(rows, [members], np.ones(len(rows)), pulls=(0.0,), max_iter=30)
    return -np.inf if several is None else several.gain


# The number that halves of the rows agree on, with no other criterion.


def stable_count(
    vectors: np.ndarray, rank: int, max_clusters: int, rng: np.random.Generator
) -> tuple[int, dict[int, float]]:
    """Return the largest number of clusters that halves of the rows agree on.

    ``vectors`` are rows whose directions are clustered; ``rank`` is the smallest number
    tried, and the answer where halves agree on none. Beside the number the strength of
    each number tried is returned.
    """
    if vectors.shape[1] == 1:  # two if rows lie on both sides, beyond a few by noise
        energy = np.square(vectors[:, 0], dtype=np.float64)
        share = energy[vectors[:, 0] < 0].sum() / (energy.sum() or 1.0)
        return 2 if min(share, 1 - share) > Counting.OTHER_SIDE else 1, {}
    if len(vectors) > Counting.STABLE_ROWS:
        drawn = rng.choice(len(vectors), Counting.STABLE_ROWS, replace=False)
        vectors = vectors[drawn]
    energy = np.square(vectors, dtype=np.float64).sum(axis=1)
    embedding = HOST.unit_rows(vectors.astype(np.float64))
    distinct = len(np.unique(embedding.round(6), axis=0))
    most = min(max_clusters, len(embedding) // 4, distinct)
    orders = [rng.permutation(len(energy)) for _ in range(Counting.STABLE_SPLITS)]
    splits = [(embedding[order], energy[order]) for order in orders]
    strengths: dict[int, float] = {}
    best = rank
    # Centres that span r dimensions are r at least.
    for k in range(max(rank, 2), most + 1):
        if k == 2 and rank == 0 and _are_opposite(embedding, rng):
            strengths[k] = 0.0  # noise that is larger in one column has two sides too
        else:
            strengths[k] = _mean_strength(splits, k, rng)
        if strengths[k] >= Counting.STABLE:
            best = k
        # Directions that the rank does not show can be as many clusters.
        elif k - max(best, vectors.shape[1]) >= Counting.PATIENCE:
            break
    return best, strengths


def _are_opposite(embedding: np.ndarray, rng: np.random.Generator) -> bool:
    """Return whether two clusters of the rows are two sides of one direction."""
    labels = kmeans(embedding, 2, n_init=4, rng=rng).labels
    sides = [embedding[labels == side].sum(axis=0) for side in range(2)]
    first, second = HOST.unit_rows(np.array(sides))
    return bool(first @ second < -Counting.OPPOSITE)


def _mean_strength(
    splits: list[tuple[np.ndarray, np.ndarray]], k: int, rng: np.random.Generator
) -> float:
    """Return the mean over splits, or over the first if the others cannot save it."""
    strengths: list[float] = []
    for embedding, energy in splits:
        half = len(embedding) // 2
        train, test = embedding[:half], embedding[half:]
        labels = kmeans(train, k, n_init=4, rng=rng).labels
        own = kmeans(test, k, n_init=4, rng=rng).labels
        weight = np.bincount(own, energy[half:], k)
        # Small rows that noise turned to one side are no cluster. This goes by degrees:
        # a cluster near a limit would count in one split and not in the next.
        counts = weight.min() / (Counting.SMALL_CLUSTER * weight.mean())
        member = np.eye(k)[labels]
        centers = member.T @ train / np.maximum(member.sum(axis=0), 1)[:, None]
        distance = np.square(centers).sum(axis=1) - 2 * test @ centers.T
        together = _kept_together(own, distance.argmin(axis=1), k)
        strengths.append(min(1.0, float(counts)) * together)
        missing = len(splits) - len(strengths)
        if sum(strengths) + missing < Counting.STABLE * len(splits):
            break
    return float(np.mean(strengths))
