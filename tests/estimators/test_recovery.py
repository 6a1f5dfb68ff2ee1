"""The model: exact recovery in every draw, by the default and by the paper's way.

float32 loses nothing: not near the threshold, not over twelve decades.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import exact_recovery, misclassification_rate

NOISES = ["gaussian", "rademacher"]
for_each_build = pytest.mark.parametrize(
    "build", [IhSC, IhSC.paper], ids=["default", "paper"]
)
SETTINGS = {
    "n >> p": {"n_samples": 1000, "n_features": 200},
    "n = p": {"n_samples": 300, "n_features": 300},
    "p >> n": {"n_samples": 200, "n_features": 3000},
    "many clusters": {"n_samples": 800, "n_features": 800, "n_clusters": 8},
    "R = 100": {
        "n_samples": 500, "n_features": 1000, "n_clusters": 3, "scale_ratio": 100.0,
        "separation": 16.2408,
    },
    "unequal": {
        "n_samples": 200, "n_features": 1000, "n_clusters": 3, "balance": 0.2,
    },
}  # fmt: skip


@for_each_build
@pytest.mark.parametrize("setting", SETTINGS)
def test_ihsc_is_exact_in_every_draw(setting, build):
    options = {"n_clusters": 4, **SETTINGS[setting]}
    k = options["n_clusters"]
    draws = [(0, "gaussian", np.float64), (3, "rademacher", np.float32)]
    for seed, noise, dtype in draws:
        options |= {"noise": noise, "dtype": dtype, "random_state": seed}
        X, labels = make_ihgmm(**options)
        model = build(k, random_state=seed).fit(X)

        assert exact_recovery(labels, model.labels_), f"seed {seed}"
        # Nothing beyond the paper's K directions counts.
        assert model.embedding_.shape[1] == k


def test_extreme_imbalance():
    # Six rows in the smallest cluster: the order of eigenvalues matters.
    n_exact = {"algebraic": 0, "magnitude": 0}
    for seed in range(12):
        options = {"balance": 0.1, "noise": NOISES[seed % 2], "random_state": seed}
        X, labels = make_ihgmm(200, 1000, 3, **options)
        for order in n_exact:
            labels_found = IhSC.paper(3, order=order, random_state=0).fit_predict(X)
            n_exact[order] += exact_recovery(labels, labels_found)
        labels_found = IhSC(3, random_state=0).fit_predict(X)
        assert exact_recovery(labels, labels_found), f"seed {seed}"

    assert n_exact["algebraic"] >= 10
    assert n_exact["algebraic"] > n_exact["magnitude"]


@for_each_build
def test_one_huge_row_does_not_hide_a_cluster(build):
    for seed in range(4):
        X, labels = make_ihgmm(200, 500, 3, random_state=seed)
        X[0] *= 60
        assert exact_recovery(labels, build(3, random_state=seed).fit_predict(X))


def test_row_noise_that_differs_ninefold_needs_the_zero_diagonal_or_unit_rows():
    recipes = {
        "zero": Recipe.of("paper"),
        "unit": Recipe.of("paper", rows="unit", diagonal="full"),
        "full": Recipe.of("paper", diagonal="full"),
        "default": Recipe(),
    }
    errors = {name: [] for name in recipes}
    for seed in range(3):
        X, labels = make_ihgmm(
            200, 5000, 4, scale_ratio=3.0, separation_constant=0.6,
            noise_levels=(0.2, 1.8), random_state=seed,
        )  # fmt: skip
        for name, recipe in recipes.items():
            model = IhSC(4, recipe=recipe, random_state=0).fit(X)
            errors[name].append(misclassification_rate(labels, model.labels_))

    assert np.mean(errors.pop("full")) > 0.05

    for rates in errors.values():
        assert np.mean(rates) < 0.02


def test_fewer_features_than_clusters():
    # Six directions in three dimensions: eigenvectors beyond the third are noise.
    directions = np.vstack([np.eye(3), 1 - np.eye(3)])
    for seed in range(3):
        options = {"noise_levels": 0.05, "random_state": seed}
        X, labels = make_ihgmm(600, centers=directions, **options)
        default_model = IhSC(6).fit(X)
        paper_model = IhSC.paper(6, random_state=seed).fit(X)

        assert misclassification_rate(labels, default_model.labels_) < 0.02
        assert default_model.embedding_.shape[1] == 3
        assert misclassification_rate(labels, paper_model.labels_) < 0.02
        assert (paper_model.eigenvalues_[3:] < 0).all()


@pytest.mark.parametrize("labels", ["tied", "kmeans"])
@pytest.mark.parametrize(
    ("angles", "noise"),
    [(np.pi / 2 * np.arange(4) + 0.3, 0.1), (np.array([0, 0.3, 2, 2.3, 4, 4.3]), 0.03)],
    ids=["four", "three pairs"],
)
def test_rays_in_two_columns_in_any_order_of_rows(angles, noise, labels):
    for seed in range(3):
        model = IhSC(len(angles), recipe=Recipe(labels=labels), random_state=seed)
        rng = np.random.default_rng(seed)
        kinds = np.arange(300) % len(angles)
        row_angles = angles[kinds] + noise * rng.standard_normal(300)
        rays = np.array([np.cos(row_angles), np.sin(row_angles)])
        X = (rng.lognormal(0, 1, 300) * rays).T

        for order in (np.arange(300), np.argsort(row_angles), rng.permutation(300)):
            assert exact_recovery(kinds[order], model.fit_predict(X[order]))


@pytest.mark.parametrize(("k", "p", "ratio"), [(20, 500, 20), (100, 1_000, 1)])
def test_many_clusters_where_many_rows_are_mostly_noise(k, p, ratio):
    # Nearly a fifth of the rows: a cluster of these is not to take another's place.
    rng = np.random.default_rng(0)
    patterns = 2 * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    shares = np.geomspace(1, ratio, k)
    kinds = rng.choice(k, 20_000, p=shares / shares.sum())
    kinds[:k] = np.arange(k)
    X = rng.uniform(1, 20, (20_000, 1)) * patterns[kinds]
    X = (X + rng.standard_normal(X.shape)).astype(np.float32)
    oracle_rate = misclassification_rate(kinds, np.argmax(X @ patterns.T, axis=1))
    model = IhSC(k).fit(X)

    assert misclassification_rate(kinds, model.labels_) < oracle_rate + 0.003


def test_a_hundred_clusters_of_few_rows():
    # A start that merges two of them is not to decide.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        kinds = np.arange(4_000) % 100
        patterns = np.linalg.qr(rng.standard_normal((200, 100)))[0].T
        X = 12 * rng.lognormal(0, 0.5, (4_000, 1)) * patterns[kinds]
        X += rng.standard_normal(X.shape)
        oracle_rate = misclassification_rate(kinds, np.argmax(X @ patterns.T, axis=1))
        labels_found = IhSC(100).fit_predict(X)
        rate = misclassification_rate(kinds, labels_found)

        assert rate < oracle_rate + 0.005, f"seed {seed}"


@pytest.mark.parametrize(("n", "p", "k"), [(3_000, 30, 40), (4_000, 25, 60)])
def test_more_clusters_than_features_are_nearly_all_found(n, p, k):
    # Short rows are noise, which nothing tells in as many directions as features: of
    # forty clusters one may be lost.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        patterns = rng.standard_normal((k, p))
        patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
        labels = rng.permutation(np.arange(n) % k)
        X = 2 * rng.uniform(1, 20, (n, 1)) * patterns[labels]
        X += rng.standard_normal((n, p))
        oracle_rate = misclassification_rate(labels, np.argmax(X @ patterns.T, axis=1))
        labels_found = IhSC(k, random_state=seed).fit_predict(X)
        rate = misclassification_rate(labels, labels_found)

        assert rate < oracle_rate + 0.04, f"seed {seed}"


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
            labels_found = model.fit_predict(X.astype(dtype))
            rates.append(misclassification_rate(labels, labels_found))

    # A row on a border may fall to either side.
    assert abs(np.mean(errors[np.float32]) - np.mean(errors[np.float64])) <= 0.002


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "p", "k"), [(600, 50, 3), (300, 1000, 4), (6000, 40, 5)])
def test_scales_from_a_millionth_to_a_million(n, p, k, dtype):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        directions, _ = np.linalg.qr(rng.standard_normal((p, k)))
        labels = rng.integers(k, size=n)
        scales = 10.0 ** rng.uniform(-6, 6, n)
        patterns = 5 * directions.T[labels] + 0.3 * rng.standard_normal((n, p))
        model = IhSC(k).fit((scales[:, None] * patterns).astype(dtype))

        assert exact_recovery(labels, model.labels_)

        # In each cluster the scales found are in proportion to the true ones.
        for j in range(k):
            is_member = model.labels_ == j
            ratios = model.scales_[is_member] / scales[is_member]
            assert_allclose(ratios, np.median(ratios), rtol=0.5)
