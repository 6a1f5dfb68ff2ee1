import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.metrics import pairwise_distances_argmin

from ihgmm.matrix import HOST
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.labels import gain_of_lines, learn_rule
from ihgmm.numerics.rules import LinearRule


def noisy_simplex(n, k, noise, seed, sizes=None):
    """Rows near k orthogonal unit vectors: the embedding of the paper's Lemma 1."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, n, p=sizes)
    labels[:k] = np.arange(k)
    corners = ortho_group.rvs(k, random_state=seed) if k > 1 else np.eye(1)
    rows = corners[labels] + noise * rng.standard_normal((n, k))
    return HOST.unit_rows(rows), labels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_centre_is_a_linear_rule(dtype):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5_000, 4)).astype(dtype)
    centers = rng.standard_normal((7, 4))
    rule = LinearRule.nearest(centers)

    assert_array_equal(rule(HOST, rows), pairwise_distances_argmin(rows, centers))
    assert rule.scores(HOST, rows).dtype == dtype

    squares = ((rows[:, None] - centers) ** 2).sum(axis=2)
    shift = (rows.astype(float) ** 2).sum(axis=1, keepdims=True) / 2

    assert_allclose(rule.scores(HOST, rows), shift - squares / 2, atol=1e-4)


def test_long_clusters_are_not_cut_across():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, 500, p=[0.5, 0.3, 0.2])
        noise = rng.standard_normal((500, 3)) * [4.0, 1.0, 1.0]
        rows = 5 * np.array([[0.0, 0, 0], [1, 1, 0], [0, 1, 1]])[labels] + noise
        rates = {
            method: misclassification_rate(labels, rule(HOST, rows))
            for method in ("tied", "kmeans")
            for rule in [learn_rule([rows], 3, method, by_angle=False).rule]
        }
        assert rates["tied"] < 0.04
        assert rates["kmeans"] > 0.12


def test_rows_count_by_their_weights():
    """Rows given twice are rows that count twice; rows that count 0 say nothing."""
    for seed in range(5):
        rows, _ = noisy_simplex(400, 4, 0.3, seed)
        counts = np.random.default_rng(seed + 100).integers(0, 3, 400)
        weighted = learn_rule([rows], 4, weights=counts.astype(float)).rule
        repeated = learn_rule([np.repeat(rows, counts, axis=0)], 4).rule
        rate = misclassification_rate(weighted(HOST, rows), repeated(HOST, rows))
        assert rate <= 0.01  # pivots and BIC count rows


@pytest.mark.parametrize("common", [0.0, 0.7])
@pytest.mark.parametrize(("k", "n"), [(60, 100), (100, 40)])
def test_many_clusters_at_right_angles_or_not(k, n, common):
    rng = np.random.default_rng(k)
    corners = HOST.unit_rows(np.eye(k) + common / np.sqrt(k))
    labels = np.tile(np.arange(k), n)
    rows = rng.uniform(0.5, 3, (len(labels), 1)) * corners[labels]
    rows += 0.1 * rng.standard_normal(rows.shape)
    oracle = misclassification_rate(labels, (rows @ corners.T).argmax(axis=1))
    left_vectors, values, _ = np.linalg.svd(rows, full_matrices=False)
    spaces = [HOST.unit_rows(left_vectors), HOST.unit_rows(left_vectors * values)]
    learnt = learn_rule(spaces, k)
    rate = misclassification_rate(labels, learnt.rule(HOST, spaces[learnt.space]))

    assert rate < oracle + 0.003


def test_lines_gain_where_rows_point_either_way():
    rows, _ = noisy_simplex(300, 4, 0.1, 0)
    flips = np.random.default_rng(1).choice([-1.0, 1.0], (300, 1))

    assert gain_of_lines(rows * flips, 4) > np.log(2)
    assert gain_of_lines(rows, 4) == -np.inf
    assert gain_of_lines(rows[:8] * flips[:8], 2) == -np.inf  # few rows say nothing
