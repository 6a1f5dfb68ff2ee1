"""How often intervals hold the truth, the scale test rejects, memberships are right.

    python benchmarks/inference.py                       # all tables
    python benchmarks/inference.py memberships criteria  # some

``--draws`` is how many of a design intervals and the power of the test have; its level
has four times as many, memberships have a tenth and criteria a twentieth. The designs
are those of ``designs.py``.
"""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

if __name__ == "__main__":  # Processes share the cores; NumPy reads this as it starts.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from designs import DESIGNS, NOISES, Draw, mixture
from measure import Table, arguments, markdown, publish

from ihgmm import IhGMM, IhSC, estimate_parameters, scale_heterogeneity_test
from ihgmm.metrics import match_labels

Sample = tuple[Any, np.ndarray]  # rows, and their labels
Run = Callable[[Callable[[int], Any], int], list[Any]]  # for so many seeds


INTERVALS = [
    "gaussian", "columns", "counts30", "counts60", "counts300", "gamma", "ar50",
    "t3", "t4", "rows", "ar80", "counts15", "few", "similar", "p10",
    "factors", "blocks", "ar-80", "ar-80-short",
]  # fmt: skip


def covariance(name: str, p: int, rng: np.random.Generator) -> np.ndarray:
    """Of noise with variance 1: three factors, or ten blocks of columns, or AR."""
    if name == "factors":
        loadings = rng.standard_normal((p, 3))
        return (np.eye(p) + loadings @ loadings.T) / 4

    columns = np.arange(p)
    if name == "blocks":
        block = columns * 10 // p
        return 0.2 * np.eye(p) + 0.8 * (block[:, None] == block)

    return (0.9 if name == "ar90" else -0.8) ** np.abs(columns[:, None] - columns)


def correlated(seed: int, noise: str, length: float = 8.0) -> Draw:
    """A mixture of 400 rows in 150 columns whose noise has some covariance."""
    draw = mixture(seed, 400, 150, length=length, spread=0.4)
    signal = draw.scales[:, None] * draw.centers[draw.labels]
    root = np.linalg.cholesky(covariance(noise, 150, np.random.default_rng([seed, 1])))
    return replace(draw, X=signal + (draw.X - signal) @ root.T)


SAMPLES = {
    **DESIGNS,
    **{name: partial(correlated, noise=name) for name in INTERVALS[-4:-1]},
    "ar-80-short": partial(correlated, noise="ar-80", length=5.0),
}


def noise_variances(name: str, draw: Draw) -> np.ndarray:
    """Return variances of the noise in each column, one row for each cluster."""
    if name.startswith("counts"):
        return draw.centers
    if name == "gamma":
        return draw.centers**2
    noise = draw.X - draw.scales[:, None] * draw.centers[draw.labels]
    return np.tile(np.mean(noise**2, axis=0), (len(draw.centers), 1))


def coverage(name: str, seed: int) -> list[float]:
    """Return shares of 95% intervals that hold the truth.

    Those of scales, of centres, of centres in the noisiest tenth of columns, and of
    scales and of centres with the labels that IhSC finds; then the share of those that
    are wrong.
    """
    draw = SAMPLES[name](seed)
    labels = draw.labels
    mean_scales = np.bincount(labels, draw.scales) / np.bincount(labels)
    scales = draw.scales / mean_scales[labels]
    centers = draw.centers * mean_scales[:, None]

    def covered(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tell which scales and which entries of centres are in their intervals."""
        estimates = estimate_parameters(draw.X, labels)
        lower, upper = estimates.scale_intervals().T
        of_scales = (lower <= scales) & (scales <= upper)
        lower, upper = np.moveaxis(estimates.center_intervals(), -1, 0)
        of_centers = (lower <= centers) & (centers <= upper)
        return of_scales, of_centers

    of_scales, of_centers = covered(labels)

    n_noisiest = max(1, centers.shape[1] // 10)
    noisiest = np.argsort(-noise_variances(name, draw), axis=1)[:, :n_noisiest]
    of_noisiest = np.take_along_axis(of_centers, noisiest, axis=1)

    fitted_labels = IhSC(len(centers), random_state=seed).fit_predict(draw.X)
    fitted_labels = match_labels(labels, fitted_labels)
    of_scales_of_fit, of_centers_of_fit = covered(fitted_labels)

    return [
        of_scales.mean(),
        of_centers.mean(),
        of_noisiest.mean(),
        of_scales_of_fit.mean(),
        of_centers_of_fit.mean(),
        np.mean(fitted_labels != labels),
    ]


def intervals(draws: int, run: Run) -> Table:
    yield ["Coverage of 95% intervals"]
    yield ["design", "scales", "centres", "noisiest tenth of columns",
           "scales, labels of IhSC", "centres, labels of IhSC",
           "of which wrong"]  # fmt: skip
    for name in INTERVALS:
        shares = np.mean(run(partial(coverage, name), draws), axis=0)
        yield [name, *(f"{share:.3f}" for share in shares)]


def of_mixture(seed: int, spread: float, **options: Any) -> Sample:
    draw = mixture(seed, spread=0.0, **options)
    scales = spread * np.random.default_rng([seed, 2]).standard_normal((len(draw.X), 1))
    return draw.X + scales * draw.centers[draw.labels], draw.labels


def of_profiles(seed: int, spread: float, size: float, counts: bool = True) -> Sample:
    """Profiles as in ``designs.py``; sizes of rows are the same but for a spread."""
    rng = np.random.default_rng(seed)
    n = 300
    p = 200
    k = 4
    centers = rng.gamma(0.5, size=p) + rng.gamma(0.5, size=(k, p))
    centers /= centers.sum(axis=1, keepdims=True)
    scales = 1 + spread * rng.standard_normal((n, 1))
    labels = np.arange(n) % k
    mean = size * scales * centers[labels]

    return rng.poisson(mean) if counts else rng.exponential(mean), labels


def of_positive(seed: int, spread: float, noise: str, common: float) -> Sample:
    """Positive centres of length 30 with much or little in common; correlated noise."""
    rng = np.random.default_rng(seed)
    n = 300
    p = 100
    k = 4
    centers = common * rng.gamma(2, size=p) + rng.gamma(0.5, size=(k, p))
    centers *= 30 / np.linalg.norm(centers, axis=1, keepdims=True)
    root = np.linalg.cholesky(covariance(noise, p, rng))
    scales = 1 + spread * rng.standard_normal((n, 1))
    labels = np.arange(n) % k

    return scales * centers[labels] + rng.standard_normal((n, p)) @ root.T, labels


EQUAL: dict[str, Callable[[int, float], Sample]] = {
    **{name: partial(of_mixture, **noise) for name, noise in NOISES.items()},
    **{f"counts{size}": partial(of_profiles, size=size) for size in (15, 60, 300)},
    "gamma": partial(of_profiles, size=30, counts=False),
    **{
        f"positive-{noise}-{common:g}": partial(of_positive, noise=noise, common=common)
        for noise in ("blocks", "ar90")
        for common in (0.2, 0.5, 1.0)
    },
}


def rejected(name: str, spread: float, seed: int) -> bool:
    X, labels = EQUAL[name](seed, spread)
    return scale_heterogeneity_test(X, labels, random_state=seed).p_value < 0.05


def test(draws: int, run: Run) -> Table:
    yield ["The test of equal scales: rejections at 5%"]
    yield ["noise", "equal scales", "a spread of 10%", "of 20%"]
    for name in EQUAL:
        level = np.mean(run(partial(rejected, name, 0.0), 4 * draws))
        power = (np.mean(run(partial(rejected, name, s), draws)) for s in (0.1, 0.2))
        yield [name, f"{level:.3f}", *(f"{share:.2f}" for share in power)]


STRUCTURES = ("individual", "common", "tied")
EDGES = (0.0, 0.6, 0.8, 0.9, 0.95, 0.99, 1.01)
MEMBERSHIPS = ["gaussian", "overlap", "columns", "ar50", "ar80", "ar95"]


def membership(name: str, noise: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = DESIGNS[name](seed)
    with warnings.catch_warnings(action="ignore"):
        model = IhGMM(len(draw.centers), noise=noise, random_state=seed).fit(draw.X)
    is_right = match_labels(draw.labels, model.labels_) == draw.labels
    return model.memberships_.max(axis=1), is_right


def memberships(draws: int, run: Run) -> Table:
    yield ["Memberships of IhGMM: the share that is right, by the largest membership"]
    heads = [f"to {upper:g}" for upper in EDGES[1:-1]] + [f"above {EDGES[-2]:g}"]
    yield ["design, noise", "error", *heads]

    for name in MEMBERSHIPS:
        for noise in STRUCTURES:
            results = run(partial(membership, name, noise), draws)
            certainty, is_right = map(np.concatenate, zip(*results, strict=True))
            cells = [f"{1 - is_right.mean():.3f}"]

            for lower, upper in pairwise(EDGES):
                is_in_band = (certainty >= lower) & (certainty < upper)
                n_rows = is_in_band.sum()
                share = f"{is_right[is_in_band].mean():.2f}" if n_rows else "-"
                cells.append(f"{share} of {n_rows}")

            yield [f"{name}, {noise}", *cells]


CRITERIA = [
    "gaussian", "t4", "rows", "scales1", "similar", "overlap", "simplex", "few", "p5",
    "p10", "p50", "columns", "ar50", "ar80", "ar95", "counts60", "counts300", "gamma",
]  # fmt: skip


def chosen(name: str, noise: str, seed: int) -> tuple[int, int]:
    """Return by how many clusters BIC and ICL go wrong, from K - 2 to K + 3."""
    draw = DESIGNS[name](seed)
    k = len(draw.centers)
    numbers = range(max(1, k - 2), k + 4)
    criteria_of_numbers = []

    with warnings.catch_warnings(action="ignore"):
        for number in numbers:
            model = IhGMM(number, noise=noise, random_state=0, tol=1e-2).fit(draw.X)
            criteria_of_numbers.append((model.bic(draw.X), model.icl(draw.X)))

    best_positions = np.argmin(criteria_of_numbers, axis=0)

    return numbers[best_positions[0]] - k, numbers[best_positions[1]] - k


def criteria(draws: int, run: Run) -> Table:
    yield ["The number of clusters by BIC and ICL: right, and too many"]
    yield ["design", "bic", "icl", "bic, tied", "icl, tied"]
    for name in CRITERIA:
        individual = run(partial(chosen, name, "individual"), draws)
        tied = run(partial(chosen, name, "tied"), draws)
        excess = np.hstack([individual, tied]).T  # a row for each criterion
        cells = (f"{np.mean(e == 0):.2f}, {np.mean(e > 0):.2f}" for e in excess)
        yield [name, *cells]


TABLES = {
    "intervals": (intervals, 1.0),
    "test": (test, 1.0),
    "memberships": (memberships, 0.1),  # fits take longer
    "criteria": (criteria, 0.05),
}

HEAD = """# Inference

How often 95% intervals hold the truth, how often the test of equal scales rejects, how
far memberships can be believed, and how often criteria find the number of clusters
(`python benchmarks/inference.py --draws {draws}`, which says how many draws each table
has). Designs are those of `designs.py`, and mixtures of 400 rows in 150 columns with
correlated noise (`ar-80-short` has shorter centres); labels are the true ones where no
more is said.

"""


def main() -> None:
    jobs = os.cpu_count()
    parser = arguments(__doc__, "inference.md", TABLES, draws=100, jobs=jobs)
    options = parser.parse_args()
    parts = []

    with ProcessPoolExecutor(options.jobs) as pool:

        def run(draw: Callable[[int], Any], draws: int) -> list[Any]:
            return list(pool.map(draw, range(draws)))

        for name in options.names:
            table, share = TABLES[name]
            draws = max(2, round(share * options.draws))
            parts.append(markdown(table(draws, run), "##"))

    publish(options, HEAD.format(draws=options.draws) + "\n".join(parts))


if __name__ == "__main__":
    main()
