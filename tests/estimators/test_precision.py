"""float32 loses nothing: not near the threshold, not over twelve decades."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import exact_recovery, misclassification_rate

PAPER = [
    {"n_samples": 1000, "n_features": 200, "n_clusters": 4},
    {"n_samples": 200, "n_features": 3000, "n_clusters": 4},
    {"n_samples": 200, "n_features": 1000, "n_clusters": 3, "balance": 0.2},
]
SOLVERS = ["auto", "block"]


@pytest.mark.parametrize(
    ("setting", "gram"),
    [
        *product(PAPER, ["cosine", "hetero"]),
        *zip(PAPER, ["full", "hollow", "full"], strict=True),
    ],
    ids=str,
)
def test_no_more_errors_than_in_float64_near_the_threshold(setting, gram):
    errors = {np.float32: [], np.float64: []}
    k = setting["n_clusters"]
    model = IhSC(k, recipe=Recipe(gram=gram), random_state=0)
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
@pytest.mark.parametrize("gram", ["hollow", "cosine"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(600, 50, 3), (300, 1000, 4), (6000, 40, 5)])
def test_scales_from_a_millionth_to_a_million(shape, solver, gram, dtype):
    for seed in range(2):
        X, labels, scales = twelve_decades(seed, *shape)
        model = IhSC(shape[2], recipe=Recipe(gram=gram, solver=solver), random_state=0)
        model.fit(X.astype(dtype))
        assert exact_recovery(labels, model.labels_)
        # In each cluster the scales found are in proportion to the true ones.
        for k in range(shape[2]):
            mine = model.labels_ == k
            ratio = model.scales_[mine] / scales[mine]
            assert_allclose(ratio, np.median(ratio), rtol=0.5)


@pytest.mark.parametrize("unit", [1e-30, 1e-6, 1e6, 1e15])
def test_the_unit_of_the_data_does_not_matter(unit):
    X, _ = make_ihgmm(400, 100, 4, dtype=np.float32, random_state=0)
    model, scaled = (
        IhSC(4, random_state=0).fit(data) for data in (X, X * np.float32(unit))
    )
    assert (model.labels_ == scaled.labels_).all()
    assert_allclose(scaled.scales_, model.scales_, rtol=1e-3)
    # Centres are in the unit of the data.
    assert_allclose(
        scaled.cluster_centers_ / np.float32(unit),
        model.cluster_centers_,
        rtol=1e-3,
        atol=1e-4 * np.abs(model.cluster_centers_).max(),
    )
