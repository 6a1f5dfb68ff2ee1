"""The map from rows to coordinates, against eigenvectors of dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.matrix import as_matrix
from ihgmm.numerics.embedding import SPACES, Embedding
from ihgmm.numerics.spectral import spectral_clustering

K = 3  # directions
ZERO = 9  # the row that is zero
# Whether rows have unit length, and whether their Gram matrix has a zero diagonal
SETTINGS = {"unit": (True, False), "full": (False, False), "zero": (False, True)}
every = pytest.mark.parametrize("setting", SETTINGS)


@pytest.fixture
def X():
    X, _ = make_ihgmm(70, 25, K, separation_constant=0.3, random_state=0)
    X[4] *= 30
    X[ZERO] = 0
    return X


def units(X):
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1)


def embed(X, setting, count=K, **options):
    """Return the map of a setting, and the eigenpairs of LAPACK it comes from."""
    unit, hollow = SETTINGS[setting]
    A = units(X) if unit else X
    gram = A @ A.T
    if hollow:
        np.fill_diagonal(gram, 0)
    values, vectors = np.linalg.eigh(gram)
    values = values[::-1][:count]
    vectors = vectors[:, ::-1][:, :count]
    weights = np.ones(count)
    embedding = Embedding(
        directions=A.T @ vectors,
        eigenvalues=values,
        weights=weights,
        unit_rows=unit,
        hollow=hollow,
        **options,
    )
    return embedding, values, vectors


@every
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_coordinates_of_the_rows_are_the_eigenvectors(X, setting, storage):
    embedding, _, vectors = embed(X, setting, K + 4)
    coordinates = embedding.coordinates(as_matrix(storage(X)))

    assert_allclose(coordinates, vectors, atol=1e-10)
    assert_array_equal(coordinates[ZERO], 0)


@every
def test_new_rows_solve_the_same_equation(X, setting):
    embedding, values, _ = embed(X, setting)
    new_rows, _ = make_ihgmm(30, 25, K, separation_constant=0.3, random_state=1)
    new_rows[3] = 0
    new_rows[5] *= 100
    coordinates = embedding.coordinates(as_matrix(new_rows))
    unit, hollow = SETTINGS[setting]
    rows = units(new_rows) if unit else new_rows
    residual = rows @ embedding.directions
    if hollow:
        residual = residual - (rows**2).sum(axis=1, keepdims=True) * coordinates

    assert_allclose(residual, coordinates * values, atol=1e-9 * np.abs(residual).max())
    assert_array_equal(coordinates[3], 0)


@every
@pytest.mark.parametrize("power", [-40, 13])
def test_another_unit(X, setting, power):
    embedding, _, vectors = embed(X, setting)
    rescaled = as_matrix(X).rescaled(2.0**power)  # the same data, in another unit

    assert rescaled.unit == 2.0**-power
    assert_allclose(embedding.coordinates(rescaled), vectors, atol=1e-10)

    rescaled_embedding, _, vectors = embed(
        rescaled.toarray(), setting, unit=rescaled.unit
    )

    assert_allclose(rescaled_embedding.coordinates(as_matrix(X)), vectors, atol=1e-10)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("unit_norm", [True, False])
def test_rows_are_weighted_coordinates(X, space, unit_norm):
    embedding, values, vectors = embed(X, "unit", 5, unit_norm=unit_norm)
    weights = np.array([1.0, 1.0, 1.0, 0.5, 0.25])
    rows = replace(embedding, weights=weights).in_space(space)(as_matrix(X))
    expected = vectors * weights
    expected[ZERO] = 0  # but for rounding it is
    if space == "projected":
        expected = expected * np.sqrt(values)

    assert_allclose(rows, units(expected) if unit_norm else expected, atol=1e-10)
    assert_array_equal(rows[ZERO], 0)


@pytest.mark.parametrize("space", SPACES)
def test_a_space_is_entered_once(X, space):
    embedding, _, _ = embed(X, "unit", 5)
    data = as_matrix(X)
    rows = embedding.in_space(space)(data)
    for first_space in SPACES:
        repeated = embedding.in_space(first_space).in_space(space)
        assert repeated.space == space
        assert_array_equal(repeated(data), rows)
        assert_array_equal(repeated.in_space(space)(data), rows)


def test_directions_without_data_are_left_out():
    # Rows of rank two: the third direction is rounding.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 10))
    for name in ("default", "psc"):
        recipe = Recipe.of(name, n_components=3)
        assert spectral_clustering(as_matrix(X), 3, recipe).rows.shape == (40, 2)


@pytest.mark.parametrize(
    ("n", "p", "k"), [(600, 200, 4), (200, 1000, 4), (400, 400, 8)]
)
def test_under_the_model_nothing_beyond_the_clusters_counts(n, p, k):
    for seed, noise in enumerate(("gaussian", "rademacher")):
        X, _ = make_ihgmm(n, p, k, noise=noise, random_state=seed)
        paper = IhSC.paper(k, tol=1e-9, random_state=0).fit(units(X))
        recipe = Recipe(space="eigenvectors", tol=1e-9)
        model = IhSC(k, recipe=recipe).fit(X)
        # On unit rows, the zero diagonal leaves the eigenvectors as they are.
        assert model.embedding_.shape == paper.embedding_.shape == (n, k)
        cosines = [rows @ rows.T for rows in (model.embedding_, paper.embedding_)]
        assert_allclose(*cosines, atol=1e-6)
        assert_allclose(model.eigenvalues_, paper.eigenvalues_ + 1, rtol=1e-9)
        default = IhSC(k).fit(X)
        assert default.embedding_.shape == (n, k)
        paper = IhSC.paper(k, random_state=0).fit(X)
        assert_array_equal(default.labels_, paper.labels_)
