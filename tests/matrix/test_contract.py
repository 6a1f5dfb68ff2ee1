"""One contract for every kind of matrix: the answers of NumPy."""

from functools import cache, partial
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from array_kinds import FAMILIES, KINDS, opened
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import (
    IhGMM,
    IhSC,
    Recipe,
    SphericalKMeans,
    diagnose,
    estimate_parameters,
    make_ihgmm,
    scale_heterogeneity_test,
    select_n_clusters,
)
from ihgmm.matrix import as_matrix, to_host
from ihgmm.matrix.sparse import SparseDevice

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def name_of(kind):
    return getattr(kind, "__name__", str(kind))


@cache
def numbers(dtype):
    """Rows of four clusters, a fifth of their entries zero."""
    X, labels = make_ihgmm(400, 40, 4, random_state=0)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = 0
    X = X.astype(dtype)
    X.flags.writeable = False
    return X, labels


def close(result, expected, dtype, factor=1.0):
    tolerance = TOLERANCE[dtype] * factor
    peak = np.nanmax(np.abs(expected), initial=0.0)

    assert_allclose(to_host(result), expected, rtol=tolerance, atol=tolerance * peak)


@pytest.fixture(params=KINDS, ids=name_of)
def kind(request):
    return request.param


@pytest.fixture(params=list(TOLERANCE))
def dtype(request):
    return request.param


def dealt(*options):
    """Return each kind with some of the options, and each family with all of them.

    What differs inside a family is asked of each kind, in the first part of this file.
    The types of float come by turns.
    """
    cases = []
    combinations = list(product(*options))
    dtypes = list(TOLERANCE)

    for number, family in enumerate(FAMILIES):
        for i in range(max(len(family), len(combinations))):
            kind = family[i % len(family)]
            combination = combinations[i % len(combinations)]
            dtype = dtypes[(number + i + i // len(family)) % len(dtypes)]
            label = "-".join(map(name_of, (kind, *combination)))
            cases.append(pytest.param(kind, *combination, dtype, id=label))

    return cases


@pytest.fixture
def hold(kind, tmp_path):
    """A way to make a matrix of some numbers, of the kind that is asked."""
    folders = iter(range(100))

    def make(X):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return opened(kind(X, folder))

    return make


def test_shape_and_products(hold, dtype):
    X, _ = numbers(dtype)
    A = hold(X)
    rng = np.random.default_rng(2)
    W = rng.standard_normal((40, 3)).astype(dtype)
    V = rng.standard_normal((400, 3)).astype(dtype)
    scale = rng.random(400).astype(dtype)
    copies = [a.copy() for a in (W, V, scale)]

    assert as_matrix(A) is A
    assert A.shape == (400, 40)
    assert A.dtype == dtype

    # Where lines for each row are, and where sums over rows come to.
    tall_type = type(A.to_device(V))
    small_type = type(A.cast(W))
    scale_on_device = A.to_device(scale)
    scaled = X * scale[:, None]

    for result, expected, expected_type in [
        (A @ W, X @ W, tall_type),
        (A @ W[:, 0], X @ W[:, 0], tall_type),
        (A.adjoint(V), X.T @ V, small_type),
        (A.adjoint(V[:, 0]), X.T @ V[:, 0], small_type),
        (A @ A.cast(W), X @ W, tall_type),
        (A.gram_product(W), X.T @ (X @ W), small_type),
        (A.gram_product(W, scale_on_device), scaled.T @ (scaled @ W), small_type),
    ]:
        assert type(result) is expected_type
        assert to_host(result).dtype == dtype
        close(result, expected, dtype, 10)

    # None of these has changed what it was given.
    for values, copy in zip((W, V, to_host(scale_on_device)), copies, strict=True):
        assert_array_equal(values, copy)

    assert_array_equal(A.toarray(), X)


def test_norms_and_counts(hold, dtype):
    X, _ = numbers(dtype)
    A = hold(X)
    weights = np.random.default_rng(3).random(40)
    squares = np.square(X.astype(np.float64))

    assert to_host(A.sqnorms).dtype == np.float64
    assert type(A.sqnorms) is type(A.to_device(np.zeros(400)))

    close(A.sqnorms, squares.sum(axis=1), dtype)
    close(A.row_sqnorms(weights), squares @ weights, dtype)
    close(A.column_sqnorms(), squares.sum(axis=0), dtype)

    assert isinstance(A.column_sqnorms(), np.ndarray)
    assert A.max_abs() == np.abs(X).max()
    assert A.most_negative() == min(X.min(), 0)
    assert A.n_entries == (np.count_nonzero(X) if A.sparse else X.size)
    assert A.not_finite()[0] == 0


def test_rows(hold, dtype):
    X, _ = numbers(dtype)
    A = hold(X)

    for rows in (
        slice(None),
        slice(130, 301),
        slice(5, 5),
        np.array([3, 399, 4, 4, 0, 250]),
        np.array([], dtype=int),
        np.arange(400)[::-1],
        np.arange(0, 400, 7),
    ):
        selected = A.take(rows)
        assert not selected.streamed
        assert selected.sparse == A.sparse
        assert selected.dtype == dtype
        assert_array_equal(selected.toarray(), X[rows])
        assert_array_equal(to_host(A.rows(rows)), X[rows])

    assert isinstance(A.toarray(), np.ndarray)

    in_memory = A.to_memory()

    assert in_memory.on_host
    assert_array_equal(in_memory.toarray(), X)

    for ranges in (A.row_blocks, A.dense_ranges(1_000)):
        assert_array_equal(np.concatenate([A.take(r).toarray() for r in ranges]), X)


def test_entries_that_are_not_finite(hold, dtype):
    X = numbers(dtype)[0].copy()
    X[17, 3] = np.inf
    X[390, 39] = np.nan
    X[391, 0] = -np.inf
    A = hold(X)

    count, row, column, value = A.not_finite()

    assert (count, row, column, value) == (3, 17, 3, np.inf)

    norms = to_host(A.sqnorms)

    assert_array_equal(norms[[17, 391]], np.inf)
    assert np.isnan(norms[390])
    assert np.isfinite(np.delete(norms, [17, 390, 391])).all()


def test_rows_and_blocks_know_whether_opposite_rows_are_of_one_kind(hold):
    A = hold(numbers("float64")[0])

    assert not A.signed
    assert A.with_signed(False) is A

    B = A.with_signed(True)
    every_seventh = np.arange(0, 400, 7)

    for part in (
        B,
        B.take(slice(130, 301)),
        B.take(every_seventh),
        B.keep_rows(every_seventh),
        B.copy_rows(every_seventh),
        B.rescaled(0.5),
        B.to_memory(),
        B.filled(),
        B.weighted(np.ones(400)),
        B.named([f"gene {j}" for j in range(40)]),
    ):
        assert part.signed

    assert all(B.map(lambda block: block.signed))

    assert not A.signed
    assert not B.with_signed(False).take(every_seventh).signed


@pytest.mark.parametrize("power", [-60, 100])
def test_another_unit(hold, dtype, power):
    """Squares under- and overflow silently; in another unit they do not."""
    X = numbers(dtype)[0] * np.dtype(dtype).type(2.0**power)
    A = hold(X)

    assert not np.isnan(to_host(A.sqnorms)).any()

    B = A.rescaled(2.0**-power)

    assert B.unit == A.unit * 2.0**power
    assert_array_equal(B.toarray(), numbers(dtype)[0])

    close(B.sqnorms, np.square(B.toarray(), dtype=np.float64).sum(axis=1), dtype)

    assert_array_equal(A.toarray(), X)


def test_integers_are_floats(kind, tmp_path):
    if kind.__name__.startswith("Bare"):
        pytest.skip("these are matrices of floats already")
    X = np.round(3 * numbers("float64")[0]).astype(np.int16)
    A = opened(kind(X, tmp_path))

    assert A.dtype == np.float64
    assert_array_equal(A.toarray(), X)


def check_home(result, X):
    """Check that results are where the data is: on its device, in its chunks."""
    matrix = as_matrix(X)
    entries = matrix.values if isinstance(matrix, SparseDevice) else X

    if matrix.distributed:
        assert result.chunks[0] == entries.chunks[0]
    elif hasattr(entries, "device") and not isinstance(entries, np.ndarray):
        assert type(result) is type(entries)
        assert result.device == entries.device
    else:
        assert isinstance(result, np.ndarray)


CENTERS = ("labels_", "cluster_centers_")
TALL = ("scales_", "sizes_", "noise_levels_", "embedding_")
METHODS = ("predict", "transform", "predict_proba", "score_samples", "score", "bic")
# How many times the tolerance of an entry.
FACTORS = {"eigenvalues_": 1e2, "cluster_centers_": 1e2}
FACTORS |= {"inertia_": 1e2, "scales_": 1e3, "sizes_": 1e3, "transform": 1e3}


def model(make, *names, weighted=False, odd=False, **options):
    """Return a fit: its figures, and what it says of the rows."""

    def fit(X, _):
        weights = odd_rows()[1] if weighted else None
        fitted = make(4, random_state=0, **options).fit(X, sample_weight=weights)
        attributes = {name: getattr(fitted, name) for name in names}
        methods = [name for name in METHODS if hasattr(fitted, name)]
        answers = {name: getattr(fitted, name)(X) for name in methods}
        return attributes | answers

    fit.odd = odd
    return fit


def answer(ask, *names, **options):
    """Return a question on labelled rows: some figures of the answer."""

    def question(X, labels):
        result = ask(X, **(options or {"labels": labels}))
        return {name: getattr(result, name) for name in names}

    question.odd = False
    return question


def count(X, _, **options):
    """Return how many clusters are counted, of up to six, and on what evidence."""
    result = select_n_clusters(X, max_clusters=6, random_state=0, **options)
    return {
        "n_clusters": result.n_clusters,
        "plausible": result.plausible,
        "n_rows": result.n_rows,
        "scores": np.array([one.score for one in result.evidence]),
        "leads": np.array(list(result.clouds.leads.values())),
    }


count.odd = False
signed_count = partial(count, signed=True)
signed_count.odd = False


@cache
def odd_rows():
    """Return rows of which one in 20 points nowhere, and weights, some of them 0."""
    X = numbers("float64")[0].copy()
    rng = np.random.default_rng(6)
    X[::20] = rng.standard_normal((20, 40)) * 5 * np.linalg.norm(X, axis=1).mean()
    return X, rng.integers(0, 4, len(X)) / 2


SPECTRAL = (IhSC, *CENTERS, *TALL, "eigenvalues_")
SPHERICAL = (SphericalKMeans, *CENTERS, "inertia_")
PROJECTED = (IhSC, *CENTERS, "embedding_", "eigenvalues_")
MIXTURE = (IhGMM, *CENTERS, *TALL[:3], "memberships_", "weights_", "n_iter_")
SCALES = ("statistic", "p_value", "spread", "p_values")
JUDGEMENT = ("stability", "expected_error", "certainty", "cluster_stability")
ESTIMATES = ("centers", "scales", "noise_levels", "scale_errors", "center_errors")
WORK = {
    "clusters": model(*SPECTRAL),
    "rows": model(*SPECTRAL, recipe=Recipe(rows="given", space="projected")),
    "paper": model(
        *SPECTRAL, recipe=Recipe.of("paper", order="magnitude", labels="tied")
    ),
    "weights": model(*SPECTRAL, weighted=True, odd=True),
    "signed": model(*SPECTRAL, weighted=True, odd=True, signed=True, outliers="auto"),
    "outliers": model(
        *SPECTRAL, "outlier_scores_", weighted=True, odd=True, outliers="auto"
    ),
    "psc": model(*PROJECTED, recipe="psc"),
    "weighted psc": model(*PROJECTED, weighted=True, recipe="psc"),
    "spherical": model(*SPHERICAL),
    "weighted spherical": model(*SPHERICAL, weighted=True),
    "mixture": model(*MIXTURE, max_iter=5, tol=10.0),
    "count": count,
    "signed count": signed_count,
    "estimate": answer(estimate_parameters, *ESTIMATES),
    "scale test": answer(scale_heterogeneity_test, *SCALES),
    "diagnosis": answer(diagnose, *JUDGEMENT),
}


@cache
def work_of_numpy(name, dtype, sparse):
    X, labels = numbers(dtype)
    if WORK[name].odd:
        X, _ = odd_rows()
    return WORK[name](sp.csr_array(X) if sparse else X.copy(), labels)


@pytest.mark.parametrize(
    ("kind", "name", "dtype"),
    [*product(KINDS, ["clusters"], TOLERANCE), *dealt([*WORK][1:])],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_work(kind, name, dtype, tmp_path):
    X, labels = numbers(dtype)
    slack = 1.0
    if WORK[name].odd:
        X, _ = odd_rows()
        dtype = "float64"
        slack = 1e3

    stored = kind(X, tmp_path)
    A = opened(stored)

    # Clusters are asked of what a user hands over, with all its rows in one block or in
    # its own.
    result = WORK[name](stored if name == "clusters" else A, labels)
    expected = work_of_numpy(name, dtype, A.sparse)

    for figure in expected:
        values = to_host(result[figure])
        expected_values = np.asarray(expected[figure])
        if expected_values.dtype.kind in "iu":
            # torch has its own type of indices.
            assert values.dtype.kind == "i"
            assert_array_equal(values, expected_values)
            continue

        close(values, expected_values, dtype, slack * FACTORS.get(figure, 1e4))
        assert values.dtype == expected_values.dtype

    for figure in {"labels_", *TALL, "memberships_", "predict"} & set(expected):
        check_home(result[figure], stored)

    assert_array_equal(A.toarray(), X)


@pytest.mark.parametrize(("kind", "dtype"), dealt())
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_missing_cells(kind, dtype, tmp_path):
    """NaN is told wherever the data are, and filled in as in NumPy."""
    X, expected = fit_with_gaps(dtype)
    stored = kind(X, tmp_path)

    with pytest.raises(ValueError, match=r"NaN at row 0, column .*missing='fit'"):
        IhSC(4).fit(stored)

    fitted = IhSC(4, missing="fit", random_state=0).fit(stored)
    labels = to_host(fitted.labels_)

    # Rows that are drawn for the filler do not depend on the kind.
    assert (labels == expected.labels_).mean() > 0.99
    assert_array_equal(to_host(fitted.predict(stored)), labels)

    if (labels == expected.labels_).all():
        close(fitted.cluster_centers_, expected.cluster_centers_, dtype, 1e4)
        close(fitted.scales_, expected.scales_, dtype, 1e5)
        close(fitted.noise_levels_, expected.noise_levels_, dtype, 1e5)

    check_home(fitted.embedding_, stored)


@cache
def fit_with_gaps(dtype):
    X = numbers(dtype)[0].copy()
    is_drawn = np.random.default_rng(4).random(X.shape) < 0.2
    X[is_drawn & (X != 0)] = np.nan
    return X, IhSC(4, missing="fit", random_state=0).fit(X)
