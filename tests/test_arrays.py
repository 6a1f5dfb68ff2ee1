import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from ihgmm import _products, _threads
from ihgmm._arrays import dense_rows, n_entries, row_ranges, take_rows
from ihgmm._norms import max_abs, row_sqnorms
from ihgmm._products import matmul, there_and_back, transposed_matmul


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 7)) * (rng.random((30, 7)) < 0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_agree_with_numpy_and_keep_the_dtype(X, kind, dtype):
    rng = np.random.default_rng(1)
    A = kind(X.astype(dtype))
    W, V = rng.standard_normal((7, 3)), rng.standard_normal((30, 3))
    tol = 1e-5 if dtype == np.float32 else 1e-12
    for got, wanted in [
        (matmul(A, W), X @ W),
        (transposed_matmul(A, V), X.T @ V),
    ]:
        assert isinstance(got, np.ndarray)
        assert got.dtype == dtype
        assert_allclose(got, wanted, rtol=tol, atol=tol)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_large_sparse_products(monkeypatch, container, threads):
    monkeypatch.setattr(_products, "PARALLEL", 1)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((101, 37)) * (rng.random((101, 37)) < 0.3)
    A[20:60] = 0  # whole blocks without entries
    W, V = rng.standard_normal((37, 4)), rng.standard_normal((101, 4))
    X = container(A)
    with threadpool_limits(threads):
        assert_allclose(matmul(X, W), A @ W, atol=1e-12)
        assert_allclose(transposed_matmul(X, V), A.T @ V, atol=1e-12)
        assert_allclose(matmul(container(A.T), V), A.T @ V, atol=1e-12)
        got = transposed_matmul(X, V)
    assert_array_equal(got, transposed_matmul(X, V))  # for any thread count
    assert_allclose(row_sqnorms(X), (A**2).sum(axis=1))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array])
def test_there_and_back(monkeypatch, storage, scaled):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((103, 6))
    W = rng.standard_normal((6, 4))
    scale = rng.random(103) if scaled else None
    B = A if scale is None else A * scale[:, None]
    monkeypatch.setattr(_threads, "LARGE", 1)
    monkeypatch.setattr(_products, "CACHED", 30)  # five rows at a time
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(there_and_back(storage(A), W, scale))
    assert_allclose(results[0][0], B @ W, atol=1e-12)
    assert_allclose(results[0][1], B.T @ (B @ W), atol=1e-12)
    for one, two in zip(*results, strict=True):
        assert_array_equal(one, two)


def test_row_sqnorms_of_large_data(monkeypatch, X):
    monkeypatch.setattr(_threads, "LARGE", 1)
    X[3] = 1e200, 0, 0, 0, 0, 0, np.nan
    X[4, 0] = 1e200
    with np.errstate(over="ignore"):
        assert_allclose(row_sqnorms(X), (X**2).sum(axis=1))


def test_row_sqnorms(X, kind):
    assert_allclose(row_sqnorms(kind(X)), (X**2).sum(axis=1))
    norms = row_sqnorms(kind(X.astype(np.float32)))
    assert norms.dtype == np.float64
    assert norms.shape == (30,)


def test_row_sqnorms_overflow_and_not_finite(kind):
    X = np.array([[1e200, 1.0], [np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0]])
    norms = row_sqnorms(kind(X))
    assert_array_equal(norms[[0, 2, 3]], [np.inf, np.inf, 0.0])
    assert np.isnan(norms[1])


def test_rows_and_largest_entry(X, kind):
    rows = take_rows(kind(X), np.array([4, 2]))
    assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, X[[4, 2]])
    assert max_abs(kind(-3 * np.abs(X))) == 3 * np.abs(X).max()
    assert max_abs(sp.csr_array((3, 4))) == 0


@pytest.mark.parametrize(("n", "step"), [(30, 7), (30, 30), (30, 50), (30, 0), (1, 1)])
def test_ranges_hold_every_row_once(n, step):
    ranges = row_ranges(n, step)
    assert_array_equal(np.concatenate([np.arange(n)[r] for r in ranges]), np.arange(n))
    assert all(r.stop - r.start == max(step, 1) for r in ranges[:-1])


def test_ranges_of_dense_rows_make_up_the_matrix(X, kind):
    parts = [dense_rows(kind(X), r) for r in row_ranges(len(X), 7)]
    assert_array_equal(np.vstack(parts), X)
    stored = X.size if isinstance(kind(X), np.ndarray) else np.count_nonzero(X)
    assert n_entries(kind(X)) == stored
