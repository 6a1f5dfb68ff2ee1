"""Neighbours that teach the rule: ties, weights, few rows, small clusters."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.neighbor_walk import Cosines, NeighborGraph


def graph_of(n, n_neighbors, weights=None):
    return NeighborGraph(
        n_neighbors=np.full(n, n_neighbors),
        weights=np.ones(n) if weights is None else weights,
        signed=False,
    )


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def naive_step(rows, n_neighbors):
    """Return one step of the walk, row by row; no two rows are as near."""
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -np.inf)
    links = np.zeros_like(cosines)
    for i, row in enumerate(cosines):
        links[i, np.argsort(-row)[:n_neighbors]] = 1
    step = (links + links.T) / 2 + np.eye(len(rows))
    return step / step.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [5, 40, 300])
def test_a_step_goes_to_the_nearest_rows(n):
    rows = unit(np.random.default_rng(0).standard_normal((n, 6)))

    step = graph_of(n, 3).walk(Cosines(rows)).toarray()

    np.testing.assert_allclose(step, naive_step(rows, 3), atol=1e-12)


def test_rows_that_are_as_near_share_what_is_left():
    # Three equal rows, and one apart: each of the three has two others for one link.
    rows = unit(np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]]))

    step = graph_of(4, 1).walk(Cosines(rows)).toarray()

    np.testing.assert_allclose(step[0, 1], step[0, 2])
    np.testing.assert_allclose(step[0, 1], step[1, 2])


def test_a_row_of_weight_two_is_two_neighbours():
    degrees = np.radians([0, 5, 20, 90, 95, 110])
    rows = np.column_stack([np.cos(degrees), np.sin(degrees)])
    weights = np.array([1.0, 2, 1, 1, 1, 1])
    repeated_rows = rows[[0, 1, 1, 2, 3, 4, 5]]

    weighted = graph_of(6, 2, weights).walk(Cosines(rows)) @ rows
    repeated = graph_of(7, 2).walk(Cosines(repeated_rows)) @ repeated_rows
    alike = graph_of(6, 2).walk(Cosines(rows)) @ rows

    np.testing.assert_allclose(weighted[0], repeated[0])
    assert np.abs(alike[0] - repeated[0]).max() > 0.01


def test_one_row_has_no_neighbours():
    step = graph_of(1, 0).walk(Cosines(np.ones((1, 1))))

    assert step.toarray() == [[1.0]]


WHOLE_NUMBERS = {
    "iris": load_iris().data,
    "zeros and ones": (np.random.default_rng(0).random((300, 12)) < 0.4) * 1.0,
    "answers": np.random.default_rng(0).integers(1, 6, (300, 10)) * 1.0,
    "duplicates": np.repeat(np.random.default_rng(1).random((60, 8)), 5, axis=0),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_neither_order_nor_scale_of_rows_changes_a_label(name):
    X = WHOLE_NUMBERS[name]
    X = X[X.any(axis=1)]
    rng = np.random.default_rng(0)
    labels = IhSC(5).fit(X).labels_

    for _ in range(3):
        order = rng.permutation(len(X))
        factors = 10 ** rng.uniform(-6, 6, (len(X), 1))
        labels_found = IhSC(5).fit((factors * X)[order]).labels_
        assert misclassification_rate(labels[order], labels_found) == 0


def test_a_cluster_of_most_rows_loses_no_small_one():
    # Seven of eight clusters have seven rows: ten neighbours would be of others.
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        patterns = 20 * np.linalg.qr(rng.standard_normal((100, 8)))[0].T
        kinds = np.r_[np.zeros(351, int), np.repeat(np.arange(1, 8), 7)]
        X = rng.lognormal(0, 0.5, (400, 1)) * patterns[kinds]
        X += rng.standard_normal(X.shape)
        errors.append(misclassification_rate(kinds, IhSC(8).fit_predict(X)))

    assert max(errors) < 0.01


def test_neighbours_are_left_out_where_a_recipe_says_so_or_clusters_are_few():
    X, _ = make_ihgmm(300, 50, 3, separation_constant=0.3, random_state=0)
    without = Recipe(neighbors=False)

    assert np.array_equal(
        IhSC(3).fit(X).labels_, IhSC(3, recipe=without).fit(X).labels_
    )
