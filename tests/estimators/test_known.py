"""Clusters that are taught by some labels, or keep the numbers of an older model."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.matching import confusion
from ihgmm.storage import load_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore:Labels may be unstable")
NAMES = np.array(["drum", "cello", "bass", "alto"])


@pytest.fixture(scope="module")
def sample():
    return make_ihgmm(300, 60, 4, separation_constant=0.35, random_state=0)


def partial_labels(labels, per_class, rng, unknown=-1):
    """Return labels of so many rows of each class, and ``unknown`` for all others."""
    known_labels = np.full(len(labels), unknown, dtype=object)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))[:per_class]
        known_labels[rows] = labels[rows]
    return known_labels


@pytest.mark.parametrize("unknown", [-1, None, np.nan, pd.NA, "-1", ""])
def test_texts_teach_and_come_back(sample, unknown):
    X, kinds = sample
    names = NAMES[kinds]
    known_labels = partial_labels(names, 3, np.random.default_rng(0), unknown)
    model = IhSC(4).fit(X, known_labels=known_labels)

    np.testing.assert_array_equal(model.classes_, np.sort(NAMES))
    assert np.mean(model.predict(X) == names) > 0.97
    assert model.labels_.dtype.kind == "i"

    is_taught = np.isin(known_labels.astype(str), NAMES)
    labels = model.fit_predict(X, known_labels=pd.Series(known_labels))

    np.testing.assert_array_equal(labels[is_taught], known_labels[is_taught])


def test_numbers_teach_whatever_their_order(sample):
    X, kinds = sample
    known_labels = partial_labels(kinds * 10, 3, np.random.default_rng(1)).astype(int)
    model = IhSC(4).fit(X, known_labels=known_labels)

    np.testing.assert_array_equal(model.classes_, [0, 10, 20, 30])
    assert np.mean(model.predict(X) == kinds * 10) > 0.97

    labels_with_nan = np.where(known_labels < 0, np.nan, known_labels)
    model_of_nan = IhSC(4).fit(X, known_labels=labels_with_nan)

    np.testing.assert_array_equal(model_of_nan.classes_, model.classes_)
    np.testing.assert_array_equal(model_of_nan.labels_, model.labels_)


@pytest.mark.parametrize("seed", range(2))
def test_some_labels_may_be_wrong(sample, seed):
    X, kinds = sample
    rng = np.random.default_rng(seed)
    known_labels = partial_labels(kinds, 10, rng).astype(int)
    wrong_rows = rng.permutation(np.flatnonzero(known_labels >= 0))[:4]
    known_labels[wrong_rows] = (known_labels[wrong_rows] + 1) % 4
    labels = IhSC(4).fit(X, known_labels=known_labels).predict(X)
    is_unknown = known_labels < 0

    assert np.mean(labels[is_unknown] == kinds[is_unknown]) > 0.97


def test_known_rows_help_where_clusters_are_no_classes():
    X, kinds = load_wine(return_X_y=True)
    X = X / X.std(axis=0)
    classes = (kinds == 1).astype(int)  # the other class is two clusters

    assert misclassification_rate(classes, IhSC(2).fit(X).labels_) > 0.4

    known_labels = partial_labels(classes, 15, np.random.default_rng(0)).astype(int)
    labels = IhSC(2).fit(X, known_labels=known_labels).predict(X)

    assert np.mean((labels != classes)[known_labels < 0]) < 0.2


def test_other_clusters_may_appear(sample):
    X, kinds = sample
    known_labels = partial_labels(NAMES[kinds], 5, np.random.default_rng(0), None)
    known_labels[kinds >= 2] = None
    model = IhSC(4).fit(X, known_labels=known_labels)

    assert model.classes_.tolist() == ["cello", "drum", "new 1", "new 2"]
    assert np.mean((model.predict(X) == NAMES[kinds])[kinds < 2]) > 0.97

    sizes = np.bincount(model.labels_)

    assert sizes[2] >= sizes[3] > 0

    known_numbers = np.where(kinds < 2, kinds, -1)

    assert IhSC(4).fit(X, known_labels=known_numbers).classes_.tolist() == [0, 1, 2, 3]
    assert IhSC("auto").fit(X, known_labels=kinds).n_clusters_ >= 4


def test_y_teaches_nothing_and_leaks_into_no_search(sample):
    X, kinds = sample
    searches = [
        GridSearchCV(IhSC(), {"n_clusters": [3, 4]}, cv=KFold(2)).fit(X, y)
        for y in (kinds, None)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]

    np.testing.assert_array_equal(*scores)
    assert not hasattr(searches[0].best_estimator_, "classes_")


def test_classes_are_routed_as_metadata(sample):
    X, kinds = sample
    known_labels = partial_labels(NAMES[kinds], 3, np.random.default_rng(0))
    with config_context(enable_metadata_routing=True):
        model = IhSC(4).set_fit_request(known_labels=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        labels = pipeline.fit_predict(X, known_labels=known_labels)
        search = GridSearchCV(model, {"n_clusters": [4]}, cv=KFold(2))
        labels_of_search = search.fit(X, known_labels=known_labels).predict(X)

    assert np.mean(labels == NAMES[kinds]) > 0.97
    assert np.mean(labels_of_search == NAMES[kinds]) > 0.97


@pytest.mark.parametrize("kind", ["string", "category", "Int64", "polars"])
def test_columns_of_frames_teach(sample, kind):
    X, kinds = sample
    classes = kinds if kind == "Int64" else NAMES[kinds]
    known_labels = partial_labels(classes, 3, np.random.default_rng(0), None)
    if kind == "polars":
        pl = pytest.importorskip("polars")
        X = pl.DataFrame(X)
        column = pl.Series(known_labels.tolist())
    else:
        X = pd.DataFrame(X)
        column = pd.Series(known_labels, dtype=kind)

    assert np.mean(IhSC(4).fit(X, known_labels=column).predict(X) == classes) > 0.97


def test_weights_outliers_and_classes_go_together(sample):
    X, kinds = sample
    X = np.vstack([X, 1e3 * np.random.default_rng(0).standard_normal((3, 60))])
    known_labels = np.append(
        partial_labels(NAMES[kinds], 5, np.random.default_rng(0), None), [None] * 3
    )
    weights = np.ones(303)
    weights[:20] = 0
    model = IhSC(4, outliers="auto").fit(
        X, known_labels=known_labels, sample_weight=weights
    )

    assert set(model.predict(X[-3:])) == {"outlier"}
    assert np.mean(model.predict(X)[:300] == NAMES[kinds]) > 0.9


def test_a_taught_model_is_saved(sample, tmp_path):
    X, kinds = sample
    model = IhSC(4).fit(X, known_labels=NAMES[kinds])
    model = IhSC(4, init=model).fit(X, known_labels=NAMES[kinds])
    save_model(model, tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")

    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_classes_and_scales_stay_when_rows_follow(tmp_path):
    X, progression = load_diabetes(return_X_y=True, scaled=False)
    order = np.random.default_rng(0).permutation(442)
    limits = [100, 180]
    X = (X / X.std(axis=0))[order]
    kinds = np.digitize(progression, limits)[order]
    model = IhSC(3).fit(X[:330], known_labels=kinds[:330])
    labels_before = model.predict(X)
    lengths = np.linalg.norm(model.cluster_centers_, axis=1)
    save_model(model, tmp_path / "model.npz")
    model.partial_fit(X[330:])
    loaded = load_model(tmp_path / "model.npz").partial_fit(X[330:])

    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert np.mean(model.predict(X) == labels_before) > 0.9
    assert np.mean(model.predict(X) == kinds) > np.mean(labels_before == kinds) - 0.03

    gains = np.linalg.norm(model.cluster_centers_, axis=1) / lengths

    np.testing.assert_allclose(gains, 1, atol=0.02)


@pytest.mark.parametrize(
    ("known_labels", "message"),
    [
        ([0, 1], "2 entries and X has 300 rows"),
        (np.full(300, -1), "no known label"),
        (np.arange(300), "300 classes and n_clusters=4"),
        ([0] + ["a"] + [None] * 298, "'str' and 'int'.*; give every row"),
    ],
)
def test_bad_labels_are_refused(sample, known_labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        IhSC(4).fit(sample[0], known_labels=known_labels)


@pytest.mark.parametrize(
    "options", [{"signed": True}, {"recipe": Recipe(labels="kmeans")}]
)
def test_options_that_cannot_be_taught_say_so(sample, options):
    with pytest.raises(ValueError, match="cannot be combined"):
        IhSC(4, **options).fit(sample[0], known_labels=sample[1])


def test_clusters_keep_the_numbers_of_an_older_model(sample):
    X, kinds = sample
    old_model = IhSC(4).fit(X)
    rows = np.sort(np.r_[np.flatnonzero(kinds != kinds[0]), :20])  # other sizes
    new_model = IhSC(4, init=old_model).fit(X[rows])

    assert np.mean(new_model.labels_ == old_model.labels_[rows]) > 0.97

    larger_model = IhSC(5, init=old_model).fit(X)

    assert np.mean(larger_model.labels_ == old_model.labels_) > 0.75

    smaller_model = IhSC(3, init=old_model).fit(X)
    confusions = confusion(old_model.labels_, smaller_model.labels_, (4, 3))[:3]

    assert confusions.trace() >= np.sort(confusions.max(axis=1))[1:].sum()
    assert clone(new_model).init is old_model


def test_init_has_to_be_a_fitted_model_of_such_rows(sample):
    with pytest.raises(NotFittedError, match="init is a IhSC that is not fitted"):
        IhSC(4, init=IhSC(4)).fit(sample[0])
    with pytest.raises(TypeError, match="init='k-means'"):
        IhSC(4, init="k-means").fit(sample[0])
    with pytest.raises(ValueError, match="60 features"):
        IhSC(4, init=IhSC(4).fit(sample[0])).fit(sample[0][:, :50])


def test_memberships_give_the_labels(sample):
    model = IhSC(4).fit(sample[0])
    memberships = model.predict_proba(sample[0])

    np.testing.assert_allclose(memberships.sum(axis=1), 1)
    np.testing.assert_array_equal(memberships.argmax(axis=1), model.labels_)

    lines = sample[0] * np.random.default_rng(0).choice([-1, 1], (300, 1))
    signed_model = IhSC(4, signed=True).fit(lines)
    memberships = signed_model.predict_proba(lines)

    assert np.mean(memberships.argmax(axis=1) == signed_model.labels_) > 0.99
    assert not hasattr(IhSC.paper(4), "predict_proba")


def test_memberships_are_as_sure_as_labels_are_right():
    """Of rows that the fit has not seen; with log-odds as they are, .98 for .88."""
    certainty = []
    raw_certainty = []
    accuracy = []
    for seed in range(6):
        X, labels = make_ihgmm(600, 100, 4, separation_constant=0.1, random_state=seed)
        model = IhSC(4).fit(X[:400])
        memberships = model.predict_proba(X[400:])
        error = misclassification_rate(labels[400:], memberships.argmax(axis=1))
        certainty.append(memberships.max(axis=1).mean())
        accuracy.append(1 - error)

        model.temperature_ = 1.0
        raw_memberships = model.predict_proba(X[400:])
        raw_certainty.append(raw_memberships.max(axis=1).mean())

    assert abs(np.mean(certainty) - np.mean(accuracy)) < 0.08
    assert np.mean(raw_certainty) - np.mean(accuracy) > 0.08


def known_design(seed=0, per_class=5, n=400):
    """Return rows of five clusters that overlap, their classes, and what is known."""
    X, kinds = make_ihgmm(n, 40, 5, separation_constant=0.25, random_state=seed)
    known_labels = partial_labels(kinds, per_class, np.random.default_rng(seed))
    return X, kinds, known_labels.astype(int)


@pytest.mark.parametrize("per_class", [1, 5, 20])
def test_known_labels_are_free_of_scale_and_order(per_class):
    X, _, known_labels = known_design(per_class=per_class)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(X))
    factors = np.exp(3 * rng.standard_normal((len(X), 1)))
    labels = IhSC(5).fit(X, known_labels=known_labels).labels_
    moved_labels = IhSC(5, random_state=7).fit(
        (factors * X)[order], known_labels=known_labels[order]
    )

    np.testing.assert_array_equal(moved_labels.labels_, labels[order])


@pytest.mark.parametrize("seed", range(2))
def test_a_tenth_of_wrong_labels_does_not_rule(seed):
    X, kinds, known_labels = known_design(seed, per_class=10)
    is_unknown = known_labels < 0
    rng = np.random.default_rng(seed)
    wrong_rows = rng.permutation(np.flatnonzero(~is_unknown))[:5]
    wrong_labels = known_labels.copy()
    wrong_labels[wrong_rows] = (wrong_labels[wrong_rows] + 1) % 5
    errors = [
        np.mean((IhSC(5).fit(X, known_labels=labels).predict(X) != kinds)[is_unknown])
        for labels in (known_labels, wrong_labels)
    ]

    assert errors[1] < errors[0] + 0.03


def test_classes_of_curved_clusters_are_learnt():
    """Each class is two clusters at opposite ends: no cluster is a class."""
    rng = np.random.default_rng(0)
    corners = np.linalg.qr(rng.standard_normal((30, 6)))[0].T
    kinds = np.repeat(np.arange(6), 80)
    classes = kinds % 3
    X = corners[kinds] + 0.12 * rng.standard_normal((480, 30))
    known_labels = partial_labels(classes, 10, rng).astype(int)
    model = IhSC(3).fit(X, known_labels=known_labels)

    assert misclassification_rate(classes, IhSC(3).fit(X).labels_) > 0.2
    assert np.mean((model.predict(X) != classes)[known_labels < 0]) < 0.1


def test_classes_without_known_rows_are_found():
    for seed in range(2):
        X, kinds, known_labels = known_design(seed, per_class=8, n=600)
        known_labels[kinds >= 3] = -1
        labels = IhSC(5).fit(X, known_labels=known_labels).labels_

        assert np.mean((labels == kinds)[kinds < 3]) > 0.9
        assert misclassification_rate(kinds, labels) < 0.1


def test_masked_labels_are_unknown(sample):
    X, kinds = sample
    is_masked = np.arange(300) % 10 != 0
    expected = IhSC(4).fit(X, known_labels=np.where(is_masked, -1, kinds))
    for labels in (kinds, kinds.astype(float), NAMES[kinds]):
        model = IhSC(4).fit(X, known_labels=np.ma.array(labels, mask=is_masked))

        np.testing.assert_array_equal(model.known_rows_, expected.known_rows_)
        assert misclassification_rate(expected.labels_, model.labels_) < 0.02


def test_new_clusters_have_names_that_no_class_has(sample):
    X, kinds = sample
    names = np.array(["new 1", "old"], dtype=object)
    known_labels = np.where(kinds < 2, names[kinds % 2], None)
    model = IhSC(4).fit(X, known_labels=known_labels)

    assert model.classes_.tolist() == ["new 1", "old", "new 2", "new 3"]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (np.inf, "contains inf, which is no class; give rows"),
        (-np.inf, "contains -inf, which is no class"),
        (1e300, r"contains 1e\+300, which is too large"),
        (2**63 - 1, "contains 9223372036854775807, which is too large"),
        ((1, 2), r"contains \(1, 2\), which is no number"),
    ],
)
def test_labels_that_are_no_classes_are_refused(sample, label, message):
    known_labels = np.full(300, None, dtype=object)
    known_labels[0] = label
    with pytest.raises(ValueError, match=message):
        IhSC(4).fit(sample[0], known_labels=known_labels)
