"""IhGMM with one covariance of the noise."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC
from ihgmm.metrics import match_labels, misclassification_rate


def correlated(seed, r, n=300, p=60, k=3, length=6.0):
    """Noise that is autoregressive along the features, with new rows."""
    rng = np.random.default_rng(seed)
    centers = length * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    labels, noise = np.arange(2 * n) % k, rng.standard_normal((2 * n, p))
    for j in range(1, p):
        noise[:, j] = r * noise[:, j - 1] + np.sqrt(1 - r**2) * noise[:, j]
    X = rng.lognormal(0, 0.5, (2 * n, 1)) * centers[labels] + noise
    return X[:n], labels[:n], X[n:], labels[n:]


@pytest.fixture(scope="module")
def drawn():
    return correlated(0, 0.9)


@pytest.fixture(scope="module")
def model(drawn):
    return IhGMM(3, noise="tied", random_state=0).fit(drawn[0])


def test_attributes(model, drawn):
    X, *_ = drawn
    m = len(model.component_levels_)
    assert 3 < m < 60
    assert model.noise_components_.shape == (m, 60)
    assert_allclose(model.noise_components_ @ model.noise_components_.T, np.eye(m),
                    atol=1e-9)  # fmt: skip
    assert (np.diff(model.component_levels_) <= 0).all()
    assert model.noise_levels_.shape == (1,)
    assert model.center_errors_.shape == (3, 60)
    # The covariance of the fit is about that of the rows less their signal.
    signal = model.scales_[:, None] * model.cluster_centers_[model.labels_]
    first = model.noise_components_[0]
    assert np.std((X - signal) @ first) == pytest.approx(
        model.component_levels_[0], rel=0.2
    )
    assert not hasattr(IhGMM(3, random_state=0).fit(X), "noise_components_")


def test_probabilities_and_densities(model, drawn):
    _, _, new, labels = drawn
    proba = model.predict_proba(new)
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(proba.argmax(axis=1), model.predict(new))
    found = match_labels(labels, model.predict(new))
    assert np.mean(found != labels) < 0.02
    assert model.score(new) == pytest.approx(model.score_samples(new).mean())
    # A tied covariance describes such rows better than one level does.
    common = IhGMM(3, noise="common", random_state=0).fit(drawn[0])
    assert model.score(new) > common.score(new) + 5
    assert model.bic(drawn[0]) < common.bic(drawn[0])
    assert model.icl(drawn[0]) >= model.bic(drawn[0])
    m, p = model.noise_components_.shape
    penalty = (p * m - m * (m - 1) / 2 + 2) * np.log(300) + np.log(300 * p)
    expected = penalty - 2 * model.log_likelihood_
    assert model.bic(drawn[0]) == pytest.approx(expected, rel=1e-2)


def test_memberships_with_correlated_noise():
    # Of memberships above .99, .77 were right with one level for all directions.
    sure, right, errors, spoilt = [], [], [], []
    for seed in range(2):
        X, labels, *_ = correlated(seed, 0.95, p=100, length=5)
        found = IhGMM(3, noise="tied", random_state=0).fit(X)
        sure.append(found.memberships_.max(axis=1))
        right.append(match_labels(labels, found.labels_) == labels)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            common = IhGMM(3, noise="common", random_state=0).fit(X)
        errors.append(misclassification_rate(labels, common.labels_))
        if any("likelihood moved" in str(one.message) for one in caught):
            spoilt.append(
                errors[-1] - misclassification_rate(labels, IhSC(3).fit_predict(X))
            )
    assert spoilt
    assert min(spoilt) > 0.1
    sure, right = np.concatenate(sure), np.concatenate(right)
    assert np.mean(errors) > 0.1
    assert right.mean() > 0.98
    assert right[sure > 0.99].mean() > 0.985


def test_rows_that_count_more_or_less(drawn):
    X, labels, *_ = drawn
    counts = np.where(np.arange(300) % 5, 1.0, 0.0)
    some = counts > 0
    all_rows = IhGMM(3, noise="tied", random_state=0).fit(X, sample_weight=counts)
    few = IhGMM(3, noise="tied", random_state=0).fit(X[some])
    assert_array_equal(all_rows.labels_[some], few.labels_)
    assert_allclose(all_rows.component_levels_, few.component_levels_)
    assert np.mean(match_labels(labels, all_rows.labels_) != labels) < 0.02
