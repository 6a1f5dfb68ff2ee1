"""Columns in different units: what is done to each, for every kind of data."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ihgmm import ColumnScaler, IhGMM, IhSC, PreparationWarning
from ihgmm.estimators.column_scaler import METHODS

NAMES = ["age", "income", "temperature", "member"]


def people(seed=0, n=200):
    """Return ages, incomes, temperatures and whether somebody is a member."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.gamma(3.0, 10.0, n),
        rng.gamma(1.0, 30_000.0, n),
        rng.normal(290.0, 5.0, n),
        rng.integers(0, 2, n),
    ]
    return np.column_stack(columns).astype(float)


def test_each_column_as_its_kind_asks_for():
    X = pd.DataFrame(people(), columns=NAMES)
    scaler = ColumnScaler().fit(X)

    assert scaler.decisions_ == (
        "divided", "divided", "centred and divided", "divided"
    )  # fmt: skip
    assert scaler.reason_.startswith("Column 'income' varies ")
    assert scaler.reason_.endswith(", those that reach from 0 to 1 aside.")
    assert_allclose(scaler.scale_, X.std(ddof=0))
    assert_allclose(scaler.center_, [0, 0, X["temperature"].mean(), 0])
    assert_array_equal(scaler.data_min_, X.min())
    assert_array_equal(scaler.data_max_, X.max())
    assert_allclose(scaler.transform(X), (X - scaler.center_) / scaler.scale_)


def test_columns_that_are_left_alone():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 3.0, (50, 6)) * [1, 2, 1, 2, 1, 1]
    scaler = ColumnScaler().fit(X)

    assert set(scaler.decisions_) == {"left alone"}
    assert scaler.reason_ == (
        "No column varies more than 3 times as much as half of the columns."
    )
    assert_array_equal(scaler.transform(X), X)

    # One that varies far less than others is not passed over in silence.
    scaler = ColumnScaler().fit(X * [1, 1, 1, 0.1, 1, 1])

    assert set(scaler.decisions_) == {"left alone"}
    assert "Column 3 has 0.25 times the root mean square" in scaler.reason_

    # One measurement beside true and false.
    X = np.column_stack([rng.gamma(4.0, 10.0, 99), rng.integers(0, 2, (99, 5))])
    scaler = ColumnScaler().fit(X)

    assert set(scaler.decisions_) == {"left alone"}
    assert scaler.reason_.endswith(
        "half of the columns, those that reach from 0 to 1 aside."
    )

    # What is too small to divide by.
    X = rng.standard_normal((20, 3)).astype(np.float32) * np.float32([1, 1e-42, 1])
    scaler = ColumnScaler("scale").fit(X)

    assert scaler.decisions_[1] == "left alone"
    assert np.isfinite(scaler.transform(X)).all()


def test_counts_are_divided_and_never_centred():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.uniform(0.5, 2, 300), rng.exponential(0.5, 60)))
    scaler = ColumnScaler().fit(X)

    assert set(scaler.decisions_) == {"divided"}
    assert "look like counts" in scaler.reason_


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "bool"])
def test_there_and_back_in_the_type_of_the_data(method, dtype):
    X = (people() / [1, 10, 1, 1]).astype(dtype)  # float16 holds no more than 65504
    scaler = ColumnScaler(method).fit(X)
    doubles = X.astype(float)
    transformed = scaler.transform(X)

    assert transformed.dtype == ("float32" if dtype == "float32" else "float64")

    tol = 1e-4 if dtype == "float32" else 1e-11

    assert_allclose(scaler.inverse_transform(transformed), doubles, rtol=tol)

    expected_by_method = {
        "none": doubles,
        "scale": doubles / np.maximum(doubles.std(axis=0), 1e-9),
        "standardize": StandardScaler().fit_transform(doubles),
    }
    is_varying = doubles.std(axis=0) > 0
    expected = expected_by_method.get(method, transformed)

    assert_allclose(
        transformed[:, is_varying], expected[:, is_varying], rtol=tol, atol=tol
    )


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_data_stay_sparse_and_are_not_centred(make):
    X = people()
    scaler = ColumnScaler().fit(make(X))

    assert set(scaler.decisions_) == {"divided"}

    transformed = scaler.transform(make(X))

    assert sp.issparse(transformed)
    assert_allclose(transformed.toarray(), X / X.std(axis=0))
    assert_allclose(scaler.inverse_transform(transformed).toarray(), X)

    with pytest.raises(ValueError, match="fills sparse data up; take 'scale'"):
        ColumnScaler("standardize").fit(make(X))
    with pytest.raises(ValueError, match="X is sparse, and columns are centred"):
        ColumnScaler().fit(X).transform(make(X))


def test_missing_cells_stay_missing():
    X = people()
    is_missing = np.random.default_rng(1).random(X.shape) < 0.1
    X[is_missing] = np.nan
    X = np.column_stack([X, np.full(len(X), np.nan), np.full(len(X), 7.0)])
    scaler = ColumnScaler().fit(X)

    assert scaler.decisions_[4:] == ("left alone", "left alone")
    assert_allclose(scaler.scale_[:4], np.nanstd(X[:, :4], axis=0))
    assert np.isnan(scaler.data_min_[4])

    transformed = scaler.transform(X)

    assert_array_equal(np.isnan(transformed), np.isnan(X))
    assert_array_equal(transformed[:, 5], 7)

    sparse_rows = sp.csr_array(np.where(is_missing[:, :2], np.nan, X[:, :2]))

    assert_allclose(ColumnScaler().fit(sparse_rows).scale_, scaler.scale_[:2])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    if library == "polars":  # older versions know its names by a protocol that is gone
        pytest.importorskip("sklearn", minversion="1.7")
    X = pd.DataFrame(people(), columns=NAMES)
    expected = ColumnScaler().fit_transform(X.to_numpy())
    frame = pytest.importorskip(library).DataFrame(X.to_dict("list"))
    scaler = ColumnScaler().fit(frame)

    assert_allclose(scaler.transform(frame), expected, rtol=1e-10)
    assert_array_equal(scaler.get_feature_names_out(), NAMES)

    output = scaler.set_output(transform=library).transform(frame)

    assert [*output.columns] == NAMES
    assert_allclose(output, expected, rtol=1e-10)
    assert_allclose(scaler.inverse_transform(output), X)

    with pytest.raises(ValueError, match="feature names"):
        scaler.transform(frame[NAMES[::-1]])


def test_data_in_blocks(tmp_path):
    da = pytest.importorskip("dask.array")
    X = people()
    lazy_rows = da.from_array(X, chunks=(64, 4))
    scaler = ColumnScaler().fit(lazy_rows)
    scaler_at_once = ColumnScaler().fit(X)

    assert scaler.decisions_ == scaler_at_once.decisions_
    assert "centred and divided" in scaler.decisions_

    transformed = scaler.transform(lazy_rows)

    assert isinstance(transformed, da.Array)
    assert_allclose(transformed.compute(), scaler_at_once.transform(X), atol=1e-12)


def test_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    X = people()
    scaler = ColumnScaler().fit(torch.from_numpy(X))
    transformed = scaler.transform(torch.from_numpy(X))

    assert isinstance(transformed, torch.Tensor)
    assert_allclose(transformed.numpy(), ColumnScaler().fit_transform(X))
    assert_allclose(scaler.inverse_transform(transformed).numpy(), X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.inf], [2.0, 3.0]], "contains infinity in column 1; give numbers"),
        ([[1.0, 1e200], [2.0, -1e200]], "squares of column 1 of X overflow; divide"),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "do not hold numbers: 'b'"),
        (np.empty((0, 3)), "0 sample"),
        ([1.0, 2.0], "Expected 2D array"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        ColumnScaler().fit(X)


def test_bad_calls():
    with pytest.raises(ValueError, match="method='robust' is not known; give one of"):
        ColumnScaler("robust").fit(people())
    with pytest.raises(NotFittedError):
        ColumnScaler().transform(people())

    scaler = ColumnScaler().fit(people())

    for method in (scaler.transform, scaler.inverse_transform):
        with pytest.raises(ValueError, match="X has 3 features, but ColumnScaler is"):
            method(people()[:, :3])
    with pytest.raises(ValueError, match="X has infinite cells; replace them"):
        scaler.transform(np.full((2, 4), np.inf))


@pytest.mark.parametrize("model", [IhSC(3, columns="given"), IhGMM(3)])
@pytest.mark.filterwarnings(
    "ignore:Labels may be unstable",
    "ignore:Memberships still",
    "ignore:The likelihood moved",
)
def test_a_fit_to_columns_in_different_units_warns_and_names_the_remedy(model):
    X = load_wine(as_frame=True).data

    with pytest.warns(PreparationWarning) as caught:
        model.fit(X)

    (message,) = [str(w.message) for w in caught if w.category is PreparationWarning]

    assert message.startswith("Column 'proline' holds about 100% of the variance")
    assert "ColumnScaler makes them comparable" in message

    make_pipeline(ColumnScaler(), model).fit(X)  # would be an error here


def test_roots_make_columns_of_different_units_comparable():
    X = load_wine(as_frame=True).data

    assert IhSC(3).fit(X).columns_.roots  # a warning would be an error here
