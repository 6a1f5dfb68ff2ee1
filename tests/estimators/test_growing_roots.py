"""Models that go on with more rows, and compare their roots."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from ihgmm import DriftWarning, IhSC, PreparationWarning, Recipe, make_ihgmm
from ihgmm._warnings import ignored
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.incremental import ClusterSums, RowSample
from ihgmm.numerics.incremental.rooted_sums import sums_after_moves
from ihgmm.storage import load_model, save_model


def counts(seed=0, n=2000, p=200, k=4, size=60):
    """Return Poisson counts of profiles that are half shared, and their kinds."""
    rng = np.random.default_rng(seed)
    profiles = rng.gamma(0.5, size=p) + rng.gamma(0.5, size=(k, p))
    profiles /= profiles.sum(axis=1, keepdims=True)
    kinds = rng.permutation(np.arange(n) % k)
    scales = size * rng.lognormal(-0.25, 0.7, n)
    X = rng.poisson(scales[:, None] * profiles[kinds]).astype(float)
    return X, kinds


def grown(model, X, n_pieces):
    for piece in np.array_split(np.arange(X.shape[0]), n_pieces):
        model.partial_fit(X[piece])
    return model


def relative_gap(array, other):
    return np.linalg.norm(array - other) / np.linalg.norm(other)


@pytest.mark.parametrize("seed", range(2))
def test_pieces_of_counts_give_what_a_fit_gives(seed):
    X, kinds = counts(seed)
    model = grown(IhSC(4), X, 5)
    model_at_once = IhSC(4).fit(X)
    labels = model.predict(X)

    assert model.columns_ == model_at_once.columns_
    assert model.columns_.roots

    rate = misclassification_rate(kinds, labels)

    assert rate <= misclassification_rate(kinds, model_at_once.labels_) + 0.01

    # Centres are means of rows, in the units of the data.
    means = np.array([X[labels == label].mean(axis=0) for label in range(4)])

    assert relative_gap(model.cluster_centers_, means) < 0.03
    assert_array_equal(model.labels_, labels[-400:])
    assert np.median(model.scales_) == pytest.approx(0.75, abs=0.2)


@pytest.mark.parametrize("seed", range(2))
def test_neighbors_teach_pieces_as_well(seed):
    X, kinds = make_ihgmm(2000, 60, 5, random_state=seed, separation_constant=0.25)
    model = grown(IhSC(5), X, 5)
    rate = misclassification_rate(kinds, model.predict(X))

    assert rate <= misclassification_rate(kinds, IhSC(5).fit(X).labels_) + 0.01


@pytest.mark.parametrize("seed", [4, 5])
def test_what_neighbors_teach_stays_as_pieces_come(seed):
    X, kinds = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))[:900]
    X, kinds = X[order], kinds[order]
    model = IhSC(10, columns="given").partial_fit(X[:500])

    # Without neighbours .24 and .29 are wrong.
    assert misclassification_rate(kinds, model.predict(X)) < 0.19

    grown(model, X[500:], 4)

    assert misclassification_rate(kinds, model.predict(X)) < 0.19

    alone = IhSC(10, columns="given", recipe=Recipe(neighbors=False))
    alone.partial_fit(X[:500])

    assert misclassification_rate(kinds, alone.predict(X)) > 0.21


def test_a_fit_of_roots_goes_on(tmp_path):
    X, kinds = counts()
    model = IhSC(4).fit(X[:800])
    labels_before = model.predict(X)
    save_model(model, tmp_path / "model.npz")
    model = load_model(tmp_path / "model.npz")
    model.partial_fit(X[800:1400]).partial_fit(sp.csr_array(X[1400:]))
    labels = model.predict(X)

    assert np.mean(labels == labels_before) > 0.97

    rate = misclassification_rate(kinds, labels)

    assert rate <= misclassification_rate(kinds, IhSC(4).fit(X).labels_) + 0.01

    means = np.array([X[labels == label].mean(axis=0) for label in range(4)])

    assert relative_gap(model.cluster_centers_, means) < 0.05


def test_a_column_without_entries_in_the_first_piece_counts_later():
    X, _ = counts(n=1000)
    X[:, :20] = 0
    first = IhSC(4).partial_fit(X[:500])

    assert first.columns_.roots
    assert (first.placement_.embedding.roots.weights[:20] == 1).all()


def test_later_pieces_with_many_negative_entries_warn():
    X, _ = counts(n=1000)
    model = IhSC(4).partial_fit(X[:500])
    few_negative = X[500:].copy()
    few_negative[0, :3] = -1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(few_negative)
        model.predict(few_negative)

    negative = X[500:] - 0.5
    message = r"% are negative\. The model compares roots .*columns='given'"

    for ask in (model.partial_fit, model.predict, model.transform):
        with (
            pytest.warns(PreparationWarning, match=message) as caught,
            ignored(DriftWarning),
        ):
            ask(negative)

        assert len(caught) == 1

    da = pytest.importorskip("dask.array")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PreparationWarning)
        model.predict(da.from_array(negative, chunks=(100, -1))).compute()
        IhSC(4, columns="given").fit(X).predict(negative)


def test_sums_after_moves_are_those_of_the_rows_where_roots_are_known():
    rng = np.random.default_rng(0)
    n, p, k = 300, 6, 3
    X = rng.gamma(2.0, size=(n, p))
    column_weights = np.array([1.0, 0.5, 0.2, 1.0, 0.7, 0.0])
    roots = np.sqrt(X) * column_weights
    lengths = np.linalg.norm(roots, axis=1)
    old_labels = rng.integers(k, size=n)
    new_labels = rng.integers(k, size=n)
    sample = RowSample(
        rows=roots / lengths[:, None],
        lengths=lengths,
        row_weights=np.ones(n),
        priorities=rng.random(n),
        labels=old_labels,
        is_known=np.zeros(n, dtype=bool),
    )

    def sums_by(labels):
        members = np.eye(k)[labels]
        return ClusterSums.of_totals(members.T @ X, members.sum(axis=0))

    estimate = sums_after_moves(
        sums_by(old_labels), sample, new_labels, np.eye(p), column_weights
    )
    expected = sums_by(new_labels)

    assert_allclose(estimate.rows[:, :5], expected.rows[:, :5])
    assert_allclose(estimate.rows[:, 5], expected.rows[:, 5], rtol=0.2)
    assert_allclose(estimate.rows.sum(axis=0), X.sum(axis=0))
    assert_allclose(estimate.weights, expected.weights)
