"""Arrays in memory: the ways of large data give what plain products give."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from ihgmm.matrix import Dense, Sparse, as_matrix

RNG = np.random.default_rng(0)
X = RNG.standard_normal((103, 6))
W = RNG.standard_normal((6, 4))
V = RNG.standard_normal((103, 4))


def in_one_and_two_threads(work, compare=assert_array_equal):
    """Check that results do not depend on the number of threads, and return them."""
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(work())
    compare(*results)
    return results[0]


class Parallel(Sparse):
    """Products with few entries are cut up too."""

    parallel = 1


class Large(Dense):
    """Blocks of few entries are worked on in threads too."""

    large = 1


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
def test_large_sparse_products(container):
    A = X * (RNG.random(X.shape) < 0.3)
    A[20:60] = 0  # whole blocks without entries
    S = Parallel(container(A))

    assert_allclose(in_one_and_two_threads(lambda: S @ W), A @ W, atol=1e-12)

    adjoint = in_one_and_two_threads(lambda: S.adjoint(V))

    assert_allclose(adjoint, A.T @ V, atol=1e-12)
    assert_allclose(S.sqnorms, (A**2).sum(axis=1))
    assert Sparse(container((3, 4))).max_abs() == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_dense_products(order):
    X = RNG.random((20_003, 6))
    V = RNG.random((20_003, 4))
    scale = RNG.random(20_003)
    D = Large(np.array(X, order=order))
    # Whole columns go to BLAS as they are, which sums in an order of its own.
    compare = assert_array_equal if order == "C" else assert_allclose
    scaled = X * scale[:, None]

    for work, expected in (
        (lambda: D @ W, X @ W),
        (lambda: D @ W[:, 0], X @ W[:, 0]),
        (lambda: D.adjoint(V), X.T @ V),
        (D.row_sqnorms, (X**2).sum(axis=1)),
        (lambda: D.gram_product(W), X.T @ (X @ W)),
        (lambda: D.gram_product(W, scale), scaled.T @ (scaled @ W)),
    ):
        assert_allclose(in_one_and_two_threads(work, compare), expected, atol=1e-12)


def test_norms_of_float32_are_summed_in_float64():
    """One large entry would hide a million small ones in float32."""
    A = np.full((3, 2**20), 1e-4, dtype=np.float32)
    A[:, 0] = 1.0
    exact = 1 + (2**20 - 1) * float(np.float32(1e-4)) ** 2

    for kind in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array):
        assert_allclose(as_matrix(kind(A)).sqnorms, exact, rtol=1e-5)

    float32_sums = np.einsum("ij,ij->i", A, A)  # what float32 makes of it

    assert np.abs(float32_sums / exact - 1).max() > 1e-4


def test_nothing_is_copied():
    for A in (X, X.astype(np.float32)):
        assert as_matrix(A).array is A

    sparse = sp.csr_array(X)
    wrapped = as_matrix(sparse).array

    assert wrapped.data is sparse.data
    assert wrapped.indices is sparse.indices


def test_what_is_no_number():
    with pytest.raises(ValueError, match="entries of type complex128, not real num"):
        as_matrix(X + 1j)
