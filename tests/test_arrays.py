import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import _arrays


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
        (_arrays.matmul(A, W), X @ W),
        (_arrays.transposed_matmul(A, V), X.T @ V),
    ]:
        assert isinstance(got, np.ndarray)
        assert got.dtype == dtype
        assert_allclose(got, wanted, rtol=tol, atol=tol)


def test_row_sqnorms(X, kind):
    assert_allclose(_arrays.row_sqnorms(kind(X)), (X**2).sum(axis=1))
    norms = _arrays.row_sqnorms(kind(X.astype(np.float32)))
    assert norms.dtype == np.float64
    assert norms.shape == (30,)


def test_row_sqnorms_overflow_and_not_finite(kind):
    X = np.array([[1e200, 1.0], [np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0]])
    norms = _arrays.row_sqnorms(kind(X))
    assert_array_equal(norms[[0, 2, 3]], [np.inf, np.inf, 0.0])
    assert np.isnan(norms[1])


def test_rows_and_largest_entry(X, kind):
    rows = _arrays.take_rows(kind(X), np.array([4, 2]))
    assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, X[[4, 2]])
    assert _arrays.max_abs(kind(-3 * np.abs(X))) == 3 * np.abs(X).max()
    assert _arrays.max_abs(sp.csr_array((3, 4))) == 0
