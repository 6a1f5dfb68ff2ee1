from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
from ihgmm.numerics.hetero import impute_diagonal
from numpy.testing import assert_allclose
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.numerics.eigen import (
    ORDERS,
    SOLVERS,
    check_size,
    leading_eigenpairs,
    sample_size,
)
from ihgmm.numerics.gram import GRAMS, GramOperator


def oracle(G, k, order):
    values, vectors = np.linalg.eigh(G.toarray())
    size = values if order == "algebraic" else np.abs(values)
    lead = np.argsort(-size)[:k]
    return values[lead], vectors[:, lead]


def assert_eigenpairs(found, G, k, order, tol):
    values, vectors = oracle(G, k, order)
    scale = np.abs(values).max()
    assert found.values.shape == (k,)
    assert found.vectors.shape == (G.shape[0], k)
    assert_allclose(found.values, values, atol=tol * scale)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=tol)
    # Each vector up to sign: these data have simple leading eigenvalues.
    overlap = np.abs(np.sum(found.vectors * vectors, axis=0))
    assert_allclose(overlap, 1, atol=tol)
    residual = G.toarray() @ found.vectors - found.vectors * found.values
    assert np.linalg.norm(residual, axis=0).max() <= tol * scale


@pytest.fixture(params=["plain", "one large row"])
def X(request):
    X, _ = make_ihgmm(200, 60, 4, separation=4.0, scale_ratio=5, random_state=3)
    if request.param == "one large row":
        X[17] *= 60
    return X


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("gram", GRAMS)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("solver", SOLVERS)
def test_agrees_with_dense_oracle(X, solver, storage, gram, order):
    G = GramOperator.of(storage(X), gram)
    found = leading_eigenpairs(
        G, 4, order=order, solver=solver, tol=1e-10, rng=np.random.default_rng(0)
    )
    assert_eigenpairs(found, G, 4, order, 1e-8)


@pytest.mark.parametrize("solver", ["lanczos", "block"])
@pytest.mark.parametrize("order", ORDERS)
def test_pure_noise(solver, order):
    G = GramOperator.of(np.random.default_rng(5).standard_normal((300, 80)))
    rng = np.random.default_rng(0)
    found = leading_eigenpairs(G, 5, order=order, solver=solver, tol=1e-9, rng=rng)
    assert_eigenpairs(found, G, 5, order, 1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("n", "p", "k"),
    [(1, 3, 1), (2, 2, 2), (3, 5, 3), (5, 4, 4), (10, 3, 9), (120, 2, 6), (90, 1, 3)],
)
@pytest.mark.parametrize("gram", GRAMS)
def test_all_columns_always_returned(n, p, k, gram, solver):
    # Tiny n, k close to n, and full Gram matrices of rank p < k.
    X = np.random.default_rng(1).standard_normal((n, p))
    G = GramOperator.of(X, gram)
    rng = np.random.default_rng(0)
    found = leading_eigenpairs(G, k, solver=solver, tol=1e-9, rng=rng)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-8)
    scale = np.abs(G.toarray()).max() + 1e-300
    assert_allclose(found.values, oracle(G, k, "algebraic")[0], atol=1e-7 * scale * n)


@pytest.mark.parametrize("solver", ["lanczos", "block"])
def test_repeated_eigenvalues(solver):
    # Four identical blocks: every leading eigenvalue of the full Gram appears 4 times.
    X = np.kron(np.eye(4), np.ones((40, 3)))
    G = GramOperator.of(X, "full")
    rng = np.random.default_rng(0)
    found = leading_eigenpairs(G, 4, solver=solver, tol=1e-9, rng=rng)
    assert_allclose(found.values, 120, rtol=1e-9)
    indicator = np.kron(np.eye(4), np.ones((40, 1))) / np.sqrt(40)
    assert_allclose(np.linalg.svd(indicator.T @ found.vectors)[1], 1, atol=1e-8)


def test_zero_matrix():
    G, rng = GramOperator.of(np.zeros((200, 5))), np.random.default_rng(0)
    found = leading_eigenpairs(G, 3, solver="block", rng=rng)
    assert_allclose(found.values, 0)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-8)


def test_many_large_rows_hide_nothing_from_algebraic_order():
    # Forty rows 40 times larger: forty large negative eigenvalues.
    X, _ = make_ihgmm(400, 30, 3, separation=3.0, scale_ratio=2, random_state=0)
    X[:40] *= 40
    G = GramOperator.of(X)
    rng = np.random.default_rng(0)
    found = leading_eigenpairs(G, 3, solver="block", tol=1e-10, rng=rng)
    assert_eigenpairs(found, G, 3, "algebraic", 1e-8)


def test_multiple_eigenvalues_that_the_dense_solver_cuts():
    X = np.random.default_rng(3011).standard_normal((50, 3))
    G = GramOperator.of(X, "cosine")
    values, _ = oracle(G, 4, "algebraic")
    assert_allclose(leading_eigenpairs(G, 4).values, values, atol=1e-10)


def test_start_from_a_sample_of_rows_agrees():
    X, _ = make_ihgmm(800, 12, 3, separation=2.0, scale_ratio=3, random_state=0)
    assert sample_size(800, 12, X.size, 8) == 50  # this path is taken
    G = GramOperator.of(X)
    rng = np.random.default_rng(0)
    found = leading_eigenpairs(G, 3, solver="block", tol=1e-10, rng=rng)
    assert_eigenpairs(found, G, 3, "algebraic", 1e-8)


# Less and less noise: at first the start is too rough, in the end it will do.
@pytest.mark.parametrize(
    ("constant", "large_row", "accepted", "gram"),
    [
        (0.02, 1, False, "cosine"),
        (3, 1, None, "full"),
        (3, 300, None, "hollow"),
        (30, 1, True, "hollow"),
    ],
)
def test_a_sample_of_rows_may_end_the_search(gram, constant, large_row, accepted):
    tol, shape = 1e-2, (8_400, 1_200)
    X, _ = make_ihgmm(
        *shape, 3, separation_constant=constant, random_state=0, dtype=np.float32
    )
    X[7] *= large_row
    assert check_size(len(X), X.size) > 0
    assert sample_size(*shape, X.size, 8) == len(X) // 16
    G = GramOperator.of(X, gram)
    found = leading_eigenpairs(
        G, 3, solver="block", tol=tol, rng=np.random.default_rng(0), quiet=True
    )
    exact = leading_eigenpairs(
        G, 3, solver="lanczos", tol=1e-5, rng=np.random.default_rng(0)
    )
    if accepted is not None:
        assert (found.n_iter == 1) == accepted
    cosines = np.linalg.svd(exact.vectors.T @ found.vectors)[1]
    assert np.sqrt(max(1 - cosines.min() ** 2, 0)) <= tol + 1e-3


def test_tolerance_bounds_the_angle():
    X, _ = make_ihgmm(1000, 150, 5, separation_constant=0.3, random_state=0)
    G = GramOperator.of(X)
    exact = oracle(G, 5, "algebraic")[1]
    products = []
    for tol in (1e-1, 1e-3, 1e-5):
        rng = np.random.default_rng(0)
        found = leading_eigenpairs(G, 5, solver="block", tol=tol, rng=rng)
        cosines = np.linalg.svd(exact.T @ found.vectors)[1]
        assert np.sqrt(max(1 - cosines.min() ** 2, 0)) <= tol
        products.append(found.n_iter)
    assert products == sorted(products)


def test_float32_stays_float32_and_is_accurate():
    X, _ = make_ihgmm(1000, 200, 4, random_state=0)
    values, _ = oracle(GramOperator.of(X), 4, "algebraic")
    for solver in SOLVERS:
        G = GramOperator.of(X.astype(np.float32))
        rng = np.random.default_rng(0)
        found = leading_eigenpairs(G, 4, solver=solver, tol=1e-4, rng=rng)
        assert found.vectors.dtype == np.float32
        assert found.values.dtype == np.float64
        assert_allclose(found.values, values, rtol=1e-4)


def test_cap_warns_with_the_residual():
    G = GramOperator.of(np.random.default_rng(0).standard_normal((400, 300)))
    options = {"solver": "block", "tol": 1e-8, "max_products": 2}
    with pytest.warns(ConvergenceWarning, match=r"2 products: residual \d\.\de-0\d"):
        found = leading_eigenpairs(G, 3, rng=np.random.default_rng(0), **options)
    leading_eigenpairs(G, 3, quiet=True, **options)
    assert found.vectors.shape == (400, 3)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-8)


def test_signs_and_seed():
    G = GramOperator.of(np.random.default_rng(0).standard_normal((300, 20)))
    for solver in SOLVERS:
        one, two = (
            leading_eigenpairs(G, 3, solver=solver, rng=np.random.default_rng(7))
            for _ in range(2)
        )
        peak = np.abs(one.vectors).argmax(axis=0)
        assert (one.vectors[peak, range(3)] > 0).all()
        np.testing.assert_array_equal(one.vectors, two.vectors)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.skipif(
    "rng" not in signature(eigsh).parameters,
    reason="SciPy before 1.17 draws vectors that no seed rules",
)
def test_same_seed_same_labels_of_degenerate_data():
    """ARPACK meets an invariant subspace at once, and draws vectors to go on."""
    X = np.kron(np.eye(6), np.ones((20, 4)))
    fits = [
        IhSC(4, recipe=Recipe(gram="full", solver="lanczos"), random_state=3).fit(X)
        for _ in range(3)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.labels_, fits[0].labels_)
        np.testing.assert_array_equal(fit.embedding_, fits[0].embedding_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k=0 eigenpairs of a 5 by 5 matrix: take 1 to 5"),
        ({"k": 6}, "k=6 eigenpairs"),
        ({"k": 2, "order": "up"}, "order='up'"),
        ({"k": 2, "solver": "magic"}, "solver='magic'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        leading_eigenpairs(GramOperator.of(np.eye(5)), **options)


@pytest.mark.parametrize("solver", ["dense", "lanczos", "block"])
@pytest.mark.parametrize("order", ["algebraic", "magnitude"])
@pytest.mark.parametrize("extra", [1, 4, 12])
def test_eigenpairs_beyond(solver, order, extra):
    X, _ = make_ihgmm(400, 60, 3, random_state=0)
    G = GramOperator.of(X)
    values = np.linalg.eigvalsh(G.toarray())
    sizes = np.abs(values) if order == "magnitude" else values
    wanted = values[np.argsort(-sizes)][: 3 + extra]
    options = {"order": order, "solver": solver, "rng": np.random.default_rng(0)}
    found = leading_eigenpairs(G, 3, extra=extra, tol=1e-6, **options)
    assert found.vectors.shape == (400, 3 + extra)
    assert_allclose(found.values[:3], wanted[:3], rtol=1e-8)
    # Those of noise are as good as their weight asks for; Ritz values never exceed.
    assert_allclose(found.values[3:], wanted[3:], atol=0.05 * wanted[2])
    U = found.vectors
    assert_allclose(U.T @ U, np.eye(3 + extra), atol=1e-8)


@pytest.mark.parametrize("solver", ["dense", "block"])
def test_eigenpairs_beyond_that_count_are_accurate(solver):
    # Six directions of which three are asked for: the others have weight.
    X, _ = make_ihgmm(600, 60, 6, random_state=0)
    G = GramOperator.of(X)
    values, vectors = np.linalg.eigh(G.toarray())
    rng = np.random.default_rng(0)
    found = leading_eigenpairs(G, 3, extra=5, tol=1e-3, solver=solver, rng=rng)
    lead = vectors[:, ::-1][:, :6]
    missing = found.vectors[:, :6] - lead @ (lead.T @ found.vectors[:, :6])
    assert np.linalg.norm(missing, axis=0).max() < 0.1
    assert_allclose(found.values[:6], values[::-1][:6], rtol=1e-2)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gram", GRAMS)
def test_many_directions_start_from_all_features(storage, gram):
    # Of 150 features more than a third are wanted: their Gram matrix shows them all,
    # and what is removed from the diagonal is a matter of one product, if any.
    X, _ = make_ihgmm(900, 150, 40, separation=6.0, random_state=0)
    G = GramOperator.of(storage(X), gram)
    rng = np.random.default_rng(0)
    found = leading_eigenpairs(G, 40, extra=22, solver="block", tol=1e-2, rng=rng)
    values, vectors = oracle(G, 40, "algebraic")
    assert_allclose(found.values[:40], values, rtol=1e-3)
    cosines = np.linalg.svd(vectors.T @ found.vectors[:, :40])[1]
    assert cosines.min() > np.cos(0.01)
    assert found.n_iter <= 1
    assert_allclose(found.adjoint, G.A.adjoint(found.vectors), atol=1e-8 * values[0])


def test_a_filled_in_diagonal_starts_from_known_eigenpairs():
    X, _ = make_ihgmm(3_000, 100, 20, noise_levels=(0.3, 2.7), random_state=0)
    G = GramOperator.of(X)
    known = leading_eigenpairs(G, 20, extra=5, tol=1e-6, rng=np.random.default_rng(0))
    found = impute_diagonal(G, 20, start=known, tol=1e-6).pairs
    assert len(found.values) == 25
    cold = impute_diagonal(G, 20, tol=1e-6).pairs
    assert_allclose(found.values[:20], cold.values, rtol=1e-8)
