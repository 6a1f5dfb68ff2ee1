"""Fits that compare roots of rows, and results in the units of the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate


def counts(seed=0, n=600, p=120, k=4, size=60):
    """Return Poisson counts of profiles that are half shared, and their kinds."""
    rng = np.random.default_rng(seed)
    profiles = rng.gamma(0.5, size=p) + rng.gamma(0.5, size=(k, p))
    profiles /= profiles.sum(axis=1, keepdims=True)
    kinds = np.arange(n) % k
    scales = size * rng.lognormal(-0.25, 0.7, n)
    return rng.poisson(scales[:, None] * profiles[kinds]).astype(float), kinds


def check_own_rows(model, X):
    """Check that the rows of a fit get their own labels again."""
    assert model.columns_.roots
    assert_array_equal(np.asarray(model.predict(X)), np.asarray(model.labels_))


def test_zero_rows_and_rows_without_weighty_columns_get_label_0():
    X, _ = counts()
    X[:, 0] = 0.0
    X[3] = 0.0
    X[5] = 0.0
    with pytest.warns(DataConversionWarning, match="2 of 600 rows are zero"):
        model = IhSC(4).fit(X)
    check_own_rows(model, X)

    assert model.placement_.embedding.roots.weights[0] == 0
    assert model.labels_[3] == model.labels_[5] == 0

    only_unknown = np.zeros((1, X.shape[1]))
    only_unknown[0, 0] = 7.0

    assert model.predict(only_unknown)[0] == 0
    assert np.isfinite(model.predict_proba(only_unknown)).all()
    assert np.isfinite(model.transform(only_unknown)).all()


def test_rows_of_the_fit_without_weighty_columns():
    """A column that no other row has has no spread among them, and no weight."""
    X, kinds = counts()
    X[:2] = 0.0
    X[:2, 0] = [2.0, 9.0]
    X[2:, 0] = 0.0
    model = IhSC(4, columns="roots").fit(X, sample_weight=np.r_[0, 0, np.ones(598)])
    check_own_rows(model, X)

    assert model.placement_.embedding.roots.weights[0] == 0
    assert_array_equal(model.labels_[:2], 0)
    assert np.isfinite(model.scales_).all()
    assert np.isfinite(model.cluster_centers_).all()
    assert misclassification_rate(kinds[2:], model.labels_[2:]) < 0.15


def test_weights_count_like_repeated_rows():
    X, _ = counts()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    model = IhSC(4).fit(X, sample_weight=weights)
    check_own_rows(model, X)
    repeated = IhSC(4).fit(np.repeat(X, weights, axis=0))
    rows = np.repeat(np.arange(len(X)), weights)

    weights_of_columns = model.placement_.embedding.roots.weights
    repeated_weights = repeated.placement_.embedding.roots.weights

    assert_allclose(weights_of_columns, repeated_weights, 1e-6)
    assert misclassification_rate(repeated.labels_, model.labels_[rows]) < 0.03


@pytest.mark.parametrize("outliers", ["auto", 0.05, "cells"])
def test_outliers(outliers):
    X, kinds = counts()
    rng = np.random.default_rng(1)
    X[:6] = rng.permuted(X[:6] ** 2, axis=1)
    model = IhSC(4, outliers=outliers, random_state=0).fit(X)

    assert model.columns_.roots
    if outliers == "cells":  # whose cells are filled in for the fit
        is_same = model.predict(X) == model.labels_

        assert is_same.mean() > 0.98
    else:
        check_own_rows(model, X)

    assert misclassification_rate(kinds[6:], model.labels_[6:]) < 0.2


def test_missing_cells():
    X, kinds = counts()
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = IhSC(4, missing="fit", columns="roots").fit(X)
    check_own_rows(model, X)

    assert misclassification_rate(kinds, model.labels_) < 0.15
    assert np.isfinite(model.cluster_centers_).all()


def test_every_kind_of_array_gives_the_same(tmp_path):
    X, _ = counts()
    expected = IhSC(4).fit(X)
    check_own_rows(expected, X)
    np.save(tmp_path / "X.npy", X)
    kinds_of_arrays = [
        sp.csr_array(X),
        sp.csc_array(X),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        X.astype(np.float32),
    ]

    da = pytest.importorskip("dask.array")
    kinds_of_arrays.append(da.from_array(X, chunks=(100, -1)))
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        kinds_of_arrays.append(file.create_dataset("X", data=X))
        strict = pytest.importorskip("array_api_strict")
        kinds_of_arrays.append(strict.asarray(X))

        for array in kinds_of_arrays:
            model = IhSC(4).fit(array)
            check_own_rows(model, array)

            assert_array_equal(np.asarray(model.labels_), expected.labels_)
            assert_allclose(
                np.asarray(model.cluster_centers_),
                expected.cluster_centers_,
                rtol=1e-3,
                atol=1e-4,
            )


def test_transform_and_score_are_of_the_data():
    X, _ = counts()
    model = IhSC(4).fit(X)
    centers = model.cluster_centers_
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    unit_centers = centers / np.linalg.norm(centers, axis=1, keepdims=True)
    cosines = units @ unit_centers.T

    assert_allclose(model.transform(X), cosines)

    squares = np.square(X).sum(axis=1)
    explained = squares @ np.square(cosines.max(axis=1)) / squares.sum()

    assert model.score(X) == pytest.approx(explained)
    assert 0.6 < model.score(X) < 1

    # Centres and scales give the rows, up to noise.
    fitted = model.scales_[:, None] * centers[model.labels_]

    assert np.abs((X - fitted).sum() / X.sum()) < 0.03


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_factors_of_rows_and_units_change_no_label(factor):
    X, _ = counts()
    rng = np.random.default_rng(0)
    factors = factor ** rng.random((len(X), 1))
    expected = IhSC(4).fit(X)

    assert expected.columns_.roots
    assert_array_equal(IhSC(4).fit(X * factors).labels_, expected.labels_)
    assert_array_equal(expected.predict(X * factors), expected.labels_)
