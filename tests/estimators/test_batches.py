"""Batches that multiply columns of their rows by factors."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ihgmm import IhSC, PreparationWarning
from ihgmm.metrics import misclassification_rate
from ihgmm.storage import load_model, save_model

pytestmark = [
    pytest.mark.filterwarnings("ignore:Labels may be unstable"),
    pytest.mark.filterwarnings("ignore:Clusters that are found without batch nearly"),
]
NAMES = np.array(["Bern", "Lyon", "Turin"])


def sample_of(kind="mixed", n=450, p=100, k=4, effect=0.6, seed=0):
    """Return rows with batch factors, their clusters, batches, and the factors."""
    rng = np.random.default_rng(seed)
    centers = 1 + 0.35 * rng.gamma(1.5, 1, (k, p))
    kinds = rng.integers(k, size=n)
    batch = rng.integers(3, size=n)
    if kind == "unequal":  # each batch has two large clusters and two small ones
        shares = np.array([[6, 4, 1, 1], [1, 6, 4, 1], [1, 1, 6, 4]])
        kinds = np.array([rng.choice(k, p=shares[b] / 12) for b in batch])
    elif kind == "alone":
        kinds[(batch > 0) & (kinds == 3)] = 0
    factors = np.exp(effect * rng.standard_normal((3, p)))
    scales = np.exp(0.5 * rng.standard_normal((n, 1)))
    X = scales * (centers[kinds] * factors[batch] + 0.7 * rng.standard_normal((n, p)))
    return np.maximum(X, 0), kinds, NAMES[batch], factors


@pytest.mark.parametrize(("kind", "seed"), [("mixed", 0), ("unequal", 1)])
def test_factors_are_learnt_by_turns_with_labels(kind, seed):
    X, kinds, batch, factors = sample_of(kind, seed=seed)

    assert misclassification_rate(kinds, IhSC(4).fit(X).labels_) > 0.3

    model = IhSC(4).fit(X, batch=batch)

    assert misclassification_rate(kinds, model.labels_) < 0.02
    np.testing.assert_array_equal(model.predict(X, batch=batch), model.labels_)

    # Factors of all batches together are the centres'.
    true_logs = np.log(factors)
    true_logs -= true_logs.mean(axis=0)
    logs = np.log(model.batches_.factors)
    logs -= logs.mean(axis=0)

    assert np.corrcoef(true_logs.ravel(), logs.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("kind", ["mixed", "unequal"])
def test_without_an_effect_nothing_changes(kind):
    X, _, batch, _ = sample_of(kind, effect=0.0)
    model = IhSC(4).fit(X, batch=batch)

    np.testing.assert_allclose(model.batches_.factors, 1, atol=0.03)
    assert misclassification_rate(IhSC(4).fit(X).labels_, model.labels_) < 0.005


def test_one_batch_is_none():
    X, _, _, _ = sample_of(effect=0.0)
    model = IhSC(4).fit(X, batch=np.zeros(len(X), int))

    np.testing.assert_array_equal(model.batches_.factors, 1)
    np.testing.assert_array_equal(model.predict(X, batch=0), model.labels_)
    np.testing.assert_array_equal(model.labels_, IhSC(4).fit(X).labels_)


def test_a_cluster_of_one_batch_is_left_alone():
    X, kinds, batch, _ = sample_of("alone")

    with pytest.warns(PreparationWarning, match=r"in one batch alone: \d \(batch Bern"):
        model = IhSC(4).fit(X, batch=batch)

    assert misclassification_rate(kinds, model.labels_) < 0.02


def test_sparse_rows_weights_and_float32():
    X, kinds, batch, _ = sample_of()
    X = np.where(np.median(X, axis=1, keepdims=True) < X, X, 0)
    dense_model = IhSC(4).fit(X, batch=batch)
    sparse_model = IhSC(4).fit(sp.csc_array(X), batch=batch)

    np.testing.assert_array_equal(dense_model.labels_, sparse_model.labels_)

    sparse_rows = sparse_model.without_batches(sp.csr_array(1e120 * X), batch)
    dense_rows = dense_model.without_batches(1e120 * X, batch)

    np.testing.assert_allclose(sparse_rows.toarray(), dense_rows, rtol=1e-6)

    row_factors = dense_model.batches_.factors[dense_model.batches_.codes(batch)]

    np.testing.assert_allclose(dense_rows * row_factors, 1e120 * X, rtol=1e-6)

    float32_model = IhSC(4).fit(X.astype(np.float32), batch=batch)

    assert float32_model.cluster_centers_.dtype == np.float32

    weights = np.where(np.arange(450) < 50, 0, 1)
    weighted_model = IhSC(4).fit(X, batch=batch, sample_weight=weights)

    assert misclassification_rate(kinds, weighted_model.labels_) < 0.05
    assert len(weighted_model.labels_) == 450


def test_new_rows_of_old_and_new_batches(tmp_path):
    X, kinds, batch, _ = sample_of()
    is_in_fit = batch != "Turin"
    model = IhSC(4).fit(X[is_in_fit], batch=batch[is_in_fit])
    save_model(model, tmp_path / "model.npz")
    model = load_model(tmp_path / "model.npz")
    labels = model.predict(X, batch=batch)  # Turin is new

    assert misclassification_rate(kinds, labels) < 0.03
    assert adjusted_rand_score(labels, batch) < 0.05

    memberships = model.predict_proba(X[is_in_fit][:5], batch="Bern")

    np.testing.assert_allclose(memberships.sum(axis=1), 1)

    transformed = model.transform(X[is_in_fit], batch=batch[is_in_fit])

    assert transformed.shape == (is_in_fit.sum(), 4)
    assert 0 < model.score(X[is_in_fit], batch=batch[is_in_fit]) < 1

    with pytest.raises(ValueError, match="'Rome' was not in the fit and has 3 rows"):
        model.predict(X[:3], batch=["Rome"] * 3)

    message = "give that of each row, batch: .* or a new one"

    with pytest.raises(ValueError, match=message):
        model.predict(X)
    with pytest.raises(ValueError, match="cannot go on with batch"):
        model.partial_fit(X)

    newer_model = IhSC(4, init=model).fit(X, batch=batch)

    assert np.mean(newer_model.labels_ == labels) > 0.95


def test_batches_with_known_labels_and_a_count():
    X, kinds, batch, _ = sample_of()
    known_labels = np.where(np.arange(450) < 60, kinds, -1)
    model = IhSC(4).fit(X, batch=batch, known_labels=known_labels)

    assert np.mean(model.predict(X, batch=batch) == kinds) > 0.97

    counted_model = IhSC("auto", random_state=0).fit(X, batch=batch)

    assert counted_model.n_clusters_ == 4


def test_batches_are_routed_as_metadata():
    X, kinds, batch, _ = sample_of()
    with config_context(enable_metadata_routing=True):
        model = IhSC(4).set_fit_request(batch=True).set_predict_request(batch=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        pipeline.fit(X, batch=batch)
        labels = pipeline.predict(X, batch=batch)

    assert misclassification_rate(kinds, labels) < 0.02


def test_bad_batches_are_refused():
    X, _, batch, _ = sample_of()

    with pytest.raises(ValueError, match="batch has 3 entries"):
        IhSC(4).fit(X, batch=["a"] * 3)
    with pytest.raises(ValueError, match=r"centring, ColumnScaler\('scale'\)"):
        IhSC(4).fit(X - X.mean(axis=0), batch=batch)
    with pytest.raises(ValueError, match=r"in 1 of 100 columns: leave out '3'\."):
        IhSC(4).fit(X - X[0, 3] * (np.arange(100) == 3), batch=batch)
    with pytest.raises(ValueError, match=r"missing='fit' and .* drop or fill in inc"):
        IhSC(4, missing="fit").fit(X, batch=batch)
    with pytest.raises(ValueError, match="fitted without batches"):
        IhSC(4).fit(X).predict(X, batch=batch)


def bent_sample(seed=0, n=600, p=120, k=4):
    """Return rows whose batches bend all cells: no factors of columns do so."""
    rng = np.random.default_rng(seed)
    centers = rng.gamma(0.7, 1, (k, p))
    kinds = rng.integers(k, size=n)
    batch = rng.integers(3, size=n)
    X = centers[kinds] * np.exp(0.5 * rng.standard_normal((n, p)))
    shifts = 0.5 * rng.gamma(0.7, 1, (3, p))
    return X + 2 * shifts[batch], kinds, NAMES[batch]


def test_neighbors_in_every_batch_take_out_what_factors_leave(tmp_path):
    X, kinds, batch = bent_sample()
    model = IhSC(4).fit(X, batch=batch)

    assert "neighbors" in model.batches_.taken_out_by
    assert model.batches_.shifts.shape == (3, model.embedding_.shape[1])
    assert misclassification_rate(kinds, model.labels_) < 0.02
    np.testing.assert_array_equal(model.predict(X, batch=batch), model.labels_)

    save_model(model, tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(X, batch=batch), model.labels_)

    # Neither the order of rows nor their scales matter.
    rng = np.random.default_rng(1)
    order = rng.permutation(len(X))
    factors = np.exp(rng.standard_normal((len(X), 1)))
    other_model = IhSC(4).fit((factors * X)[order], batch=batch[order])
    np.testing.assert_array_equal(other_model.labels_, model.labels_[order])

    # A new batch gets its shift by neighbours among the rows of the fit.
    is_in_fit = batch != "Turin"
    older_model = IhSC(4).fit(X[is_in_fit], batch=batch[is_in_fit])
    assert misclassification_rate(kinds, older_model.predict(X, batch=batch)) < 0.05


def test_batches_mixed_within_clusters_are_left_alone():
    X, _, batch, _ = sample_of("unequal", effect=0.0)
    model = IhSC(4).fit(X, batch=batch)

    assert model.batches_.taken_out_by == "nothing"
    assert model.batches_.mixing > 0.9
    np.testing.assert_array_equal(model.labels_, IhSC(4).fit(X).labels_)


def test_clusters_that_nearly_are_batches_are_named():
    X, kinds, _, _ = sample_of(effect=0.0)
    rng = np.random.default_rng(0)
    batch = np.where(rng.random(len(X)) < 0.9, kinds, rng.integers(4, size=len(X)))

    with pytest.warns(PreparationWarning, match=r"nearly are the batches .*Rand index"):
        IhSC(4).fit(X, batch=batch)


def test_a_batch_without_weight_is_refused():
    X, _, batch, _ = sample_of()

    with pytest.raises(ValueError, match="All rows of batch 'Turin' have weight 0"):
        IhSC(4).fit(X, batch=batch, sample_weight=batch != "Turin")
