"""The number of clusters: the count over sweeps of seeds, and what it says."""

import numpy as np
import pytest
import scipy.sparse as sp
from correlated_noise import autoregressive
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from ihgmm import ClusterCountWarning, IhSC, make_ihgmm, select_n_clusters
from ihgmm.matrix import as_matrix
from ihgmm.numerics.eigen import GramOperator
from ihgmm.numerics.sign_flips import count_above_noise
from ihgmm.statistics.selection import Confidence, count_clusters


def noise(n, p, kind, seed):
    """Rows of symmetric noise, each with its own level."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, p))
    return (np.sign(E) if kind == "rademacher" else E) * rng.uniform(0.5, 1.5, (n, 1))


def plane(degrees):
    angles = np.deg2rad(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.mark.parametrize(
    ("n", "p", "k", "options"),
    [
        (200, 400, 4, {"scale_ratio": 3, "separation_constant": 1, "balance": 0.5}),
        (300, 100, 12, {"separation_constant": 0.5, "balance": 0.2,
                        "noise": "rademacher", "noise_structure": "class"}),
        (150, 600, 7, {"balance": 0.2, "noise_structure": "common"}),
        (300, 100, 1, {"separation_constant": 1}),
        *((25 * k, 200, k, {}) for k in (1, 2, 5, 8, 18, 30)),
    ],
)  # fmt: skip
def test_number_of_clusters(n, p, k, options):
    X, _ = make_ihgmm(n, p, k, random_state=k, **options)
    count = select_n_clusters(X, random_state=k)

    assert (count.n_clusters, count.rank) == (k, k)

    if k > 1:
        assert k in count.levels
        assert count.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    ("n", "p", "kind"), [(60, 180, "gaussian"), (180, 60, "rademacher")]
)
def test_pure_noise_has_no_structure(n, p, kind):
    counts = [
        select_n_clusters(noise(n, p, kind, seed), random_state=seed).n_clusters
        for seed in range(3)
    ]

    # At a rate of 2 in 100, more than 1 of 3 would be a chance of 1 in 800.
    assert sum(count > 0 for count in counts) <= 1


def test_a_strong_cluster_does_not_hide_a_weak_one():
    # Flipped without taking the strong one out, its energy swamps the weak one.
    rng = np.random.default_rng(0)
    E = noise(200, 100, "gaussian", 0)
    u, v = np.linalg.qr(rng.standard_normal((100, 2)))[0].T
    E[:150] += 60 * rng.uniform(1, 3, (150, 1)) * u
    E[150:] += 5 * rng.uniform(1, 3, (50, 1)) * v
    flipped = GramOperator.of(E * rng.choice([-1, 1], E.shape)).toarray()
    second_eigenvalue = np.linalg.eigvalsh(GramOperator.of(E).toarray())[-2]

    assert second_eigenvalue < np.linalg.eigvalsh(flipped)[-1]

    count = select_n_clusters(E, random_state=0)

    assert (count.rank, count.n_clusters) == (2, 2)


def test_noisy_rows_do_not_hide_a_cluster():
    X, _ = make_ihgmm(
        200, 600, 3, scale_ratio=1, separation_constant=1.1, noise_levels=(0.3, 3.0),
        random_state=0,
    )  # fmt: skip
    _, rank, *_ = count_above_noise(GramOperator.of(X), 10, np.random.default_rng(0))

    assert rank < 3

    count = select_n_clusters(X, random_state=0)

    assert count.rank == 3
    assert 3 in count.plausible
    assert (count.eigenvalues > count.edge).sum() == 3

    rescaled_count = select_n_clusters(1e200 * X, random_state=0)

    assert_allclose(rescaled_count.edge, count.edge)  # cosines have no units


@pytest.mark.parametrize(
    ("centers", "count"),
    [
        (plane([12, 45, 78]), 3),
        (plane([10, 100, 190, 280]), 4),
        (np.vstack([np.eye(3), 1 - np.eye(3)]), 6),
        (plane([0, 60, 120]) @ np.random.default_rng(0).standard_normal((2, 60)), 3),
        (np.vstack([np.eye(3), -np.eye(3)]).repeat(20, axis=1), 6),
        (np.array([[1.0], [-1.0]]) * np.ones(30), 2),
        (np.ones((1, 30)), 1),
    ],
)
def test_clusters_can_be_more_than_directions(centers, count):
    options = {"scale_ratio": 4, "noise_levels": 0.06, "random_state": 0}
    X, _ = make_ihgmm(200, centers=centers, **options)
    result = select_n_clusters(X, random_state=0)

    assert result.n_clusters == count
    assert result.rank <= min(count, centers.shape[1])


def test_some_of_many_rows_are_enough():
    X, _ = make_ihgmm(2000, 40, 5, scale_ratio=3, random_state=0)
    for storage in (np.asarray, sp.csc_array):
        data = as_matrix(storage(X))
        rng = np.random.default_rng(0)
        count = count_clusters(data, rng, max_rows=400)
        assert (count.n_clusters, count.n_rows) == (5, 400)
        assert count.tree.labels(5).shape == (2000,)


def test_odd_data():
    def count(X):
        return select_n_clusters(X, random_state=0).n_clusters

    rng = np.random.default_rng(0)

    assert count(np.full((40, 6), 3.0)) == 1
    assert count(np.outer(np.arange(1, 31), rng.standard_normal(20))) == 1
    assert count(np.zeros((20, 5))) == 0
    assert count(rng.standard_normal((1, 5))) == 0
    assert count(rng.standard_normal((5, 50))) == 0
    assert count(rng.uniform(1, 2, (50, 1))) == 1
    assert count(make_ihgmm(5, 50, 1, random_state=0)[0]) == 1

    X, _ = make_ihgmm(90, 30, 3, random_state=0)
    with_zeros = select_n_clusters(np.vstack([X, np.zeros((20, 30))]), random_state=0)

    assert with_zeros.n_clusters == 3
    assert with_zeros.tree.labels(3).shape == (110,)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_clusters": 0}, ValueError, "max_clusters=0 is out of range; give"),
        ({"max_clusters": 2.5}, TypeError, "max_clusters=2.5 is a float; give a whole"),
        ({"missing": "mean"}, ValueError, "missing='mean' is not known; give one of"),
        ({"signed": "yes"}, TypeError, "signed='yes' is not known; give True or False"),
        ({"random_state": "x"}, TypeError, "random_state='x' is a str; give"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        select_n_clusters(np.eye(4), **options)


@pytest.mark.parametrize(("n_features", "maximum"), [(60, 1), (60, 2), (8, 1)])
def test_the_largest_number_looked_for_is_said(n_features, maximum):
    X, _ = make_ihgmm(200, n_features, 4, scale_ratio=3, random_state=1)
    count = select_n_clusters(X, max_clusters=maximum, random_state=0)

    assert (count.n_clusters, count.is_capped) == (maximum, True)
    assert max(count.plausible) <= maximum
    assert f"stopped at max_clusters={maximum}; there may be more" in str(count)


def test_an_estimator_says_that_it_stopped_counting():
    X, _ = make_ihgmm(400, 120, 52, scale_ratio=2, random_state=0)
    message = r"at most 50 clusters .* select_n_clusters\(X, max_clusters=500\)"

    with pytest.warns(ClusterCountWarning, match=message):
        model = IhSC("auto", random_state=0).fit(X)

    assert model.n_clusters_ == 50


@pytest.mark.parametrize("p", [2, 8])
def test_one_cloud_in_few_features_may_be_one_cluster(p):
    rng = np.random.default_rng(p)
    noise = rng.standard_normal((400, p))
    correlated = noise + 3 * rng.standard_normal((400, 1))  # opposite rows, no gap
    cloud = noise + 5 * rng.standard_normal(p)
    scaled_cloud = rng.lognormal(0, 0.4, (400, 1)) * 4 * np.ones(p) + noise
    clouds = (noise, correlated, cloud, scaled_cloud)
    counts = [select_n_clusters(X, random_state=0) for X in clouds]
    doubtful_counts = [count for count in counts if count.may_be_one]

    assert len(doubtful_counts) >= 3  # about one in twenty is cut
    assert all(count.levels == () and count.is_doubtful for count in doubtful_counts)

    opposite = np.repeat([[4.0], [-4.0]], 200, axis=0) * np.ones(p) + noise

    assert select_n_clusters(opposite, random_state=0).n_clusters == 2


def ihgmm_rows(centers, seed, *, n=300, correlation=0.0, spread=0.5):
    """Rows of log-normal scale around centres, with noise correlated along columns."""
    rng = np.random.default_rng(seed)
    E = autoregressive(rng.standard_normal((n, centers.shape[1])), correlation)
    labels = np.arange(n) % len(centers)
    return rng.lognormal(0, spread, (n, 1)) * centers[labels] + E


def test_correlated_noise_has_directions_and_no_clusters():
    for correlation in (0.8, 0.95):
        E = ihgmm_rows(np.zeros((1, 50)), 0, n=200, correlation=correlation)
        count = select_n_clusters(E, random_state=0)
        assert count.rank > 5
        assert count.levels == ()
        assert count.is_doubtful
        assert count.may_be_one
        assert "noise that features share looks like this" in str(count)


@pytest.mark.filterwarnings("ignore:X looks like counts")
@pytest.mark.parametrize("seed", range(2))
def test_one_population_of_skewed_entries_is_one_cluster(seed):
    rng = np.random.default_rng(seed)
    log_means = rng.standard_normal(100)
    sizes = np.exp(rng.standard_normal((300, 100)) * rng.uniform(0.3, 1.2, 100))

    assert select_n_clusters(sizes * np.exp(log_means), random_state=0).n_clusters <= 1

    means = 3 * rng.gamma(0.5, size=100) * rng.lognormal(0, 0.6, (300, 1))
    counts = rng.poisson(means * rng.gamma(2, 0.5, (300, 100)))  # over-dispersed

    assert select_n_clusters(counts, random_state=0).n_clusters <= 1

    E = rng.exponential(size=(200, 50)) - 1

    assert select_n_clusters(E, random_state=0).n_clusters <= 1


def test_clusters_are_counted_in_correlated_noise():
    for seed in range(2):
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((100, 4)))[0]
        X = ihgmm_rows(6 * basis.T, seed, correlation=0.8)
        count = select_n_clusters(X, random_state=seed)
        assert count.rank > 10  # directions are more than clusters
        assert count.n_clusters == 4


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_one_cluster_is_never_silent():
    X, _ = make_ihgmm(90, 30, 1, random_state=0)

    with pytest.warns(ClusterCountWarning, match="All rows are put in one cluster"):
        assert IhSC("auto", random_state=0).fit(X).n_clusters_ == 1

    E = ihgmm_rows(np.zeros((1, 50)), 0, n=200, correlation=0.8)

    with pytest.warns(ClusterCountWarning, match="There may be no clusters at all"):
        IhSC("auto", random_state=0).fit(E)


def test_no_clusters_stay_plausible_beside_a_weak_best_guess():
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((100, 4)))[0]
    X = ihgmm_rows(2.6 * basis.T, 0, n=300, spread=0.3)
    count = select_n_clusters(X, random_state=0)

    assert count.n_clusters == 4
    assert count.may_be_one
    assert count.is_doubtful
    assert count.plausible[-1] == 1
    assert len(count.plausible) == len(set(count.plausible)) == 5
    assert "There may be no clusters at all" in str(count)

    X, _ = make_ihgmm(90, 30, 3, random_state=0)

    assert not select_n_clusters(X, random_state=0).may_be_one


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_a_doubtful_number_is_said_to_be():
    X = load_digits().data[:200]

    with pytest.warns(ClusterCountWarning, match="which is doubtful") as caught:
        model = IhSC("auto", random_state=0).fit(X)

    (text,) = [str(w.message) for w in caught if "doubtful" in str(w.message)]
    for number in model.selection_.plausible:
        assert str(number) in text

    assert "give n_clusters" in text
    assert model.selection_.is_doubtful
