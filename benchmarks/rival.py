"""The default method on a page: what every further mechanism has to beat.

    python benchmarks/real.py iris wine digits --methods IhSC rival    # beside IhSC

Rows of unit length, their leading singular vectors, and one Gaussian mixture whose
clusters share a covariance; no weights, signs, missing cells, zero rows, devices or
data beyond memory. Other benchmarks know it as the method "rival".
"""

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd


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

    Pivots of Cholesky's decomposition of the cosines, rounded, so that the choice
    between equal rows does not hang on the last digits.
    """
    residuals = np.ones(len(rows))
    factor = np.zeros((k, len(rows)))
    chosen = []

    for i in range(k):
        j = int(np.argmax(np.round(residuals / 1e-9)))
        chosen.append(j)
        products = rows @ rows[j] - factor[:i, j] @ factor[:i]
        factor[i] = products / np.sqrt(max(residuals[j], 1e-12))
        residuals = residuals - factor[i] ** 2

    return chosen


def spherical_kmeans(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return labels by the largest cosine with centres, which are then updated."""
    before = None
    for _ in range(100):
        labels = (rows @ centers.T).argmax(axis=1)
        if before is not None and (labels == before).all():
            break
        centers = normalize(np.eye(len(centers))[labels].T @ rows)
        before = labels

    return labels


def ward_centers(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the directions of k clusters of Ward's tree, of at most 2,048 rows."""
    places = np.linspace(0, len(rows) - 1, min(len(rows), 2048)).astype(int)
    labels = fcluster(ward(rows[places]), k, "maxclust") - 1
    return normalize(np.eye(k)[labels].T @ rows[places])


def tied_mixture(
    rows: np.ndarray, labels: np.ndarray, k: int, pull: float
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
    single = np.linalg.slogdet(covariance)[1]
    single += np.trace(np.linalg.solve(covariance, total))
    members = np.eye(k)[labels]
    last = -np.inf

    for _ in range(300):
        sizes = members.mean(axis=0) + 1e-10
        centers = (members.T @ rows / n) / sizes[:, None]
        scatter_within = moments - (centers * sizes[:, None]).T @ centers
        flat = pull * np.trace(scatter_within) / m + ridge
        covariance = (1 - pull) * scatter_within + flat * identity
        slopes = np.linalg.solve(covariance, centers.T)
        offsets = np.log(sizes) - (centers.T * slopes).sum(axis=0) / 2
        scores = rows @ slopes + offsets
        top = scores.max(axis=1, keepdims=True)
        members = np.exp(scores - top)
        sums = members.sum(axis=1, keepdims=True)
        members /= sums
        noise = np.linalg.slogdet(covariance)[1]
        noise += np.trace(np.linalg.solve(covariance, moments))
        gain = (top + np.log(sums)).mean() - (noise - single) / 2
        if gain - last < 1e-4:
            break
        last = gain

    n_parameters = m * (m + 1) / 2 - 1 if pull < 1 else 0

    return gain - n_parameters * np.log(n) / (2 * n), slopes, offsets


def fit(X: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
    """Learn k clusters; return a function that labels rows.

    Rows are compared in two spaces, singular vectors and projected rows, from four
    starts and with two covariances. The run of greatest worth wins.
    """
    U = normalize(np.asarray(X, dtype=float))  # so that scales no longer matter
    s, V = singular_pairs(U, k)
    w = weights(s**2, k, 0.0 if len(s) == X.shape[1] else s[-1] ** 2)
    V = V[:, w > 0]
    s = s[w > 0]
    w = w[w > 0]
    maps = [V * (w / s), V * w]
    spaces = [normalize(U @ A) for A in maps]
    starts = [spherical_kmeans(R, R[distinct_rows(R, k)]) for R in spaces]
    starts += [spherical_kmeans(R, ward_centers(R, k)) for R in spaces]
    runs = [
        (*tied_mixture(R, labels, k, pull), A)
        for R, A in zip(spaces, maps, strict=True)
        for labels in starts
        for pull in (0.2, 1.0)
    ]
    _, slopes, offsets, A = max(runs, key=lambda run: run[0])

    def label(rows: np.ndarray) -> np.ndarray:
        embedded = normalize(normalize(np.asarray(rows, dtype=float)) @ A)
        return (embedded @ slopes + offsets).argmax(axis=1)

    return label
