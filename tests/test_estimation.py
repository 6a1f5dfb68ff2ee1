import numpy as np
import pytest
from numpy.testing import assert_allclose

from ihgmm import IhSC, make_ihgmm
from ihgmm.estimation import estimate_parameters


def normalized(sample):
    """The true parameters, identified as ours are: scales of mean 1 in a cluster."""
    size = np.bincount(sample.labels)
    mean = np.bincount(sample.labels, sample.scales) / size
    return sample.centers * mean[:, None], sample.scales / mean[sample.labels]


def test_exact_without_noise(kind):
    sample = make_ihgmm(90, 12, 3, noise_levels=0.0, random_state=0, return_params=True)
    centers, scales = normalized(sample)
    found = estimate_parameters(kind(sample.X), sample.labels, 3)
    assert_allclose(found.centers, centers, rtol=1e-6, atol=1e-8)
    assert_allclose(found.scales, scales, rtol=1e-6)
    assert_allclose(found.noise_levels, 0, atol=1e-3)


def test_given_scales_give_least_squares_centers():
    sample = make_ihgmm(80, 15, 2, random_state=1, return_params=True)
    _, scales = normalized(sample)
    found = estimate_parameters(sample.X, sample.labels, 2, scales=7 * scales)
    assert_allclose(found.scales, scales)
    for k in range(2):
        rows = sample.labels == k
        fit = np.linalg.lstsq(scales[rows, None], sample.X[rows], rcond=None)[0]
        assert_allclose(found.centers[k], fit[0], rtol=1e-9)


@pytest.mark.parametrize(("n", "p"), [(600, 50), (300, 300), (120, 6000)])
@pytest.mark.parametrize("source", ["labels", "hollow", "cosine"])
def test_no_bias_in_any_regime(n, p, source):
    # With rows left in their own centre, scales and noise would be far off at p >> n.
    errors = []
    for seed in range(5):
        sample = make_ihgmm(
            n, p, 3, separation_constant=0.7, scale_ratio=5.0, random_state=seed,
            return_params=True,
        )  # fmt: skip
        _, scales = normalized(sample)
        if source == "labels":
            found = estimate_parameters(sample.X, sample.labels, 3)
            omega, sigma = found.scales, found.noise_levels
        else:
            model = IhSC(3, gram=source, random_state=seed).fit(sample.X)
            omega, sigma = model.scales_, model.noise_levels_
        length = np.linalg.norm(sample.centers, axis=1).mean() * 3
        errors.append(
            [np.std(omega - scales) * length, np.mean(sigma / sample.noise_levels)]
        )
    spread, level = np.mean(errors, axis=0)
    assert spread < 1.8  # a scale is known up to noise over the length of its centre
    assert level == pytest.approx(1, abs=0.03)


def test_identification_and_small_clusters():
    X, labels = make_ihgmm(40, 10, 3, random_state=0)
    labels = labels.copy()
    labels[0] = 3  # a row alone
    found = estimate_parameters(X, labels, 6)  # 4 and 5 are empty
    for k in range(3):
        assert found.scales[labels == k].mean() == pytest.approx(1)
    assert found.scales[0] == 1
    assert found.noise_levels[0] == 0
    assert_allclose(found.centers[3], X[0])
    assert (found.centers[4:] == 0).all()
    assert np.isfinite(found.noise_levels).all()


def test_float32():
    X, labels = make_ihgmm(40, 10, 3, random_state=0, dtype=np.float32)
    found = estimate_parameters(X, labels, 3)
    assert {found.centers.dtype, found.scales.dtype, found.noise_levels.dtype} == {
        np.dtype(np.float32)
    }
