"""The Gram operator as mathematics: against the matrix that NumPy makes."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm.matrix import as_matrix
from ihgmm.numerics.eigen import GramOperator


@pytest.fixture
def X():
    X = np.random.default_rng(0).standard_normal((25, 6))
    X[3] = 0
    X[4] *= 60
    return X


def naive(X, weights=1.0):
    G = X @ X.T * np.sqrt(np.outer(weights, weights))
    np.fill_diagonal(G, 0)
    return G


def test_operator_is_the_matrix(X, kind):
    G = GramOperator.of(kind(X))
    assert G.shape == (25, 25)
    assert_allclose(G @ np.eye(25), naive(X), atol=1e-11)
    assert_allclose(G.toarray(), naive(X), atol=1e-11)


def test_identities(X):
    rng = np.random.default_rng(1)
    G = GramOperator.of(X)
    U, V = rng.standard_normal((2, 25, 3))
    assert_allclose(U.T @ (G @ V), (G @ U).T @ V, atol=1e-10)  # symmetric
    for j in range(3):  # a block is its columns
        assert_allclose(G @ V[:, j], (G @ V)[:, j], atol=1e-11)
    assert_allclose(np.einsum("ii->i", G @ np.eye(25)), 0, atol=1e-10)
    assert_array_equal(np.diag(G.toarray()), 0)  # exactly


def test_a_weight_is_a_row_times_its_root(X, kind):
    weights = np.random.default_rng(2).gamma(2.0, size=25)
    weights[7] = 0
    G = GramOperator.of(as_matrix(kind(X)).weighted(weights))
    wanted = naive(X, weights / weights.mean())
    assert_allclose(G @ np.eye(25), wanted, atol=1e-11)
    assert_allclose(G.toarray(), wanted, atol=1e-11)


def test_dtype_is_kept_and_data_untouched(X):
    X32 = X.astype(np.float32)
    before = X32.copy()
    G = GramOperator.of(X32)
    V = np.random.default_rng(0).standard_normal((25, 2))
    seen = V.copy()
    assert (G @ V).dtype == np.float32
    assert_array_equal(X32, before)
    assert_array_equal(V, seen)
    assert G.A.array is X32
    with pytest.raises(dataclasses.FrozenInstanceError):
        G.diagonal = None


def test_on_unit_rows_a_zero_diagonal_shifts_eigenvalues_alone(X):
    rows = np.delete(X, 3, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    hollow = GramOperator.of(rows).toarray()
    assert_allclose(rows @ rows.T - hollow, np.eye(24), atol=1e-15)
