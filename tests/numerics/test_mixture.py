"""Gaussian clusters of one covariance, their starts, and the search for roots."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, ortho_group

from ihgmm.matrix import HOST
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.mixture import tied_clusters
from ihgmm.numerics.starts import spherical_lloyd


def corners(seed, n=400, k=4, noise=0.15):
    """Unit rows near orthogonal unit vectors."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    rows = ortho_group.rvs(k, random_state=seed)[labels]
    return HOST.unit_rows(rows + noise * rng.standard_normal(rows.shape)), labels


def flipped(rows, seed):
    return rows * np.random.default_rng(seed + 100).choice([-1.0, 1.0], (len(rows), 1))


@pytest.mark.parametrize("signed", [False, True])
def test_no_cluster_is_lost_among_more_than_features(signed):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centers = 2 * HOST.unit_rows(rng.standard_normal((30, 20)))
        labels = rng.integers(30, size=3000)
        rows = rng.uniform(1, 20, (3000, 1)) * centers[labels]
        rows += rng.standard_normal(rows.shape)  # which hides small rows
        products = rows @ centers.T
        products = np.abs(products) if signed else products
        oracle = misclassification_rate(labels, products.argmax(axis=1))
        rows = HOST.unit_rows(flipped(rows, seed) if signed else rows)
        # These rows are of few clusters: k-means alone misplaces a tenth.
        members = spherical_lloyd(rows, rows[:30], np.ones(3000), signed=signed)
        rate = misclassification_rate(labels, np.abs(members).argmax(axis=1))
        assert rate < oracle + 0.005


@pytest.mark.parametrize("signed", [False, True])
def test_spherical_lloyd_ends_where_no_row_would_move(signed):
    for seed in range(5):
        rows, labels = corners(seed, noise=0.3)
        weights = np.random.default_rng(seed + 100).gamma(2.0, size=400)
        rows = flipped(rows, seed) if signed else rows
        members = spherical_lloyd(rows, rows[:4], weights, signed=signed)
        assert misclassification_rate(labels, np.abs(members).argmax(axis=1)) < 0.05
        # A row is nearest to the centre that the rows of its cluster point to.
        centers = HOST.unit_rows((members * weights[:, None]).T @ rows)
        products = rows @ centers.T
        nearest = np.abs(products).argmax(1) if signed else products.argmax(1)
        signs = np.sign(products[np.arange(400), nearest]) if signed else np.ones(400)
        expected = np.eye(4)[nearest] * signs[:, None]
        assert np.mean((expected != members).any(axis=1)) < 0.01


def ellipses(n, seed, gap=5.0):
    """Three clusters that share a long and thin covariance."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    noise = rng.standard_normal((n, 3)) * [4.0, 1.0, 1.0]
    centers = gap * np.array([[0.0, 0, 0], [1, 1, 0], [0, 1, 1]])
    return (centers[labels] + noise) @ ortho_group.rvs(3, random_state=seed), labels


def naive(rows, members, weights, pull, n_iter, signed=False):
    """Run EM by densities; return means, covariance, shares and the gain of BIC.

    A signed cluster is two of the same share, at a mean and its opposite.
    """
    n, m = rows.shape
    weights = weights / weights.sum()
    flattest = 1e-6 * (weights @ rows**2).mean()
    if signed:
        members = np.concatenate([np.maximum(members, 0), np.maximum(-members, 0)])
    for _ in range(n_iter):
        counts = members * weights
        if signed:
            ahead, back = np.split(counts, 2)
            shares = np.tile((ahead + back).sum(axis=1) / 2, 2)
            means = (ahead - back) @ rows / (2 * shares[: len(ahead), None])
            means = np.concatenate([means, -means])
        else:
            shares = counts.sum(axis=1)
            means = counts @ rows / shares[:, None]
        scatter_within = np.einsum("i,ij,ik->jk", weights, rows, rows)
        scatter_within -= np.einsum("k,kj,kl->jl", shares, means, means)
        sphere = np.trace(scatter_within) / m * np.eye(m)
        covariance = (1 - pull) * scatter_within + pull * sphere + flattest * np.eye(m)
        densities = [multivariate_normal(mean, covariance).pdf(rows) for mean in means]
        densities = shares[:, None] * np.array(densities)
        members = densities / densities.sum(axis=0)
    center = weights @ rows
    scatter = np.cov(rows.T, aweights=weights, bias=True) + flattest * np.eye(m)
    log_likelihood_of_one = weights @ multivariate_normal(center, scatter).logpdf(rows)
    parameters = (m * (m + 1) / 2 - 1) if pull < 1 else 0
    gain = weights @ np.log(densities.sum(axis=0)) - log_likelihood_of_one
    return means, covariance, shares, gain - parameters * np.log(n) / (2 * n)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pull", [0.0, 0.2, 1.0])
def test_clusters_are_those_of_expectation_maximisation(pull, weighted, signed):
    for seed in range(3):
        rows, labels = ellipses(200, seed)
        rng = np.random.default_rng(seed + 100)
        weights = rng.gamma(2.0, size=200) if weighted else np.ones(200)
        start = np.eye(3)[:, labels]
        if signed:
            rows -= 20 * rows.mean(axis=0)
            flips = rng.choice([-1.0, 1.0], 200)
            rows = rows * flips[:, None]
            start = start * flips
        options = {"shrinkages": [pull], "signed": signed, "max_iter": 3}
        fit = tied_clusters(rows, [start], weights, **options)
        expected = naive(rows, start, weights, pull, fit.n_iter, signed)
        means, covariance, shares, bic_gain = expected
        coefficients = np.linalg.solve(covariance, means.T)
        intercepts = np.log(shares) - np.sum(means.T * coefficients, axis=0) / 2
        if signed:  # a cluster has both ends
            coefficients = coefficients[:, :3]
            intercepts = intercepts[:3] + np.log(2)
        assert_allclose(fit.coefficients, coefficients, rtol=1e-7, atol=1e-9)
        assert_allclose(fit.intercepts, intercepts, rtol=1e-7)
        assert_allclose(fit.bic_gain, bic_gain, rtol=1e-7)
        assert fit.shrinkage == pull
