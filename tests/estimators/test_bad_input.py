"""Bad input: each case gets a message that names the value and the remedy."""

import pickle
import re
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from ihgmm import (
    Biwhitener,
    ClusterCountWarning,
    IhGMM,
    IhSC,
    SDPKMeans,
    SphericalKMeans,
    TwoComponentLloyd,
    diagnose,
    estimate_parameters,
    make_ihgmm,
    select_n_clusters,
)
from ihgmm.metrics import exact_recovery

PSC = partial(IhSC, recipe="psc")
for_each_estimator = pytest.mark.parametrize("Estimator", [IhSC, PSC, SphericalKMeans])
ALL = [IhSC, IhGMM, SphericalKMeans, SDPKMeans, TwoComponentLloyd]
GOOD = np.random.default_rng(0).standard_normal((20, 4))
pytestmark = pytest.mark.filterwarnings("ignore:Labels may be unstable")


def with_entry(value, storage=np.asarray):
    X = GOOD.copy()
    X[5, 2] = value
    return storage(X)


@for_each_estimator
@pytest.mark.parametrize(
    ("storage", "value", "name"),
    [
        (np.asarray, np.nan, "NaN"),
        (sp.csr_array, np.inf, "infinity"),
        (sp.csc_matrix, -np.inf, "infinity"),
    ],
)
def test_not_finite(Estimator, storage, value, name):
    message = (
        f"Input X contains {name} at row 5, column 2 .* in all: 1.*"
        f"{type(Estimator()).__name__} does not accept them: drop .*missing='fit'"
    )

    with pytest.raises(ValueError, match=message):
        Estimator(2).fit(with_entry(value, storage))

    model = Estimator(2).fit(GOOD)

    with pytest.raises(ValueError, match=message):
        model.predict(with_entry(value, storage))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([], ValueError, "Expected 2D array"),
        ([["a", "b"], ["c", "d"]], ValueError, r"not hold numbers: 0 \('a' in row 0\)"),
        (  # as.matrix of a data frame of R with a column of text
            np.array([["5.1", "u"], ["3.5", "v"]], dtype=object),
            ValueError,
            r"1 \('u' in row 0\).*Leave such .*sapply\(X, is\.numeric\)\]\) in R",
        ),
        (
            pd.DataFrame(GOOD, columns=[*"vwxy"]).assign(**dict.fromkeys("abcde", "a")),
            ValueError,
            r"'a' \('a' in row 0\), 'b' .*, 'c' \('a' in row 0\) and 2 more; "
            r".*select_dtypes\(\"number\"\) in p",
        ),
        ([[1.0, 2.0], [3.0]], ValueError, "different numbers of cells; give each row"),
        (pd.DataFrame(index=range(4)), ValueError, "a data frame of columns"),
        (
            pd.DataFrame({"x": [1, pd.NA], "y": [1, 2]}),
            ValueError,
            r"'x' \(<NA> in row 1\).*NaN where a cell is missing",
        ),
        (
            pd.DataFrame(GOOD, columns=list("abab")),
            ValueError,
            "columns .'a', 'b', 'a', 'b'.; give each column a name of its own",
        ),
        (
            np.array([[1, 2], [3, {"a": 1}]], dtype=object),
            TypeError,
            r"1 \({'a': 1} in row 1\).*argument must be a string or a",
        ),
        (IhSC(2), TypeError, "X is of type IhSC, not a .*; give an array"),
        (None, TypeError, "X is None, not a matrix of numbers; give an array"),
        (3.5, TypeError, "X is 3.5, not a matrix of numbers; give an array"),
        ({"x": [1.0, 2.0]}, TypeError, r"X is of type dict, .*; give .* a data frame"),
        (map(list, GOOD), TypeError, "X is of type map, .*; give an array.*open_data"),
        ((row for row in GOOD), TypeError, "X is of type generator, .*; give an array"),
        ((GOOD, GOOD[:, 0]), TypeError, r"X is of type tuple, .*; give an array"),
        (GOOD.astype("M8[D]"), TypeError, r"X is of datetime64\[D\]: .*; give numbers"),
        (
            np.zeros(3, dtype=[("u", float), ("v", float)]),
            TypeError,
            "X is an array of records, 'u', 'v'; give .*structured_to_unstructured",
        ),
    ],
)
def test_not_a_matrix_of_numbers(X, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        IhSC(2).fit(X)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[1, 2], [3]], r".*\[1, 2\].* in row 0"),
        ([3, {"a": 1}], "{'a': 1} in row 1"),
        ([1, 2j], r".*j\)? in row"),
        ([b"a", "b"], "b'a' in row 0"),
        (["1", "b"], "'b' in row 1"),
        ([pd.Timestamp("2020"), pd.Timestamp("2021")], ".*2020"),
        ([pd.Interval(0, 1), pd.Interval(1, 2)], "Interval"),
    ],
)
def test_cells_that_are_no_numbers(cells, message):
    columns = [pd.Series(cells, dtype=object), pd.Series(cells)]
    with suppress(ImportError, TypeError, ValueError):  # arrow has no such cells
        import pyarrow as pa

        columns.append(pd.Series(cells, dtype=pd.ArrowDtype(pa.array(cells).type)))

    for column in columns:
        frame = pd.DataFrame({"x": column, "y": [1, 2]})
        with pytest.raises(ValueError, match=rf"not hold numbers: 'x' \({message}"):
            IhSC(2).fit(frame)


def test_a_frame_that_is_not_read_yet():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(GOOD)

    with pytest.raises(TypeError, match=r"LazyFrame, .*; give an array, a data"):
        IhSC(2).fit(frame.lazy())

    days = frame.with_columns(day=polars.lit("2020-01-01").str.to_date())

    with pytest.raises(ValueError, match=r"do not hold numbers: 'day' \(.*date"):
        IhSC(2).fit(days)

    assert_array_equal(
        IhSC(2).fit(frame).labels_,
        IhSC(2).fit(GOOD).labels_,
    )


@pytest.mark.parametrize("Estimator", ALL)
def test_annotated_data_are_named_at_once(Estimator):
    anndata = pytest.importorskip("anndata")
    # NumPy would look into it without end, so no attribute may be asked for numbers.
    model = Estimator() if Estimator is TwoComponentLloyd else Estimator(2)

    with pytest.raises(TypeError, match=r"AnnData, .*of AnnData adata\.X"):
        model.fit(anndata.AnnData(GOOD))


@for_each_estimator
def test_masked_cells_are_missing_cells(Estimator):
    X = np.ma.masked_greater(GOOD, 1.5)
    count = int(X.mask.sum())

    with pytest.raises(ValueError, match=f"0; NaN, masked or .* in all: {count}"):
        Estimator(2).fit(X)

    baseline = Estimator(2, random_state=0).fit(np.ma.array(GOOD))

    assert_array_equal(baseline.labels_, Estimator(2, random_state=0).fit_predict(GOOD))


@for_each_estimator
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters=0 is out of range; give .*1"),
        ({"n_clusters": 21}, ValueError, "=21 is more than n_samples=20; give"),
        ({"n_clusters": 2.0}, TypeError, "n_clusters=2.0 is a float; .*a whole"),
        ({"n_clusters": None}, TypeError, "n_clusters=None is a NoneType"),
        ({"n_clusters": True}, TypeError, "n_clusters=True is a bool"),
    ],
)
def test_parameters(Estimator, options, error, message):
    with pytest.raises(error, match=message):
        Estimator(**{"n_clusters": 2, **options}).fit(GOOD)


@pytest.mark.parametrize("Estimator", ALL)
def test_every_parameter_is_checked(Estimator):
    for name in set(Estimator().get_params()) - {"init"}:
        for value in (-1.5, object(), "none"):
            message = f"^{name}={re.escape(repr(value))} .*; give "
            with pytest.raises((TypeError, ValueError), match=message):
                Estimator(**{name: value}).fit(GOOD)


@pytest.mark.parametrize("Estimator", [IhSC, IhGMM, SphericalKMeans])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_all_rows_zero(Estimator, storage):
    with pytest.raises(ValueError, match=r"All 5 rows of X are zero.*Check how X"):
        Estimator(2).fit(storage(np.zeros((5, 3))))


@for_each_estimator
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_constant_data(Estimator, storage):
    with pytest.warns(ClusterCountWarning, match="in 1 of n_clusters=3") as caught:
        model = Estimator(3, random_state=0).fit(storage(np.full((30, 4), 2.5)))

    assert len(caught) == 1
    assert_array_equal(model.labels_, 0)
    assert np.isfinite(model.cluster_centers_).all()
    assert_array_equal(model.predict(np.full((2, 4), 2.5)), 0)


@for_each_estimator
def test_fewer_distinct_rows_than_clusters(Estimator):
    patterns = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.0], [0.3, 0.0, 1.0]])
    labels = np.arange(600) % 3
    X = patterns[labels]

    with pytest.warns(ClusterCountWarning, match="Rows are in 3 of n_clusters=5"):
        model = Estimator(5, random_state=0).fit(X)

    assert exact_recovery(labels, model.labels_)
    assert exact_recovery(labels, model.predict(X))


@for_each_estimator
@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float16])
def test_other_numbers_are_converted(Estimator, dtype):
    rng = np.random.default_rng(0)
    X = (rng.random((60, 8)) < 0.4).astype(dtype)
    X[:, 0] = 1
    model = Estimator(3, random_state=0).fit(X)
    expected = Estimator(3, random_state=0).fit(X.astype(np.float64))

    assert_array_equal(model.labels_, expected.labels_)
    assert model.cluster_centers_.dtype == np.float64


@pytest.mark.parametrize("Estimator", [PSC, *(E for E in ALL if E is not IhGMM)])
@pytest.mark.parametrize(
    ("unit", "dtype"),
    [(1e200, np.float64), (1e-300, np.float64), (1e25, np.float32), (1e-25, "f4")],
)
def test_huge_and_tiny_values(Estimator, unit, dtype):
    if Estimator is SDPKMeans:
        pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    X, _ = make_ihgmm(60, 20, 3, scale_ratio=1.5, random_state=0, dtype=dtype)
    options = {"n_clusters": 3, "random_state": 0}
    if Estimator is TwoComponentLloyd:
        X = X - X.mean(axis=0)
        options = {}
    scaled_rows = X * X.dtype.type(unit)
    rows_before = scaled_rows.copy()
    baseline, model = (Estimator(**options).fit(Y) for Y in (X, scaled_rows))

    assert_array_equal(scaled_rows, rows_before)
    assert_array_equal(model.labels_, baseline.labels_)
    assert_array_equal(model.predict(scaled_rows), baseline.predict(X))

    factor = 1 if Estimator is SphericalKMeans else X.dtype.type(unit)
    centers = model.cluster_centers_ / factor

    assert_allclose(centers, baseline.cluster_centers_, rtol=1e-3, atol=1e-3)

    for name in ("embedding_", "scales_", "sizes_", "noise_levels_"):
        if hasattr(model, name):
            assert np.isfinite(getattr(model, name)).all(), name

    assert np.isfinite(model.transform(scaled_rows)).all()
    assert not np.isnan(model.score(scaled_rows))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight cannot be used .*\(3,\).*; give 20 numbers"),
        (-np.ones(20), "Negative values .*; give 20 numbers, .*, above 0, or 0"),
        (np.zeros(20), "zero.*give 20 numbers|all are 0"),
        (np.full(20, np.nan), "sample_weight contains NaN.*give 20 numbers, one for"),
        ([1.0] * 19 + [np.inf], "sample_weight contains infinity"),
        (["1.5"] * 19 + ["many"], "sample_weight cannot be used .*'many'.*0 to leave"),
        ([1.0, None] * 10, "sample_weight contains NaN"),
        (pd.Series([1.0, pd.NA] * 10, dtype="Float64"), "sample_weight contains NaN"),
        (np.full(20, 1j), "sample_weight cannot be used .*Complex data"),
        (np.ma.masked_less(np.arange(20), 3)[::-1], "sample_weight contains NaN"),
    ],
)
def test_sample_weight(weights, message):
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        SphericalKMeans(2).fit(GOOD, sample_weight=weights)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("random", r"init cannot be used .*; give 'k-means\+\+' or 2 centres"),
        (np.ones((3, 4)), r"init has shape \(3, 4\); give 2 finite centres of 4"),
        (np.zeros((2, 4)), "2 finite centres of 4 features, none of them zero"),
    ],
)
def test_init(init, message):
    with pytest.raises(ValueError, match=message):
        SphericalKMeans(2, init=init).fit(GOOD)


@pytest.mark.parametrize("Estimator", [*ALL, Biwhitener])
@pytest.mark.filterwarnings("ignore:In .* of the rows noise:UserWarning")
def test_a_fit_that_fails_leaves_what_was_there(Estimator):
    if Estimator is SDPKMeans:
        pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    model = Estimator()
    if "n_clusters" in model.get_params():
        model.set_params(n_clusters=2)
    bad_frame = pd.DataFrame(with_entry(np.nan), columns=list("abcd"))

    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(bad_frame)

    assert not hasattr(model, "n_features_in_")

    method = getattr(model, "predict", None) or model.transform

    with pytest.raises(NotFittedError):
        method(GOOD)

    model.fit(GOOD[:, :3])
    attributes_before = dict(vars(model))

    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(bad_frame)

    assert vars(model) == attributes_before
    assert len(method(GOOD[:, :3])) == len(GOOD)


def test_the_na_of_r_among_whole_numbers():
    X = np.arange(60, dtype=np.int32).reshape(20, 3)
    X[4, 1] = np.iinfo(np.int32).min

    for data in (X, pd.DataFrame(X)):
        with pytest.raises(ValueError, match=r"-2147483648, which is how R stores NA"):
            IhSC(2, missing="fit").fit(data)

    labels = np.zeros(20, dtype=np.int32)
    labels[3] = np.iinfo(np.int32).min

    # Vectors of R arrive as lists.
    for vector in (labels, labels.tolist()):
        with pytest.raises(ValueError, match="labels contains -2147483648, which"):
            estimate_parameters(X[:, [0, 2]].astype(float), vector)

    weights = [1] * 19 + [-(2**31)]

    with pytest.raises(ValueError, match="Negative values"):
        IhSC(2).fit(X[:, [0, 2]].astype(float), sample_weight=weights)


def test_columns_of_a_frame_are_named():
    X = np.random.default_rng(0).normal(size=(60, 5))
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.loc[7, "b"] = np.inf

    for data, name in ((frame.to_numpy(), "1"), (frame, "'b'")):
        for function in (IhSC(2).fit, select_n_clusters):
            with pytest.raises(ValueError, match=f"infinity at row 7, column {name}"):
                function(data)


def with_duplicates(storage, dtype):
    """Return a sparse matrix that stores some cells twice, and in no order."""
    rng = np.random.default_rng(0)
    n = 60
    p = 12
    rows = np.concatenate([np.arange(n), rng.integers(0, n, 400)])
    columns = np.concatenate([np.arange(n) % p, rng.integers(0, p, 400)])
    values = rng.integers(1, 9, len(rows)).astype(dtype)
    if storage == "coo":
        return sp.coo_array((values, (rows, columns)), shape=(n, p))
    major_indices = rows
    minor_indices = columns
    container = sp.csr_array
    if storage == "csc":
        major_indices = columns
        minor_indices = rows
        container = sp.csc_array
    order = np.argsort(major_indices, kind="stable")
    sizes = np.bincount(major_indices)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return container((values[order], minor_indices[order], starts), shape=(n, p))


TWICE = {
    "select": lambda X: select_n_clusters(X, random_state=0).lead,
    "diagnose": lambda X: diagnose(X, np.arange(60) % 3).certainty,
    "fit_predict": IhSC(3, random_state=0).fit_predict,
    "predict": lambda X: IhSC(3, random_state=0).fit(X.toarray()).predict(X),
    "IhGMM": lambda X: IhGMM(3, random_state=0).fit(X).memberships_,
    "psc": lambda X: PSC(3, random_state=0).fit(X).transform(X),
    "SphericalKMeans": lambda X: SphericalKMeans(3, random_state=0).fit(X).transform(X),
}


@pytest.mark.filterwarnings("ignore:X looks like counts")
@pytest.mark.parametrize("name", TWICE)
def test_cells_that_are_stored_twice_count_once_and_stay_so(name):
    expected = TWICE[name](sp.csr_array(with_duplicates("coo", float)))
    cases = [("csr", np.int32), ("csr", float), ("csc", float), ("coo", np.int32)]
    for storage, dtype in cases:
        X = with_duplicates(storage, dtype)
        pickle_before = pickle.dumps(X)  # with what it knows of itself

        assert_allclose(TWICE[name](X), expected, err_msg=storage)
        assert pickle.dumps(X) == pickle_before, storage
