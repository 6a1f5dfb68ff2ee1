"""The number of clusters: the count over sweeps of seeds, and what it says."""

import numpy as np
import pytest
import scipy.sparse as sp
from correlated_noise import autoregressive
from nested_rows import nested
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, load_iris

from ihgmm import ClusterCountWarning, IhSC, make_ihgmm, select_n_clusters
from ihgmm.matrix import as_matrix
from ihgmm.policy import Counting
from ihgmm.statistics.clouds import UnitRows, compare_with_clouds
from ihgmm.statistics.number_evidence import (
    RowGraph,
    evidence_of_numbers,
    rough_numbers,
    unit_cosines,
)
from ihgmm.statistics.selection import Confidence, count_clusters


def noise(n, p, kind, seed):
    """Rows of symmetric noise, each with its own level."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, p))
    return (np.sign(E) if kind == "rademacher" else E) * rng.uniform(0.5, 1.5, (n, 1))


def graph_of(X):
    """Return the graph of rows that weigh alike."""
    X = as_matrix(X)
    return RowGraph.of_cosines(unit_cosines(X), np.ones(X.shape[0]), signed=False)


@pytest.mark.parametrize(
    ("n", "p", "k", "options"),
    [
        (200, 400, 4, {"scale_ratio": 3, "separation_constant": 1, "balance": 0.5}),
        (300, 100, 12, {"separation_constant": 0.5, "balance": 0.2,
                        "noise": "rademacher", "noise_structure": "class"}),
        (150, 600, 7, {"balance": 0.2, "noise_structure": "common"}),
        (300, 100, 1, {"separation_constant": 1}),
        *((25 * k, 200, k, {}) for k in (2, 5, 8, 18, 30)),
    ],
)  # fmt: skip
def test_number_of_clusters(n, p, k, options):
    X, _ = make_ihgmm(n, p, k, random_state=k, **options)
    count = select_n_clusters(X, random_state=k)

    # Of 12 unequal clusters in 300 rows the smallest have ten rows or fewer.
    assert abs(count.n_clusters - k) <= (k == 12)
    assert count.plausible[0] == count.n_clusters

    if k > 1:
        assert count.evidence_for(k).links_inside > 0.95


@pytest.mark.parametrize(
    ("n", "p", "kind"),
    [(60, 180, "gaussian"), (180, 60, "rademacher"), (300, 3, "gaussian")],
)
def test_pure_noise_is_one_cluster(n, p, kind):
    counts = [
        select_n_clusters(noise(n, p, kind, seed), random_state=seed).n_clusters
        for seed in range(3)
    ]

    # At a rate of 5 in 100, more than 1 of 3 would be a chance of 1 in 140.
    assert sum(count > 1 for count in counts) <= 1


@pytest.mark.parametrize("p", [4, 20, 200])
def test_one_cloud_with_scales_is_one_cluster(p):
    counts = []
    for seed in range(3):
        rng = np.random.default_rng([p, seed])
        E = rng.standard_normal((200, p))
        center = 4 * rng.standard_normal(p)
        shape = rng.standard_normal((p, p)) / np.sqrt(p) * rng.uniform(0.5, 2, p)
        counts += [
            select_n_clusters(X, random_state=seed)
            for X in (
                rng.lognormal(0, 0.7, (200, 1)) * (center + E),
                E @ shape + center,
            )
        ]

    assert sum(count.n_clusters > 1 for count in counts) <= 1


def test_links_of_clusters_by_hand():
    # Two groups of three rows; rows of a group are linked to each other alone.
    X = np.array([[1, 0], [1, 0.1], [1, -0.1], [0, 1], [0.1, 1], [-0.1, 1]])
    cosines = unit_cosines(as_matrix(X))
    units = X / np.linalg.norm(X, axis=1)[:, None]

    assert_allclose(cosines, units @ units.T, atol=1e-12)

    links = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    graph = RowGraph(links=sp.csr_array(links), weights=np.ones(6))

    assert graph.shares(np.array([0, 0, 0, 1, 1, 1])) == (1.0, 0.5)
    assert_allclose(graph.shares(np.array([0, 0, 1, 1, 1, 1])), (8 / 12, 5 / 9))

    # A row that weighs 0 has no links; one that weighs 2 has them twice.
    graph = RowGraph(links=sp.csr_array(links), weights=np.array([0, 1, 1, 2, 1, 1]))
    inside, by_chance = graph.shares(np.array([0, 0, 0, 1, 1, 1]))

    assert inside == 1.0
    assert_allclose(by_chance, (1 / 6) ** 2 + (5 / 6) ** 2)


def test_neighbours_grow_with_the_rows():
    X = np.random.default_rng(0).standard_normal((1200, 5))

    assert graph_of(X).links.sum() == pytest.approx(20 * 1200)
    assert graph_of(X[:300]).links.sum() == pytest.approx(10 * 300)


def test_clouds_have_the_mean_and_the_covariance_of_rows():
    X, _ = make_ihgmm(800, 6, 3, scale_ratio=3, random_state=0)
    units = X / np.linalg.norm(X, axis=1)[:, None]
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 800)
    weights /= weights.mean()
    rows = UnitRows.of_cosines(units @ units.T, 6, weights, signed=False)

    assert rows.coordinates.shape == (800, 6)
    assert_allclose(rows.coordinates @ rows.coordinates.T, units @ units.T, atol=1e-9)

    clouds = [rows.cloud(np.random.default_rng(seed)) for seed in range(40)]
    mean = np.average(rows.coordinates, axis=0, weights=weights)
    covariance = np.cov(rows.coordinates.T, aweights=weights)

    assert_allclose(np.mean(clouds, axis=(0, 1)), mean, atol=0.02)
    assert_allclose(np.cov(np.vstack(clouds).T), covariance, atol=0.02)

    # The order of rows, which turns coordinates, does not change what is drawn.
    order = np.random.default_rng(1).permutation(800)
    shuffled = UnitRows.of_cosines(
        (units @ units.T)[np.ix_(order, order)], 6, weights[order], signed=False
    )
    first = rows.cloud(np.random.default_rng(0))
    second = shuffled.cloud(np.random.default_rng(0))

    assert_allclose(second @ second.T, first @ first.T, atol=1e-8)


def test_rows_are_compared_with_clouds_for_the_best_number_too():
    X, _ = make_ihgmm(300, 40, 12, random_state=0)
    weights = np.ones(300)
    cosines = unit_cosines(as_matrix(X))
    units = UnitRows.of_cosines(cosines, 40, weights, signed=False)
    rng = np.random.default_rng(0)
    comparison = compare_with_clouds(units, graph_of(X), 12, rng)

    assert comparison.numbers == (*Counting.CLOUD_NUMBERS, 12)
    assert comparison.of_clouds.shape == (Counting.CLOUDS, 6)
    assert comparison.lead == max(comparison.leads.values()) > 0.1
    assert compare_with_clouds(units, graph_of(X), 2, rng).numbers[:2] == (2, 3)


def test_numbers_near_the_best_are_tried():
    assert rough_numbers(13) == [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13]
    assert rough_numbers(1) == []

    X, _ = make_ihgmm(700, 100, 21, random_state=0)
    evidence = evidence_of_numbers(as_matrix(X), graph_of(X), 50)
    numbers = [one.n_clusters for one in evidence]

    assert {20, 21, 22} <= {*numbers}
    assert numbers == sorted(numbers)
    assert len(numbers) < 25


def test_clusters_within_clusters_are_both_plausible():
    for seed in range(2):
        X, *_ = nested(seed)
        count = select_n_clusters(X, random_state=seed)
        assert set(count.plausible) == {3, 9}


def test_a_strong_cluster_does_not_hide_a_weak_one():
    rng = np.random.default_rng(0)
    E = noise(200, 100, "gaussian", 0)
    u, v = np.linalg.qr(rng.standard_normal((100, 2)))[0].T
    E[:150] += 60 * rng.uniform(1, 3, (150, 1)) * u
    E[150:] += 5 * rng.uniform(1, 3, (50, 1)) * v

    assert 2 in select_n_clusters(E, random_state=0).plausible


def test_the_count_has_no_units_and_no_order():
    X, _ = make_ihgmm(240, 30, 5, separation_constant=0.6, random_state=0)
    rng = np.random.default_rng(0)
    count = select_n_clusters(X, random_state=0)
    rescaled = X * rng.lognormal(0, 2, (240, 1)) * 1e150
    order = rng.permutation(240)

    for rows in (rescaled, X[order], sp.csr_array(X), np.asfortranarray(X)):
        other = select_n_clusters(rows, random_state=0)
        assert other.plausible == count.plausible
        assert_allclose(other.lead, count.lead, atol=1e-6)


def test_a_weight_of_two_is_a_row_twice():
    X, _ = make_ihgmm(240, 30, 5, random_state=0)
    weights = 1 + np.arange(240) % 2
    weighted = select_n_clusters(X, sample_weight=weights, random_state=0)
    repeated = select_n_clusters(np.repeat(X, weights, axis=0), random_state=0)

    assert weighted.n_clusters == repeated.n_clusters == 5

    kept = weights > 1
    without = select_n_clusters(X, sample_weight=1.0 * kept, random_state=0)
    alone = select_n_clusters(X[kept], random_state=0)

    assert without.n_rows == 120
    assert_allclose(without.lead, alone.lead)


@pytest.mark.parametrize(
    ("centers", "count"),
    [
        (np.vstack([np.eye(3), 1 - np.eye(3)]), 6),
        (np.vstack([np.eye(3), -np.eye(3)]).repeat(20, axis=1), 6),
        (np.ones((1, 30)), 1),
    ],
)
def test_clusters_can_be_more_than_directions(centers, count):
    options = {"scale_ratio": 4, "noise_levels": 0.06, "random_state": 0}
    X, _ = make_ihgmm(200, centers=centers, **options)

    assert select_n_clusters(X, random_state=0).n_clusters == count


def test_two_opposite_clusters_look_like_noise_of_one_direction():
    # Once rows have unit length, nothing tells the one from the other.
    centers = np.array([[1.0], [-1.0]]) * np.ones(30)
    X, _ = make_ihgmm(200, centers=centers, noise_levels=0.06, random_state=0)
    factor = np.random.default_rng(0).standard_normal((200, 31))
    noise_of_factor = 0.06 * factor[:, 1:] + factor[:, :1]

    for rows in (X, noise_of_factor):
        assert {1, 2} <= {*select_n_clusters(rows, random_state=0).plausible}


def test_opposite_rows_are_of_one_cluster_where_they_are_alike():
    X, _ = make_ihgmm(300, 40, 4, random_state=0)
    X *= np.random.default_rng(0).choice([-1.0, 1.0], (300, 1))

    assert select_n_clusters(X, signed=True, random_state=0).n_clusters == 4
    assert select_n_clusters(X, random_state=0).n_clusters == 8


def test_some_of_many_rows_are_enough():
    X, _ = make_ihgmm(2000, 40, 5, scale_ratio=3, random_state=0)
    for storage in (np.asarray, sp.csc_array):
        data = as_matrix(storage(X))
        rng = np.random.default_rng(0)
        count = count_clusters(data, rng, max_rows=400, max_clusters=20)
        assert (count.n_clusters, count.n_rows) == (5, 400)

    # Rows are drawn by their weights, and then weigh alike.
    labels = make_ihgmm(2000, 40, 5, scale_ratio=3, random_state=0)[1]
    data = as_matrix(X).weighted(np.where(labels < 3, 1.0, 1e-9))
    rng = np.random.default_rng(0)
    count = count_clusters(data, rng, max_rows=400, max_clusters=20)

    assert count.n_clusters == 3


def test_many_clusters_need_a_larger_sample():
    X, _ = make_ihgmm(1000, 60, 30, scale_ratio=2, random_state=0)
    count = select_n_clusters(X, max_clusters=80, random_state=0)

    assert count.n_rows == 800
    assert abs(count.n_clusters - 30) <= 2


def test_odd_data():
    def count(X):
        return select_n_clusters(X, random_state=0).n_clusters

    rng = np.random.default_rng(0)

    assert count(np.full((40, 6), 3.0)) == 1
    assert count(np.outer(np.arange(1, 31), rng.standard_normal(20))) == 1
    assert count(np.zeros((20, 5))) == 1
    assert count(rng.standard_normal((1, 5))) == 1
    assert count(rng.standard_normal((5, 50))) == 1
    assert count(rng.uniform(1, 2, (50, 1))) == 1
    assert count(make_ihgmm(5, 50, 1, random_state=0)[0]) == 1

    X, _ = make_ihgmm(90, 30, 3, random_state=0)
    for n_zeros in (1, 10):
        padded = np.vstack([X, np.zeros((n_zeros, 30))])
        result = select_n_clusters(padded, random_state=0)
        assert (result.n_clusters, result.n_rows) == (3, 90)


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
    X, _ = make_ihgmm(700, 120, 52, scale_ratio=2, random_state=0)
    message = r"at most 50 clusters .* select_n_clusters\(X, max_clusters=500\)"

    with pytest.warns(ClusterCountWarning, match=message):
        model = IhSC("auto", random_state=0).fit(X)

    assert model.n_clusters_ == 50


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
        assert count.may_be_one
        assert "cloud without clusters" in str(count)


@pytest.mark.filterwarnings("ignore:X looks like counts")
@pytest.mark.parametrize("seed", range(2))
def test_one_population_of_skewed_entries_is_one_cluster(seed):
    rng = np.random.default_rng(seed)
    log_means = rng.standard_normal(100)
    sizes = np.exp(rng.standard_normal((300, 100)) * rng.uniform(0.3, 1.2, 100))

    assert select_n_clusters(sizes * np.exp(log_means), random_state=0).n_clusters == 1

    means = 3 * rng.gamma(0.5, size=100) * rng.lognormal(0, 0.6, (300, 1))
    counts = rng.poisson(means * rng.gamma(2, 0.5, (300, 100)))  # over-dispersed

    assert select_n_clusters(counts, random_state=0).n_clusters == 1

    E = rng.exponential(size=(200, 50)) - 1

    assert select_n_clusters(E, random_state=0).n_clusters == 1


def test_clusters_are_counted_in_correlated_noise():
    for seed in range(2):
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((100, 4)))[0]
        X = ihgmm_rows(6 * basis.T, seed, correlation=0.8)
        assert select_n_clusters(X, random_state=seed).n_clusters == 4


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_one_cluster_is_never_silent():
    X, _ = make_ihgmm(90, 30, 1, random_state=0)

    with pytest.warns(ClusterCountWarning, match="All rows are put in one cluster"):
        assert IhSC("auto", random_state=0).fit(X).n_clusters_ == 1


def test_real_sets_that_everyone_tries():
    assert {2, 3} <= {*select_n_clusters(load_iris().data).plausible}
    assert 8 <= select_n_clusters(load_digits().data).n_clusters <= 12


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_a_doubtful_number_is_said_to_be():
    X, *_ = nested(0, types=2, kinds=4)
    count = select_n_clusters(X, random_state=0)

    assert count.is_doubtful
    assert count.confidence is Confidence.LOW

    with pytest.warns(ClusterCountWarning, match="which is doubtful") as caught:
        model = IhSC("auto", random_state=0).fit(X)

    (text,) = [str(w.message) for w in caught if "doubtful" in str(w.message)]
    for number in model.selection_.plausible:
        assert str(number) in text

    assert "give n_clusters" in text
    assert model.selection_.is_doubtful
