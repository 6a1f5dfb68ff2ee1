import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import make_ihgmm
from ihgmm.statistics.model import default_separation


@pytest.mark.parametrize(("n", "p", "k"), [(50, 20, 4), (20, 300, 3), (7, 7, 7)])
@pytest.mark.parametrize("noise", ["gaussian", "rademacher", "uniform"])
def test_recipe(n, p, k, noise):
    sample = make_ihgmm(n, p, k, noise=noise, random_state=0, return_params=True)

    assert sample.X.shape == (n, p)
    assert sample.separation == pytest.approx(default_separation(n, p, k))

    inner = sample.centers @ sample.centers.T

    assert_allclose(inner, np.eye(k) * sample.separation**2 / 2, atol=1e-9)
    assert ((sample.scales >= 1) & (sample.scales <= 20)).all()
    assert ((sample.noise_levels >= 0.5) & (sample.noise_levels <= 1.5)).all()

    residual = (sample.X - sample.signal) / sample.noise_levels[:, None]
    if noise == "rademacher":
        assert_allclose(np.abs(residual), 1, atol=1e-10)
    if noise == "uniform":
        assert np.abs(residual).max() <= np.sqrt(3) + 1e-9

    assert repr(sample).startswith(f"IhGMMSample(n_samples={n}, n_features={p}")


@pytest.mark.parametrize("noise", ["gaussian", "rademacher", "uniform"])
def test_noise_has_mean_zero_and_its_level(noise):
    sample = make_ihgmm(200, 1000, 2, noise=noise, random_state=1, return_params=True)
    residual = (sample.X - sample.signal) / sample.noise_levels[:, None]

    assert residual.mean() == pytest.approx(0, abs=5 / np.sqrt(residual.size))
    assert residual.var() == pytest.approx(1, abs=10 / np.sqrt(residual.size))
    assert_allclose((residual**2).mean(axis=1), 1, atol=0.25)


@pytest.mark.parametrize(
    ("n", "k", "balance", "sizes"),
    [
        (200, 3, 0.1, [6, 97, 97]),
        (200, 3, 1.0, [66, 67, 67]),
        (300, 3, 0.7, [70, 115, 115]),
        (10, 4, 0.01, [1, 3, 3, 3]),
        (9, 1, 0.5, [9]),
        (5, 5, 1.0, [1, 1, 1, 1, 1]),
    ],
)
def test_cluster_sizes(n, k, balance, sizes):
    _, labels = make_ihgmm(n, 10, k, balance=balance, random_state=0)

    assert sorted(np.bincount(labels)) == sizes
    assert len(set(labels)) == k

    if n > k > 1:
        assert (np.diff(labels) < 0).any()  # shuffled


def test_noise_structures():
    def levels(**options):
        options = {"random_state": 0, "return_params": True, **options}
        sample = make_ihgmm(60, 5, 3, **options)
        return sample.noise_levels, sample.labels

    assert len(set(levels()[0])) == 60
    assert set(levels(noise_levels=0.7)[0]) == {0.7}
    assert len(set(levels(noise_structure="common")[0])) == 1

    sigma, labels = levels(noise_structure="class", noise_levels=[1.0, 2.0, 3.0])

    assert_array_equal(sigma, labels + 1)

    sigma, labels = levels(noise_structure="class")

    assert len(set(zip(sigma, labels, strict=True))) == 3

    noise_levels = np.linspace(0, 2, 60)

    assert_array_equal(levels(noise_levels=noise_levels)[0], noise_levels)


def test_given_centers_and_scales():
    centers = np.array([[3.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    scales = np.linspace(1, 2, 10)
    sample = make_ihgmm(
        10, centers=centers, scales=scales, noise_levels=0.0, random_state=0,
        return_params=True,
    )  # fmt: skip

    assert_array_equal(sample.X, scales[:, None] * centers[sample.labels])
    assert sample.separation == 5
    assert_array_equal(sample.scales, scales)


def test_seeds_and_dtype():
    def draw(seed, **options):
        return make_ihgmm(30, 8, 2, random_state=seed, **options)[0]

    assert_array_equal(draw(0), draw(0))
    assert (draw(0) != draw(1)).any()

    state = np.random.RandomState(0)

    assert (draw(state) != draw(state)).any()
    assert draw(np.random.default_rng(5), dtype=np.float32).dtype == "float32"

    state_before = np.random.get_state()[1].copy()  # noqa: NPY002
    make_ihgmm(10, 4, 2)

    assert_array_equal(np.random.get_state()[1], state_before)  # noqa: NPY002


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples=0 is out of range"),
        ({"n_clusters": 600}, ValueError, "n_features=200 is less than n_clusters=600"),
        ({"n_samples": 3}, ValueError, "n_clusters=4 is more than n_samples=3"),
        ({"balance": 0}, ValueError, "balance=0 is out of range"),
        ({"separation": -1}, ValueError, "separation=-1"),
        ({"noise": "pink"}, ValueError, "noise='pink' is not known; give one of"),
        ({"noise_structure": "x"}, ValueError, "noise_structure='x'"),
        ({"noise_levels": (2, 1)}, ValueError, "a tuple .low, high. to draw"),
        ({"noise_levels": [1.0, 2.0]}, ValueError, "list or array of 500"),
        ({"noise_levels": -1.0}, ValueError, "noise_levels=-1.0 are no levels"),
        ({"scales": [1.0]}, ValueError, "not 500 positive, finite numbers"),
        ({"centers": [[1.0, np.nan]]}, ValueError, "no matrix of finite"),
        ({"centers": "x"}, ValueError, "^centers cannot be used .*; give a list"),
        ({"scales": {}}, TypeError, "^scales cannot be used .*; give a list"),
        ({"centers": np.ones((2, 2, 2))}, ValueError, r"shape \(2, 2, 2\)"),
        ({"dtype": "int32"}, ValueError, "dtype='int32' is not supported"),
        ({"random_state": "a"}, TypeError, "random_state='a'"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        make_ihgmm(**options)
