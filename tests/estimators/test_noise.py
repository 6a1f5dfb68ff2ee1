"""Which noise the data have: IhGMM(noise="auto"), and directions of noise in IhSC."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC, make_ihgmm
from ihgmm.matrix import as_matrix, to_host
from ihgmm.metrics import match_labels, misclassification_rate
from ihgmm.statistics.covariance import Covariance, leading_covariance

KINDS = ("common", "class", "individual", "tied")


def rows(kind, seed, n=400, p=100, length=6.0):
    """Return rows of four clusters with noise of a kind, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 4)
    centers = length * np.linalg.qr(rng.standard_normal((p, 4)))[0].T
    noise = rng.standard_normal((n, p))
    if kind == "class":
        noise *= np.array([0.5, 0.8, 1.2, 1.6])[labels, None]
    elif kind == "individual":
        noise *= rng.lognormal(0, 0.5, (n, 1))
    elif kind == "tied":
        blocks = rng.standard_normal((n, 10)).repeat(p // 10, axis=1)
        noise = np.sqrt(0.2) * noise + np.sqrt(0.8) * blocks
    return rng.lognormal(0, 0.5, (n, 1)) * centers[labels] + noise, labels


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_noise_is_found(kind):
    for seed in range(2):
        X, labels = rows(kind, seed)
        model = IhGMM(4, noise="auto", random_state=0).fit(X)

        assert model.noise_ == kind, f"seed {seed}"
        assert set(model.noise_evidence_) == set(KINDS)
        assert min(model.noise_evidence_.values()) == model.noise_evidence_[kind] == 0

        model_of_kind = IhGMM(4, noise=kind, random_state=0).fit(X)

        assert model_of_kind.noise_ == kind
        assert not hasattr(model_of_kind, "noise_evidence_")
        assert_array_equal(model.labels_, model_of_kind.labels_)
        assert misclassification_rate(labels, model.labels_) < 0.05


def test_few_rows_do_not_teach_a_covariance():
    for seed in range(2):
        X, labels = rows("common", seed, n=60, p=1_000, length=12.0)
        model = IhGMM(4, noise="auto", random_state=0).fit(X)
        assert model.noise_ == "common"
        assert misclassification_rate(labels, model.labels_) < 0.02


def test_blocks_of_noise_in_many_columns_and_few_rows_spoil_no_label():
    for seed in range(2):
        X, labels = rows("tied", seed, n=160, p=1_000, length=20.0)
        model = IhGMM(4, noise="auto", random_state=0).fit(X)
        assert misclassification_rate(labels, model.labels_) < 0.02, f"seed {seed}"


def test_the_kind_is_chosen_on_some_of_many_rows():
    X, labels = rows("tied", 0, n=5_000)
    model = IhGMM(4, noise="auto", random_state=0).fit(X)

    assert model.noise_ == "tied"
    assert misclassification_rate(labels, model.labels_) < 0.01


def test_directions_of_noise_are_used_where_they_stand_as_high_as_clusters():
    for seed in range(2):
        X, labels = rows("tied", seed, p=150)
        model = IhSC(4, random_state=0).fit(X)

        assert model.embedding_.shape[1] > 10  # 2K + 2
        assert misclassification_rate(labels, model.labels_) < 0.05, f"seed {seed}"

        isotropic_rows = make_ihgmm(400, 150, 4, random_state=seed)[0]
        model = IhSC(4, random_state=0).fit(isotropic_rows)

        assert model.embedding_.shape[1] == 4


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.parametrize("noise", ["individual", "common"])
def test_noise_between_the_centres_tempers_memberships(noise):
    # Untempered, rows above .9 said .99 and were right in .90.
    certainty = []
    is_right = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        labels = np.arange(300) % 4
        blocks = np.eye(10).repeat(10, axis=1)
        directions = np.linalg.qr(rng.standard_normal((10, 4)))[0].T
        X = 1.26 * rng.lognormal(0, 0.5, (300, 1)) * (directions @ blocks)[labels]
        X += np.sqrt(0.9) * rng.standard_normal(X.shape)
        X += np.sqrt(0.3) * rng.standard_normal((300, 10)) @ blocks
        model = IhGMM(4, noise=noise, random_state=0).fit(X)

        assert model.temperature_ == pytest.approx(2.8, abs=0.3)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)

        certainty.append(model.memberships_.max(axis=1))
        is_right.append(match_labels(labels, model.labels_) == labels)

        options = {"noise_structure": noise, "random_state": seed}
        isotropic_rows = make_ihgmm(300, 60, 3, **options)[0]
        model = IhGMM(3, noise=noise, random_state=0).fit(isotropic_rows)

        assert model.temperature_ < 1.1

    certainty = np.concatenate(certainty)
    is_right = np.concatenate(is_right)
    is_sure = certainty > 0.9

    assert 0.1 < 1 - is_right.mean() < 0.3
    assert is_sure.mean() > 0.3
    assert is_right[is_sure].mean() == pytest.approx(
        certainty[is_sure].mean(), abs=0.02
    )


def correlated(seed, r, n=300, p=60, k=3, length=6.0):
    """Noise that is autoregressive along the features, with new rows."""
    rng = np.random.default_rng(seed)
    centers = length * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    labels = np.arange(2 * n) % k
    noise = rng.standard_normal((2 * n, p))
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


def test_attributes_of_a_tied_covariance(model, drawn):
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
    level = np.std((X - signal) @ model.noise_components_[0])

    assert level == pytest.approx(model.component_levels_[0], rel=0.2)
    assert not hasattr(IhGMM(3, random_state=0).fit(X), "noise_components_")


def test_probabilities_and_densities(model, drawn):
    _, _, new_rows, labels = drawn
    proba = model.predict_proba(new_rows)

    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(proba.argmax(axis=1), model.predict(new_rows))

    labels_found = match_labels(labels, model.predict(new_rows))

    assert np.mean(labels_found != labels) < 0.02
    assert model.score(new_rows) == pytest.approx(model.score_samples(new_rows).mean())

    # A tied covariance describes such rows better than one level does.
    common_model = IhGMM(3, noise="common", random_state=0).fit(drawn[0])

    assert model.score(new_rows) > common_model.score(new_rows) + 5
    assert model.bic(drawn[0]) < common_model.bic(drawn[0])
    assert model.icl(drawn[0]) >= model.bic(drawn[0])

    m, p = model.noise_components_.shape
    penalty = (p * m - m * (m - 1) / 2 + 2) * np.log(300) + np.log(300 * p)
    expected = penalty - 2 * model.log_likelihood_

    assert model.bic(drawn[0]) == pytest.approx(expected, rel=1e-2)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_memberships_with_correlated_noise():
    # Of memberships above .99, .77 were right with one level for all directions.
    certainty = []
    is_right = []
    errors = []
    losses = []
    for seed in range(2):
        X, labels, *_ = correlated(seed, 0.95, p=100, length=5)
        model = IhGMM(3, noise="tied", random_state=0).fit(X)
        certainty.append(model.memberships_.max(axis=1))
        is_right.append(match_labels(labels, model.labels_) == labels)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            common_model = IhGMM(3, noise="common", random_state=0).fit(X)
        errors.append(misclassification_rate(labels, common_model.labels_))
        if any("likelihood moved" in str(warning.message) for warning in caught):
            spectral = misclassification_rate(labels, IhSC(3).fit_predict(X))
            losses.append(errors[-1] - spectral)

    assert losses
    assert min(losses) > 0.1

    certainty = np.concatenate(certainty)
    is_right = np.concatenate(is_right)

    assert np.mean(errors) > 0.1
    assert is_right.mean() > 0.98
    assert is_right[certainty > 0.99].mean() > 0.985


def test_rows_that_count_more_or_less(drawn):
    X, labels, *_ = drawn
    weights = np.where(np.arange(300) % 5, 1.0, 0.0)
    is_counted = weights > 0
    weighted_model = IhGMM(3, noise="tied", random_state=0)
    weighted_model.fit(X, sample_weight=weights)
    subset_model = IhGMM(3, noise="tied", random_state=0).fit(X[is_counted])

    assert_array_equal(weighted_model.labels_[is_counted], subset_model.labels_)
    assert_allclose(weighted_model.component_levels_, subset_model.component_levels_)
    assert np.mean(match_labels(labels, weighted_model.labels_) != labels) < 0.02


def full_matrix(covariance):
    """The covariance as a matrix, in units of the level."""
    B = covariance.directions
    squares = covariance.deviations**2 - 1
    return np.eye(len(B)) + B @ np.diag(squares) @ B.T


def variances_along(directions, covariance):
    return np.einsum("kp,pq,kq->k", directions, full_matrix(covariance), directions)


def test_a_covariance_and_its_maps():
    rng = np.random.default_rng(0)
    B = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    covariance = Covariance(B, np.array([3.0, 0.5]))
    S = full_matrix(covariance)
    rows = rng.standard_normal((5, 6))

    assert_allclose(covariance.color(covariance.color(rows), -1), rows)
    assert_allclose(covariance.color(covariance.color(np.eye(6))), S, atol=1e-12)
    assert_allclose(to_host(covariance.whiten(as_matrix(rows)) @ np.eye(6)),
                    covariance.color(rows, -1))  # fmt: skip
    assert covariance.mean_variance == pytest.approx(np.trace(S) / 6)
    assert covariance.log_volume == pytest.approx(np.linalg.slogdet(S)[1] / 2)
    assert covariance.n_parameters == 6 * 2 - 1

    isotropic = Covariance.none(6)

    assert (isotropic.log_volume, isotropic.n_parameters) == (0.0, 0)
    assert isotropic.whiten(data := as_matrix(rows)) is data


def test_leading_directions_of_the_noise_are_found():
    # Noise has level 1 but along two directions.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        labels = np.arange(600) % 3
        B = np.linalg.qr(rng.standard_normal((40, 2)))[0]
        true_covariance = Covariance(B, np.array([6.0, 4.0]))
        noise = true_covariance.color(rng.standard_normal((600, 40)))
        directions_of_centers = np.linalg.qr(rng.standard_normal((40, 3)))[0].T
        scales = rng.lognormal(0, 0.5, (600, 1))
        X = as_matrix(scales * 8 * directions_of_centers[labels] + noise)
        covariance = leading_covariance(X, labels, 3, rng=np.random.default_rng(0))
        directions = covariance.directions

        assert len(covariance.deviations) == 5  # the span of the centres and two
        assert_allclose(directions.T @ directions, np.eye(5), atol=1e-9)
        assert covariance.deviations[::-1][:2] == pytest.approx([6, 4], rel=0.12)

        # Along the centres too, where a row's own scale hides its noise.
        variances = variances_along(directions_of_centers, covariance)
        true_variances = variances_along(directions_of_centers, true_covariance)

        assert_allclose(variances, true_variances, rtol=0.3)
