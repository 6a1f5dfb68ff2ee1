"""The block Krylov engine, against dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from ihgmm.numerics.krylov import ORDERS, block_krylov, leading_pairs


def symmetric(values, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values),) * 2))[0]
    return Q * values @ Q.T, Q


def block(n, width, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, width)))[0]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("width", [8, 40])  # many blocks, and few with restarts
def test_leading_pairs_of_a_matrix(order, width):
    values = np.r_[9.0, -8.5, 7, 6, -5, np.linspace(-3, 3, 395)]
    matrix, Q = symmetric(values)
    pairs = block_krylov(matrix.dot, block(400, width), 3, order=order, tol=1e-10)
    lead = [0, 1, 2] if order == "magnitude" else [0, 2, 3]

    assert_allclose(pairs.values, values[lead], rtol=1e-11)
    assert_allclose(np.abs(np.sum(pairs.vectors * Q[:, lead], axis=0)), 1, atol=1e-12)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-11)

    dense = leading_pairs(matrix, 3, order)

    assert_allclose(dense[0], values[lead], rtol=1e-11)
    assert_allclose(np.abs(np.sum(dense[1] * Q[:, lead], axis=0)), 1, atol=1e-12)


def test_tolerance_bounds_the_angle():
    matrix, Q = symmetric(np.r_[9.0, 8, 7, np.linspace(0, 5, 397)])
    products = []
    for tol in (1e-1, 1e-3, 1e-6):
        pairs = block_krylov(lambda V: matrix @ V, block(400, 8), 3, tol=tol)
        sine = np.linalg.norm(pairs.vectors - Q[:, :3] @ (Q[:, :3].T @ pairs.vectors))
        assert sine <= tol
        products.append(pairs.n_iter)

    assert products == sorted(set(products))


def test_an_invariant_subspace_ends_the_search():
    matrix = np.diag(np.r_[np.full(4, 120.0), np.zeros(96)])
    pairs = block_krylov(lambda V: matrix @ V, block(100, 8), 4, tol=1e-9)

    assert_allclose(pairs.values, 120, rtol=1e-12)
    assert_allclose(np.linalg.svd(pairs.vectors[:4])[1], 1, atol=1e-12)
    assert pairs.n_iter <= 2

    zero_pairs = block_krylov(lambda V: 0 * V, block(100, 8), 4)

    assert_array_equal(zero_pairs.values, 0)
    assert_allclose(zero_pairs.vectors.T @ zero_pairs.vectors, np.eye(4), atol=1e-12)


def test_cap_warns_with_the_residual():
    noise = np.random.default_rng(0).standard_normal((400, 300))
    product = (noise @ noise.T).dot
    options = {"tol": 1e-8, "max_products": 2}

    with pytest.warns(ConvergenceWarning, match=r"2 products: residual \d\.\de-0\d"):
        pairs = block_krylov(product, block(400, 8), 3, **options)

    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-11)

    block_krylov(product, block(400, 8), 3, quiet=True, **options)
