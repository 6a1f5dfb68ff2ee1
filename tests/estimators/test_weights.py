"""Rows that count more or less."""

import warnings

import numpy as np
import pytest

from ihgmm import (
    IhGMM,
    IhSC,
    Recipe,
    SphericalKMeans,
    make_ihgmm,
    select_n_clusters,
)
from ihgmm.metrics import misclassification_rate

ESTIMATORS = [
    IhSC(3, random_state=0),
    IhSC.paper(3, random_state=0),
    IhSC(3, recipe=Recipe(labels="kmeans"), random_state=0),
    IhGMM(3, random_state=0),
    IhSC(3, recipe="psc", random_state=0),
    SphericalKMeans(3, random_state=0),
]
names = [f"{type(e).__name__}-{i}" for i, e in enumerate(ESTIMATORS)]


@pytest.fixture(scope="module")
def X():
    options = {"scale_ratio": 4, "separation_constant": 0.8, "random_state": 3}
    return make_ihgmm(120, 40, 3, **options)[0]


@pytest.mark.parametrize("model", ESTIMATORS, ids=names)
def test_equal_weights_change_nothing(model, X):
    model.fit(X)
    labels = model.labels_.copy()
    centers = model.cluster_centers_.copy()

    for weight in (1.0, 1e-300, 7.5):
        model.fit(X, sample_weight=np.full(len(X), weight))
        assert np.array_equal(model.labels_, labels)
        assert np.allclose(model.cluster_centers_, centers, rtol=1e-12)


@pytest.mark.parametrize("model", ESTIMATORS, ids=names)
def test_weight_zero_is_to_leave_out(model, X):
    weights = np.r_[np.ones(90), np.zeros(30)]
    distant_rows = X.copy()
    distant_rows[90:] = 1e3 * distant_rows[90:, ::-1]
    model.fit(X[:90])
    labels = model.labels_.copy()
    centers = model.cluster_centers_.copy()
    new_labels = model.predict(distant_rows)

    model.fit(distant_rows, sample_weight=weights)

    assert np.array_equal(model.labels_[:90], labels)
    assert np.array_equal(model.cluster_centers_, centers)
    assert np.array_equal(model.labels_[90:], new_labels[90:])

    for name in ("scales_", "noise_levels_", "memberships_", "embedding_"):
        if hasattr(model, name):
            assert len(getattr(model, name)) == 120
    if hasattr(model, "scales_"):
        assert np.isfinite(model.scales_).all()


def test_whole_weights_are_repeated_rows_with_a_full_diagonal(X):
    weights = np.random.default_rng(0).integers(1, 4, size=len(X))
    repeated_rows = np.repeat(X, weights, axis=0)
    model = IhSC.paper(3, diagonal="full", random_state=0)
    model.fit(X, sample_weight=weights)
    embedding = model.embedding_.copy()
    eigenvalues = model.eigenvalues_.copy()
    labels = model.labels_.copy()

    model.fit(repeated_rows)

    # Weights are brought to a mean of 1.
    assert np.allclose(eigenvalues * weights.mean(), model.eigenvalues_, rtol=1e-3)

    products = np.repeat(embedding, weights, axis=0) @ model.embedding_.T

    assert np.allclose(np.diag(products), 1, atol=1e-3)
    assert np.array_equal(model.labels_, np.repeat(labels, weights))

    psc = IhSC(3, recipe="psc", random_state=0)
    weighted_centers = psc.fit(X, sample_weight=weights).cluster_centers_.copy()
    repeated_centers = psc.fit(repeated_rows).cluster_centers_
    tolerance = 1e-2 * np.abs(weighted_centers).max()

    assert np.allclose(weighted_centers, repeated_centers, atol=tolerance)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_errors_fall_where_good_rows_count_more():
    errors = []
    for seed in range(6):
        options = {"separation_constant": 0.7, "random_state": seed}
        X, labels = make_ihgmm(200, 60, 3, scale_ratio=1, **options)
        rng = np.random.default_rng(seed)
        is_loud = rng.random(200) < 0.5
        X = X + is_loud[:, None] * 3 * rng.standard_normal(X.shape)
        for weights in (None, np.where(is_loud, 0.05, 1.0)):
            labels_found = IhSC(3, random_state=0).fit(X, sample_weight=weights).labels_
            rate = misclassification_rate(labels[~is_loud], labels_found[~is_loud])
            errors.append(rate)

    assert np.mean(errors[1::2]) < np.mean(errors[::2]) - 0.05


def test_counts_follow_weights():
    X, _ = make_ihgmm(300, 60, 4, random_state=0, return_params=False)
    model = IhSC(4, random_state=0).fit(X)
    weights = np.where(model.labels_ == 3, 0.0, 1.0)

    assert select_n_clusters(X, random_state=0).n_clusters == 4

    for row_weights in (weights, np.maximum(weights, 1e-6)):
        selection = select_n_clusters(X, sample_weight=row_weights, random_state=0)
        assert selection.n_clusters == 3

    model = IhSC("auto", random_state=0).fit(X, sample_weight=weights)

    assert model.n_clusters_ == 3


def test_a_row_of_weight_2_counts_as_two_rows():
    for seed in range(3):
        X, _ = make_ihgmm(200, 60, 3 + seed, random_state=seed, return_params=False)
        weights = np.random.default_rng(seed).integers(1, 3, len(X))
        weighted = select_n_clusters(X, sample_weight=weights, random_state=0)
        repeated_rows = np.repeat(X, weights, axis=0)
        repeated = select_n_clusters(repeated_rows, random_state=0)

        assert weighted.n_clusters == repeated.n_clusters == 3 + seed

        # What a twin is linked to is itself, and else as much as its row is.
        one = weighted.evidence_for(3 + seed)
        other = repeated.evidence_for(3 + seed)

        assert one.links_inside == pytest.approx(other.links_inside, abs=0.05)
        assert one.links_by_chance == pytest.approx(other.links_by_chance, abs=0.02)
        assert one.silhouette == pytest.approx(other.silhouette, abs=0.02)

    # Of what all rows have, nothing depends on.
    doubled = select_n_clusters(X, sample_weight=np.full(len(X), 2), random_state=0)

    assert str(doubled) == str(select_n_clusters(X, random_state=0))


@pytest.mark.parametrize("model", [IhSC(4), IhGMM(4), IhSC(4, recipe="psc")])
def test_weights_that_leave_few_rows_warn_once(model):
    X, _ = make_ihgmm(500, 30, 4, random_state=0)
    weights = np.exp(3 * np.random.default_rng(0).standard_normal(500))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(random_state=0).fit(X, sample_weight=weights)

    assert sum("rows count like" in str(warning.message) for warning in caught) == 1
