"""The map from rows to coordinates, against eigenvectors of dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from ihgmm.numerics.hetero import impute_diagonal
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.matrix import as_matrix, to_host
from ihgmm.numerics.eigen import leading_eigenpairs
from ihgmm.numerics.embedding import SPACES, Embedding
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.krylov import signal_weights

K, EXTRA = 3, 4
SETTINGS = {
    "zero": {"gram": "hollow"},
    "zero, clipped": {"gram": "hollow", "clip": 1.0},
    "full": {"gram": "full"},
    "full, clipped": {"gram": "full", "clip": 0.5},
    "cosine": {"gram": "cosine"},
    "imputed": {"gram": "hetero"},
    "imputed, clipped": {"gram": "hetero", "clip": 1.0},
}


@pytest.fixture
def X():
    X, _ = make_ihgmm(70, 25, K, separation_constant=0.3, random_state=0)
    X[4] *= 30
    X[9] = 0
    return X


@pytest.fixture(params=list(SETTINGS))
def setting(request):
    return request.param


def embed(A, setting, extra=0):
    """Return the map of a setting, and the eigenpairs it comes from."""
    G = GramOperator.of(A, **SETTINGS[setting])
    diagonal = "full" if setting.startswith("full") else "zero"
    if setting.startswith("imputed"):
        diagonal, G = "imputed", impute_diagonal(G, K, tol=1e-11, max_iter=5000).gram
    pairs = leading_eigenpairs(G, K + extra, solver="dense")
    return Embedding.of(G, pairs, K, diagonal), pairs, G


def lengthened(X, setting, longest=None):
    """Return rows as they enter the matrix, and the length beyond which it is less."""
    norms = np.linalg.norm(X, axis=1)
    clip = SETTINGS[setting].get("clip")
    if setting == "cosine":
        return X / np.where(norms > 0, norms, 1)[:, None]
    if clip is None:
        return X
    longest = clip * np.median(norms[norms > 0]) if longest is None else longest
    return X * np.minimum(longest / np.where(norms > 0, norms, 1), 1)[:, None]


@pytest.mark.parametrize("extra", [0, EXTRA])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_coordinates_of_the_rows_are_the_eigenvectors(X, setting, extra, storage):
    embedding, pairs, G = embed(X, setting, extra)
    # The oracle: LAPACK, from a matrix that NumPy makes.
    A = lengthened(X, setting)
    dense = A @ A.T
    if setting.startswith("imputed"):
        np.fill_diagonal(dense, np.diag(G.toarray()))
    elif not setting.startswith("full"):
        np.fill_diagonal(dense, 0)
    values, vectors = np.linalg.eigh(dense)
    values, vectors = values[::-1][: K + extra], vectors[:, ::-1][:, : K + extra]
    assert_allclose(embedding.eigenvalues, values, rtol=1e-9)
    signs = np.sign(np.sum(vectors * pairs.vectors, axis=0))
    found = embedding.coordinates(as_matrix(storage(X)))
    sure = np.arange(70)
    if setting == "imputed":
        # Where one row is most of an eigenvector, two coordinates solve its equation,
        # and the smaller is taken. Clipped rows are never so large.
        assert 0.9 < vectors[4, 0] * signs[0] != found[4, 0]
        sure = np.delete(sure, 4)
    assert_allclose(found[sure], (vectors * signs)[sure], atol=1e-7)
    assert_array_equal(found[9], 0)


def test_an_imputed_diagonal_is_that_of_the_approximation(X):
    embedding, pairs, G = embed(X, "imputed", EXTRA)
    lead = np.minimum(pairs.vectors[:, :K] ** 2 @ pairs.values[:K], (X**2).sum(axis=1))
    assert_allclose(np.diag(G.toarray()), lead, rtol=1e-5, atol=1e-7 * lead.max())
    assert embedding.rank == K


def test_new_rows_solve_the_same_equation(X, setting):
    embedding, pairs, _ = embed(X, setting, EXTRA)
    new = make_ihgmm(30, 25, K, separation_constant=0.3, random_state=1)[0]
    new[3] = 0
    new[5] *= 100
    found = embedding.coordinates(as_matrix(new))
    norms = np.linalg.norm(X, axis=1)
    clip = SETTINGS[setting].get("clip")
    longest = None if clip is None else clip * np.median(norms[norms > 0])
    rows = lengthened(new, setting, longest)
    own = (rows**2).sum(axis=1)
    directions = lengthened(X, setting).T @ pairs.vectors
    removed = np.zeros_like(own)
    if not setting.startswith("full"):
        removed = own
    if setting.startswith("imputed"):
        removed = own - np.minimum(found[:, :K] ** 2 @ pairs.values[:K], own)
    left = rows @ directions - removed[:, None] * found
    assert_allclose(left, found * pairs.values, atol=1e-6 * np.abs(left).max())
    assert_array_equal(found[3], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_placed_by_itself(X, dtype):
    A = as_matrix(X.astype(dtype))
    embedding, _, _ = embed(A, "imputed")
    together = embedding.coordinates(A)
    alone = np.concatenate([embedding.coordinates(A.take([i])) for i in range(70)])
    eps = np.finfo(dtype).eps
    assert_allclose(alone, together, rtol=0, atol=100 * eps * np.abs(together).max())


def test_cosines_do_not_depend_on_scales(X):
    embedding, _, _ = embed(X, "cosine")
    scales = np.random.default_rng(0).uniform(0.01, 100, (70, 1))
    one, two = (embedding.coordinates(as_matrix(Y)) for Y in (X, X * scales))
    assert_allclose(one, two, atol=1e-12)


def test_a_clipped_row_is_placed_as_a_shorter_one(X):
    embedding, _, _ = embed(X, "zero, clipped")
    row = X[[0]] * embedding.longest / np.linalg.norm(X[0])
    one, two = (embedding.coordinates(as_matrix(row * by)) for by in (1.0, 1e6))
    assert_allclose(one, two, rtol=1e-9)


@pytest.mark.parametrize("power", [-40, 13])
def test_another_unit(X, setting, power):
    embedding, _, _ = embed(X, setting)
    wanted = embedding.coordinates(as_matrix(X))
    other = as_matrix(X).rescaled(2.0**power)  # the same data, in another unit
    assert other.unit == 2.0**-power
    assert_allclose(embedding.coordinates(other), wanted, atol=1e-12)
    again, _, _ = embed(other, setting)
    assert again.unit == other.unit
    assert_allclose(again.coordinates(as_matrix(X)), wanted, atol=1e-8)


@pytest.mark.parametrize(
    ("library", "dtype"), [("torch", np.float32), ("array_api_strict", np.float64)]
)
def test_coordinates_are_where_the_data_is(X, setting, library, dtype):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    X = X.astype(dtype)
    embedding, _, _ = embed(X, setting)
    wanted = embedding(as_matrix(X))
    data = xp.asarray(X)
    found = embedding(as_matrix(data))
    assert type(found) is type(data)
    assert found.dtype == data.dtype
    tol = 1e-3 if dtype == np.float32 else 1e-9
    assert_allclose(to_host(found), wanted, atol=tol)
    assert wanted.dtype == dtype


def test_rows_are_weighted_and_have_unit_norm(X):
    embedding, pairs, _ = embed(X, "zero", EXTRA)
    weights = np.array([1.0, 1.0, 1.0, 0.5, 0.0, 0.25, 0.0])
    lighter = embedding.weighted(weights)
    assert_array_equal(lighter.eigenvalues, pairs.values[[0, 1, 2, 3, 5]])
    live = np.delete(np.arange(70), 9)
    for space in SPACES:
        inner = lighter.in_space(space)
        rows = inner(as_matrix(X))
        wanted = pairs.vectors[:, [0, 1, 2, 3, 5]] * weights[[0, 1, 2, 3, 5]]
        if space == "projected":
            wanted = wanted * inner.lengths
        wanted = wanted[live] / np.linalg.norm(wanted[live], axis=1, keepdims=True)
        assert_allclose(rows[live], wanted, atol=1e-7)
        assert_array_equal(rows[9], 0)


def test_the_leading_directions_stay_whatever_their_weight(X):
    embedding, _, _ = embed(X, "zero", EXTRA)
    none = embedding.weighted(np.zeros(K + EXTRA))
    assert none.directions.shape == (25, K)


@pytest.mark.parametrize("setting", ["full", "imputed"])
def test_lengths_are_those_of_the_data_along_directions(X, setting):
    embedding, pairs, _ = embed(X, setting)
    assert_allclose(embedding.lengths**2, pairs.values, rtol=1e-8)


def test_directions_without_data_have_no_weight():
    # Rows of rank two: the third eigenvector is rounding.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 10))
    embedding, _, _ = embed(X, "full")
    assert_array_equal(embedding.weights, [1, 1, 0])
    assert_array_equal(embedding.coordinates(as_matrix(X))[:, 2], 0)


# Which directions count


def test_weights_of_directions():
    values = np.array([100.0, 50.0, 30.0, 11.0, 10.5, 10.0])
    found = signal_weights(values, 2)
    shares = (values[2:] - 10) / 40
    wanted = np.sqrt(np.maximum(shares - 0.05, 0) / 0.95)
    assert_allclose(found, [1, 1, *wanted])
    assert_array_equal(found[3:], 0)
    assert_allclose(signal_weights(7 * values, 2), found)  # whatever the unit
    assert_array_equal(signal_weights(values[:2], 2), 1)
    assert_array_equal(signal_weights(np.ones(5), 2), [1, 1, 0, 0, 0])


@pytest.mark.parametrize(
    ("n", "p", "k"), [(1000, 200, 4), (300, 300, 4), (200, 3000, 4), (400, 400, 8)]
)
def test_under_the_model_directions_are_those_of_the_paper(n, p, k):
    for seed, noise in enumerate(("gaussian", "rademacher")):
        X, _ = make_ihgmm(n, p, k, noise=noise, random_state=seed)
        paper = IhSC.paper(k, tol=1e-9, random_state=0).fit(X)
        recipe = Recipe(clip=None, gram="hollow", space="eigenvectors", tol=1e-9)
        model = IhSC(k, recipe=recipe, random_state=0).fit(X)
        assert model.embedding_.shape == paper.embedding_.shape == (n, k)
        assert_allclose(model.embedding_, paper.embedding_, atol=1e-6)
        assert_allclose(model.eigenvalues_, paper.eigenvalues_, rtol=1e-9)
        default = IhSC(k, random_state=0).fit(X)
        assert default.embedding_.shape == (n, k)
        assert_array_equal(default.labels_, paper.labels_)
