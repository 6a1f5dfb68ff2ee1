import numpy as np
import pytest
import scipy.sparse as sp
from correlated_noise import autoregressive
from numpy.testing import assert_array_equal

from ihgmm import estimate_parameters, make_ihgmm, scale_heterogeneity_test
from ihgmm.statistics.scale_heterogeneity import ScaleTest
from ihgmm.statistics.shared_covariance import shared_covariance


@pytest.mark.parametrize(
    ("n", "p", "k", "options"),
    [
        (60, 30, 3, {"noise": "rademacher", "noise_levels": (0.5, 4.5)}),
        (120, 15, 3, {"noise_levels": (0.5, 4.5)}),
        (16, 60, 4, {}),
        (40, 160, 2, {"separation_constant": 0.1}),
    ],
)
def test_level(n, p, k, options):
    # Rows of small clusters, more features than rows, no signal to speak of.
    tests = []
    for seed in range(100):
        sample = make_ihgmm(n, p, k, scale_ratio=1.0, random_state=seed, **options)
        tests.append(scale_heterogeneity_test(*sample))
    p_values = np.concatenate([test.p_values for test in tests])

    assert 0.01 < np.mean(p_values < 0.05) < 0.1
    # Most where a few loud rows decide.
    assert np.mean([test.p_value < 0.05 for test in tests]) < 0.17


def correlated(seed, r, spread=0.0, common=None, n=160, p=60, k=4):
    """Noise that is autoregressive along the features; scales of some spread.

    Centres are orthogonal, or positive with something ``common``.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    noise = autoregressive(rng.standard_normal((n, p)), r)
    centers = 6 * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    if common is not None:
        centers = common + rng.random((k, p))
        centers *= 12 / np.linalg.norm(centers, axis=1, keepdims=True)
    scales = 1 + spread * rng.standard_normal((n, 1))
    return scales * centers[labels] + noise, labels


def skewed(seed, n, p, size=None):
    """Counts of three patterns with means of some size, or exponential noise."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    if size is None:
        noise = rng.exponential(size=(n, p)) - 1
        return rng.gamma(1, 1, (3, p))[labels] + noise, labels
    return rng.poisson(rng.gamma(1, 1, (3, p))[labels] * size), labels


@pytest.mark.parametrize(
    ("draw", "arguments", "n_draws", "maximum"),
    [
        (correlated, (0.5,), 100, 0.15),
        (correlated, (0.95,), 50, 0.3),
        (skewed, (1200, 50, 0.3), 40, 0.13),
        (skewed, (300, 300, 0.1), 40, 0.13),
        (skewed, (300, 50), 50, 0.13),
    ],
)
def test_odd_noise_is_not_taken_for_scales(draw, arguments, n_draws, maximum):
    # Without other clusters 21% and 98% of the correlated ones are rejected. The second
    # is the worst for the test: of 300 rows in 100 columns it rejects 5%.
    samples = [draw(seed, *arguments) for seed in range(n_draws)]
    tests = [scale_heterogeneity_test(*sample) for sample in samples]

    assert np.mean([test.p_value < 0.05 for test in tests]) < maximum
    assert np.mean([test.statistic for test in tests]) < (0.5 if maximum < 0.2 else 1.2)


@pytest.mark.parametrize("r", [0.0, 0.5])
def test_scales_are_found_beside_correlated_noise(r):
    tests = [scale_heterogeneity_test(*correlated(s, r, 0.15)) for s in range(30)]

    assert np.mean([test.p_value < 0.05 for test in tests]) > 0.8
    assert np.median([test.spread for test in tests]) == pytest.approx(0.15, abs=0.03)


@pytest.mark.parametrize(("common", "power"), [(0, 0.7), (1, 0)])
def test_correlated_noise_is_no_scale_though_centres_are_alike(common, power):
    # Cosines are .76 and .97: the more alike, the less anything can tell.
    is_rejected = [
        scale_heterogeneity_test(*correlated(seed, 0.9, spread, common)).p_value < 0.05
        for seed in range(25)
        for spread in (0.0, 0.12)
    ]

    assert np.mean(is_rejected[::2]) < 0.15
    assert np.mean(is_rejected[1::2]) >= power


def positive(seed, noise, spread, n=300, p=100, k=4):
    """Positive centres with cosines of about .85; noise in blocks, or AR(.9)."""
    rng = np.random.default_rng(seed)
    columns = np.arange(p)
    centers = 0.5 * rng.gamma(2, size=p) + rng.gamma(0.5, size=(k, p))
    centers *= 30 / np.linalg.norm(centers, axis=1, keepdims=True)
    block = columns * 10 // p
    covariance = 0.9 ** np.abs(columns[:, None] - columns)
    if noise == "blocks":
        covariance = 0.2 * np.eye(p) + 0.8 * (block[:, None] == block)
    errors = rng.standard_normal((n, p)) @ np.linalg.cholesky(covariance).T
    scales = 1 + spread * rng.standard_normal(n)
    labels = np.arange(n) % k
    return scales[:, None] * centers[labels] + errors, labels, scales


@pytest.mark.parametrize("noise", ["blocks", "ar"])
def test_positive_centres_and_correlated_noise(noise):
    is_rejected = []
    coverage = []
    for seed in range(40):
        for spread in (0.0, 0.12):
            X, labels, scales = positive(seed, noise, spread)
            is_rejected.append(scale_heterogeneity_test(X, labels).p_value < 0.05)
            if seed >= 10:
                continue
            lower, upper = estimate_parameters(X, labels).scale_intervals().T
            scales = scales / (np.bincount(labels, scales) / 75)[labels]
            coverage.append(np.mean((lower < scales) & (scales < upper)))

    assert np.mean(is_rejected[::2]) <= 0.1
    assert np.mean(is_rejected[1::2]) > 0.9
    assert 0.9 < np.mean(coverage) < 0.97


@pytest.mark.parametrize("ratio", [1.0, 1.5, 8.0])
def test_intervals_of_the_spread_hold_the_truth(ratio):
    truth = (ratio - 1) / np.sqrt(12) / ((ratio + 1) / 2)
    is_inside = []
    for seed in range(60):
        X, labels = make_ihgmm(200, 50, 3, scale_ratio=ratio, random_state=seed)
        lower, upper = scale_heterogeneity_test(X, labels).spread_interval
        is_inside.append(lower <= truth <= upper)

    assert np.mean(is_inside) > 0.84


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((8, 5)),
        np.full((8, 5), np.pi, dtype=np.float32),
        sp.csr_array((8, 5)),
        np.arange(1.0, 9.0)[:, None],  # one feature: the noise cannot be told
    ],
)
def test_nothing_to_judge_by(X):
    test = scale_heterogeneity_test(X, np.zeros(8, dtype=int))

    assert np.isnan([test.p_value, *test.p_values]).all()
    assert str(test).splitlines()[-1].startswith("no recommendation: no cluster")


def test_small_clusters_are_left_out():
    X, labels = make_ihgmm(60, 20, 2, scale_ratio=1.5, random_state=0)
    labels = labels.copy()
    labels[:6] = [7, 7, 7, 8, 8, 9]
    X[:6] *= 1000
    test = scale_heterogeneity_test(X, labels)

    assert_array_equal(test.clusters, [0, 1, 7, 8, 9])

    for values in (test.p_values, test.spreads):
        assert_array_equal(np.isnan(values), [False, False, True, True, True])

    X[:6] = 0
    test_of_zeros = scale_heterogeneity_test(X, labels)

    assert (test_of_zeros.p_value, test_of_zeros.spread) == (test.p_value, test.spread)

    test_of_one = scale_heterogeneity_test(X, np.zeros(60))

    assert "entries of the noise are independent" in str(test_of_one).splitlines()[-1]

    lines = str(test).splitlines()

    assert lines[3].split() == ["7", "3", "-", "-"]
    assert lines[6].startswith("all")


@pytest.mark.parametrize(
    ("p_value", "spread", "upper", "recommendation"),
    [
        (1e-9, 0.18, 0.2,
         "Ih-GMM: rows of a cluster differ in scale by about 18% (p < 0.0001)."),
        (0.01, 0.021, 0.04,
         "classical mixture: rows of a cluster differ in scale (p = 0.01), but only by "
         "about 2.1%."),
        (0.4, 0.1, 2.0,
         "no recommendation: there is no sign of individual scales (p = 0.4), but the "
         "signal is too weak, or there are too few rows or features, to be sure."),
        (0.01, np.nan, np.nan,
         "Ih-GMM: rows of a cluster differ in scale (p = 0.01); the signal is too weak "
         "to say by how much."),
    ],
)  # fmt: skip
def test_recommendation(p_value, spread, upper, recommendation):
    test = ScaleTest(
        p_value=p_value,
        statistic=1.0,
        spread=spread,
        spread_interval=(0.0, upper),
        clusters=np.array([9]),
        sizes=np.array([9]),
        p_values=np.array([p_value]),
        spreads=np.array([p_value]),
    )

    assert recommendation in str(test).splitlines()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 0], "labels has 3 entries and X has 20 rows; give one label"),
        (np.zeros((20, 2)), r"labels cannot be used .*\(20, 2\).*; give one label"),
        ([], "labels cannot be used .*empty"),
        ([np.nan] * 20, "labels contains nan, which stands for no label"),
        (np.array([np.nan] * 20, dtype=object), "labels contains nan, which"),
        (np.array(["NaT"] * 20, dtype="M8[D]"), "labels contains NaT, which"),
        ([None] * 20, "NoneType.*; give every row a label"),
        ([{}] * 20, "labels cannot be used .*dict.*; give every row a label of"),
        ([0] * 19 + [None], "labels cannot be used .*NoneType"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        scale_heterogeneity_test(np.ones((20, 3)), labels)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e9])
def test_covariance_of_long_rows(size):
    # The signal is so long that rounding of its squares is larger than the noise.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        k = rng.integers(2, 8)
        hidden = size * rng.normal(size=(k, k))
        noise = rng.random() * rng.normal(size=(k, 100, k))
        rows = rng.lognormal(size=(k, 100, 1)) * hidden[:, None] + noise
        moments = np.swapaxes(rows, 1, 2) @ rows
        covariance = shared_covariance(hidden, moments, np.full(k, 100.0))
        assert np.linalg.eigvalsh(covariance)[0] > 0
