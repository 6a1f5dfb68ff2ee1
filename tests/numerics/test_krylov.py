"""A basis that grows, and the matrix in it, as mathematics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ihgmm.matrix import HOST
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.krylov import Basis, orthonormal, ritz_pairs


@pytest.mark.parametrize("take_along", [False, True])
@pytest.mark.parametrize("gram", ["hollow", "cosine", "full"])
def test_a_basis_knows_the_matrix_in_it(gram, take_along):
    rng = np.random.default_rng(0)
    G = GramOperator.of(rng.standard_normal((90, 30)), gram)
    matrix = G.toarray()
    block = orthonormal(HOST, rng.standard_normal((90, 4)))
    basis = Basis(HOST, block, G.A.adjoint(block), take_along=take_along)
    sizes = []
    for condensed in (False, False, True, False):
        product = basis.multiply(G)
        Q = np.hstack(basis.blocks)
        sizes.append(basis.width)
        assert_allclose(Q.T @ Q, np.eye(basis.width), atol=1e-12)
        assert_allclose(basis.rayleigh, Q.T @ matrix @ Q, atol=1e-11)
        assert_allclose(Q.T @ product.rest, 0, atol=1e-11)
        inside = Q @ basis.rayleigh[:, -4:]
        assert_allclose(inside + product.rest, matrix @ Q[:, -4:], atol=1e-11)
        values, ritz = ritz_pairs(basis.rayleigh, "algebraic")
        block, adjoint = basis.next_block(product, G, values, tol=1e-2)
        assert_allclose(adjoint, G.A.adjoint(block), atol=1e-11)
        if condensed:
            basis.condense(ritz[:, :6])
        basis.append(block, adjoint)
    assert sizes == [4, 8, 12, 10]


def test_products_are_kept_on_demand():
    rng = np.random.default_rng(0)
    G = GramOperator.of(rng.standard_normal((50, 8)))
    block = orthonormal(HOST, rng.standard_normal((50, 3)))
    basis = Basis(HOST, block, G.A.adjoint(block), keep=True)
    basis.multiply(G)
    assert_allclose(basis.products[0], G @ block)
    turn = np.linalg.qr(rng.standard_normal((3, 2)))[0]
    basis.condense(turn)
    assert_allclose(basis.products[0], G @ basis.blocks[0])
    assert_allclose(basis.rayleigh, basis.blocks[0].T @ (G @ basis.blocks[0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_depend_on_others_are_dropped_or_replaced(dtype):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((53, 5)).astype(dtype)
    Y[:, 3], Y[:, 4] = Y[:, 0] + Y[:, 1], 0
    narrow, full = orthonormal(HOST, Y.copy()), orthonormal(HOST, Y.copy(), rng)
    assert (narrow.shape[1], full.shape[1]) == (3, 5)
    for Q in (narrow, full):
        assert Q.dtype == dtype
        assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-5)
        assert_allclose(Q @ (Q.T @ Y), Y, atol=1e-4)  # it spans what Y does
    few = orthonormal(HOST, Y[:, :3] * np.array([1, 1, 1e-9], dtype), negligible=1e-6)
    assert few.shape[1] == 2
