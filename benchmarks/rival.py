"""Rivals of the default on a few pages: what every further mechanism has to beat.

    python benchmarks/real.py iris wine digits --methods IhSC rival rival-prepared

``fit``: rows of unit length, their leading singular vectors, and one Gaussian mixture
whose clusters share a covariance. ``fit_with_neighbors``: neighbours move the rows
before the mixture sees them, and one step on the rows as they were gives the rule.
``fit_prepared``: the same of rows or of their roots, whichever shows clusters more
clearly. No weights, signs, missing cells, zero rows, devices or data beyond memory.
Other benchmarks know the first as "rival" and the last as "rival-prepared".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

Label = Callable[[np.ndarray], np.ndarray]  # of rows, new or old


def singular_pairs(U: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return leading singular values and right vectors of unit rows.

    There are more of them than clusters, since real clusters vary inside, and twice as
    many while the last value still stands out: noise with directions has a spectrum
    that falls slowly, and clusters may hide behind its first directions.
    """
    n, p = U.shape
    m = min(k + min(k, 20) + 2, n - 1, p)
    most_directions = min(p - 1, n // 10)

    while True:
        if m >= min(n, p) / 4:
            _, s, Vt = np.linalg.svd(U, full_matrices=False)
        else:
            _, s, Vt = randomized_svd(U, m, n_iter=4, random_state=0)

        values = s[:m] ** 2
        # The largest value that noise of one level in all cells would have.
        edge = max(n - values.sum(), 0) / (n * p) * (n + 2 * np.sqrt(n * p))
        has_fallen = values[-1] <= max(0.5 * values[min(k, m) - 1], 4 * edge)
        if m >= most_directions or has_fallen:
            return s[:m], Vt[:m].T
        m = min(2 * m, most_directions)


def weights(values: np.ndarray, k: int, floor: float) -> np.ndarray:
    """Return 1 for the first k directions, and less for others by their signal.

    ``floor`` is the eigenvalue of noise; what stands less than a twentieth as high
    above it as the k-th value does not count.
    """
    height = max(values[min(k, len(values)) - 1] - floor, 1e-300)
    shares = (values[k:] - floor) / height
    further_weights = np.sqrt(np.clip((shares - 0.05) / 0.95, 0, 1))
    return np.append(np.ones(min(k, len(values))), further_weights)


def distinct_rows(rows: np.ndarray, k: int) -> list[int]:
    """Return k rows, each as far as can be from the span of those before it.

    The first is the one to which all rows together point the least. The others are
    pivots of Cholesky's decomposition of the cosines, rounded, so that the choice
    between equal rows does not hang on the last digits.
    """
    residuals = np.ones(len(rows))
    factor = np.zeros((k, len(rows)))
    chosen = []
    j = int(np.argmin(np.round(((rows @ (rows.T @ rows)) * rows).sum(axis=1) / 1e-9)))

    for i in range(k):
        chosen.append(j)
        products = rows @ rows[j] - factor[:i, j] @ factor[:i]
        factor[i] = products / np.sqrt(max(residuals[j], 1e-12))
        residuals = residuals - factor[i] ** 2
        j = int(np.argmax(np.round(residuals / 1e-9)))

    return chosen


def spherical_kmeans(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return labels by the largest cosine with centres, which are then updated."""
    previous = None
    for _ in range(100):
        labels = (rows @ centers.T).argmax(axis=1)
        if previous is not None and (labels == previous).all():
            break
        centers = normalize(np.eye(len(centers))[labels].T @ rows)
        previous = labels

    return labels


def ward_centers(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the directions of k clusters of Ward's tree, of at most 2,048 rows."""
    places = np.linspace(0, len(rows) - 1, min(len(rows), 2048)).astype(int)
    labels = fcluster(ward(rows[places]), k, "maxclust") - 1
    return normalize(np.eye(k)[labels].T @ rows[places])


def tied_mixture(
    rows: np.ndarray, labels: np.ndarray, k: int, pull: float, max_iter: int = 300
) -> tuple[float, np.ndarray, np.ndarray]:
    """Fit Gaussian clusters of one covariance by EM, from labels.

    ``pull`` draws the covariance to a multiple of the identity. Returns the worth of
    the clusters, which is what they add to the mean log likelihood of one Gaussian,
    less BIC's price of a free covariance; and slopes and offsets of a linear rule.
    """
    n, m = rows.shape
    identity = np.eye(m)
    moments = rows.T @ rows / n
    mean = rows.mean(axis=0)
    ridge = 1e-6 * np.trace(moments) / m
    total = moments - np.outer(mean, mean)
    covariance = total + ridge * identity
    single_deviance = np.linalg.slogdet(covariance)[1]
    single_deviance += np.trace(np.linalg.solve(covariance, total))
    members = np.eye(k)[labels]
    last = -np.inf

    for _ in range(max_iter):
        sizes = members.mean(axis=0) + 1e-10
        centers = (members.T @ rows / n) / sizes[:, None]
        scatter_within = moments - (centers * sizes[:, None]).T @ centers
        ridge_variance = pull * np.trace(scatter_within) / m + ridge
        covariance = (1 - pull) * scatter_within + ridge_variance * identity
        slopes = np.linalg.solve(covariance, centers.T)
        offsets = np.log(sizes) - (centers.T * slopes).sum(axis=0) / 2
        scores = rows @ slopes + offsets
        top = scores.max(axis=1, keepdims=True)
        members = np.exp(scores - top)
        sums = members.sum(axis=1, keepdims=True)
        members /= sums
        shared_deviance = np.linalg.slogdet(covariance)[1]
        shared_deviance += np.trace(np.linalg.solve(covariance, moments))
        gain = (top + np.log(sums)).mean() - (shared_deviance - single_deviance) / 2
        if gain - last < 1e-4:
            break
        last = gain

    n_parameters = m * (m + 1) / 2 - 1 if pull < 1 else 0

    return gain - n_parameters * np.log(n) / (2 * n), slopes, offsets


@dataclass(frozen=True)
class Embedded:
    """Unit rows, and maps from these to the two spaces in which they are compared."""

    unit_rows: np.ndarray  # (n, p)
    maps: list[np.ndarray]  # (p, m) each: to singular vectors, to projected rows

    @classmethod
    def of(cls, X: np.ndarray, k: int) -> Embedded:
        """Embed the rows of X by the directions that carry signal."""
        U = normalize(np.asarray(X, dtype=float))  # so that scales no longer matter
        s, V = singular_pairs(U, k)
        has_all = len(s) == U.shape[1]
        w = weights(s**2, k, floor=0.0 if has_all else s[-1] ** 2)

        is_kept = w > 0
        V = V[:, is_kept]
        s = s[is_kept]
        w = w[is_kept]
        return cls(unit_rows=U, maps=[V * (w / s), V * w])

    @property
    def spaces(self) -> list[np.ndarray]:
        """The rows, (n, m), in each space."""
        return [normalize(self.unit_rows @ A) for A in self.maps]

    def labeller(self, space: int, slopes: np.ndarray, offsets: np.ndarray) -> Label:
        """Return the function that labels rows by a linear rule in a space."""
        A = self.maps[space]

        def label(rows: np.ndarray) -> np.ndarray:
            embedded = normalize(normalize(np.asarray(rows, dtype=float)) @ A)
            return (embedded @ slopes + offsets).argmax(axis=1)

        return label


def best_mixture(
    spaces: list[np.ndarray], k: int
) -> tuple[float, np.ndarray, np.ndarray, int]:
    """Return worth, slopes, offsets and space of the best mixture of all starts.

    There are four starts, and two covariances in each space.
    """
    starts = [spherical_kmeans(R, R[distinct_rows(R, k)]) for R in spaces]
    starts += [spherical_kmeans(R, ward_centers(R, k)) for R in spaces]
    runs = [
        (*tied_mixture(R, labels, k, pull), space)
        for space, R in enumerate(spaces)
        for labels in starts
        for pull in (0.2, 1.0)
    ]
    return max(runs, key=lambda run: run[0])


def fit(X: np.ndarray, k: int) -> Label:
    """Learn k clusters; return a function that labels rows."""
    embedded = Embedded.of(X, k)
    _, slopes, offsets, space = best_mixture(embedded.spaces, k)
    return embedded.labeller(space, slopes, offsets)


def neighbor_links(similarity: np.ndarray, m: int) -> np.ndarray:
    """Return symmetric links, (n, n), of each row to its m most similar ones.

    Rows as similar as the last of these share what is left of its weight.
    """
    S = similarity.copy()
    np.fill_diagonal(S, -np.inf)
    last = -np.partition(-S, m - 1, axis=1)[:, m - 1 : m]
    tolerance = 1e-9 * np.abs(similarity).max()

    is_nearer = last + tolerance < S
    is_tied = np.abs(S - last) <= tolerance
    share = (m - is_nearer.sum(axis=1)) / is_tied.sum(axis=1)
    links = is_nearer + is_tied * share[:, None]
    return (links + links.T) / 2


def walk(links: np.ndarray, spaces: list[np.ndarray], stay: float) -> list[np.ndarray]:
    """Return rows after three steps to neighbours; ``stay`` is their own weight."""
    step = links + stay * np.eye(len(links))
    step /= step.sum(axis=1, keepdims=True)
    for _ in range(3):
        spaces = [step @ R for R in spaces]
    return [normalize(R) for R in spaces]


def made_round(rows: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return rows in coordinates in which clusters are round, or nearly so."""
    members = np.eye(k)[labels]
    sizes = np.maximum(members.sum(axis=0), 1)
    residuals = rows - ((members.T @ rows) / sizes[:, None])[labels]
    within = residuals.T @ residuals / len(rows)
    m = len(within)
    within = 0.8 * within + (0.2 * np.trace(within) / m + 1e-9) * np.eye(m)
    return np.linalg.solve(np.linalg.cholesky(within), rows.T).T


@dataclass(frozen=True)
class Taught:
    """A rule that neighbours have taught."""

    slopes: np.ndarray  # (m, k)
    offsets: np.ndarray  # (k,)
    clearness: float  # the worth of the mixture of moved rows

    @classmethod
    def by(cls, moved_spaces: list[np.ndarray], rows: np.ndarray, k: int) -> Taught:
        """Find clusters of moved rows, and the rule of these for rows as they were."""
        worth, slopes, offsets, space = best_mixture(moved_spaces, k)
        labels = (moved_spaces[space] @ slopes + offsets).argmax(axis=1)
        steps = [tied_mixture(rows, labels, k, pull, 1) for pull in (0.2, 1.0)]
        _, slopes, offsets = max(steps, key=lambda step: step[0])
        return cls(slopes=slopes, offsets=offsets, clearness=worth)


def taught_by_neighbors(X: np.ndarray, k: int) -> tuple[Label, float]:
    """Return a function that labels rows, and how clear the clusters are."""
    embedded = Embedded.of(X, k)
    U = embedded.unit_rows
    spaces = embedded.spaces
    n = len(U)
    m = min(10, max(3, n // (4 * k)), n - 1)
    space = best_mixture(spaces, k)[3]
    rows = spaces[space]

    links = neighbor_links(U @ U.T, m) + neighbor_links(rows @ rows.T, m)
    taught = Taught.by(walk(links, spaces, stay=2.0), rows, k)

    labels = (rows @ taught.slopes + taught.offsets).argmax(axis=1)
    round_rows = made_round(rows, labels, k)
    squares = (round_rows**2).sum(axis=1)
    closeness = 2 * round_rows @ round_rows.T - squares[:, None] - squares
    links = neighbor_links(closeness, m)
    taught = Taught.by(walk(links, spaces, stay=1.0), rows, k)

    label = embedded.labeller(space, taught.slopes, taught.offsets)
    return label, taught.clearness


def fit_with_neighbors(X: np.ndarray, k: int) -> Label:
    """Learn k clusters with the help of neighbours; return what labels rows."""
    label, _ = taught_by_neighbors(X, k)
    return label


def root_weights(X: np.ndarray) -> np.ndarray:
    """Return weights of columns of roots: spread among unit rows to the power -3/4."""
    spread = normalize(np.sqrt(X)).std(axis=0)
    if not spread.any():
        return np.zeros(len(spread))
    least = np.quantile(spread[spread > 0], 0.05)
    return np.where(spread > 0, np.maximum(spread, least) ** -0.75, 0.0)


def fit_prepared(X: np.ndarray, k: int) -> Label:
    """Learn k clusters of rows or of their roots, whichever are clearer.

    Roots are taken where half of the entries are zero, else where they are clearer by
    0.05, and never where an entry is negative.
    """
    X = np.asarray(X, dtype=float)
    if X.min() < 0:
        return fit_with_neighbors(X, k)

    column_weights = root_weights(X)

    def roots(rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=float)
        return np.sign(rows) * np.sqrt(np.abs(rows)) * column_weights

    label_roots, clearness_of_roots = taught_by_neighbors(roots(X), k)
    has_many_zeros = (X == 0).mean() >= 0.5
    label, clearness = taught_by_neighbors(X, k)
    if not has_many_zeros and clearness_of_roots <= clearness + 0.05:
        return label
    return lambda rows: label_roots(roots(rows))
