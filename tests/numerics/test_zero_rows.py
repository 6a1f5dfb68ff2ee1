"""Rows of zeros: label 0 wherever rows are compared by direction."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ihgmm import make_ihgmm
from ihgmm.matrix import HOST, as_matrix
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.numerics.placement import CosinePlacement, Placement
from ihgmm.numerics.recipe import PSC
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.numerics.zero_rows import ZERO_ROW_LABEL, label_zero_rows, nonzero_rows

K = 3
ZERO_ROWS = [0, 7, 59]


@pytest.fixture
def sample():
    """Return data with rows of zeros, and kinds, of which 0 has the fewest rows."""
    X, kinds = make_ihgmm(60, 20, K, separation_constant=1.0, random_state=0)
    kinds = np.argsort(np.argsort(np.bincount(kinds)))[kinds]
    X[ZERO_ROWS] = 0
    return as_matrix(X), kinds


def test_nonzero_rows_are_the_others(sample):
    X, _ = sample

    assert_array_equal(
        nonzero_rows(X).positions(), np.setdiff1d(np.arange(60), ZERO_ROWS)
    )
    assert_array_equal(label_zero_rows(X, np.full(60, 2))[ZERO_ROWS], ZERO_ROW_LABEL)


@pytest.mark.parametrize("signed", [False, True])
def test_they_are_in_the_largest_cluster(sample, signed):
    X = sample[0].with_signed(signed)
    fit = spectral_clustering(X, K)

    assert_array_equal(fit.labels[ZERO_ROWS], 0)
    assert_array_equal(fit.placement(X), fit.labels)

    sizes = np.bincount(np.delete(fit.labels, ZERO_ROWS))

    assert sizes.argmax() == 0

    if signed:
        assert_array_equal(fit.signs[ZERO_ROWS], 1)


@pytest.mark.parametrize("known", ["classes", "start"])
def test_they_are_in_cluster_0_where_known_labels_give_the_numbers(sample, known):
    X, kinds = sample
    fit = spectral_clustering(X, K, known_labels=KnownLabels(**{known: kinds}))

    assert_array_equal(fit.labels[ZERO_ROWS], 0)
    assert_array_equal(fit.placement(X), fit.labels)

    sizes = np.bincount(np.delete(fit.labels, ZERO_ROWS))

    assert sizes.argmin() == 0


def test_they_have_no_cosine(sample):
    X, _ = sample
    directions = -HOST.unit_rows(X.toarray()[[1, 2, 3]])

    assert_array_equal(CosinePlacement(directions)(X)[ZERO_ROWS], 0)


def test_where_the_origin_is_a_point_they_are_placed_as_other_rows(sample):
    X, _ = sample
    fit = spectral_clustering(X, K, PSC)
    embedding = fit.placement.embedding
    order = np.array([1, 2, 0])
    placement = Placement(embedding, fit.placement.rule.in_order(order))

    expected = np.argsort(order)[fit.labels]

    assert_array_equal(placement(X), expected)
    assert len(set(fit.labels[ZERO_ROWS])) == 1
    assert placement(X)[ZERO_ROWS[0]] != fit.labels[ZERO_ROWS[0]]
