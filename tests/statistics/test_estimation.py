from itertools import product

import numpy as np
import pytest
from correlated_noise import autoregressive
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.statistics.estimation import estimate_parameters


def normalized(labels, scales, centers):
    """The true parameters, identified as ours are: scales of mean 1 in a cluster."""
    mean = np.bincount(labels, scales) / np.bincount(labels)
    return scales / mean[labels], centers * mean[:, None]


def inside(intervals, truth):
    """Tell which true values lie in their intervals."""
    return (intervals[..., 0] <= truth) & (truth <= intervals[..., 1])


@pytest.mark.parametrize(
    ("n", "p", "recipe"),
    [(300, 50, Recipe()), (200, 200, None), (90, 3000, None),
     (90, 3000, Recipe(rows="given", diagonal="zero"))],
)  # fmt: skip
def test_no_bias_in_any_regime(n, p, recipe):
    # With rows left in their own centre, scales and noise would be far off at p >> n.
    errors = []
    for seed in range(3):
        sample = make_ihgmm(
            n, p, 3, separation_constant=0.7, scale_ratio=5.0, random_state=seed,
            return_params=True,
        )  # fmt: skip
        scales, _ = normalized(sample.labels, sample.scales, sample.centers)
        if recipe is None:
            result = estimate_parameters(sample.X, sample.labels)
            omega = result.scales
            sigma = result.noise_levels
        else:
            model = IhSC(3, recipe=recipe, random_state=seed).fit(sample.X)
            omega = model.scales_
            sigma = model.noise_levels_
        length = np.linalg.norm(sample.centers, axis=1).mean() * 3
        level = np.mean(sigma / sample.noise_levels)
        errors.append([np.std(omega - scales) * length, level])
    scatter, level = np.mean(errors, axis=0)

    assert scatter < 1.8  # a scale is known up to noise over the length of its centre
    assert level == pytest.approx(1, abs=0.03)


def test_scales_have_mean_one():
    X, labels = make_ihgmm(40, 10, 3, random_state=0)
    labels[0] = 3  # a row alone
    result = estimate_parameters(X, np.array(["b", "t", "x", "z"])[labels])
    for k in range(4):
        assert result.scales[labels == k].mean() == pytest.approx(1)

    assert (result.scales[0], result.noise_levels[0]) == (1, 0)
    assert_allclose(result.centers[3], X[0])
    assert np.isfinite(result.noise_levels).all()
    assert list(result.classes) == ["b", "t", "x", "z"]

    padded = estimate_parameters(X, labels, 6)  # 4 and 5 are empty

    assert_allclose(padded.centers, np.vstack([result.centers, np.zeros((2, 10))]))
    assert np.isinf(padded.center_errors[4:]).all()


def hollow_fit(X, weights, steps=1_000):
    """Scales of one cluster by a plain iteration on the matrix of inner products."""
    G = X @ X.T
    np.fill_diagonal(G, 0)
    share = np.full(len(X), 1 / len(X))
    product = weights * (G @ weights)
    for _ in range(steps):
        # z = z**2 + const * product, with const such that the sum stays 1
        share = share**2 + product * (1 - share @ share) / product.sum()
    return share / weights / np.mean(share / weights)


@pytest.mark.parametrize(("n", "p"), [(3, 500), (7, 100)])
def test_scales_solve_the_equations_of_the_hollow_gram(n, p):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        omega = rng.uniform(1, 5, n)
        X = np.outer(omega, rng.normal(size=p)) + 0.3 * rng.normal(size=(n, p))
        result = estimate_parameters(X, np.zeros(n))
        assert_allclose(result.scales, hollow_fit(X, np.ones(n)), rtol=1e-6)
        assert_allclose(result.centers[0], X.mean(axis=0))


@pytest.mark.parametrize(("n", "p"), [(3, 200), (12, 200)])
def test_errors_are_the_spread_over_draws(n, p):
    # Row by row: the largest scale and the smallest, quiet rows and noisy ones.
    rng = np.random.default_rng(0)
    omega = np.linspace(0.4, 1.6, n)
    sigma = rng.permutation(np.linspace(0.5, 1.5, n))
    theta = rng.normal(size=p)
    theta *= 12 * (p / n) ** 0.25 / np.linalg.norm(theta)
    errors = []
    stated = []
    for _ in range(20):
        # Twenty draws at a time, each a cluster of its own.
        noise = sigma[:, None] * rng.normal(size=(20, n, p))
        X = (np.outer(omega, theta) + noise).reshape(20 * n, p)
        result = estimate_parameters(X, np.repeat(np.arange(20), n))
        errors.append(result.scales.reshape(20, n) - omega)
        stated.append(result.scale_errors.reshape(20, n))
    spread = np.sqrt(np.mean(np.concatenate(errors) ** 2, axis=0))
    ratio = np.sqrt(np.mean(np.concatenate(stated) ** 2, axis=0)) / spread

    # The spread over 400 draws is itself known to 1/sqrt(800), or 3.5%.
    assert_allclose(ratio, 1, atol=4 * 0.035)
    assert np.abs(np.mean(errors, axis=(0, 1)) / spread).max() < 0.2


@pytest.mark.parametrize(
    ("shape", "structure"),
    [((300, 100, 4), "individual"), ((200, 1000, 4), "class"),
     ((180, 400, 3), "common")],
)  # fmt: skip
def test_intervals_hold_the_truth(shape, structure):
    coverage = []
    coverage_in_smallest = []
    coverage_of_entries = []
    cases = product([1.0, 3.0, 20.0], [0.2, 1.0], [1.0, 3.0])
    for seed, (ratio, balance, constant) in enumerate(cases):
        sample = make_ihgmm(
            *shape, scale_ratio=ratio, balance=balance, separation_constant=constant,
            noise=("gaussian", "rademacher")[(seed + seed // 2) % 2],
            noise_structure=structure, random_state=seed, return_params=True,
        )  # fmt: skip
        scales, centers = normalized(sample.labels, sample.scales, sample.centers)
        result = estimate_parameters(sample.X, sample.labels)
        is_inside = inside(result.scale_intervals(), scales)
        coverage.append(is_inside.mean())
        coverage_in_smallest.append(is_inside[sample.labels == shape[2] - 1].mean())
        coverage_of_entries.append(inside(result.center_intervals(), centers).mean())

    assert 0.93 < np.mean(coverage) < 0.97
    assert 0.91 < np.mean(coverage_in_smallest) < 0.99  # a few hundred rows in all
    assert 0.93 < np.mean(coverage_of_entries) < 0.97


def drawn(kind, seed, n=240, p=100, k=3):
    """A sample, its labels, scales and centres, and the noisiest tenth of columns."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    scales = rng.lognormal(0, 0.5, n)
    centers = 6 * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    deviations = 10 ** rng.uniform(-0.5, 0.5, p) if kind == "columns" else np.ones(p)
    if kind in ("counts", "gamma"):
        centers = rng.gamma(1, size=p) / 2 + rng.gamma(1, size=(k, p)) / 2
        mean = scales[:, None] * centers[labels]
        X = rng.poisson(mean) if kind == "counts" else rng.exponential(mean)
        spreads = centers
    else:
        noise = rng.standard_normal((n, p))
        noise = autoregressive(noise, 0.5) if kind == "correlated" else noise
        X = scales[:, None] * centers[labels] + noise * deviations
        spreads = np.tile(deviations, (k, 1))
    return X, labels, scales, centers, np.argsort(-spreads, axis=1)[:, : p // 10]


@pytest.mark.parametrize("kind", ["equal", "columns", "correlated", "counts", "gamma"])
def test_intervals_hold_the_truth_whatever_the_noise(kind):
    # By the noise level of the rows alone, scales were held in 75% (counts) and 59%
    # (gamma) of cases, centres in the noisiest tenth of columns in 57 to 74%.
    coverage = []
    coverage_of_entries = []
    for seed in range(15):
        X, labels, scales, centers, noisiest = drawn(kind, seed)
        scales, centers = normalized(labels, scales, centers)
        result = estimate_parameters(X, labels)
        coverage.append(inside(result.scale_intervals(), scales).mean())
        is_inside = inside(result.center_intervals(), centers)
        is_inside = np.take_along_axis(is_inside, noisiest, axis=1)
        coverage_of_entries.append(is_inside.mean())

    assert 0.92 < np.mean(coverage) < 0.97
    assert 0.89 < np.mean(coverage_of_entries) < 0.98  # gamma: .91; the error is .01


def test_centres_of_rows_with_forty_counts():
    # Version 0.3 held .90 of such entries.
    coverage = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        labels = np.arange(600) % 3
        profiles = rng.gamma(2, size=(3, 60))
        profiles *= 40 / profiles.sum(axis=1, keepdims=True)
        means = rng.uniform(0.5, 1.5, (600, 1)) * profiles[labels]
        result = estimate_parameters(rng.poisson(means), labels)
        centers = [means[labels == j].mean(axis=0) for j in range(3)]
        coverage.append(inside(result.center_intervals(), np.array(centers)))

    assert 0.93 < np.mean(coverage) < 0.97


def coloured(kind, seed, n=400, p=150, k=4):
    """A sample whose noise is shared by columns, its labels and true centres."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    scales = rng.lognormal(0, 0.4, n)
    centers = rng.standard_normal((k, p))
    centers *= 8 / np.linalg.norm(centers, axis=1, keepdims=True)
    noise = rng.standard_normal((n, p))
    if kind == "factors":
        shared = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p))
        noise = (noise + shared) / 2
    elif kind == "blocks":
        shared = rng.standard_normal((n, 10))[:, np.arange(p) * 10 // p]
        noise = np.sqrt(0.2) * noise + np.sqrt(0.8) * shared
    elif kind == "alternating":
        noise = autoregressive(noise, -0.8)
    X = scales[:, None] * centers[labels] + noise
    return X, labels, normalized(labels, scales, centers)[1]


@pytest.mark.parametrize("kind", ["factors", "blocks", "alternating"])
def test_correlated_noise_does_not_turn_centers(kind):
    # Weights by scale and noise level gave .80, .89 and .92.
    coverage = []
    for seed in range(20):
        X, labels, centers = coloured(kind, seed)
        result = estimate_parameters(X, labels)
        coverage.append(inside(result.center_intervals(), centers).mean())

    assert 0.93 < np.mean(coverage) < 0.97


def test_weights_favour_quiet_rows():
    sigma = np.repeat([0.2, 4.0], 50)
    theta = np.full(800, 0.5)
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        omega = rng.uniform(0.5, 1.5, 100)
        omega /= omega.mean()
        X = np.outer(omega, theta) + sigma[:, None] * rng.normal(size=(100, 800))
        result = estimate_parameters(X, np.zeros(100))
        unweighted = X.T @ omega / (omega @ omega)
        # Along the centre, all of whose entries are equal, the error is another one.
        error = np.std(result.centers[0] - theta)
        stated = result.center_errors
        assert error == pytest.approx(np.sqrt(np.mean(stated**2)), rel=0.15)
        gains.append(np.std(unweighted - theta) / error)

    assert np.mean(gains) > 5


def test_level_widens_intervals():
    X, labels = make_ihgmm(60, 40, 2, scale_ratio=2, random_state=0)
    result = estimate_parameters(X, labels)

    assert (result.center_freedom < 29).all()

    quantiles = t.ppf(0.995, result.center_freedom)[:, None]
    for intervals, values, reach in [
        (result.scale_intervals, result.scales, t.ppf(0.995, 39) * result.scale_errors),
        (result.center_intervals, result.centers, quantiles * result.center_errors),
    ]:
        narrow_lower, narrow_upper = np.moveaxis(intervals(0.5), -1, 0)
        lower, upper = np.moveaxis(intervals(0.99), -1, 0)
        assert intervals(0.5).shape == (*values.shape, 2)
        assert (lower < narrow_lower).all()
        assert (narrow_upper < upper).all()
        assert_allclose(upper, values + reach)
        for level in (0, 1, 95, -0.5, np.nan):
            with pytest.raises(ValueError, match=f"level={level}"):
                intervals(level)

    assert (result.scale_intervals(1 - 1e-12) >= 0).all()


def test_clusters_without_enough_rows_have_infinite_errors():
    X, labels = make_ihgmm(40, 10, 2, random_state=0)
    labels[0] = 2  # a row alone
    labels[1:3] = 3  # a pair
    result = estimate_parameters(X, labels)

    assert result.scale_errors[0] == 0
    assert_allclose(result.scale_intervals()[0], 1)
    assert np.isinf(result.scale_errors[1:3]).all()
    assert_allclose(result.scale_intervals()[1:3], [[0, np.inf]] * 2)

    norms = np.linalg.norm(X[1:3], axis=1)

    assert_allclose(result.scales[1:3], norms / norms.mean())
    assert np.isfinite(result.scale_errors[3:]).all()

    is_single = np.arange(4)[:, None] == np.full(10, 2)

    assert_array_equal(np.isinf(result.center_errors), is_single)
    assert np.isinf(result.center_intervals()[2]).all()


def test_exact_data_has_no_error():
    X = np.outer([1.0, 3.0, 1.0, 2.0, 3.0, 4.0, 0.0], [1.0, 2.0, 2.0])
    result = estimate_parameters(X, [0, 0, 1, 1, 1, 1, 1])

    assert_allclose(result.scales, [0.5, 1.5, 0.5, 1, 1.5, 2, 0], rtol=1e-12)
    assert (result.noise_levels == 0).all()
    assert (result.scale_errors == 0).all()
    assert_allclose(result.center_errors, 0, atol=1e-14)


def test_zero_rows_and_rows_without_a_pattern():
    X, labels = make_ihgmm(60, 20, 2, random_state=0)
    X[:2] = 0
    result = estimate_parameters(X, labels)

    assert (result.scales[:2] == 0).all()
    assert (result.scale_errors[:2] == 0).all()
    assert np.isfinite(result.scale_errors).all()

    # Orthogonal rows, and none at all: nothing to compare a row with.
    for Y in (np.eye(5), np.zeros((5, 3)), np.ones((5, 1)) + np.eye(5)[:, :1]):
        assert np.isinf(estimate_parameters(Y, np.zeros(5)).scale_errors).all()

    # Rows 1 and 2 resemble row 0 and contradict each other.
    Y = np.array([[3.0, 0, 0], [1, 2, 0], [1, -2, 0]])

    assert np.isinf(estimate_parameters(Y, np.zeros(3)).scale_errors).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1]}, "labels has 2 entries and X has 6 rows"),
        ({"n_clusters": 1}, "from 0 to 1, not from 0 to n_clusters - 1 = 0"),
        ({"labels": list("aabbab"), "n_clusters": 2}, "leave n_clusters out"),
        ({"n_clusters": 0}, "n_clusters=0 is out of range"),
        ({"X": np.full((6, 3), np.nan)}, "contains NaN at row 0, column 0"),
    ],
)
def test_bad_input(change, message):
    arguments = {"X": np.ones((6, 3)), "labels": [0, 1, 0, 1, 0, 1], **change}
    with pytest.raises((ValueError, TypeError), match=message):
        estimate_parameters(**arguments)
