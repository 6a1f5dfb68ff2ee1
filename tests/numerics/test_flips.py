"""The null of sign flips as mathematics: compared with dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from ihgmm import make_ihgmm
from ihgmm.numerics.flips import FlippedLanczos, Residual, Signs, run_on_kept, run_together
from ihgmm.numerics.gram import GramOperator


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
def test_residual_is_orthogonal_to_the_directions(gram):
    X, _ = make_ihgmm(60, 25, 3, random_state=0)
    G = GramOperator.of(X, gram)
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 3)))[0]
    residual = Residual(G, vectors)
    found = np.vstack([residual[rows] for rows in residual.ranges])
    A = X if gram == "hollow" else X / np.linalg.norm(X, axis=1)[:, None]
    V = np.linalg.svd(A.T @ vectors, full_matrices=False)[0]
    taken = np.square(V).sum(axis=1)
    assert_allclose(found, (A - A @ V @ V.T) / np.sqrt(1 - taken), atol=1e-10)


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
def test_sparse_residual_keeps_the_energy_of_features(gram, monkeypatch):
    monkeypatch.setattr("ihgmm.flips.BLOCK", 300)
    monkeypatch.setattr("ihgmm.flips.LARGEST_RATIO", np.inf)
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.8, (50, 40)).astype(float))
    vectors = rng.standard_normal((50, 2))
    sparse = Residual(GramOperator.of(X, gram), vectors)
    dense = Residual(GramOperator.of(X.toarray(), gram), vectors)
    found = sp.vstack([sparse[rows] for rows in sparse.ranges])
    full = np.vstack([dense[rows] for rows in dense.ranges])
    assert found.nnz == X.nnz
    assert_allclose(found.multiply(found).sum(axis=0), np.square(full).sum(axis=0))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("kept", [True, False])
def test_null_eigenvalue_is_that_of_the_dense_flipped_matrix(
    storage, kept, monkeypatch
):
    monkeypatch.setattr("ihgmm.flips.BLOCK", 300)
    monkeypatch.setattr("ihgmm.flips.ACCURACY", 1e-9)
    X, _ = make_ihgmm(70, 30, 3, random_state=1)
    G = GramOperator.of(storage(X), "hollow")
    rng = np.random.default_rng(0)
    residual = Residual(G, np.linalg.qr(rng.standard_normal((70, 3)))[0])
    assert len(residual.ranges) > 3
    runs = [FlippedLanczos(Signs(G.X, rng), G, 70, rng) for _ in range(2)]
    flipped = [
        [run.signs.flip(residual[rows], rows) for rows in residual.ranges]
        for run in runs
    ]
    if kept:
        for run, blocks in zip(runs, flipped, strict=True):
            run_on_kept(run, blocks, residual.ranges)
    else:
        run_together(runs, residual)
    for run, blocks in zip(runs, flipped, strict=True):
        F = np.vstack([b.toarray() if sp.issparse(b) else b for b in blocks])
        dense = np.vstack(
            [
                b.toarray() if sp.issparse(b) else b
                for b in map(residual.__getitem__, residual.ranges)
            ]
        )
        assert_allclose(np.abs(F), np.abs(dense))  # only signs differ
        flips = (F * dense < 0).sum() / np.count_nonzero(dense)
        assert 0.4 < flips < 0.6
        H = F @ F.T
        np.fill_diagonal(H, 0)
        assert run.top == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-6)


@pytest.mark.parametrize(("n", "p"), [(300, 1200), (900, 360)])
def test_few_steps_point_to_the_end_of_the_bulk(n, p):
    rng = np.random.default_rng(0)
    G = GramOperator.of(rng.standard_normal((n, p)) * rng.uniform(0.5, 1.5, (n, 1)))
    exact = np.linalg.eigvalsh(G.toarray())[-1]
    residual = Residual(G, np.zeros((n, 0)))
    runs = [FlippedLanczos(Signs(G.X, rng), G, 6, rng) for _ in range(6)]
    run_together(runs, residual)
    assert not any(run.converged for run in runs)
    ritz = np.array([run.value for run in runs]) / exact - 1
    top = np.array([run.top for run in runs]) / exact - 1
    assert ritz.mean() < -0.03  # so few steps alone fall short
    assert abs(top.mean()) < 0.03
