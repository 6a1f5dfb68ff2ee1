import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ihgmm import IhSC, make_ihgmm
from ihgmm.experiments.oracles import label_oracle
from ihgmm.metrics import misclassification_rate
from ihgmm.refinement import refine_labels

NEAR_THRESHOLD = [
    {"n_samples": 300, "n_features": 1000, "n_clusters": 3, "balance": 0.2, "C": 0.1},
    {"n_samples": 300, "n_features": 1000, "n_clusters": 3, "balance": 0.2, "C": 0.2},
    {"n_samples": 200, "n_features": 2000, "n_clusters": 4, "balance": 1.0, "C": 0.1},
    {"n_samples": 500, "n_features": 200, "n_clusters": 4, "balance": 1.0, "C": 0.2},
]


@pytest.mark.parametrize("setting", NEAR_THRESHOLD)
def test_close_to_the_label_oracle(setting):
    constant = setting["C"]
    options = {name: value for name, value in setting.items() if name != "C"}
    k = options["n_clusters"]
    rates = []
    for seed in range(16):
        noise = ("gaussian", "rademacher")[seed % 2]
        sample = make_ihgmm(
            **options, separation_constant=constant, noise=noise, random_state=seed,
            return_params=True,
        )  # fmt: skip
        start = IhSC(k, random_state=seed).fit_predict(sample.X)
        refined = refine_labels(sample.X, start, k)
        assert refined.converged
        rates.append(
            [
                misclassification_rate(sample.labels, found)
                for found in (start, refined.labels, label_oracle(sample))
            ]
        )
    before, after, oracle = np.mean(rates, axis=0)
    spread = np.std(np.subtract(*np.array(rates).T[[1, 0]])) / 4
    assert after <= 1.15 * oracle + 0.002
    assert after <= before + 2 * spread


def test_right_labels_stay_and_sparse_agrees(kind):
    X, labels = make_ihgmm(80, 30, 3, random_state=0)
    found = refine_labels(kind(X), labels, 3)
    assert_array_equal(found.labels, labels)
    assert found.converged


def test_no_cluster_is_emptied():
    rng = np.random.default_rng(0)
    for seed in range(20):
        X = rng.standard_normal((30, 5))
        start = np.arange(30) % 6
        found = refine_labels(X, start, 6)
        assert len(np.unique(found.labels)) == 6, seed


def test_many_starts_end():
    X, _ = make_ihgmm(60, 300, 4, separation=2.0, random_state=1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        start = rng.permutation(np.arange(60) % 4)
        assert refine_labels(X, start, 4).converged


def test_zero_rows_keep_their_label_and_input_is_untouched():
    X, labels = make_ihgmm(50, 20, 2, random_state=0)
    X[3] = 0
    labels[3] = 0
    before, start = X.copy(), labels.copy()
    found = refine_labels(X, start, 2)
    assert found.labels[3] == 0
    assert_array_equal(X, before)
    assert_array_equal(start, labels)


def test_cap():
    X = np.random.default_rng(0).standard_normal((200, 50))
    found = refine_labels(X, np.arange(200) % 5, 5, max_iter=3)
    assert not found.converged
    assert found.n_iter == 3


def test_the_option_of_ihsc():
    for seed in range(3):
        X, labels = make_ihgmm(
            300, 1000, 3, balance=0.2, separation_constant=0.2, random_state=seed
        )
        plain = IhSC(3, random_state=0).fit(X)
        refined = IhSC(3, refine=True, random_state=0).fit(X)
        rates = [misclassification_rate(labels, m.labels_) for m in (plain, refined)]
        assert rates[1] < rates[0]
        sizes = np.bincount(refined.labels_)
        assert (np.diff(sizes) <= 0).all()
        means = np.bincount(refined.labels_, refined.scales_) / sizes
        np.testing.assert_allclose(means, 1, rtol=1e-6)
    with pytest.raises(TypeError, match="refine='yes' is not known; give True"):
        IhSC(3, refine="yes").fit(X)
