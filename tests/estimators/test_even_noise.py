"""A fit whose columns have their noise evened out, and what is said of its labels."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from ihgmm import (
    Biwhitener,
    IhGMM,
    IhSC,
    UnstableLabelsWarning,
    diagnose,
    make_ihgmm,
    select_n_clusters,
)
from ihgmm.metrics import misclassification_rate
from ihgmm.storage import load_model, save_model


@pytest.mark.parametrize("seed", [0, 3])
def test_labels_of_whitened_counts_are_judged_on_whitened_rows(seed):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 1, 300) * np.exp(rng.normal(0, 0.6, (4, 300)))
    rates /= rates.sum(axis=1, keepdims=True)
    kinds = rng.integers(4, size=600)
    depths = np.exp(rng.normal(4.6, 0.5, (600, 1)))
    X = rng.poisson(depths * rates[kinds]).astype(float)
    X = X[:, X.any(axis=0)]
    model = IhSC(4, columns="counts", random_state=0).fit(X)
    diagnosis = diagnose(X, model)
    by_raw_counts = diagnose(X, model.labels_)
    lower, upper = diagnosis.error_range
    error = misclassification_rate(kinds, model.labels_)

    assert diagnosis.doubt < 0.6 * by_raw_counts.doubt
    assert diagnosis.expected_error < 0.6 * by_raw_counts.expected_error
    assert lower - 0.005 < error < upper


def with_zeros(seed, noise="gamma", share=0.5, p=150):
    """Rows in which cells are 0 whatever their kind, as in benchmarks/counts.py."""
    rng = np.random.default_rng(seed)
    n = 400
    k = 4
    labels = np.arange(n) % k
    scales = rng.lognormal(0, 0.7, (n, 1))
    if noise == "gamma":
        means = scales * rng.lognormal(0, 1, (k, p))[labels]
    else:
        patterns = rng.lognormal(0, 1.5, p) * rng.lognormal(0, 0.8, (k, p))
        means = scales * (5 * patterns / patterns.mean(axis=1, keepdims=True))[labels]
    X = means * rng.gamma(2, 0.5, (n, p))
    X = X if noise == "gamma" else rng.poisson(X).astype(float)
    return X * (rng.random((n, p)) >= share), labels


def whitenings(model):
    return [change.noise for change in model.preparation_ if hasattr(change, "noise")]


@pytest.mark.parametrize(
    ("noise", "share", "max_rate"),
    [
        ("gamma", 0.3, 0.02),
        ("gamma", 0.5, 0.08),
        ("counts", 0.3, 0.03),
        ("counts", 0.5, 0.03),
    ],
)
def test_cells_that_are_zero_whatever_their_kind(noise, share, max_rate):
    columns = "noise" if noise == "gamma" else "counts"
    whitening = "learned" if noise == "gamma" else "counts"
    for seed in range(2):
        X, labels = with_zeros(seed, noise, share)
        model = IhSC(4, columns=columns, random_state=0).fit(X)
        assert whitenings(model) == [whitening]
        assert misclassification_rate(labels, model.labels_) <= max_rate
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_only_a_mixture_asks_for_even_noise():
    X, _ = with_zeros(0, "counts", 0.7)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = IhSC(4, random_state=0).fit(X)
        select_n_clusters(X, max_clusters=5, random_state=0)

    assert model.columns_.roots
    assert not any("looks like counts" in str(warning.message) for warning in caught)

    with pytest.warns(UserWarning, match="looks like counts"):
        IhGMM(4, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore:The likelihood moved")
@pytest.mark.parametrize(("noise", "share"), [("gamma", 0.7), ("counts", 0.3)])
def test_a_mixture_names_the_whitening_that_helps(noise, share):
    X, labels = with_zeros(0, noise, share)

    with pytest.warns(UserWarning, match=r"Biwhitener, or .* columns='\w+', makes"):
        raw_labels = IhGMM(4, random_state=0).fit_predict(X)

    white_labels = IhGMM(4, random_state=0).fit_predict(Biwhitener().fit_transform(X))

    assert misclassification_rate(labels, raw_labels) > 0.3
    assert misclassification_rate(labels, white_labels) < 0.03


@pytest.mark.parametrize("options", [{}, {"signed": True}, {"outliers": "auto"}])
def test_noise_that_is_alike_stays_as_it_is(options):
    for seed in range(2):
        X, _ = make_ihgmm(200, 40, 3, random_state=seed)
        raw_model, auto_model = (
            IhSC(3, columns=columns, random_state=0, **options).fit(X)
            for columns in ("given", "auto")
        )

        assert auto_model.preparation_ == ()
        for name in ("labels_", "cluster_centers_", "scales_", "noise_levels_"):
            np.testing.assert_array_equal(
                getattr(auto_model, name), getattr(raw_model, name)
            )
        np.testing.assert_array_equal(auto_model.predict(X), auto_model.labels_)


def test_missing_cells_are_no_zeros():
    X = with_zeros(0, share=0.0)[0]
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    model = IhSC(4, missing="fit", random_state=0).fit(X)

    assert model.columns_.reason != "zeros"


@pytest.mark.parametrize(
    "change",
    [
        sp.csr_array,
        lambda X: X.astype(np.float32),
        lambda X: np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X),
        lambda X: X * 1e-200,
        lambda X: X * 1e200,
    ],
    ids=["sparse", "float32", "missing", "small", "large"],
)
def test_zeros_in_data_of_any_kind(change, tmp_path):
    X, labels = with_zeros(1)
    X = change(X)
    weights = np.arange(400) % 7 + (np.arange(400) > 3)
    for options in ({}, {"signed": True}, {"outliers": 0.02}):
        model = IhSC(4, columns="noise", missing="fit", random_state=0, **options)
        model.fit(X, sample_weight=weights)
        is_inlier = model.labels_ >= 0
        error = misclassification_rate(labels[is_inlier], model.labels_[is_inlier])

        assert whitenings(model) == ["learned"]
        assert error < 0.08

        save_model(model, tmp_path / "model.npz")
        loaded = load_model(tmp_path / "model.npz")

        np.testing.assert_array_equal(loaded.predict(X), model.labels_)


@pytest.mark.parametrize("size", [50, 300])
def test_columns_over_hundreds_of_decades(size):
    X, labels = make_ihgmm(300, 60, 3, random_state=0)
    X = X * 10.0 ** np.linspace(-size, size, 60)
    for columns, data in (("noise", X), ("counts", np.abs(X))):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*expects whole numbers")
            model = IhSC(3, columns=columns, random_state=0).fit(data)

        assert misclassification_rate(labels, model.labels_) < 0.02
        for name in ("cluster_centers_", "scales_", "noise_levels_", "embedding_"):
            assert np.isfinite(getattr(model, name)).all()
        np.testing.assert_array_equal(model.predict(data), model.labels_)


def unequal(seed, grows):
    """Noise that grows with the mean in positive data, or 30 loud columns of 200."""
    rng = np.random.default_rng(seed)
    n = 300
    p = 200
    k = 4
    kinds = np.arange(n) % k
    scales = rng.lognormal(0, 0.5, (n, 1))
    if grows:
        centers = np.exp(2 * rng.standard_normal(p)) * rng.uniform(1, 1.5, (k, p))
        return scales * centers[kinds] * rng.gamma(4, 1 / 4, (n, p)), kinds
    centers = 7 * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    levels = np.where(rng.permutation(p) < 30, 6.0, 1.0)
    return scales * centers[kinds] + levels * rng.standard_normal((n, p)), kinds


@pytest.mark.parametrize("seed", range(2))
def test_an_unstable_fit_names_the_treatment_that_helps(seed):
    X, kinds = unequal(seed, grows=False)

    with pytest.warns(UnstableLabelsWarning, match="columns='noise'"):
        raw_labels = IhSC(4).fit_predict(X)

    white_labels = IhSC(4, columns="noise").fit_predict(X)

    assert misclassification_rate(kinds, white_labels) < 0.1
    assert misclassification_rate(kinds, raw_labels) > 0.4


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.parametrize("seed", range(2))
def test_roots_are_clearer_where_noise_grows_with_the_mean(seed):
    X, kinds = unequal(seed, grows=True)
    rates = {}
    for columns in ("given", "auto", "noise"):
        model = IhSC(4, columns=columns).fit(X)
        rates[columns] = misclassification_rate(kinds, model.labels_)

    assert rates["given"] > 0.4
    assert rates["auto"] < rates["given"] / 2
    assert rates["noise"] < 0.1


@pytest.mark.parametrize("seed", range(2))
def test_clusters_that_overlap_are_not_told_to_whiten(seed):
    X = np.random.default_rng(seed).standard_normal((300, 50)) + 1.0

    with pytest.warns(UnstableLabelsWarning, match="ask for another number"):
        IhSC(4).fit(X)
