import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import ortho_group

from ihgmm.matrix.tall import unit_rows
from ihgmm.metrics import exact_recovery
from ihgmm.numerics.labels import ASSIGNMENTS, assign, cluster_qr, kmeans_labels


def noisy_simplex(n, k, noise, seed, sizes=None):
    """Rows near k orthogonal unit vectors: the embedding of the paper's Lemma 1."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, n, p=sizes)
    labels[:k] = np.arange(k)
    corners = ortho_group.rvs(k, random_state=seed) if k > 1 else np.eye(1)
    rows = corners[labels] + noise * rng.standard_normal((n, k))
    return unit_rows(rows), labels


@pytest.mark.parametrize("method", ASSIGNMENTS)
@pytest.mark.parametrize(("n", "k"), [(60, 1), (60, 3), (500, 8), (9000, 5)])
@pytest.mark.parametrize("seed", range(3))
def test_separated_rows_are_recovered(method, n, k, seed):
    rows, labels = noisy_simplex(n, k, 0.1, seed)
    found = assign(rows, k, method, rng=np.random.default_rng(seed))
    assert exact_recovery(labels, found.labels)
    assert found.labels.dtype == np.intp


@pytest.mark.parametrize("seed", range(5))
def test_small_cluster_among_many_rows(seed):
    # 0.5% of 20,000 rows, found from a sample of them.
    rows, labels = noisy_simplex(20_000, 4, 0.1, seed, [0.4, 0.4, 0.195, 0.005])
    found = assign(rows, 4, rng=np.random.default_rng(seed))
    assert exact_recovery(labels, found.labels)


def test_rows_beyond_the_fit_are_assigned_to_the_nearest_centre():
    rows, labels = noisy_simplex(6_000, 4, 0.15, 0)
    options = {"full_trials": 300, "max_rows": 2_000, "rng": np.random.default_rng(0)}
    found = kmeans_labels(rows.astype(np.float32), 4, **options)
    assert exact_recovery(labels, found.labels)


def test_restarts_find_a_better_optimum():
    # Three tight pairs on a circle: a single start often merges two of them.
    rng = np.random.default_rng(0)
    angles = np.repeat([0.0, 0.3, 2.0, 2.3, 4.0, 4.3], 50) + 0.02 * rng.standard_normal(
        300
    )
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    truth = np.repeat(np.arange(6), 50)
    for seed in range(10):
        found = assign(rows, 6, rng=np.random.default_rng(seed))
        assert exact_recovery(truth, found.labels)


def test_same_seed_same_labels():
    rows, _ = noisy_simplex(8_000, 6, 0.4, 0)
    one, two = (assign(rows, 6, rng=np.random.default_rng(3)).labels for _ in range(2))
    assert_array_equal(one, two)


def test_cluster_qr_keeps_the_sign():
    # Opposite rows are different kinds, not one.
    rows = np.array([[1.0, 0.0], [0.9, 0.1], [-0.6, 0.1], [0.0, 1.0], [0.1, 0.9]])
    labels = cluster_qr(rows, 2)
    assert labels[0] == labels[1]
    assert labels[3] == labels[4] != labels[0]
    assert labels[2] != labels[0]


def test_unknown_method():
    with pytest.raises(ValueError, match="method='coin' is not one of"):
        assign(np.eye(3), 2, "coin")
