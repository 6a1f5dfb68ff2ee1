"""Errors of all methods on data of many designs, beside the best possible.

    python benchmarks/designs.py                       # all designs
    python benchmarks/designs.py ar95 few --draws 5    # some
    IHGMM_BEFORE=old/src python benchmarks/designs.py  # beside another version

Other scripts take the data alone, as ``DESIGNS["ar95"](seed).X``.

If no more is said, a design has n 300, p 100, K 4 clusters of equal size, orthogonal
centres of length 6, log-normal scales with deviation 0.5 and independent Gaussian noise
of size 1.
"""

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

if __name__ == "__main__":  # Processes share the cores; NumPy reads this as it starts.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from measure import Table, arguments, markdown, publish
from methods import LEGEND, METHODS, with_before
from scipy.special import logsumexp, ndtri

from ihgmm import make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.paper.methods import label_oracle
from ihgmm.statistics.model import IhGMMSample

USUAL = [
    "IhSC", "rival", "cells", "noise", "paper", "IhGMM", "IhGMM-auto",
    "k-means", "SphericalKMeans", "faiss", "neighbours", "PSC", "mixture-diagonal",
]  # fmt: skip
# Scales are summed out over these quantiles; four times as many changed no label in
# nine designs.
QUANTILES = (np.arange(100) + 0.5) / 100
Array = np.ndarray
Density = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Draw:
    """A sample and what generated it.

    ``labels`` are -1 in rows that belong to no cluster. ``best`` returns the labels of
    one who knows the centres, the sizes of clusters and the laws of scales and noise,
    and decides by the likelihood. ``white`` is X after a linear map that makes Gaussian
    noise independent and of one size within a row; the cosine rule is right there.
    """

    X: Array
    labels: Array
    centers: Array
    scales: Array
    best: Callable[[], Array]
    white: Array | None = None


def most_likely(
    X: Array, centers: Array, scales: Array, labels: Array, log_density: Density
) -> Array:
    """Return the likeliest centre of each row when any of ``scales`` is as likely.

    ``log_density(X, center, scales)`` has a column for each scale. ``labels`` only tell
    the sizes of the clusters.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=len(centers))
    scores = [logsumexp(log_density(X, center, scales), axis=1) for center in centers]
    return (np.column_stack(scores) + np.log(sizes)).argmax(axis=1)


def gaussian_density(
    X: Array, center: Array, scales: Array, levels: Any = 1.0
) -> Array:
    """Rows are white: scale / level times the centre, and standard normal noise."""
    scales = scales / levels
    return (X @ center)[:, None] * scales - scales**2 * (center @ center) / 2


def t_density(X: Array, center: Array, scales: Array, freedom: float) -> Array:
    """The noise is Student's t, scaled to variance 1."""
    squares = [(X - scale * center) ** 2 / (freedom - 2) for scale in scales]
    return -(freedom + 1) / 2 * np.column_stack([np.log1p(s).sum(1) for s in squares])


def poisson_density(X: Array, center: Array, scales: Array) -> Array:
    logs = np.log(np.outer(center, scales))
    return X @ logs - scales * center.sum()


def gamma_density(X: Array, center: Array, scales: Array) -> Array:
    """Each entry is exponential, with mean scale times centre."""
    logs = np.log(center).sum() + len(center) * np.log(scales)
    return -np.outer(X @ (1 / center), 1 / scales) - logs


def lognormal_density(X: Array, center: Array, scales: Array, spread: float) -> Array:
    residual = np.log(X / center)
    squares = [((residual - np.log(scale)) ** 2).sum(axis=1) for scale in scales]
    return -np.column_stack(squares) / (2 * spread**2)


def zero_inflated_density(
    X: Array, center: Array, scales: Array, shape: float, counts: bool
) -> Array:
    """Half of the cells are 0 for no reason; others are gamma, or Poisson of gamma."""
    scores = []
    for mean in scales[:, None] * center:
        if counts:
            log_zero = shape * np.log(shape / (shape + mean))
            of_zero = np.log1p(np.exp(log_zero))
            of_other = log_zero + X * np.log(mean / (shape + mean))
        else:
            of_zero = 0.0
            of_other = -shape * (X / mean + np.log(mean))
        cells = np.where(X == 0, of_zero, of_other)
        scores.append(cells.sum(axis=1))

    return np.column_stack(scores)


def orthogonal(rng: np.random.Generator, k: int, p: int) -> Array:
    return np.linalg.qr(rng.standard_normal((p, k)))[0].T


def similar(rng: np.random.Generator, k: int, p: int) -> Array:
    """The cosine between any two is 0.9."""
    basis = orthogonal(rng, k + 1, p)
    return np.sqrt(0.9) * basis[0] + np.sqrt(0.1) * basis[1:]


def simplex(rng: np.random.Generator, k: int, p: int) -> Array:
    """The corners of a regular simplex around zero, in K - 1 dimensions."""
    basis = orthogonal(rng, k, p)
    return (basis - basis.mean(axis=0)) / np.sqrt(1 - 1 / k)


def plane(rng: np.random.Generator, k: int, p: int) -> Array:
    """Rays at equal angles in two dimensions."""
    angles = 2 * np.pi * np.arange(k) / k
    return np.column_stack([np.cos(angles), np.sin(angles)]) @ orthogonal(rng, 2, p)


def rays(rng: np.random.Generator, k: int, p: int) -> Array:
    """Rays in two columns, at random angles that are well apart."""
    angles = 2 * np.pi * np.cumsum(rng.dirichlet(np.full(k, 8.0)))
    return np.column_stack([np.cos(angles), np.sin(angles)])


def mixture(
    seed: int,
    n: int = 300,
    p: int = 100,
    k: int = 4,
    *,
    length: float = 6.0,
    spread: float = 0.5,
    largest: float | None = None,
    ratio: float = 1.0,
    directions: Callable[[np.random.Generator, int, int], Array] = orthogonal,
    signs: bool = False,
    freedom: float | None = None,
    correlation: float = 0.0,
    columns: float = 0.0,
    rows: float = 0.0,
    blocks: int = 0,
    factors: int = 0,
) -> Draw:
    """Rows are scale times centre plus noise.

    ``largest`` is the share of the first cluster; the others are equal, and what they
    leave over is the first one's too (365 rows and seven times 5 at 90%). Or sizes fall
    from cluster to cluster by the same ``ratio``. Noise has
    ``freedom`` (Gaussian: None), an autoregressive ``correlation`` along the columns,
    column variances over ``columns`` decades and log-normal row levels with deviation
    ``rows``. Features of one of ``blocks`` have a correlation of 0.8; each of
    ``factors`` adds a random pattern of noise of length 10.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    if largest:
        other_labels = np.repeat(np.arange(1, k), int((1 - largest) * n / (k - 1)))
        labels = np.append(np.zeros(n - len(other_labels), int), other_labels)

    if ratio != 1:
        shares = ratio ** np.arange(k)
        bounds = np.cumsum(shares) / shares.sum()
        labels = np.searchsorted(bounds, (np.arange(n) + 0.5) / n)

    labels = rng.permutation(labels)
    centers = length * directions(rng, k, p)
    scales = rng.lognormal(0, spread, n)
    noise = rng.standard_normal((n, p))
    if freedom:
        noise = rng.standard_t(freedom, (n, p)) * np.sqrt((freedom - 2) / freedom)
    innovation = np.sqrt(1 - correlation**2)
    for j in range(1, p if correlation else 0):
        noise[:, j] = correlation * noise[:, j - 1] + innovation * noise[:, j]
    loadings = np.zeros((0, p))
    if blocks:
        loadings = np.sqrt(0.8) * np.eye(blocks)[np.arange(p) * blocks // p].T
        noise *= np.sqrt(0.2)

    if factors:
        loadings = 10 * np.linalg.qr(rng.standard_normal((p, factors)))[0].T
    noise += rng.standard_normal((n, len(loadings))) @ loadings
    deviations = 10 ** rng.uniform(-columns / 4, columns / 4, p)
    levels = rng.lognormal(0, rows, (n, 1)) if rows else np.ones((n, 1))
    scale_quantiles = np.exp(spread * ndtri(QUANTILES))
    if signs:
        scales *= rng.choice([-1, 1], n)
        scale_quantiles = np.append(-scale_quantiles, scale_quantiles)

    X = scales[:, None] * centers[labels] + noise * deviations * levels

    def whiten(A: Array) -> Array:
        A = A / deviations
        A[:, 1:] = (A[:, 1:] - correlation * A[:, :-1]) / innovation
        if not len(loadings):
            return A
        covariance = (0.2 if blocks else 1.0) * np.eye(p) + loadings.T @ loadings
        return np.linalg.solve(np.linalg.cholesky(covariance), A.T).T

    density = partial(gaussian_density, levels=levels)
    if freedom:
        density = partial(t_density, freedom=freedom)
    white = whiten(X) / levels
    best = partial(
        most_likely, white, whiten(centers), scale_quantiles, labels, density
    )
    by_cosine = not (signs or freedom)

    return Draw(
        X=X,
        labels=labels,
        centers=centers,
        scales=scales,
        best=best,
        white=white if by_cosine else None,
    )


def outliers(seed: int, share: float, times: float, **options: Any) -> Draw:
    """A share of the rows has random directions and a multiple of the median norm."""
    draw = mixture(seed, **options)
    rng = np.random.default_rng([seed, 1])
    rows = rng.choice(len(draw.X), round(share * len(draw.X)), replace=False)
    directions = rng.standard_normal((len(rows), draw.X.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    X = draw.X.copy()
    labels = draw.labels.copy()
    X[rows] = times * np.median(np.linalg.norm(X, axis=1)) * directions
    labels[rows] = -1

    return replace(draw, X=X, labels=labels)


def wild_cells(seed: int) -> Draw:
    """2% of the cells are twenty times as large; the best know which."""
    draw = mixture(seed)
    is_wild = np.random.default_rng([seed, 1]).random(draw.X.shape) < 0.02
    return replace(draw, X=np.where(is_wild, 20 * draw.X, draw.X), white=None)


def flipped(seed: int, share: float = 0.1) -> Draw:
    """A share of the rows has the opposite sign; the best know which."""
    draw = mixture(seed)
    signs = np.where(np.random.default_rng([seed, 1]).random((300, 1)) < share, -1, 1)
    return replace(draw, X=signs * draw.X, white=None)


def zero_inflated(seed: int, counts: bool = False) -> Draw:
    """Half of the cells are 0 for no reason: positive data, or counts."""
    rng = np.random.default_rng(seed)
    n = 400
    p = 150
    k = 4
    centers = np.exp(rng.standard_normal((k, p)))
    labels = np.arange(n) % k
    size, shape = (3.0, 0.5) if counts else (1.0, 2.0)
    scales = size * rng.lognormal(0, 0.5, n)
    X = scales[:, None] * centers[labels] * rng.gamma(shape, 1 / shape, (n, p))
    X = rng.poisson(X).astype(float) if counts else X
    X *= rng.random((n, p)) < 0.5
    X, labels, scales = (part[X.any(axis=1)] for part in (X, labels, scales))
    density = partial(zero_inflated_density, shape=shape, counts=counts)
    scale_quantiles = size * np.exp(0.5 * ndtri(QUANTILES))
    best = partial(most_likely, X, centers, scale_quantiles, labels, density)

    return Draw(X=X, labels=labels, centers=centers, scales=scales, best=best)


def k40(seed: int) -> Draw:
    """Forty clusters of five rows each; their centres have much in common."""
    rng = np.random.default_rng(seed)
    n = 200
    p = 500
    k = 40
    labels = np.arange(n) % k
    centers = 3 * rng.standard_normal(p) + rng.standard_normal((k, p))
    scales = rng.uniform(0.8, 1.2, n)
    X = scales[:, None] * centers[labels] + 1.6 * rng.standard_normal((n, p))
    density = partial(gaussian_density, levels=1.6)
    scale_quantiles = 0.8 + 0.4 * QUANTILES
    best = partial(most_likely, X / 1.6, centers, scale_quantiles, labels, density)

    return Draw(X=X, labels=labels, centers=centers, scales=scales, best=best, white=X)


def profiles(seed: int, size: float, counts: bool = True) -> Draw:
    """Poisson counts, or gamma(1) times the mean, of profiles that are half shared.

    ``size`` is the mean total of a row.
    """
    rng = np.random.default_rng(seed)
    n = 300
    p = 200
    k = 4
    centers = rng.gamma(0.5, size=p) + rng.gamma(0.5, size=(k, p))
    centers /= centers.sum(axis=1, keepdims=True)
    spread = 0.7
    median_size = size * np.exp(-(spread**2) / 2)  # The median; the mean is the size.
    labels = np.arange(n) % k
    scales = median_size * rng.lognormal(0, spread, n)
    mean = scales[:, None] * centers[labels]
    X = rng.poisson(mean).astype(float) if counts else rng.exponential(mean)
    density = poisson_density if counts else gamma_density
    scale_quantiles = median_size * np.exp(spread * ndtri(QUANTILES))
    X, labels, scales = (part[X.any(axis=1)] for part in (X, labels, scales))
    best = partial(most_likely, X, centers, scale_quantiles, labels, density)

    return Draw(X=X, labels=labels, centers=centers, scales=scales, best=best)


def customers(seed: int, n: int = 3000) -> Draw:
    """Five kinds in eight columns, sizes and multiplicative noise log-normal."""
    rng = np.random.default_rng(seed)
    p = 8
    k = 5
    spread = 0.35
    centers = rng.gamma(1, size=(k, p))
    labels = np.arange(n) % k
    scales = rng.lognormal(0, 1, n)
    X = scales[:, None] * centers[labels] * rng.lognormal(0, spread, (n, p))
    density = partial(lognormal_density, spread=spread)
    scale_quantiles = np.exp(ndtri(QUANTILES))
    best = partial(most_likely, X, centers, scale_quantiles, labels, density)

    return Draw(X=X, labels=labels, centers=centers, scales=scales, best=best)


def paper(seed: int, shape: Any, C: float, R: float = 20, **options: Any) -> Draw:
    """The model of the paper, below its constant C = 3 of exact recovery."""
    sample = make_ihgmm(
        *shape, scale_ratio=R, separation_constant=C, random_state=seed,
        return_params=True, **options,
    )  # fmt: skip
    levels = sample.noise_levels[:, None]
    scale_quantiles = 1 + (R - 1) * QUANTILES
    density = partial(gaussian_density, levels=levels)
    white = sample.X / levels
    best = partial(
        most_likely, white, sample.centers, scale_quantiles, sample.labels, density
    )

    return Draw(
        X=sample.X,
        labels=sample.labels,
        centers=sample.centers,
        scales=sample.scales,
        best=best,
        white=sample.X,
    )


def ninefold(seed: int) -> Draw:
    """The model of the paper, with noise levels log-uniform between 1/3 and 3."""
    levels = 3 ** np.random.default_rng([seed, 1]).uniform(-1, 1, 200)
    return paper(seed, (200, 5000, 4), R=3, C=0.6, noise_levels=levels)


LARGE = partial(mixture, n=400, k=8)

NOISES: dict[str, dict[str, float]] = {
    "gaussian": {},
    "t3": {"freedom": 3},
    "t4": {"freedom": 4},
    "columns": {"columns": 2},
    "rows": {"rows": 0.7},
    "ar50": {"correlation": 0.5},
    "ar80": {"correlation": 0.8},
    "ar95": {"correlation": 0.95},
    "ar-80": {"correlation": -0.8, "n": 400, "p": 150},
    "ar-80-wide": {"correlation": -0.8, "p": 600, "length": 8},
    "blocks10": {"blocks": 10, "n": 400, "p": 150},
    "blocks10-many": {"blocks": 10, "n": 2_000, "p": 150, "length": 5},
    "blocks10-wide": {"blocks": 10, "n": 160, "p": 1_000, "length": 20},
    "blocks30": {"blocks": 30, "n": 400, "p": 150},
    "factors1": {"factors": 1},
    "factors3": {"factors": 3},
    "factors8": {"factors": 8},
}

DESIGNS: dict[str, Callable[[int], Draw]] = {
    **{name: partial(mixture, **noise) for name, noise in NOISES.items()},
    "scales1": partial(mixture, spread=1),
    "scales1-long": partial(mixture, spread=1, length=20),
    "scales2": partial(mixture, spread=2),
    "scales2-long": partial(mixture, spread=2, length=20),
    "signs": partial(mixture, signs=True),
    "similar": partial(mixture, directions=similar, length=15),
    "similar-few": partial(mixture, directions=similar, length=15, n=60),
    **{
        f"large{share}-{length}": partial(LARGE, largest=share / 100, length=length)
        for share, length in ((90, 20), (90, 12), (90, 8), (80, 12), (70, 12), (50, 12))
    },
    "geometric": partial(mixture, n=400, k=6, ratio=0.5),
    "geometric-8": partial(mixture, n=400, k=8, ratio=0.6, length=8),
    "overlap": partial(mixture, n=400, length=2.5, spread=0.3),
    "simplex": partial(mixture, directions=simplex),
    "plane": partial(mixture, k=6, directions=plane, length=10, spread=0.3),
    "four-rays": partial(mixture, p=2, directions=rays, length=30, spread=1),
    "many": partial(mixture, n=900, k=30, length=8),
    "k100": partial(mixture, n=4_000, p=200, k=100, length=12),
    "few": partial(mixture, n=60, k=3),
    **{f"p{p}": partial(mixture, p=p) for p in (5, 10, 50)},
    "p20000": partial(mixture, n=100, p=20_000, length=16),
    "k40": k40,
    "customers": customers,
    **{
        f"outliers{share}-{times}": partial(outliers, share=share / 100, times=times)
        for share in (1, 5, 20)
        for times in (3, 50)
    },
    **{f"counts{size}": partial(profiles, size=size) for size in (15, 30, 60, 300)},
    "gamma": partial(profiles, size=30, counts=False),
    "wide": partial(mixture, n=150, p=3_000, length=12),
    "cells2": wild_cells,
    "signs10": flipped,
    "zeros": zero_inflated,
    "zeros-counts": partial(zero_inflated, counts=True),
    "paper300-0.1": partial(paper, shape=(300, 1000, 3), balance=0.2, C=0.1),
    "paper300-0.2": partial(paper, shape=(300, 1000, 3), balance=0.2, C=0.2),
    "paper300-0.5": partial(paper, shape=(300, 1000, 3), balance=0.2, C=0.5),
    "paper200-0.1": partial(paper, shape=(200, 2000, 4), C=0.1),
    "paper200-0.3": partial(paper, shape=(200, 1000, 3), C=0.3),
    "paper500-0.2": partial(paper, shape=(500, 200, 4), C=0.2),
    "paper1000-0.1": partial(paper, shape=(1000, 1000, 8), C=0.1),
    "paper500-R3": partial(paper, shape=(500, 500, 4), R=3, C=0.3),
    "row-noise-200x5000": ninefold,
    "row-noise-400x3000": partial(
        paper, shape=(400, 3000, 8), R=5, C=0.4, noise_levels=(0.3, 3.0)
    ),
}


def best_without_centers(draw: Draw) -> Array:
    """Return labels by one who knows those of all other rows and the noise's shape."""
    is_clustered = draw.labels >= 0
    sample = IhGMMSample(
        X=draw.white[is_clustered],
        labels=draw.labels[is_clustered],
        scales=draw.scales[is_clustered],
        noise_levels=np.ones(np.count_nonzero(is_clustered)),
        centers=draw.centers,
        separation=np.nan,
    )
    labels = draw.labels.copy()
    labels[is_clustered] = label_oracle(sample)

    return labels


def errors(task: tuple[str, int, list[str]]) -> list[float]:
    """Return the error of each method in a draw, then those of the two oracles."""
    name, seed, methods = task
    draw = DESIGNS[name](seed)
    is_clustered = draw.labels >= 0
    true_labels = draw.labels[is_clustered]
    k = len(draw.centers)
    rates = []

    with warnings.catch_warnings(action="ignore"):  # many designs are hard on purpose
        for method in methods:
            labels = METHODS[method](draw.X, k, seed)[is_clustered]
            rates.append(misclassification_rate(true_labels, labels))

    if draw.white is None or len(draw.X) > 2_000:  # its n by n products take minutes
        rates.append(np.nan)
    else:
        labels = best_without_centers(draw)[is_clustered]
        rates.append(np.mean(labels != true_labels))

    rates.append(np.mean(draw.best()[is_clustered] != true_labels))

    return rates


def table(options: argparse.Namespace) -> Table:
    yield [""]
    yield ["design", *options.methods, "label oracle", "centre oracle"]
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.names:
            tasks = [(name, seed, options.methods) for seed in range(options.draws)]
            rates = 100 * np.array([*pool.map(errors, tasks)])
            standard_errors = rates.std(axis=0) / np.sqrt(max(len(rates) - 1, 1))
            pairs = zip(rates.mean(axis=0), standard_errors, strict=True)
            cells = (f"{mean:.1f} ({error:.1f})" for mean, error in pairs)
            yield [name, *("-" if "nan" in cell else cell for cell in cells)]


HEAD = """# Errors by design

Mean error in percent over {draws} draws, with the standard error of the mean, when the
true number of clusters is given (`python benchmarks/designs.py`, which says what each
design is). The label oracle knows the labels of all other rows and the shape of the
noise; it has to learn the centres, and takes the largest cosine. It needs time of n
cubed, and is left out above 2,000 rows. The centre oracle knows the centres, the sizes
of clusters and the laws of scales and noise, and decides by the likelihood: no method
that places each row by itself can expect fewer errors.

{legend}
"""


def main() -> None:
    parser = arguments(__doc__, "designs.md", DESIGNS, draws=20, jobs=os.cpu_count())
    defaults = with_before(USUAL)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=defaults)
    options = parser.parse_args()
    head = HEAD.format(draws=options.draws, legend=LEGEND)
    publish(options, head + markdown(table(options)))


if __name__ == "__main__":
    main()
