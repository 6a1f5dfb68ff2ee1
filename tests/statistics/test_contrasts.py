import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhSC, estimate_parameters, make_ihgmm
from ihgmm.matrix import as_matrix
from ihgmm.statistics.contrasts import set_apart, telling_features, typical_ranks


def test_contrasts_by_their_definition():
    rng = np.random.default_rng(0)
    centers, noise = rng.standard_normal((4, 30)), rng.uniform(0.5, 2, 4)
    ranked = telling_features(centers, noise, n_features=5)
    unit = centers / np.linalg.norm(centers, axis=1, keepdims=True)
    for k in range(4):
        others = np.delete(unit, k, axis=0).mean(axis=0)
        contrast = (centers[k] - np.linalg.norm(centers[k]) * others) / noise[k]
        assert_allclose(ranked.contrasts[k], contrast)
        order = np.argsort(-np.abs(contrast))[:5]
        assert_array_equal(ranked.features[k], order)
        assert_allclose(ranked.scores[k], contrast[order])
    assert repr(ranked) == "TellingFeatures(n_clusters=4, n_features=30, shown=5)"


def test_contrasts_do_not_depend_on_size():
    centers = np.random.default_rng(1).standard_normal((3, 8))
    larger = centers * [[1.0], [50.0], [0.1]]
    one, other = telling_features(centers), telling_features(larger)
    assert_allclose(one.contrasts, other.contrasts)
    assert_array_equal(one.features, other.features)
    assert one.features.shape == (3, 8)


def test_noise_of_features_changes_ranks():
    centers = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    assert telling_features(centers, n_features=1).features[0] == 0
    noisy = telling_features(centers, [[100.0, 1.0, 1.0]], n_features=1)
    assert noisy.features[0] == 2
    # A loud feature has no part in how large a row is.
    quiet = telling_features(centers[:, 1:], n_features=2)
    noise = telling_features(centers, [[1e9, 1.0, 1.0]], n_features=2)
    lengths = np.linalg.norm(centers[:, 1:], axis=1, keepdims=True)
    assert_allclose(noise.contrasts[:, 1:], quiet.contrasts * lengths)


def test_zero_centres_single_clusters_and_exact_data():
    centers = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    more = telling_features(np.vstack([centers, np.zeros(3)]))
    assert_allclose(more.contrasts[:2], telling_features(centers).contrasts)
    assert not more.contrasts[2].any()
    one = telling_features([[1.0, -4.0, 2.0]], 0.5, n_features=2)
    assert one.features.tolist() == [[1, 2]]
    assert_allclose(one.scores, [[-8.0, 4.0]])
    equal = telling_features([[0.0, 1.0, -1.0, 1.0]], n_features=3)
    assert equal.features.tolist() == [[1, 2, 3]]
    exact = telling_features([[1.0, 0.0, 2.0], [1.0, 0.0, 0.0]], 0.0)
    assert exact.contrasts[0].tolist() == [-np.inf, 0.0, np.inf]


@pytest.mark.parametrize("counts", [False, True])
def test_errors_of_contrasts(counts):
    # Clusters of one pattern, of 150, 100 and 50 rows: every contrast is 0.
    rng = np.random.default_rng(0)
    labels, beyond = np.repeat([0, 1, 2], [150, 100, 50]), []
    model = IhSC(3)
    model.cluster_centers_ = np.ones((3, 40))
    for _ in range(20):
        means = rng.lognormal(0, 0.4, (300, 1)) * (3 + rng.gamma(2, 3, 40))
        X = rng.poisson(means) if counts else rng.normal(means, 3)
        X = X.astype(float)
        found = estimate_parameters(X, labels)
        given = as_matrix(X), labels, found.scales
        ranked = set_apart(model, *given, center_errors=found.center_errors).ranked
        beyond.append(np.abs(ranked.contrasts) > 2 * ranked.errors)
    assert 0.02 < np.mean(beyond) < 0.08


def test_others_count_by_their_rows():
    centers = np.eye(3)
    ranked = telling_features(centers, sizes=[10, 90, 0.0001])
    assert_allclose(ranked.contrasts[0], [1, -1, 0], atol=1e-5)
    assert_allclose(ranked.contrasts[2], [-0.1, -0.9, 1], atol=1e-5)


@pytest.mark.parametrize(
    ("centers", "options", "message"),
    [
        (np.ones(3), {}, r"centers has shape \(3,\); give a matrix with a centre"),
        ([[np.nan, 1.0]], {}, "centers contains NaN"),
        (np.eye(3), {"n_features": 0}, "n_features=0 is too small"),
        (np.eye(3), {"noise_levels": np.ones(2)}, r"noise_levels has shape \(2,\)"),
        (np.eye(3), {"noise_levels": np.ones((2, 3))}, "give one number, 3 of them"),
        (np.eye(3), {"noise_levels": -1.0}, "negative or not finite"),
        (np.eye(3), {"noise_levels": [[1, 0, 2]]}, "a feature of noise 0, beside"),
    ],
)
def test_bad_input(centers, options, message):
    with pytest.raises(ValueError, match=message):
        telling_features(centers, **options)


# Typical rows.


def naive(X, labels, centers, sizes, complete):
    """Return the ranks by the definition, cluster by cluster and row by row."""
    ranks = np.full(len(X), np.nan)
    for k, center in enumerate(centers):
        rows = [i for i in np.flatnonzero(complete & (labels == k)) if X[i].any()]
        low, high = np.quantile(np.abs(sizes[rows]), [0.25, 0.75])
        cosines = {
            i: np.sign(sizes[i]) * (X[i] @ center) / np.linalg.norm(X[i])
            for i in rows
            if low <= abs(sizes[i]) <= high
        }
        for rank, i in enumerate(sorted(cosines, key=cosines.get)[:-4:-1], 1):
            ranks[i] = rank
    return ranks


def test_ranks_follow_the_definition():
    for seed in range(5):
        sample = make_ihgmm(90, 12, 3, random_state=seed, return_params=True)
        X, labels = sample.X.copy(), sample.labels.copy()
        rng = np.random.default_rng(seed)
        X[4], labels[7] = 0, -1  # a row of zeros, and an outlier
        sizes = sample.scales * rng.choice([-1, 1], 90)
        X *= np.sign(sizes)[:, None]
        complete = rng.random(90) < 0.7
        found = typical_ranks(
            as_matrix(X), labels, sample.centers, sizes, complete=complete
        )
        expected = naive(X, labels, sample.centers, sizes, complete)
        np.testing.assert_array_equal(found, expected)
        assert np.isnan(found[[4, 7]]).all()


def test_the_largest_rows_are_not_the_typical_ones():
    sample = make_ihgmm(600, 30, 3, random_state=0, return_params=True)
    labels, scales = sample.labels, sample.scales
    every = np.ones(600, bool)
    ranks = typical_ranks(
        as_matrix(sample.X), labels, sample.centers, scales, complete=every
    )
    for k in range(3):
        mine = labels == k
        share = (scales[mine, None] <= scales[mine & (ranks >= 1)]).mean(axis=0)
        assert ((share >= 0.25) & (share <= 0.76)).all()


@pytest.mark.parametrize(("n", "ranks"), [(5, [1, 2, 3, np.nan, np.nan]), (4, np.nan)])
def test_of_few_rows_none_is_typical(n, ranks):
    # All rows are equally typical of the first cluster; the second has none.
    data, every = as_matrix(np.eye(n)), np.ones(n, bool)
    labels, centers = np.zeros(n, int), np.ones((2, n))
    found = typical_ranks(data, labels, centers, np.ones(n), complete=every)
    assert_array_equal(found, np.full(n, np.nan) if n < 5 else ranks)
