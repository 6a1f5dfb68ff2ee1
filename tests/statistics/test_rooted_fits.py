"""Fits that compare roots of rows are judged with the same preparation."""

import numpy as np
import pytest

from ihgmm import (
    IhSC,
    PreparationWarning,
    cluster_tree,
    diagnose,
    estimate_parameters,
    top_features,
)
from ihgmm.metrics import misclassification_rate, stability_score


def sample(seed=0, n=600, p=200, k=4, size=60):
    """Return Poisson counts, their kinds, scales and true centres."""
    rng = np.random.default_rng(seed)
    profiles = rng.gamma(0.5, size=p) + rng.gamma(0.5, size=(k, p))
    profiles /= profiles.sum(axis=1, keepdims=True)
    kinds = np.arange(n) % k
    scales = size * rng.lognormal(-0.25, 0.7, n)
    X = rng.poisson(scales[:, None] * profiles[kinds]).astype(float)
    return X, kinds, scales, profiles


def test_diagnosis_of_a_fit_takes_its_roots():
    X, _, _, _ = sample()
    model = IhSC(4).fit(X)

    assert model.columns_.roots

    of_model = diagnose(X, model)
    of_labels = diagnose(X, model.labels_)

    assert of_model.stability > of_labels.stability + 0.03
    assert of_model.doubt < of_labels.doubt

    as_given = IhSC(4, columns="given").fit(X)

    assert diagnose(X, as_given).stability == diagnose(X, as_given.labels_).stability


@pytest.mark.parametrize("seed", range(4))
def test_errors_of_rooted_counts_are_in_the_range(seed):
    X, kinds, _, _ = sample(seed)
    model = IhSC(4).fit(X)
    diagnosis = diagnose(X, model)
    lower, upper = diagnosis.error_range
    rate = misclassification_rate(kinds, model.labels_)

    assert lower - 0.005 < rate < upper
    # Simulated counts have no classes beside their clusters, as real ones may.
    assert rate < diagnosis.expected_error < rate + 0.15


def test_stability_of_a_fit_takes_its_roots():
    X, _, _, _ = sample(n=900)
    model = IhSC(4).fit(X[:600])
    new_rows = X[600:]
    refit = IhSC(4, columns="roots").fit_predict(new_rows)
    score = stability_score(model, new_rows)

    assert score == stability_score(IhSC(4, columns="roots").fit(X[:600]), new_rows)
    assert misclassification_rate(refit, model.predict(new_rows)) < 0.2
    assert model.columns == "auto"  # the model itself stays as it is


def test_units_of_columns_are_no_matter_of_rooted_rows(recwarn):
    X, kinds, _, _ = sample()
    loudest = int(np.argmax(X.var(axis=0)))
    X[:, loudest] *= 200
    with pytest.warns(PreparationWarning, match=f"Column {loudest} holds"):
        IhSC(4, columns="given").fit(X)
    recwarn.clear()
    model = IhSC(4).fit(X)

    assert model.columns_.roots
    assert not [one for one in recwarn if one.category is PreparationWarning]
    assert misclassification_rate(kinds, model.labels_) < 0.15
    assert not any("Column" in str(one) for one in diagnose(X, model).cautions)


def test_a_tree_and_features_of_a_rooted_fit():
    X, _, _, _ = sample()
    model = IhSC(4).fit(X)
    tree = cluster_tree(model)

    assert tree.n_leaves == 4

    top = top_features(X, model)
    share_of_rows = X[model.labels_ == 0].mean(axis=0)

    assert np.corrcoef(top.means[0], share_of_rows)[0, 1] > 0.99
    assert "<html" in model.report(X).html


def test_intervals_of_a_rooted_fit_cover():
    coverage_of_scales = []
    coverage_of_centers = []
    for seed in range(4):
        X, kinds, scales, profiles = sample(seed)
        model = IhSC(4).fit(X, known_labels=kinds)

        assert model.columns_.roots
        assert (model.labels_ == kinds).all()

        estimates = estimate_parameters(X, model)
        mean_scales = np.array([scales[kinds == kind].mean() for kind in range(4)])
        true_scales = scales / mean_scales[kinds]
        true_centers = profiles * mean_scales[:, None]

        lower, upper = estimates.scale_intervals(0.95).T
        is_covered = (lower <= true_scales) & (true_scales <= upper)
        coverage_of_scales.append(is_covered.mean())
        lower, upper = np.moveaxis(estimates.center_intervals(0.95), -1, 0)
        is_covered = (lower <= true_centers) & (true_centers <= upper)
        coverage_of_centers.append(is_covered.mean())

        # The fit's own are the same, in the units of the data.
        np.testing.assert_allclose(model.scales_, estimates.scales)
        np.testing.assert_allclose(model.cluster_centers_, estimates.centers)

    assert 0.92 < np.mean(coverage_of_scales) < 0.97
    assert 0.91 < np.mean(coverage_of_centers) < 0.97
