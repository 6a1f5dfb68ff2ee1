"""Missing cells, as users have them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import DataConversionWarning

from ihgmm import (
    IhGMM,
    IhSC,
    diagnose,
    estimate_parameters,
    make_ihgmm,
    select_n_clusters,
)
from ihgmm.metrics import misclassification_rate

PSC = partial(IhSC, recipe="psc")
ESTIMATORS = (IhSC, IhGMM, PSC)


def sample(seed=0, share=0.3, **options):
    """Return complete data, the same with missing cells, and labels."""
    options = {"separation_constant": 0.8, "scale_ratio": 5.0, **options}
    X, labels = make_ihgmm(300, 60, 3, random_state=seed, **options)
    is_hidden = np.random.default_rng(seed).random(X.shape) < share
    return X, np.where(is_hidden, np.nan, X), labels


@pytest.mark.parametrize("Estimator", ESTIMATORS)
@pytest.mark.parametrize("seed", range(2))
def test_clusters_are_found_nearly_as_in_complete_data(Estimator, seed):
    ratio, constant = (1.0, 3.0) if Estimator is PSC else (5.0, 0.8)
    X, gaps, labels = sample(seed, scale_ratio=ratio, separation_constant=constant)
    complete_model = Estimator(3, random_state=0).fit(X)
    model = Estimator(3, missing="fit", random_state=0).fit(gaps)
    error = misclassification_rate(labels, model.labels_)

    assert error <= misclassification_rate(labels, complete_model.labels_) + 0.03

    if Estimator is not IhGMM:  # which judges old rows by all others
        assert_array_equal(model.predict(gaps), model.labels_)

    assert misclassification_rate(labels, model.predict(gaps)) < 0.06


@pytest.mark.parametrize("seed", range(2))
def test_errors_grow_with_what_is_missing(seed):
    X, gaps, _ = sample(seed, share=0.4, separation_constant=3.0)
    complete_model = IhGMM(3, random_state=0).fit(X)
    model = IhGMM(3, missing="fit", random_state=0).fit(gaps)

    assert_array_equal(model.labels_, complete_model.labels_)

    growth = np.median(model.scale_errors_ / complete_model.scale_errors_)

    assert growth == pytest.approx(1 / np.sqrt(0.6), rel=0.1)

    growth = np.median(model.center_errors_ / complete_model.center_errors_)

    assert growth == pytest.approx(1 / np.sqrt(0.6), rel=0.1)

    # Scales are as far from those of complete data as errors say, and no nearer.
    deviations = (model.scales_ - complete_model.scales_) / model.scale_errors_

    assert 0.3 < np.sqrt(np.mean(deviations**2)) < 1.2


def test_every_way_to_say_missing():
    X, gaps, _ = sample()
    is_hidden = np.isnan(gaps)
    labels = IhSC(3, missing="fit", random_state=0).fit(gaps).labels_
    frame = pd.DataFrame(gaps).astype("Float64")

    assert frame.isna().to_numpy().any()

    forms = [np.ma.masked_array(X, is_hidden), frame, sp.csr_array(gaps)]
    for data in forms:
        model = IhSC(3, missing="fit", random_state=0).fit(data)
        assert_array_equal(model.labels_, labels)
        assert_array_equal(model.predict(data), labels)
        with pytest.raises(ValueError, match=r"contains NaN.*missing='fit'"):
            IhSC(3).fit(data)


def test_zeros_of_sparse_data_are_zeros():
    rng = np.random.default_rng(0)
    X = np.outer(rng.uniform(1, 2, 60), np.arange(8.0) % 2)
    X[30:] = np.outer(rng.uniform(1, 2, 30), (1 + np.arange(8.0)) % 2)
    S = sp.csr_array(X)
    S.data[::5] = np.nan
    model = IhSC(2, missing="fit", random_state=0).fit(S)

    assert_array_equal(model.labels_, np.repeat([0, 1], 30))
    assert_array_equal(model.cluster_centers_ == 0, X[[0, 30]] == 0)


def test_counts_and_diagnosis():
    _, gaps, _ = sample(separation_constant=3.0)

    assert select_n_clusters(gaps, missing="fit", random_state=0).n_clusters == 3

    model = IhSC("auto", missing="fit", random_state=0).fit(gaps)

    assert model.n_clusters_ == 3
    assert diagnose(gaps, model.labels_, missing="fit").verdict == "well separated"

    for ask in (lambda: select_n_clusters(gaps), lambda: diagnose(gaps, model.labels_)):
        with pytest.raises(ValueError, match=r"NaN at row 0.*drop.*missing='fit'"):
            ask()


def test_infinity_is_not_missing():
    _, gaps, _ = sample()
    gaps[7, 2] = -np.inf

    with pytest.raises(ValueError, match="infinity at row 7, column 2"):
        IhSC(3, missing="fit").fit(gaps)


def test_rows_and_columns_without_a_cell():
    _, gaps, labels = sample(separation_constant=3.0)
    gaps[[5, 8]] = np.nan
    gaps[:, [1, 4]] = np.nan
    model = IhSC(3, missing="fit", random_state=0)
    about_rows = "2 of 300 rows have no observed cell"
    about_columns = "2 of 60 columns of X have no observed cell: 1, 4. They are filled"

    with (
        pytest.warns(DataConversionWarning, match=about_rows),
        pytest.warns(DataConversionWarning, match=about_columns),
    ):
        model.fit(gaps)

    assert_array_equal(model.labels_[[5, 8]], 0)
    assert_array_equal(model.scales_[[5, 8]], 0)
    assert_array_equal(model.cluster_centers_[:, [1, 4]], 0)

    observed_rows = np.delete(np.arange(300), [5, 8])
    labels_found = model.labels_[observed_rows]

    assert misclassification_rate(labels[observed_rows], labels_found) == 0

    with (
        pytest.raises(ValueError, match="All 300 rows of X are zero"),
        pytest.warns(DataConversionWarning, match="60 of 60 columns"),
    ):
        model.fit(np.full((300, 60), np.nan))


def test_na_of_r_is_a_missing_cell_without_a_warning():
    # R's NA is a signalling NaN, and arithmetic with one warns.
    _, gaps, _ = sample()
    cells = gaps.copy()
    cells.view(np.uint64)[np.isnan(gaps)] = 0x7FF00000000007A2
    model = IhSC(3, missing="fit", random_state=0)

    assert_array_equal(model.fit(cells).labels_, model.fit(gaps).labels_)


def test_a_model_fills_what_is_judged_by_its_labels():
    _, gaps, _ = sample()
    model = IhSC(3, missing="fit", random_state=0).fit(gaps)
    diagnosis = diagnose(gaps, model)
    expected = diagnose(gaps, model.labels_, missing="fit")

    assert_array_equal(diagnosis.certainty, expected.certainty)

    scales = estimate_parameters(gaps, model).scales

    assert_allclose(scales, model.scales_, rtol=0.01)


def customers(seed, n=400):
    """Shares of six goods, times totals of all sizes; 4% of cells are missing."""
    rng = np.random.default_rng(seed)
    patterns = np.array(
        [[50, 4, 18, 14, 6, 8], [5, 48, 12, 8, 15, 12], [12, 8, 55, 5, 14, 6]]
    )
    labels = rng.integers(3, size=n)
    X = rng.lognormal(5, 1.1, n)[:, None] * rng.gamma(0.4 * patterns[labels])
    is_hidden = rng.random(X.shape) < 0.04
    return np.where(is_hidden, np.nan, X), labels, is_hidden.any(axis=1)


def test_the_label_of_a_row_with_gaps_hardly_depends_on_its_size():
    n_changed = 0
    n_rows = 0
    for seed in range(3):
        X, _, is_incomplete = customers(seed)
        model = IhSC(3, missing="fit", random_state=0).fit(X)
        for factor in (0.1, 10.0):
            is_changed = model.predict(factor * X) != model.labels_
            n_changed += is_changed[is_incomplete].sum()
            n_rows += is_incomplete.sum()

    assert n_changed <= 0.05 * n_rows


def test_rows_with_gaps_are_less_sure():
    expected_errors = np.zeros(2)
    errors = np.zeros(2)
    for seed in range(4):
        X, labels, is_incomplete = customers(seed)
        model = IhSC(3, missing="fit", random_state=0).fit(X)
        certainty = diagnose(X, model.labels_, missing="fit").certainty
        names = {k: np.bincount(labels[model.labels_ == k]).argmax() for k in range(3)}
        is_wrong = np.array([names[k] for k in model.labels_]) != labels
        for i, rows in enumerate((is_incomplete, ~is_incomplete)):
            expected_errors[i] += (1 - certainty[rows]).mean() / 4
            errors[i] += is_wrong[rows].mean() / 4

    assert expected_errors[0] > 2 * expected_errors[1]
    assert errors[0] / 2 < expected_errors[0] < 2 * errors[0] + 0.02


@pytest.mark.parametrize("noise", ["individual", "class", "common", "tied"])
def test_a_mixture_places_its_rows_as_it_did(noise):
    X = load_iris().data
    is_missing = np.random.default_rng(1).random(X.shape) < 0.2
    for options, data in (
        ({"missing": "fit"}, np.where(is_missing, np.nan, X)),
        ({"outliers": "cells"}, X),
        ({}, X),
    ):
        model = IhGMM(3, noise=noise, random_state=0, **options).fit(data)
        assert_array_equal(model.predict(data), model.labels_)
        assert_array_equal(model.memberships_.argmax(axis=1), model.labels_)


def test_the_order_of_rows_changes_no_label():
    X = load_wine().data
    X = X / X.std(axis=0)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.2] = np.nan
    labels = IhSC(3, missing="fit").fit_predict(X)
    for order in (np.arange(178)[::-1], rng.permutation(178)):
        labels_found = IhSC(3, missing="fit").fit_predict(X[order])
        assert misclassification_rate(labels[order], labels_found) == 0


@pytest.mark.filterwarnings("ignore:.* rows have no observed cell")
@pytest.mark.parametrize(("share", "most"), [(0.1, 0.045), (0.3, 0.18)])
def test_flowers_with_gaps_are_told_apart(share, most):
    X, kinds = load_iris(return_X_y=True)
    errors = []
    for seed in range(6):
        rng = np.random.default_rng([seed, int(100 * share)])
        gaps = np.where(rng.random(X.shape) < share, np.nan, X)
        labels = IhSC(3, missing="fit").fit_predict(gaps)
        errors.append(misclassification_rate(kinds, labels))

    # A low-rank model alone comes to .057 and .217.
    assert np.mean(errors) < most
