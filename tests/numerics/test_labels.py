import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.datasets import make_circles
from sklearn.metrics import pairwise_distances_argmin

from ihgmm.matrix import HOST, ops_of, to_host
from ihgmm.metrics import exact_recovery, misclassification_rate
from ihgmm.numerics.labels import (
    ASSIGNMENTS,
    LinearRule,
    NeighborRule,
    cluster_qr,
    kmeans,
    learn_rule,
    nearest_center,
    neighbor_graph,
)


def generator(seed=0):
    return np.random.default_rng(seed)


def noisy_simplex(n, k, noise, seed, sizes=None):
    """Rows near k orthogonal unit vectors: the embedding of the paper's Lemma 1."""
    rng = generator(seed)
    labels = rng.choice(k, n, p=sizes)
    labels[:k] = np.arange(k)
    corners = ortho_group.rvs(k, random_state=seed) if k > 1 else np.eye(1)
    rows = corners[labels] + noise * rng.standard_normal((n, k))
    return HOST.unit_rows(rows), labels


def ellipses(n, seed, gap=5.0):
    """Three clusters that share a long and thin covariance."""
    rng = generator(seed)
    labels = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    noise = rng.standard_normal((n, 3)) * [4.0, 1.0, 1.0]
    centers = gap * np.array([[0.0, 0, 0], [1, 1, 0], [0, 1, 1]])
    return (centers[labels] + noise) @ ortho_group.rvs(3, random_state=seed), labels


@pytest.mark.parametrize("method", ASSIGNMENTS)
@pytest.mark.parametrize(
    ("n", "k", "seed"), [(60, 1, 0), (60, 3, 1), (500, 8, 2), (9000, 5, 0)]
)
def test_separated_rows_are_recovered(method, n, k, seed):
    rows, labels = noisy_simplex(n, k, 0.1, seed)
    rule = learn_rule([rows], k, method, rng=generator(seed)).rule
    found = rule(HOST, rows)
    assert exact_recovery(labels, found)
    assert found.dtype == np.intp


@pytest.mark.parametrize("method", ["tied", "kmeans"])
@pytest.mark.parametrize("seed", range(3))
def test_small_cluster_among_many_rows(method, seed):
    # 0.5% of 20,000 rows, found from a sample of them.
    rows, labels = noisy_simplex(20_000, 4, 0.1, seed, [0.4, 0.4, 0.195, 0.005])
    rule = learn_rule([rows], 4, method, rng=generator(seed)).rule
    assert exact_recovery(labels, rule(HOST, rows))


def test_restarts_find_a_better_optimum():
    # Three tight pairs on a circle: a single start often merges two of them.
    angles = np.repeat([0.0, 0.3, 2.0, 2.3, 4.0, 4.3], 50)
    angles = angles + 0.02 * generator().standard_normal(300)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    truth = np.repeat(np.arange(6), 50)
    for method in ("tied", "kmeans"):
        for seed in range(10):
            rule = learn_rule([rows], 6, method, rng=generator(seed)).rule
            assert exact_recovery(truth, rule(HOST, rows))


@pytest.mark.parametrize("method", ASSIGNMENTS)
def test_same_seed_same_labels(method):
    rows, _ = noisy_simplex(600, 6, 0.4, 0)
    one, two = (learn_rule([rows], 6, method, rng=generator(3)).rule for _ in range(2))
    assert_array_equal(one(HOST, rows), two(HOST, rows))


# Rules


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_centre_is_a_linear_rule(dtype):
    rng = generator()
    rows = rng.standard_normal((5_000, 4)).astype(dtype)
    centers = rng.standard_normal((7, 4))
    rule = nearest_center(centers)
    assert_array_equal(rule(HOST, rows), pairwise_distances_argmin(rows, centers))
    assert rule.scores(HOST, rows).dtype == dtype
    squares = ((rows[:, None] - centers) ** 2).sum(axis=2)
    shift = (rows.astype(float) ** 2).sum(axis=1, keepdims=True) / 2
    assert_allclose(rule.scores(HOST, rows), shift - squares / 2, atol=1e-4)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("method", ASSIGNMENTS)
def test_rules_take_arrays_of_other_libraries(library, method):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    rows, _ = noisy_simplex(400, 3, 0.4, 0)
    rule = learn_rule([rows], 3, method, rng=generator()).rule
    data = xp.asarray(rows)
    found = rule(ops_of(data), data)
    assert type(found) is type(data)
    assert_array_equal(to_host(found), rule(HOST, rows))


@pytest.mark.parametrize("method", ASSIGNMENTS)
def test_clusters_in_another_order(method):
    rows, _ = noisy_simplex(500, 4, 0.6, 0)
    rule = learn_rule([rows], 4, method, rng=generator()).rule
    order = np.array([2, 0, 3, 1])
    rank = np.argsort(order)
    assert_array_equal(rule.in_order(order)(HOST, rows), rank[rule(HOST, rows)])


def test_the_nearest_decides_where_votes_are_equal():
    known = np.array([[0.0], [1.0], [2.0], [3.0]])
    for labels in ([0, 0, 1, 1], [1, 1, 0, 0]):
        rule = NeighborRule(known, np.array(labels), 4)
        assert_array_equal(rule(HOST, np.array([[0.9], [2.2]])), [labels[0], labels[3]])


def test_cluster_qr_keeps_the_sign():
    # Opposite rows are different kinds, not one.
    rows = np.array([[1.0, 0.0], [0.9, 0.1], [-0.6, 0.1], [0.0, 1.0], [0.1, 0.9]])
    labels = cluster_qr(rows, 2)(HOST, rows)
    assert labels[0] == labels[1]
    assert labels[3] == labels[4] != labels[0]
    assert labels[2] != labels[0]


def test_neighbours_find_clusters_of_any_shape():
    for seed in range(5):
        rows, labels = make_circles(600, noise=0.04, factor=0.4, random_state=seed)
        rule = neighbor_graph(rows, 2, rng=generator(seed))
        assert exact_recovery(labels, rule(HOST, rows))
        few = neighbor_graph(rows, 2, max_rows=400, rng=generator(seed))
        assert len(few.rows) == 400
        assert exact_recovery(labels, few(HOST, rows))


@pytest.mark.parametrize("n", [2, 3, 8])
def test_neighbours_among_few_rows(n):
    rows = np.vstack([np.eye(2)[:1]] * (n - 1) + [np.eye(2)[1:]])
    labels = neighbor_graph(rows, 2, rng=generator())(HOST, rows)
    assert labels.shape == (n,)
    assert set(labels) <= {0, 1}


# Gaussian clusters of one covariance


def tied(spaces, k, seed=0, **options):
    return learn_rule(spaces, k, "tied", rng=generator(seed), **options)


def test_long_clusters_are_not_cut_across():
    for seed in range(5):
        rows, labels = ellipses(500, seed)
        shaped = tied([rows], 3, seed, by_angle=False).rule(HOST, rows)
        round_ones = kmeans(rows, 3, rng=generator(seed)).labels
        assert misclassification_rate(labels, shaped) < 0.04
        assert misclassification_rate(labels, round_ones) > 0.12


def test_the_space_that_shows_clusters_is_chosen():
    for seed in range(8):
        rng = generator(seed)
        clear, labels = noisy_simplex(300, 3, 0.1, seed)
        noise = HOST.unit_rows(rng.standard_normal((300, 5)))
        for spaces, wanted in (([clear, noise], 0), ([noise, clear], 1)):
            found = tied(spaces, 3, seed)
            assert found.space == wanted
            assert exact_recovery(labels, found.rule(HOST, spaces[wanted]))


def test_rows_of_noise_do_not_teach():
    # Half of the rows say nothing: learnt from all, clusters are lost at many seeds.
    for seed in range(5):
        rows, labels = noisy_simplex(2000, 20, 0.1, seed)
        clear = np.arange(2000) < 1000
        noise = HOST.unit_rows(generator(seed).standard_normal((1000, 20)))
        mixed = np.concatenate([rows[:1000], noise])
        rule = tied([mixed], 20, seed, clear=[clear]).rule
        assert exact_recovery(labels[:1000], rule(HOST, mixed)[:1000])


def test_where_rows_are_noise_in_the_first_space_the_last_is_taken():
    rows, _ = noisy_simplex(400, 3, 0.1, 0)
    worse = rows + 0.3 * generator().standard_normal(rows.shape)
    spaces = [rows, HOST.unit_rows(worse)]
    most = np.ones(400, dtype=bool)
    assert tied(spaces, 3, clear=[most, most]).space == 0
    half = np.arange(400) < 200
    assert tied(spaces, 3, clear=[half, most]).space == 1


@pytest.mark.parametrize("k", [3, 40])
def test_starts_are_not_left_to_chance(k):
    rows, _ = noisy_simplex(2000, k, 0.3, 0)
    labels = [tied([rows], k, seed).rule(HOST, rows) for seed in range(3)]
    for other in labels[1:]:
        assert_array_equal(labels[0], other)


@pytest.mark.parametrize("common", [0.0, 0.7])
@pytest.mark.parametrize("k", [60, 100])
def test_many_clusters_at_right_angles_or_not(k, common):
    rng = generator(k)
    corners = HOST.unit_rows(np.eye(k) + common / np.sqrt(k))
    labels = np.r_[np.arange(k), rng.integers(k, size=100 * k)]
    rows = rng.uniform(0.5, 3, (len(labels), 1)) * corners[labels]
    rows += 0.1 * rng.standard_normal(rows.shape)
    oracle = misclassification_rate(labels, (rows @ corners.T).argmax(axis=1))
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    spaces = [HOST.unit_rows(left), HOST.unit_rows(left * values)]
    found = tied(spaces, k)
    labels_found = found.rule(HOST, spaces[found.space])
    assert misclassification_rate(labels, labels_found) < oracle + 0.003


@pytest.mark.parametrize("rows", [np.zeros((6, 2)), np.eye(2)[[0, 1, 0, 1, 0, 0]]])
def test_fewer_places_than_clusters(rows):
    # Clusters vanish in every run, and k-means has the last word.
    labels = tied([rows], 3).rule(HOST, rows)
    assert set(labels) <= {0, 1, 2}
    same = (rows[:, None] == rows).all(axis=2)
    assert_array_equal(labels[:, None] == labels, same)


def test_as_many_clusters_as_rows():
    rows = HOST.unit_rows(generator().standard_normal((5, 3)))
    assert sorted(tied([rows], 5).rule(HOST, rows)) == [0, 1, 2, 3, 4]


def test_rules_are_frozen():
    rule = LinearRule(np.eye(2), np.zeros(2))
    with pytest.raises(AttributeError):
        rule.intercepts = np.ones(2)
