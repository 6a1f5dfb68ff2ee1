"""Sums over groups of rows, against loops over the groups."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm.groups import Groups


@pytest.fixture
def labels():
    return np.random.default_rng(0).permutation(np.repeat([0, 1, 3], [5, 9, 6]))


def test_sums_and_means(labels):
    values = np.random.default_rng(1).standard_normal(20)
    rows = Groups.of(labels, 5)
    assert_array_equal(rows.size, [5, 9, 0, 6, 0])
    totals = [values[labels == g].sum() for g in range(5)]
    assert_allclose(rows.total(values), totals)
    assert_allclose(rows.sum(values), np.array(totals)[labels])
    means = [values[labels == g].mean() for g in labels]
    assert_allclose(rows.mean(values), means)


def test_mean_one(labels):
    values = np.random.default_rng(1).uniform(1, 2, 20) * (labels != 3)
    found = Groups.of(labels, 4).mean_one(values)
    assert_array_equal(found[labels == 3], 1)
    for g in (0, 1):
        assert found[labels == g].mean() == pytest.approx(1)
        assert np.ptp(found[labels == g] / values[labels == g]) < 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_rows_and_inner_products(labels, kind, dtype):
    rng = np.random.default_rng(2)
    X = (rng.standard_normal((20, 7)) * (rng.random((20, 7)) < 0.6)).astype(dtype)
    weights, centers = rng.uniform(size=20), rng.standard_normal((4, 7))
    rows = Groups.of(labels, 4)
    sums = rows.weighted_sums(kind(X), weights)
    wanted = [weights[labels == g] @ X[labels == g] for g in range(4)]
    assert sums.dtype == dtype
    assert_allclose(sums, wanted, atol=1e-5)
    inner = rows.inner_products(kind(X), centers)
    assert inner.dtype == np.float64
    assert_allclose(inner, (X * centers[labels]).sum(axis=1), atol=1e-5)
