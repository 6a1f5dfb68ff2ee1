"""K-means on rows wherever they are, and the search for roots."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import qr
from sklearn.cluster import KMeans

from ihgmm.matrix import HOST, ops_of, to_host
from ihgmm.numerics.kmeans import kmeans_runs, lloyd, pivots, plus_plus, spread_rows
from ihgmm.numerics.roots import falling_root


def rows_of(seed, n=300, m=5, k=4, noise=1.5):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.standard_normal((k, m))
    return centers[rng.integers(k, size=n)] + noise * rng.standard_normal((n, m))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lloyd_is_that_of_scikit_learn(seed, weighted):
    rows, rng = rows_of(seed), np.random.default_rng(seed)
    weights = rng.gamma(2.0, size=len(rows)) if weighted else None
    starts = np.stack([rows[rng.permutation(300)[:4]] for _ in range(3)])
    runs = lloyd(HOST, rows[None], starts[None], weights)[0]
    for found, start in zip(runs, starts, strict=True):
        wanted = KMeans(4, init=start, n_init=1, tol=0, algorithm="lloyd")
        wanted.fit(rows, sample_weight=weights)
        assert_array_equal(found.labels, wanted.labels_)
        assert_allclose(found.centers, wanted.cluster_centers_)
        assert found.inertia == pytest.approx(wanted.inertia_)


def test_spaces_and_runs_side_by_side_are_those_by_themselves():
    spaces = np.stack([rows_of(0), rows_of(1)])
    starts = plus_plus(HOST, spaces, np.random.default_rng(2).random((2, 3, 4, 3)))
    together = lloyd(HOST, spaces, starts)
    for rows, runs, own in zip(spaces, together, starts, strict=True):
        for run, start in zip(runs, own, strict=True):
            ((alone,),) = lloyd(HOST, rows[None], start[None, None])
            assert_array_equal(run.labels, alone.labels)
            assert run.n_iter == alone.n_iter


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_runs_are_those_of_numpy(library):
    asarray = pytest.importorskip(library).asarray
    rows = rows_of(3, n=500)
    draws = np.random.default_rng(0).random((1, 4, 4, 3))
    other = asarray(rows[None])
    assert_array_equal(
        spread_rows(ops_of(other), other, draws), spread_rows(HOST, rows[None], draws)
    )
    (found,), (wanted,) = (
        kmeans_runs(ops_of(each), [each], 4, rng=np.random.default_rng(1))
        for each in (asarray(rows), rows)
    )
    assert_array_equal(to_host(found[0].labels), wanted[0].labels)
    assert len(found) == len(wanted)


def test_a_centre_that_lost_its_rows_goes_to_the_farthest():
    rows = np.array([[0.0, 0], [0.1, 0], [0, 0.1], [10, 0], [10, 0.1]])
    start = np.array([[0.0, 0], [0, 0], [100, 100]])  # twice the same, and one too far
    ((run,),) = lloyd(HOST, rows[None], start[None, None])
    assert len(np.unique(run.labels)) == 3
    assert run.inertia < 0.02
    # Where all rows sit on centres, others have none, and that is no error.
    ((run,),) = lloyd(HOST, np.zeros((1, 4, 2)), np.zeros((1, 1, 3, 2)))
    assert run.inertia == 0


@pytest.mark.parametrize("seed", range(5))
def test_pivots_are_those_of_a_decomposition(seed):
    rows = rows_of(seed, n=80, m=6)
    _, _, order = qr(rows.T, pivoting=True, mode="economic")
    assert_array_equal(pivots(HOST, rows[None], 5)[0], order[:5])
    # Of unit rows the first comes first; beyond the rank nothing goes wrong.
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = pivots(HOST, units[None], 9)[0]
    assert found[0] == 0
    assert len(np.unique(found[:6])) == 6


def test_falling_roots():
    powers = np.array([0.5, 1.0, 3.0, 9.0])
    calls = []

    def function(x):
        calls.append(x)
        return 0.3 - x**powers

    found = falling_root(function, np.zeros(4), np.ones(4))
    assert_allclose(found, 0.3 ** (1 / powers), rtol=1e-12)
    assert len(calls) < 30
    # Positive at both ends: the upper one.
    assert_allclose(falling_root(lambda x: 2 - x, np.zeros(1), np.ones(1)), 1.0)
