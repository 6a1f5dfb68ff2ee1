from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from ihgmm import (
    ClusterCountWarning,
    IhGMM,
    IhSC,
    Recipe,
    UnstableLabelsWarning,
    make_ihgmm,
)
from ihgmm.metrics import exact_recovery, match_labels, misclassification_rate

STRUCTURES = ("individual", "class", "common")


@pytest.fixture(scope="module")
def sample():
    return make_ihgmm(
        300, 150, 3, separation_constant=0.5, balance=0.4, random_state=0,
        return_params=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(sample):
    return IhGMM(3, random_state=0).fit(sample.X)


def test_attributes(model, sample):
    assert misclassification_rate(sample.labels, model.labels_) < 0.03
    assert_allclose(model.memberships_.sum(axis=1), 1)
    assert_array_equal(model.memberships_.argmax(axis=1), model.labels_)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()
    assert_allclose(model.weights_.sum(), 1)
    assert_allclose(model.weights_, np.bincount(model.labels_) / 300, atol=0.03)
    assert model.converged_
    assert model.scale_errors_.shape == (300,)


def test_parameters_are_near_the_truth():
    draw = make_ihgmm(600, 100, 3, random_state=1, return_params=True)
    model = IhGMM(3, random_state=0).fit(draw.X)

    assert exact_recovery(draw.labels, model.labels_)

    mean_scales = np.bincount(draw.labels, draw.scales) / np.bincount(draw.labels)

    assert_allclose(model.scales_, draw.scales / mean_scales[draw.labels], atol=0.05)
    assert_allclose(model.noise_levels_, draw.noise_levels, rtol=0.35)

    signal = draw.scales[:, None] * draw.centers[draw.labels]
    estimate = model.scales_[:, None] * model.cluster_centers_[model.labels_]

    assert np.linalg.norm(signal - estimate) < 0.05 * np.linalg.norm(signal)


def test_predict_and_proba(model, sample):
    rows, labels = make_ihgmm(400, centers=sample.centers, random_state=9)
    proba = model.predict_proba(rows)

    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(proba.argmax(axis=1), model.predict(rows))
    assert misclassification_rate(labels, model.predict(rows)) < 0.03
    assert_allclose(model.predict_proba(rows * 7), proba, atol=1e-9)  # any scale
    assert model.score(rows) == pytest.approx(model.score_samples(rows).mean())

    strangers = np.random.default_rng(0).standard_normal((400, 150))
    strangers *= np.linalg.norm(rows, axis=1).mean() / np.sqrt(150)

    assert model.score(strangers) < model.score(rows)


@pytest.mark.parametrize("noise", STRUCTURES)
def test_memberships_are_calibrated(noise):
    certainty = []
    is_right = []
    for seed in range(12):
        draw = make_ihgmm(
            200, (50, 800)[seed % 2], 3, separation_constant=0.12, balance=0.4,
            noise_levels=(0.9, 1.1), noise_structure=noise, random_state=seed,
            return_params=True,
        )  # fmt: skip
        model = IhGMM(3, noise=noise, random_state=0, tol=1e-2).fit(draw.X)
        certainty.append(model.memberships_.max(axis=1))
        is_right.append(match_labels(draw.labels, model.labels_) == draw.labels)
    certainty = np.concatenate(certainty)
    is_right = np.concatenate(is_right)

    assert 0.03 < 1 - is_right.mean() < 0.3  # the task is hard enough to tell

    for lower, upper in [(0.34, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)]:
        is_within = (certainty >= lower) & (certainty < upper)
        margin = 3 * np.sqrt(0.25 / is_within.sum())
        mean_certainty = certainty[is_within].mean()

        assert is_right[is_within].mean() == pytest.approx(
            mean_certainty, abs=0.07 + margin
        )


@pytest.mark.parametrize("shape", [(200, 50, 2), (200, 1000, 3)])
def test_bic_finds_the_noise_structure(shape):
    is_right = []
    for seed, structure in product(range(2), STRUCTURES):
        noise = ("gaussian", "rademacher")[seed]
        options = {"noise": noise, "noise_structure": structure, "random_state": seed}
        X, _ = make_ihgmm(*shape, scale_ratio=5, **options)
        models = (IhGMM(shape[2], noise=s, random_state=0).fit(X) for s in STRUCTURES)
        criteria = [model.bic(X) for model in models]
        is_right.append(STRUCTURES[np.argmin(criteria)] == structure)

    assert sum(is_right) >= 5


def test_criteria(model, sample):
    bic = model.bic(sample.X)
    icl = model.icl(sample.X)

    assert icl >= bic > model.aic(sample.X)

    # On the rows of the fit, the likelihood behind it is that of the fit.
    penalty = 2 * np.log(300) + 300 * np.log(150)

    assert bic == pytest.approx(penalty - 2 * model.log_likelihood_, rel=1e-3)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_bic_finds_the_number_of_clusters():
    for seed in range(2):
        X, _ = make_ihgmm(300, 80, 4, random_state=seed)
        values = [IhGMM(k, random_state=0).fit(X).bic(X) for k in range(2, 7)]
        assert np.argmin(values) + 2 == 4


@pytest.mark.parametrize(
    ("unit", "noise"), zip([1e-160, 1e-30, 1e160], STRUCTURES, strict=True)
)
def test_units(sample, unit, noise):
    model = IhGMM(3, noise=noise, random_state=0).fit(sample.X)
    scaled_model = IhGMM(3, noise=noise, random_state=0).fit(sample.X * unit)

    assert_array_equal(model.labels_, scaled_model.labels_)
    assert_allclose(model.memberships_, scaled_model.memberships_, atol=1e-6)
    assert_allclose(scaled_model.noise_levels_ / unit, model.noise_levels_, rtol=1e-6)

    proba = scaled_model.predict_proba(sample.X * unit)

    assert_allclose(proba, model.predict_proba(sample.X), atol=1e-6)

    shift = 300 * 149 * np.log(unit)
    log_likelihood = scaled_model.log_likelihood_ + shift

    assert log_likelihood == pytest.approx(model.log_likelihood_, abs=1e-6 * abs(shift))


@pytest.mark.parametrize("noise", STRUCTURES)
def test_clusters_of_two_rows_and_many_features(noise):
    for seed in range(3):
        X, labels = make_ihgmm(
            8, 5000, 4, separation_constant=1.0, noise_structure=noise,
            random_state=seed,
        )  # fmt: skip
        model = IhGMM(4, noise=noise, random_state=0).fit(X)
        assert exact_recovery(labels, model.labels_)
        assert np.isfinite(model.memberships_).all()
        assert np.isfinite(model.bic(X))


def test_exact_data_and_few_features():
    X = np.outer(np.arange(1.0, 21), [1, 0, 0])
    X[10:] = np.outer(np.arange(1.0, 11), [0, 1, 1])
    for noise in STRUCTURES:
        model = IhGMM(2, noise=noise, random_state=0).fit(X)
        assert exact_recovery(np.arange(20) // 10, model.labels_)
        assert np.isfinite(model.log_likelihood_)

    line_model = IhGMM(1, random_state=0).fit(np.arange(1.0, 11)[:, None])

    assert np.isfinite(line_model.predict_proba([[3.0], [-2.0]])).all()


@pytest.mark.parametrize("outliers", [None, "auto"])
def test_zero_rows(outliers):
    X, _ = make_ihgmm(60, 20, 2, random_state=0)
    X[4] = 0

    with pytest.warns(UserWarning, match="1 of 60 rows are zero") as caught:
        model = IhGMM(2, outliers=outliers, random_state=0).fit(X)

    assert len(caught) == 1
    assert model.labels_[4] == 0
    assert_allclose(model.memberships_[4], model.weights_, atol=0.05)
    assert np.isfinite(model.score_samples(np.zeros((1, 20)))).all()


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_cap_warns_and_is_reported():
    X = np.random.default_rng(0).standard_normal((100, 30))

    with pytest.warns(ConvergenceWarning, match="=2 rounds, more than tol=1e-06"):
        model = IhGMM(4, max_iter=2, tol=1e-6, random_state=0).fit(X)

    assert not model.converged_
    assert model.n_iter_ == 2


def test_a_likelihood_that_spoils_stable_clusters_says_so():
    # The smallest of five sizes, each a third of the last, is lost, and its centre
    # splits the largest cluster. A start that neighbours have taught is mostly kept.
    by_rows_alone = Recipe(neighbors=False)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        labels = np.repeat(range(5), [268, 89, 30, 10, 3])
        centers = 6 * np.linalg.qr(rng.standard_normal((100, 5)))[0].T
        X = rng.lognormal(0, 0.5, (400, 1)) * centers[labels]
        X += rng.standard_normal((400, 100))

        with pytest.warns(UnstableLabelsWarning, match="away from spectral clusters"):
            labels_found = IhGMM(5, recipe=by_rows_alone).fit_predict(X)

        spectral_labels = IhSC(5, recipe=by_rows_alone).fit_predict(X)
        assert misclassification_rate(labels, spectral_labels) < 0.1
        assert misclassification_rate(labels, labels_found) > 0.2


@pytest.mark.parametrize("noise", STRUCTURES)
def test_identical_rows_stay_together(noise):
    model = IhGMM(3, noise=noise, random_state=0)

    with pytest.warns(ClusterCountWarning, match="Rows are in 1 of n_clusters=3"):
        assert (model.fit(np.ones((30, 5))).labels_ == 0).all()

    X, _ = make_ihgmm(2, 5, 2, random_state=0)

    with pytest.warns(ClusterCountWarning, match="Rows are in 2 of"):
        labels = model.fit(np.repeat(X, 20, axis=0)).labels_

    assert_array_equal(np.bincount(labels), [20, 20])


@pytest.mark.parametrize("Estimator", [IhSC, IhGMM])
def test_how_clusters_were_counted_is_kept_until_the_next_fit(Estimator):
    X, _ = make_ihgmm(200, 60, 3, random_state=0)
    model = Estimator("auto", random_state=0).fit(X)

    assert model.selection_.n_clusters == model.n_clusters_ == 3

    model.set_params(n_clusters=4).fit(X)

    assert not hasattr(model, "selection_")


@pytest.mark.parametrize("noise", STRUCTURES)
def test_predictions_follow_the_public_attributes(noise):
    X, _ = make_ihgmm(200, 60, 3, separation_constant=0.4, random_state=0)
    model = IhGMM(3, noise=noise, random_state=0).fit(X)
    memberships = model.predict_proba(X)

    assert (memberships.argmax(axis=1) == model.labels_).mean() > 0.98

    order = [1, 2, 0]
    names = ["cluster_centers_", "center_errors_", "weights_"]
    for name in names + ["noise_levels_"] * (noise == "class"):
        setattr(model, name, getattr(model, name)[order])

    assert_allclose(model.predict_proba(X), memberships[:, order], atol=1e-12)
    assert_array_equal(model.predict(X), memberships[:, order].argmax(axis=1))

    model.cluster_centers_ = -model.cluster_centers_

    assert (model.predict(X) != memberships[:, order].argmax(axis=1)).mean() > 0.5


def test_errors_of_the_centres():
    # Standard errors: the entries of the centres found miss by about as much.
    for seed, noise in product(range(2), STRUCTURES):
        options = {"noise_structure": noise, "random_state": seed}
        draw = make_ihgmm(300, 400, 3, scale_ratio=3, return_params=True, **options)
        model = IhGMM(3, noise=noise, random_state=0).fit(draw.X)

        for k in range(3):
            label = draw.labels[model.labels_ == k][0]
            mean_scale = draw.scales[draw.labels == label].mean()
            deviations = model.cluster_centers_[k] - mean_scale * draw.centers[label]
            standard_error = np.sqrt(np.mean(model.center_errors_[k] ** 2))
            assert standard_error == pytest.approx(deviations.std(), rel=0.2)


@pytest.mark.parametrize("noise", STRUCTURES)
def test_a_cluster_of_a_single_row(noise):
    X, _ = make_ihgmm(40, 30, 2, random_state=0)
    X = np.vstack([X, np.r_[np.zeros(29), 500.0]])
    model = IhGMM(3, noise=noise, random_state=0).fit(X)

    assert_array_equal(np.bincount(model.labels_)[-1:], [1])
    assert np.isfinite(model.predict_proba(X)).all()
    assert_array_equal(model.predict(X), model.labels_)
    assert np.isfinite(model.center_errors_).all() == (noise != "individual")
