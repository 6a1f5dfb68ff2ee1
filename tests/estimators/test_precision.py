"""float32 loses nothing: not near the threshold, not over twelve decades."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import exact_recovery, misclassification_rate

PAPER = [
    {"n_samples": 1000, "n_features": 200, "n_clusters": 4},
    {"n_samples": 200, "n_features": 3000, "n_clusters": 4},
    {"n_samples": 200, "n_features": 1000, "n_clusters": 3, "balance": 0.2},
]


@pytest.mark.parametrize("recipe", ["default", "paper"])
@pytest.mark.parametrize("setting", PAPER, ids=str)
def test_no_more_errors_than_in_float64_near_the_threshold(setting, recipe):
    errors = {np.float32: [], np.float64: []}
    model = IhSC(setting["n_clusters"], recipe=recipe, random_state=0)
    for seed in range(6):
        X, labels = make_ihgmm(**setting, separation_constant=0.2, random_state=seed)
        for dtype, rates in errors.items():
            found = model.fit_predict(X.astype(dtype))
            rates.append(misclassification_rate(labels, found))
    # A row on a border may fall to either side.
    assert abs(np.mean(errors[np.float32]) - np.mean(errors[np.float64])) <= 0.002


def twelve_decades(seed, n=600, p=50, k=3):
    rng = np.random.default_rng(seed)
    directions, _ = np.linalg.qr(rng.standard_normal((p, k)))
    labels = rng.integers(k, size=n)
    scales = 10.0 ** rng.uniform(-6, 6, n)
    patterns = 5 * directions.T[labels] + 0.3 * rng.standard_normal((n, p))
    return scales[:, None] * patterns, labels, scales


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(600, 50, 3), (300, 1000, 4), (6000, 40, 5)])
def test_scales_from_a_millionth_to_a_million(shape, dtype):
    for seed in range(2):
        X, labels, scales = twelve_decades(seed, *shape)
        model = IhSC(shape[2]).fit(X.astype(dtype))
        assert exact_recovery(labels, model.labels_)
        # In each cluster the scales found are in proportion to the true ones.
        for k in range(shape[2]):
            mine = model.labels_ == k
            ratio = model.scales_[mine] / scales[mine]
            assert_allclose(ratio, np.median(ratio), rtol=0.5)
