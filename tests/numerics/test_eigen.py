"""Eigenpairs of the paper's Gram matrix, and directions, against those of NumPy."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from matrix.array_kinds import dask_dense, memory_map, opened, torch_cpu
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import make_ihgmm
from ihgmm.matrix import Scaled, as_matrix
from ihgmm.numerics.eigen import GramOperator, leading_directions, leading_eigenpairs
from ihgmm.numerics.krylov import ORDERS


def oracle(matrix, k, order="algebraic"):
    values, vectors = np.linalg.eigh(matrix)
    lead = np.argsort(-values if order == "algebraic" else -np.abs(values))[:k]
    return values[lead], vectors[:, lead]


def assert_pairs(pairs, matrix, k, order="algebraic", tol=1e-10):
    values, vectors = oracle(matrix, k, order)
    scale = np.abs(values).max()

    assert pairs.values.shape == (k,)
    assert_allclose(pairs.values, values, atol=tol * scale)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=tol)
    # Each vector up to sign: these data have simple leading eigenvalues.
    assert_allclose(np.abs(np.sum(pairs.vectors * vectors, axis=0)), 1, atol=tol)

    residual = matrix @ pairs.vectors - pairs.vectors * pairs.values

    assert np.linalg.norm(residual, axis=0).max() <= tol * scale

    peaks = np.abs(pairs.vectors).argmax(axis=0)

    assert (pairs.vectors[peaks, range(k)] > 0).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_operator_is_the_matrix(kind, weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25, 6)) * np.r_[np.ones(23), 60, 0][:, None]
    data = as_matrix(kind(X))
    expected = X @ X.T
    if weighted:  # a weight is a row times its root
        weights = np.append(0.0, rng.gamma(2.0, size=24))
        data = data.weighted(weights)
        expected *= np.sqrt(np.outer(weights, weights)) / weights.mean()
    np.fill_diagonal(expected, 0)
    G = GramOperator.of(data)

    assert_allclose(G @ np.eye(25), expected, atol=1e-11)
    assert_allclose(G @ np.ones(25), expected.sum(axis=1), atol=1e-10)
    assert_allclose(G.toarray(), expected, atol=1e-11)
    assert_array_equal(np.diag(G.toarray()), 0)  # exactly


@pytest.fixture(params=["plain", "one large row", "many large rows"])
def X(request):
    X, _ = make_ihgmm(200, 60, 4, separation=4.0, scale_ratio=5, random_state=3)
    if request.param == "one large row":
        X[17] *= 60
    elif request.param == "many large rows":  # as many large negative eigenvalues
        X[:40] *= 40
    return X


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dense", [True, False])
def test_agrees_with_dense_oracle(X, dense, storage, order):
    G = GramOperator.of(storage(X))
    pairs = leading_eigenpairs(G, 4, order=order, dense=dense, tol=1e-11)

    assert_pairs(pairs, G.toarray(), 4, order)
    assert (pairs.n_iter == 0) == dense


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(
    ("n", "p", "k"),
    [(1, 3, 1), (2, 2, 2), (3, 5, 3), (5, 4, 4), (10, 3, 9), (120, 2, 6), (90, 1, 3)],
)
def test_all_columns_always_returned(n, p, k, dense):
    # Tiny n, and k close to n.
    X = np.random.default_rng(1).standard_normal((n, p))
    G = GramOperator.of(X)
    pairs = leading_eigenpairs(G, k, dense=dense, tol=1e-9)

    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-8)

    values, _ = oracle(G.toarray(), k)

    assert_allclose(pairs.values, values, atol=1e-7 * (np.abs(values).max() or 1))


# Directions: by rows, by features, from random directions, and from a sample of rows

EXACT = {"rows": (60, 200), "features": (900, 40)}
ITERATED = {
    "wide": (500, 700),
    "by rows": (350, 1400),
    "tall": (1500, 500),
    "sampled": (40_000, 250),
}
SHAPES = EXACT | ITERATED


@cache
def rows_of(route):
    X, _ = make_ihgmm(*SHAPES[route], 3, separation_constant=0.5, random_state=0)
    X[np.abs(X) < 0.5] = 0  # as sparse data have zeros
    X.flags.writeable = False
    return X


def directions(A, route, **options):
    """Return directions; how they were found shows in the number of products."""
    pairs = leading_directions(A, 3, tol=1e-11, **options)

    assert bool(pairs.n_iter) == (route in ITERATED)
    assert pairs.vectors.dtype == pairs.values.dtype == np.float64

    return pairs


@pytest.mark.parametrize("route", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_directions_are_right_singular_vectors(route, weighted):
    X = rows_of(route)
    A = as_matrix(X)
    if weighted:
        roots = np.sqrt(np.random.default_rng(0).gamma(2.0, size=len(X)))
        A = Scaled(A, rows=roots)
        X = X * roots[:, None]

    assert_pairs(directions(A, route), X.T @ X, 3)


@pytest.mark.parametrize("route", SHAPES)
def test_directions_of_float32_lose_nothing_that_it_holds(route):
    X = rows_of(route).astype(np.float32)
    exact = X.astype(np.float64)

    assert_pairs(directions(as_matrix(X), route), exact.T @ exact, 3, tol=1e-5)


def test_directions_beyond_are_as_accurate_as_their_weight():
    # Six clusters, of which three are asked for: the others have weight.
    X, _ = make_ihgmm(1500, 500, 6, random_state=0)
    pairs = leading_directions(as_matrix(X), 3, 5, tol=1e-3)
    values, vectors = oracle(X.T @ X, 8)

    assert_allclose(pairs.values[:6], values[:6], rtol=1e-2)

    lead = vectors[:, :6]
    residual = pairs.vectors[:, :6] - lead @ (lead.T @ pairs.vectors[:, :6])

    assert np.linalg.norm(residual, axis=0).max() < 0.1


@pytest.mark.parametrize("route", SHAPES)
def test_every_kind_of_array_gives_the_same_directions(route, tmp_path):
    X = rows_of(route)  # the way to them goes by the shape alone
    expected = leading_directions(as_matrix(X), 3, 4, tol=1e-2)
    holds = [lambda X, folder: sp.csr_array(X), memory_map, dask_dense, torch_cpu]
    for hold in holds:
        A = opened(hold(X, tmp_path), n_bytes=2**20)
        pairs = leading_directions(A, 3, 4, tol=1e-2)
        assert_allclose(pairs.values, expected.values, rtol=1e-8)
        # Eigenvalues of noise are close to each other, and turn more easily.
        assert_allclose(pairs.vectors, expected.vectors, atol=1e-7)


def reconstructed(pairs):
    """Return ``A.T @ A`` as pairs have it."""
    return pairs.vectors * pairs.values @ pairs.vectors.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_wide_rows_of_low_rank_are_reconstructed(rank, dtype):
    n, p = ITERATED["by rows"]
    rng = np.random.default_rng(rank)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    X = X.astype(dtype)
    pairs = leading_directions(as_matrix(X), 3, 4)

    n_directions = min(rank, 7)
    gram = pairs.vectors[:, :n_directions].T @ pairs.vectors[:, :n_directions]
    exact = X.astype(np.float64)
    largest = pairs.values[0]

    assert pairs.n_iter
    assert_allclose(gram, np.eye(n_directions), atol=1e-5)
    assert_allclose(pairs.values[rank:] / largest, 0, atol=1e-5)
    assert_allclose(
        reconstructed(pairs) / largest, exact.T @ exact / largest, atol=1e-5
    )


def test_wide_rows_that_are_equal_have_one_direction():
    n, p = ITERATED["by rows"]
    row = np.random.default_rng(0).standard_normal(p)
    pairs = leading_directions(as_matrix(np.tile(row, (n, 1))), 3)
    unit_row = row / np.linalg.norm(row)

    assert_allclose(abs(unit_row @ pairs.vectors[:, 0]), 1, rtol=1e-12)
    assert_allclose(pairs.values[0], n * row @ row, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_wide_rows_of_any_size_have_the_same_directions(size):
    X = rows_of("by rows")
    unit_of_power_of_two = 2.0 ** np.round(np.log2(size))
    expected = leading_directions(as_matrix(X), 3)
    pairs = leading_directions(as_matrix(X * unit_of_power_of_two), 3)

    assert_allclose(pairs.vectors, expected.vectors, atol=1e-12)
