"""The null of sign flips as mathematics: compared with dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from ihgmm import make_ihgmm
from ihgmm.matrix import as_matrix
from ihgmm.numerics.flips import Residual, Signs, default_flips, null_eigenvalues
from ihgmm.numerics.gram import GramOperator


def dense(residual, change=lambda block, rows: block):
    blocks = (change(residual[i], rows) for i, rows in enumerate(residual.ranges))
    return np.vstack([block.toarray() for block in blocks])


def test_residual_is_orthogonal_to_the_directions():
    X, _ = make_ihgmm(60, 25, 3, random_state=0)
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 3)))[0]
    V = np.linalg.svd(X.T @ vectors, full_matrices=False)[0]
    taken = np.square(V).sum(axis=1)
    wanted = (X - X @ V @ V.T) / np.sqrt(1 - taken)
    assert_allclose(dense(Residual(as_matrix(X), vectors)), wanted, atol=1e-10)


def test_sparse_residual_keeps_the_energy_of_features():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.8, (50, 40)).astype(float))
    vectors = rng.standard_normal((50, 2))
    options = {"n_entries": 300, "most": np.inf}
    sparse, full = (
        dense(Residual(as_matrix(Y), vectors, **options)) for Y in (X, X.toarray())
    )
    assert np.count_nonzero(sparse) == X.nnz
    assert_allclose(np.square(sparse).sum(axis=0), np.square(full).sum(axis=0))
    bounded = dense(Residual(as_matrix(X), vectors, most=0.01))
    assert (np.square(bounded).sum(axis=0) <= np.square(sparse).sum(axis=0)).all()


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("keep", [True, False])
def test_null_eigenvalue_is_that_of_the_dense_flipped_matrix(storage, keep):
    X, _ = make_ihgmm(70, 30, 3, random_state=1)
    A = as_matrix(storage(X))
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((70, 3)))[0]
    residual = Residual(A, vectors, keep=keep, n_entries=300)
    assert len(residual.ranges) > 3
    whole = dense(residual)
    for seed in range(2):
        signs = Signs(A, np.random.default_rng(seed))  # the first that are drawn
        F = dense(residual, signs.flip)
        assert_allclose(np.abs(F), np.abs(whole))  # only signs differ
        assert 0.4 < (F * whole < 0).sum() / np.count_nonzero(whole) < 0.6
        H = F @ F.T
        np.fill_diagonal(H, 0)
        (found,) = null_eigenvalues(
            residual, 1, np.random.default_rng(seed), steps=70, accuracy=1e-9
        )
        assert found == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-6)


def test_copies_that_are_made_anew_are_those_that_are_kept():
    X, _ = make_ihgmm(70, 30, 3, random_state=1)
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((70, 3)))[0]
    found = [
        null_eigenvalues(
            Residual(as_matrix(X), vectors, keep=keep, n_entries=300),
            3,
            np.random.default_rng(0),
        )
        for keep in (True, False)
    ]
    assert_allclose(*found, rtol=1e-12)
    assert len(set(found[0])) == 3


@pytest.mark.parametrize(("n", "p"), [(300, 1200), (900, 360)])
def test_few_steps_point_to_the_end_of_the_bulk(n, p):
    rng = np.random.default_rng(0)
    G = GramOperator.of(rng.standard_normal((n, p)) * rng.uniform(0.5, 1.5, (n, 1)))
    exact = np.linalg.eigvalsh(G.toarray())[-1]
    residual = Residual(G.A, np.zeros((n, 0)))
    found = null_eigenvalues(residual, 6, rng, steps=6, accuracy=1e-9)
    assert abs(np.mean(found) / exact - 1) < 0.03


@pytest.mark.parametrize(
    ("shape", "flips"), [((100, 50), 8), ((2_000, 1_000), 3), ((10_000, 1_000), 2)]
)
def test_few_flips_of_large_data(shape, flips):
    empty = as_matrix(np.broadcast_to(np.float64(0), shape))
    assert default_flips(empty) == flips
