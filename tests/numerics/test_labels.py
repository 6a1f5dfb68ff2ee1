import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group

from ihgmm import rounding
from ihgmm.metrics import exact_recovery
from ihgmm.rounding import assign, cluster_qr, normalize_rows, number_by_size


def noisy_simplex(n, k, noise, seed, sizes=None):
    """Rows near k orthogonal unit vectors: the embedding of the paper's Lemma 1."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, n, p=sizes)
    labels[:k] = np.arange(k)
    corners = ortho_group.rvs(k, random_state=seed) if k > 1 else np.eye(1)
    rows = corners[labels] + noise * rng.standard_normal((n, k))
    return normalize_rows(rows), labels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normalize_rows(dtype):
    rng = np.random.default_rng(0)
    U = rng.standard_normal((50, 4)).astype(dtype)
    U[0] = 0
    U[1] *= 1e-30
    U[2] *= 1e30
    before = U.copy()
    unit = normalize_rows(U)
    assert unit.dtype == dtype
    assert_array_equal(U, before)
    assert_array_equal(unit[0], 0)
    assert_allclose(np.linalg.norm(unit[1:], axis=1), 1, rtol=1e-6)
    norms = np.linalg.norm(U.astype(np.float64), axis=1, keepdims=True)
    assert_allclose(unit * norms, U, rtol=1e-5)


def test_normalize_rows_that_would_overflow():
    U = np.array([[3e300, 4e300], [3e-300, -4e-300]])
    assert_allclose(normalize_rows(U), [[0.6, 0.8], [0.6, -0.8]])


@pytest.mark.parametrize("method", rounding.ASSIGNMENTS)
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


def test_rows_beyond_the_fit_are_assigned_to_the_nearest_centre(monkeypatch):
    monkeypatch.setattr(rounding, "FULL_TRIALS", 300)
    monkeypatch.setattr(rounding, "FIT_ROWS", 2_000)
    rows, labels = noisy_simplex(6_000, 4, 0.15, 0)
    found = assign(rows.astype(np.float32), 4, rng=np.random.default_rng(0))
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


def test_number_by_size():
    labels = np.array([3, 3, 1, 1, 1, 0])
    assert_array_equal(number_by_size(labels, 5), [1, 1, 0, 0, 0, 2])
    # Equal sizes: by first appearance.
    assert_array_equal(number_by_size(np.array([1, 0, 0, 1]), 2), [0, 1, 1, 0])


def test_unknown_method():
    with pytest.raises(ValueError, match="method='coin' is not one of"):
        assign(np.eye(3), 2, "coin")
