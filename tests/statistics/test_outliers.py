"""Rows that fit no cluster: which ones are found, and what knows of them."""

import numpy as np
import pytest
from correlated_noise import autoregressive
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import (
    IhGMM,
    IhSC,
    Recipe,
    diagnose,
    estimate_parameters,
    scale_heterogeneity_test,
)
from ihgmm._checks import check_matrix
from ihgmm.statistics.diagnosis import Verdict
from ihgmm.statistics.outliers import find_outliers


def sample(seed, n=300, p=100, k=4, noise=None):
    """Rows of four kinds, of length 6 and log-normal scales, and their kinds."""
    rng = np.random.default_rng(seed)
    centers = 6 * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    labels = rng.permutation(np.arange(n) % k)
    X = rng.lognormal(0, 0.5, n)[:, None] * centers[labels]
    return X + (rng.standard_normal((n, p)) if noise is None else noise(rng, n, p))


def planted(seed, share, times):
    """Return rows, some of them in random directions, and which ones."""
    X = sample(seed)
    rng = np.random.default_rng([seed, 1])
    rows = rng.choice(len(X), round(share * len(X)), replace=False)
    directions = rng.standard_normal((len(rows), X.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    X[rows] = times * np.median(np.linalg.norm(X, axis=1)) * directions
    is_outlier = np.zeros(len(X), dtype=bool)
    is_outlier[rows] = True
    return X, is_outlier


@pytest.fixture(scope="module")
def data():
    return planted(0, 0.05, 5)


@pytest.fixture(scope="module")
def model(data):
    return IhSC(4, outliers="auto", random_state=0).fit(data[0])


@pytest.mark.parametrize(("share", "times"), [(0.01, 3), (0.05, 1000), (0.2, 3)])
def test_long_rows_are_found(share, times):
    n_false = 0
    n_outliers = 0
    for seed in range(3):
        X, is_outlier = planted(seed, share, times)
        is_flagged = IhSC(4, outliers="auto", random_state=0).fit(X).labels_ < 0
        assert is_flagged[is_outlier].all()
        n_false += is_flagged[~is_outlier].sum()
        n_outliers += is_outlier.sum()

    assert n_false <= 0.01 * n_outliers


def test_rows_in_no_direction_are_found():
    counts = np.zeros(3)
    for seed in range(6):
        X, is_outlier = planted(seed, 0.2, 1)
        is_flagged = IhSC(4, outliers="auto", random_state=0).fit(X).labels_ < 0
        is_hit = is_flagged & is_outlier
        counts += is_hit.sum(), is_flagged.sum(), is_outlier.sum()
    n_hits, n_flagged, n_outliers = counts

    assert n_hits / n_outliers > 0.85
    assert n_hits / n_flagged > 0.85


def clump(seed, width):
    """Return rows, 45 of them huge and around one direction, and which ones."""
    X = sample(seed)
    rng = np.random.default_rng([seed, 2])
    direction = rng.standard_normal(100) / 10
    X[:45] = 150 * (direction + width / 10 * rng.standard_normal((45, 100)))
    return X, np.arange(300) < 45


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.parametrize(("seed", "width"), [(0, 0.1), (1, 1.0), (2, 0.1), (0, 1.0)])
def test_a_clump_of_huge_rows_is_found_or_takes_a_cluster_and_is_doubted(width, seed):
    X, is_outlier = clump(seed, width)
    model = IhSC(4, outliers="auto", random_state=0).fit(X)
    is_flagged = model.labels_ < 0
    if is_flagged.any():
        assert_array_equal(is_flagged, is_outlier)
    else:  # it takes the place of a cluster
        verdict = diagnose(X, model).verdict
        assert verdict in (Verdict.OVERLAPPING, Verdict.NO_SEPARATION)

    labels = IhSC(5, outliers="auto", random_state=0).fit_predict(X)

    assert np.mean((labels == labels[0]) != is_outlier) < 0.02


@pytest.mark.parametrize("times", [3, 5, 20])
def test_rows_of_other_counts_are_found(times):
    # The noise of counts grows with their mean: that of long rows of clusters is large.
    for seed in range(2):
        rng = np.random.default_rng(seed)
        profiles = rng.gamma(0.5, size=(14, 100))
        profiles *= 300 / profiles.sum(axis=1, keepdims=True)
        means = rng.lognormal(0, 0.5, 300)[:, None] * profiles[np.arange(300) % 4]
        means[:10] = times * profiles[4:]
        X = rng.poisson(means).astype(float)
        labels = IhSC(4, outliers="auto", random_state=0).fit(X).labels_
        assert (labels[:10] < 0).all()
        assert (labels[10:] >= 0).all()


def t3(rng, n, p):
    return rng.standard_t(3, (n, p)) / np.sqrt(3)


def by_rows(rng, n, p):
    return rng.standard_normal((n, p)) * rng.lognormal(0, 0.7, (n, 1))


def correlated(rng, n, p):
    return autoregressive(rng.standard_normal((n, p)), 0.8)


@pytest.mark.parametrize("noise", [None, t3, by_rows, correlated])
def test_few_rows_are_flagged_without_outliers(noise):
    shares = []
    for seed in range(3):
        X = sample(seed, noise=noise)
        labels = IhSC(4, outliers="auto", random_state=0).fit(X).labels_
        shares.append((labels < 0).mean())

    assert np.mean(shares) < 0.01


def test_rows_of_one_norm_are_not_flagged():
    for seed in range(2):
        X = sample(seed)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        assert (IhSC(4, outliers="auto", random_state=0).fit(X).labels_ >= 0).all()


def test_outliers_have_no_part_in_the_fit(data, model):
    X, is_outlier = data
    clean_model = IhSC(4, random_state=0).fit(X[~is_outlier])

    assert_array_equal(model.labels_[~is_outlier], clean_model.labels_)
    assert_allclose(model.cluster_centers_, clean_model.cluster_centers_)
    assert_allclose(model.eigenvalues_, clean_model.eigenvalues_)
    assert_allclose(model.scales_[~is_outlier], clean_model.scales_)
    for values in (model.scales_, model.sizes_, model.noise_levels_):
        assert_array_equal(np.isnan(values), is_outlier)


def test_where_there_are_none_nothing_changes():
    X = sample(0)
    baseline = IhSC(4, random_state=0).fit(X)
    model = IhSC(4, outliers="auto", random_state=0).fit(X)

    assert not hasattr(baseline, "outlier_scores_")
    assert_array_equal(baseline.labels_, model.labels_)
    assert_array_equal(baseline.scales_, model.scales_)


@pytest.mark.parametrize("options", [{}, {"recipe": Recipe(space="projected")}])
def test_predict_says_what_the_fit_said(data, options):
    X, is_outlier = data
    model = IhSC(4, outliers="auto", random_state=0, **options).fit(X)

    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.outlier_scores_ > model.outlier_threshold_, is_outlier)

    new_rows = np.vstack([X[~is_outlier][:5], 100 * np.eye(5, X.shape[1])])

    assert_array_equal(model.predict(new_rows) < 0, np.arange(10) >= 5)


def test_a_share_flags_the_strangest_rows(data):
    X, is_outlier = data
    model = IhSC(4, outliers=0.1, random_state=0).fit(X)
    is_flagged = model.labels_ < 0
    scores = model.outlier_scores_

    assert is_flagged.sum() == 30
    assert is_flagged[is_outlier].all()
    assert scores[is_flagged].min() > scores[~is_flagged].max()
    assert_array_equal(model.predict(X), model.labels_)


def test_the_number_of_clusters_is_that_of_other_rows(data):
    X, is_outlier = data
    model = IhSC("auto", outliers="auto", random_state=0).fit(X)

    assert model.n_clusters_ == 4
    assert_array_equal(model.labels_ < 0, is_outlier)


def test_a_sample_of_rows_teaches_the_rule():
    X = check_matrix(np.vstack([planted(0, 0.05, 5)[0], planted(1, 0.05, 5)[0]]))
    options = {"rng": np.random.default_rng(0)}
    rule = find_outliers(X, 8, "auto", **options)
    sample_rule = find_outliers(X, 8, "auto", max_rows=400, **options)

    assert sample_rule.lines.embedding.directions is not rule.lines.embedding.directions
    assert_array_equal(sample_rule(X), rule(X))

    share_rule = find_outliers(X, 8, 0.1, max_rows=400, **options)

    assert share_rule(X).sum() == 60


@pytest.mark.parametrize("noise", ["individual", "class", "common"])
def test_mixtures(data, noise):
    X, is_outlier = data
    model = IhGMM(4, noise=noise, outliers="auto", random_state=0).fit(X)
    clean_model = IhGMM(4, noise=noise, random_state=0).fit(X[~is_outlier])

    assert_array_equal(model.labels_ < 0, is_outlier)

    totals = model.memberships_.sum(axis=1)

    assert_allclose(totals, ~is_outlier, atol=1e-12)
    assert_allclose(model.predict_proba(X).sum(axis=1), ~is_outlier, atol=1e-12)

    for criterion in ("score", "bic", "icl"):
        expected = getattr(clean_model, criterion)(X[~is_outlier])
        assert getattr(model, criterion)(X) == pytest.approx(expected)

    assert model.log_likelihood_ == pytest.approx(clean_model.log_likelihood_)


def test_statistics_leave_outliers_out(data, model):
    X, is_outlier = data
    labels = model.labels_
    clean_labels = labels[~is_outlier]
    diagnosis = diagnose(X, labels)
    clean_diagnosis = diagnose(X[~is_outlier], clean_labels)

    assert diagnosis.n_outliers == 15
    assert diagnosis.expected_error == clean_diagnosis.expected_error
    assert_array_equal(np.isnan(diagnosis.certainty), is_outlier)
    assert "outliers" in str(diagnosis)
    assert "outliers" not in str(clean_diagnosis)

    estimates = estimate_parameters(X, labels)
    clean_estimates = estimate_parameters(X[~is_outlier], clean_labels)

    assert_allclose(estimates.centers, clean_estimates.centers)
    assert_array_equal(np.isnan(estimates.scales), is_outlier)

    clean_test = scale_heterogeneity_test(X[~is_outlier], clean_labels)

    assert scale_heterogeneity_test(X, labels).p_value == clean_test.p_value


@pytest.mark.parametrize("value", [0, -0.1, 0.7, np.nan, "all"])
@pytest.mark.parametrize("estimator", [IhSC, IhGMM])
def test_bad_shares(estimator, value):
    with pytest.raises(ValueError, match=rf"outliers={value!r}.* give"):
        estimator(2, outliers=value).fit(sample(0))
    with pytest.raises(ValueError, match=r"outliers=0.5 leaves 5 of 10 rows .* small"):
        estimator(8, outliers=0.5).fit(sample(0)[:10])
