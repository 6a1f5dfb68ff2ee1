"""How clear clusters are, of each number that is tried: parts of a graph, and gaps.

Each row is linked to the rows that are nearest by angle. Clusters are good parts of
this graph if most links stay inside them, and more than chance would have there; and
they have gaps between them if rows are nearer to their own cluster than to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import silhouette_samples

from ihgmm._warnings import sklearn_filters
from ihgmm.matrix import Matrix, Scaled, to_host
from ihgmm.matrix.threads import row_ranges
from ihgmm.numerics.neighbor_walk import GivenSimilarity, links_to_nearest
from ihgmm.numerics.spectral import SpectralFit, spectral_clustering
from ihgmm.policy import Counting


@dataclass(frozen=True)
class NumberEvidence:
    """What speaks for one number of clusters."""

    n_clusters: int
    links_inside: float  #: share of links between neighbours that stay in a cluster
    links_by_chance: float  #: share that would, if links did not look at neighbours
    silhouette: float  #: how much nearer rows are to their cluster than to the next

    @property
    def modularity(self) -> float:
        """Links inside clusters beyond what chance gives."""
        return self.links_inside - self.links_by_chance

    @property
    def score(self) -> float:
        """What the number is chosen by: clear parts of the graph, with gaps."""
        parts = self.links_inside - Counting.RESOLUTION * self.links_by_chance
        return parts + Counting.GAPS * self.silhouette


@dataclass(frozen=True, eq=False)
class RowGraph:
    """Rows that are linked to their nearest ones, and how much each row counts."""

    links: sp.csr_array  # (n, n), symmetric: between 0 and 1
    weights: np.ndarray  # (n,)

    @classmethod
    def of_cosines(
        cls, cosines: np.ndarray, weights: np.ndarray, *, signed: bool
    ) -> RowGraph:
        """Link each row to others by cosines, (n, n).

        Neighbours are a share of all rows, and so their number grows with these: with
        a fixed one, the graph of more rows falls into more parts.
        """
        n = len(cosines)
        n_neighbors = max(Counting.NEIGHBORS, n // Counting.ROWS_A_NEIGHBOR)
        links = links_to_nearest(
            GivenSimilarity(cosines),
            min(n_neighbors, n - 1),
            weights=weights,
            signed=signed,
        )
        return cls(links=abs(links), weights=weights)

    def shares(self, labels: np.ndarray) -> tuple[float, float]:
        """Return the share of links inside clusters, and what chance would give.

        Notes
        -----
        A link of two rows counts by the product of their weights. Of d, the share of
        all links that end in a cluster, chance gives the sum of ``d²``.
        """
        pairs = self.links.tocoo()
        strengths = pairs.data * self.weights[pairs.row] * self.weights[pairs.col]
        is_inside = labels[pairs.row] == labels[pairs.col]

        total = strengths.sum()
        ends = np.bincount(labels[pairs.row], strengths) / total
        return float(strengths[is_inside].sum() / total), float(np.square(ends).sum())


def unit_cosines(X: Matrix) -> np.ndarray:
    """Return the cosines of the rows of X, (n, n), none of which is zero."""
    units = Scaled(X, rows=X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms)))
    n = X.shape[0]

    cosines = np.empty((n, n))
    for part in row_ranges(n, Counting.COLUMNS):
        some_rows = np.zeros((n, part.stop - part.start), dtype=X.dtype)
        some_rows[part][np.diag_indices(part.stop - part.start)] = 1
        products = units @ units.adjoint(X.to_device(some_rows))
        cosines[:, part] = to_host(products)
    return (cosines + cosines.T) / 2


def evidence_of_numbers(
    X: Matrix,
    graph: RowGraph,
    max_clusters: int,
    *,
    say: Callable[[str], None] = lambda words: None,
) -> tuple[NumberEvidence, ...]:
    """Return the evidence for numbers from 2 up: all that are near the best one.

    Large numbers are tried in steps of a fifth, until some in a row are far from the
    best; and then those between.
    """
    largest = min(max_clusters, X.shape[0] // Counting.ROWS_A_CLUSTER)
    evidence: dict[int, NumberEvidence] = {}

    def look_at(k: int) -> None:
        say(f"{k} clusters")
        evidence[k] = _evidence(X, graph, k)

    for k in rough_numbers(largest):
        look_at(k)
        if _is_far_from_best(list(evidence.values())):
            break

    # Between the best number and those beside it that were tried, by halves.
    while evidence:
        best = best_evidence(evidence.values())
        between = _numbers_beside(best.n_clusters, sorted(evidence))
        if not between:
            break
        for k in between:
            look_at(k)
    return tuple(evidence[k] for k in sorted(evidence))


def _is_far_from_best(evidence: Sequence[NumberEvidence]) -> bool:
    """Tell whether the last numbers that were tried are far from the best one."""
    last_scores = [one.score for one in evidence[-Counting.FAR_IN_A_ROW :]]
    best_score = best_evidence(evidence).score
    return max(last_scores) < best_score - Counting.FAR


def best_evidence(evidence: Iterable[NumberEvidence]) -> NumberEvidence:
    """Return the evidence with the largest score; of equal ones, the least number."""
    by_number = sorted(evidence, key=attrgetter("n_clusters"))
    return max(by_number, key=attrgetter("score"))


def rough_numbers(largest: int) -> list[int]:
    """Return numbers from 2 to the largest: all at first, then in steps of a fifth."""
    numbers = []
    k = 2
    while k < largest:
        numbers.append(k)
        k = max(k + 1, int(Counting.STEP * k))
    return [*numbers, largest] if largest >= 2 else []


def _numbers_beside(best: int, tried: Sequence[int]) -> list[int]:
    """Return the middles between the best number and its neighbours among the tried."""
    place = tried.index(best)
    beside = tried[max(place - 1, 0) : place + 2]
    return [
        (lower + upper) // 2 for lower, upper in pairwise(beside) if upper - lower > 1
    ]


def _evidence(X: Matrix, graph: RowGraph, k: int) -> NumberEvidence:
    """Return the evidence for k clusters."""
    fit = spectral_clustering(X, k)
    labels = to_host(fit.labels).astype(np.intp)
    inside, by_chance = graph.shares(labels)

    return NumberEvidence(
        n_clusters=k,
        links_inside=inside,
        links_by_chance=by_chance,
        silhouette=_silhouette(fit, labels, graph.weights),
    )


def _silhouette(fit: SpectralFit, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean silhouette of rows of the embedding; -1 of a single cluster."""
    if len(np.unique(labels)) < 2:
        return -1.0
    rows = to_host(fit.rows).astype(np.float64)
    if fit.signs is not None:  # opposite rows are alike
        rows = rows * to_host(fit.signs)[:, None]
    with sklearn_filters:
        silhouettes = silhouette_samples(rows, labels)  # (n,)
    return float(np.average(silhouettes, weights=weights))
