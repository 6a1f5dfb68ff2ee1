"""Typical rows: of ordinary size, and nearest to the pattern of their cluster."""

import numpy as np

from ihgmm import make_ihgmm
from ihgmm.matrix import as_matrix
from ihgmm.statistics.typical import typical_ranks


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


def test_a_cluster_without_rows_has_none():
    ranks = ranks_of_equal_rows(5)
    np.testing.assert_array_equal(ranks, [1, 2, 3, np.nan, np.nan])


def test_of_few_rows_none_is_typical():
    assert np.isnan(ranks_of_equal_rows(4)).all()


def ranks_of_equal_rows(n):
    """Return the ranks of rows in the first of two clusters, all equally typical."""
    centers, every = np.ones((2, n)), np.ones(n, bool)
    labels = np.zeros(n, int)
    return typical_ranks(
        as_matrix(np.eye(n)), labels, centers, np.ones(n), complete=every
    )
