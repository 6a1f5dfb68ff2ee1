"""The null of sign flips as mathematics: compared with dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from ihgmm import make_ihgmm
from ihgmm.matrix import as_matrix
from ihgmm.numerics.sign_flips import flip_signs, null_eigenvalues, residual


def some_vectors(n, count=3):
    return np.linalg.qr(np.random.default_rng(0).standard_normal((n, count)))[0]


def test_residual_is_orthogonal_to_the_directions():
    X, _ = make_ihgmm(60, 25, 3, random_state=0)
    vectors = some_vectors(60)
    result = residual(as_matrix(X), vectors).toarray()
    V = np.linalg.svd(X.T @ vectors, full_matrices=False)[0]
    leverages = np.square(V).sum(axis=1)

    assert_allclose(result, (X - X @ V @ V.T) / np.sqrt(1 - leverages), atol=1e-10)


def test_sparse_residual_keeps_the_energy_of_features():
    X = np.random.default_rng(0).poisson(0.8, (50, 40)).astype(float)
    vectors = some_vectors(50, 2)
    S = as_matrix(sp.csr_array(X))
    sparse = residual(S, vectors, most_gain=np.inf).toarray()
    full = residual(as_matrix(X), vectors).toarray()

    assert np.count_nonzero(sparse) == np.count_nonzero(X)
    assert_allclose(np.square(sparse).sum(axis=0), np.square(full).sum(axis=0))

    bounded = residual(S, vectors, most_gain=0.01).toarray()

    assert (np.square(bounded).sum(axis=0) <= np.square(sparse).sum(axis=0)).all()


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_null_eigenvalue_is_that_of_the_dense_flipped_matrix(storage):
    X, _ = make_ihgmm(70, 30, 3, random_state=1)
    residual_matrix = residual(as_matrix(storage(X)), some_vectors(70))
    dense = residual_matrix.toarray()
    for seed in range(2):
        rng = np.random.default_rng(seed)
        F = flip_signs(residual_matrix, rng).toarray()  # the first drawn
        assert_allclose(np.abs(F), np.abs(dense))  # only signs differ
        assert 0.4 < (F * dense < 0).sum() / np.count_nonzero(dense) < 0.6
        H = F @ F.T
        np.fill_diagonal(H, 0)
        rng = np.random.default_rng(seed)
        eigenvalues = null_eigenvalues(residual_matrix, 3, rng, 70, accuracy=1e-9)
        assert eigenvalues[0] == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-6)
        assert len(set(eigenvalues)) == 3
