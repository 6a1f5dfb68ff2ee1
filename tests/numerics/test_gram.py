import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm.numerics.gram import GRAMS, GramOperator


@pytest.fixture
def X():
    X = np.random.default_rng(0).standard_normal((25, 6))
    X[3] = 0
    X[4] *= 60
    return X


def naive(X, gram):
    if gram == "cosine":
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(norms > 0, norms, 1)
    G = X @ X.T
    if gram != "full":
        np.fill_diagonal(G, 0)
    return G


@pytest.mark.parametrize("gram", GRAMS)
def test_operator_is_the_matrix(X, kind, gram):
    G = GramOperator.of(kind(X), gram)
    dense = naive(X, gram)
    assert G.shape == (25, 25)
    assert_allclose(G @ np.eye(25), dense, atol=1e-11)
    assert_allclose(G.toarray(), dense, atol=1e-11)
    assert_allclose(G.scaled(0.25) @ np.eye(25), 0.25 * dense, atol=1e-11)
    assert_allclose(G.scaled(0.25).toarray(), 0.25 * dense, atol=1e-11)


@pytest.mark.parametrize("gram", GRAMS)
def test_identities(X, gram):
    rng = np.random.default_rng(1)
    G = GramOperator.of(X, gram)
    V = rng.standard_normal((25, 3))
    U = rng.standard_normal((25, 3))
    assert_allclose(U.T @ (G @ V), (G @ U).T @ V, atol=1e-10)  # symmetric
    for j in range(3):  # a block is its columns
        assert_allclose(G @ V[:, j], (G @ V)[:, j], atol=1e-11)
    diagonal = np.einsum("ii->i", G @ np.eye(25))
    if gram != "full":
        assert_allclose(diagonal, 0, atol=1e-10)
        assert_array_equal(np.diag(G.toarray()), 0)  # exactly
    assert_allclose(U.T @ (G @ (2 * V)), 2 * U.T @ (G @ V), rtol=1e-10)


@pytest.mark.parametrize("gram", GRAMS)
def test_rows_give_a_principal_submatrix(X, kind, gram):
    index = np.array([1, 3, 4, 10])
    part = GramOperator.of(kind(X), gram).take(index)
    assert_allclose(part.toarray(), naive(X, gram)[np.ix_(index, index)], atol=1e-11)
    assert_allclose(part @ np.eye(4), part.toarray(), atol=1e-11)


@pytest.mark.parametrize("gram", GRAMS)
def test_dtype_is_kept_and_data_untouched(X, gram):
    X32 = X.astype(np.float32)
    before = X32.copy()
    G = GramOperator.of(X32, gram)
    V = np.random.default_rng(0).standard_normal((25, 2))
    seen = V.copy()
    assert (G @ V).dtype == np.float32
    assert_array_equal(X32, before)
    assert_array_equal(V, seen)
    assert (G.A.matrix if gram == "cosine" else G.A).array is X32
    with pytest.raises(dataclasses.FrozenInstanceError):
        G.factor = 2.0


def test_cosine_does_not_depend_on_scales(X):
    scales = np.random.default_rng(2).uniform(0.1, 10, 25)[:, None]
    A, B = (GramOperator.of(Y, "cosine").toarray() for Y in (X, scales * X))
    assert_allclose(A, B, atol=1e-12)


def test_unknown_kind():
    with pytest.raises(ValueError, match="gram='round' is not one of"):
        GramOperator.of(np.eye(3), "round")


@pytest.mark.parametrize("gram", GRAMS)
@pytest.mark.parametrize("clip", [0.5, 1.0, 1.5])
def test_longer_rows_are_clipped(X, kind, gram, clip):
    norms = np.linalg.norm(X, axis=1)
    longest = clip * np.sort(norms[norms > 0])[12]  # the upper median of 24
    shorter = X * np.minimum(longest / np.where(norms > 0, norms, 1), 1)[:, None]
    G = GramOperator.of(kind(X), gram, clip=clip)
    dense = naive(X if gram == "cosine" else shorter, gram)
    assert_allclose(G @ np.eye(25), dense, atol=1e-11)
    assert_allclose(G.toarray(), dense, atol=1e-11)
    assert G.longest == (0 if gram == "cosine" else pytest.approx(longest))
    part = G.take(np.array([1, 4, 10])).toarray()
    assert_allclose(part, dense[np.ix_([1, 4, 10], [1, 4, 10])], atol=1e-11)


@pytest.mark.parametrize("gram", ["hollow", "full"])
def test_a_clip_beyond_all_rows_changes_nothing(X, gram):
    G = GramOperator.of(X, gram, clip=1e6)
    assert G.A.array is X
    assert_allclose(G.toarray(), naive(X, gram), atol=1e-11)
