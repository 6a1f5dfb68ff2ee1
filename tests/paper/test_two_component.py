"""Two clusters with opposite centres."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from ihgmm import ClusterCountWarning, TwoComponentLloyd, make_ihgmm
from ihgmm.metrics import exact_recovery


def opposite(n, p, factor, seed, **options):
    """Sample around theta and -theta, with its square at factor times the cutoff."""
    cutoff = (1 + np.sqrt(1 + 2 * p / (n * np.log(n)))) * np.log(n)
    theta = np.random.default_rng(seed).standard_normal(p)
    theta *= np.sqrt(factor * cutoff) / np.linalg.norm(theta)
    options = {"scale_ratio": 1.0, "noise_levels": 1.0, **options}
    return make_ihgmm(n, centers=[theta, -theta], random_state=seed, **options)


def naive(X, max_iter=300):
    """Return the Gram matrix, and the signs after each iteration."""
    G = X @ X.T
    np.fill_diagonal(G, 0)
    states = [np.where(np.linalg.eigh(G)[1][:, -1] < 0, -1.0, 1.0)]
    for _ in range(max_iter):
        states.append(np.sign(G @ states[-1]))
        if any(np.array_equal(states[-1], previous) for previous in states[-3:-1]):
            break
    return G, states


SHAPES = [(100, 1000), (100, 100), (300, 10), (60, 1)]


@pytest.mark.parametrize("noise", ["gaussian", "rademacher"])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_recovery_above_the_cutoff(n, p, noise):
    for seed, balance in enumerate((1.0, 1.0, 0.8)):
        X, labels = opposite(n, p, 2.0, seed, noise=noise, balance=balance)

        model = TwoComponentLloyd().fit(X)

        assert exact_recovery(labels, model.labels_)
        assert_array_equal(model.predict(X), model.labels_)

        sizes = np.bincount(model.labels_)

        assert sizes[0] >= sizes[1]
        # Of clusters of one size the first is that of the first row.
        assert balance < 1 or model.labels_[0] == 0


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_same_as_the_naive_method(n, p):
    n_compared = 0

    for seed in range(4):
        X, _ = opposite(n, p, 0.7, seed)
        G, path = naive(X)
        if not np.array_equal(path[-1], path[-2]):
            continue
        n_compared += 1

        model = TwoComponentLloyd(tol=1e-8).fit(X)
        signs = 1 - 2 * model.labels_

        assert abs(signs @ path[-1]) == n
        assert model.n_iter_ == len(path) - 1
        assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(G)[-1:], rtol=1e-8)

        theta = (signs[:, None] * X).mean(axis=0)

        assert_allclose(model.cluster_centers_, [theta, -theta], atol=1e-10)

        distances = np.linalg.norm(X[:, None] - [theta, -theta], axis=2)

        assert_allclose(model.transform(X), distances, rtol=1e-6)
        assert_array_equal(distances.argmin(axis=1), model.predict(X))
        assert model.score(X) == pytest.approx(-(distances.min(axis=1) ** 2).sum())

    assert n_compared


def test_alternating_signs_warn_and_the_better_state_is_returned():
    n_cycles = 0

    for seed in range(12):  # noise without any clusters
        X = np.random.default_rng(seed).standard_normal((40, 400))
        G, path = naive(X)
        model = TwoComponentLloyd()
        if np.array_equal(path[-1], path[-2]):
            model.fit(X)
            continue
        n_cycles += 1

        n_moving = int((path[-1] != path[-2]).sum())
        message = f"{n_moving} of 40 rows alternate .*use IhSC"
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            model.fit(X)

        assert [warning.filename for warning in caught] == [__file__]

        signs = 1 - 2 * model.labels_

        assert abs(signs @ path[-1]) == 40 or abs(signs @ path[-2]) == 40

        objective = max(state @ G @ state for state in path[-2:])

        assert signs @ G @ signs == pytest.approx(objective)

    assert n_cycles >= 3


def test_cap_on_iterations_warns():
    X, _ = opposite(100, 100, 0.3, 1)

    assert TwoComponentLloyd().fit(X).n_iter_ > 2

    with pytest.warns(ConvergenceWarning, match="after max_iter=1 iterations"):
        assert TwoComponentLloyd(max_iter=1).fit(X).n_iter_ == 1


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_zero_rows(storage):
    X, labels = opposite(100, 20, 3.0, 0)
    X[[3, 50]] = 0
    nonzero_rows = np.delete(np.arange(100), [3, 50])

    with pytest.warns(UserWarning, match="2 of 100 rows are zero"):
        model = TwoComponentLloyd().fit(storage(X))

    assert_array_equal(model.labels_[[3, 50]], 0)
    assert_array_equal(model.predict(storage(X))[[3, 50]], 0)

    model_without = TwoComponentLloyd().fit(storage(X[nonzero_rows]))

    assert exact_recovery(labels[nonzero_rows], model_without.labels_)
    assert_array_equal(model.labels_[nonzero_rows], model_without.labels_)
    assert_allclose(model.cluster_centers_, model_without.cluster_centers_, atol=1e-12)

    with pytest.raises(ValueError, match="All 5 rows of X are zero"):
        TwoComponentLloyd().fit(storage(np.zeros((5, 3))))


def test_rows_on_one_side_warn():
    X = 10 + np.random.default_rng(0).standard_normal((30, 4))

    with pytest.warns(ClusterCountWarning, match=r"All 30 rows .* Subtract the mean"):
        model = TwoComponentLloyd().fit(X)

    assert_array_equal(model.labels_, 0)
    assert_allclose(model.cluster_centers_[0], X.mean(axis=0))

    with pytest.warns(ClusterCountWarning, match="All 4 rows"):  # at right angles
        assert TwoComponentLloyd().fit(np.eye(4)).n_iter_ == 1

    assert_array_equal(TwoComponentLloyd().fit([[1.0, 2.0]]).labels_, [0])

    model = TwoComponentLloyd().fit([[1.0, 2.0], [-1.0, -2.0]])

    assert_array_equal(model.labels_, [0, 1])
    assert_allclose(model.cluster_centers_, [[1, 2], [-1, -2]])
