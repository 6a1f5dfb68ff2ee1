import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matrix.array_kinds import KINDS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from ihgmm import (
    ColumnScaler,
    IhSC,
    PreparationWarning,
    diagnose,
    make_ihgmm,
    top_features,
    typical_rows,
)
from ihgmm.plotting import plot_confidence
from ihgmm.report import write_report


def noisy(centers, sizes, seed=0, noise=0.1):
    """Return rows around multiples of centres, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    scales = rng.uniform(0.5, 1.5, (len(labels), 1))
    X = scales * np.asarray(centers, float)[labels]
    return X + noise * rng.standard_normal(X.shape), labels


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("missing", [0, 0.2])
def test_contrasts_by_their_definition(missing, shifted):
    X, labels = noisy(np.random.default_rng(0).normal(0, 1, (4, 30)), [9, 20, 40, 80])
    rng = np.random.default_rng(1)
    X[:, 0] += rng.normal(0, 3, len(X))  # a loud feature
    X[rng.random(X.shape) < missing] = np.nan
    model = IhSC(4, missing="fit", random_state=0).fit(X)
    labels = model.labels_
    scales = model.scales_
    top = top_features(X, model, n_features=5, original=X + 9 if shifted else None)
    top_two = top_features(X, model, n_features=2, original=X + 9 if shifted else None)
    means = np.array([np.nanmean(X[labels == k], axis=0) for k in range(4)])

    assert_allclose(top.means, means + 9 * shifted)

    residual = np.empty_like(X)
    for k in range(4):
        members = X[labels == k]
        factors = scales[labels == k, None]
        factors = np.where(np.isnan(members), np.nan, 1 if shifted else factors)
        products = np.nansum(factors * members, axis=0)
        pattern = products / np.nansum(factors**2, axis=0)
        residual[labels == k] = members - factors * pattern
    noise = np.sqrt(np.nanmean(residual**2, axis=0))
    lengths = 1 if shifted else np.linalg.norm(means, axis=1, keepdims=True)
    unit_means = means / lengths
    lengths = lengths * np.ones(4)[:, None]
    for k in range(4):
        other_cells = np.where(np.isnan(X), np.nan, unit_means[labels])[labels != k]
        other_mean = lengths[k] * np.nanmean(other_cells, axis=0)  # by their cells
        assert_allclose(top.others[k], other_mean + 9 * shifted)
        contrast = (means[k] - other_mean) / noise
        assert_allclose(top.contrasts[k], contrast)
        bounds = np.sign(contrast) * (np.abs(contrast) - 2 * top.errors[k])
        assert_array_equal(top.more[k], np.argsort(-bounds)[:5])
        assert_array_equal(top.less[k], np.argsort(bounds)[:5])
        order = np.argsort(-top.scores[k])
        quarter = abs(contrast[order[0]]) / 4
        certain = [j for j in order if top.p_values[k, j] * 30 < 0.05]
        certain = [j for j in certain if abs(contrast[j]) > min(quarter, 0.5)]
        raised = [j for j in certain if contrast[j] > quarter][:3]
        chosen = [*raised, *(j for j in certain if j not in raised)][:5]
        chosen = sorted(chosen, key=lambda j: -abs(contrast[j]))
        raised = [j for j in chosen if contrast[j] > 0]
        lowered = [j for j in chosen if contrast[j] < 0]
        assert top.features[k].tolist() == raised + lowered
        assert certain[0] in top_two.features[k]  # also if it is of less

    assert 0 not in np.concatenate(top.features)


def test_others_are_made_as_large_and_count_by_their_rows():
    # All rows of a cluster are equal: there is no noise.
    X = np.repeat([[2.0, 0.0, 0.0], [0.0, 30.0, 0.0], [0.0, 0.0, 1.0]], [10, 90, 1], 0)
    top = top_features(X, np.repeat(["b", "c", "a"], [10, 90, 1]))

    assert top.clusters.tolist() == ["a", "b", "c"]
    assert top.sizes.tolist() == [1, 10, 90]
    assert_allclose(top.contrasts[0], [-0.1, -0.9, 1])
    assert_allclose(top.others[0], [0.1, 0.9, 0])
    assert_allclose(top.others[1], [0, 2 * 90 / 91, 2 / 91])
    assert not top.has_noise
    assert not top.errors.any()
    assert top.p_values.max() == 0


def test_shifted_columns_are_ranked_by_the_means_that_are_shown():
    # The last column is the same everywhere, but not in patterns of one length.
    centers = np.array([[30, 0, 1], [-5, -5, 1], [-5, 5, 1], [2.5, -2.5, 1]])
    X, labels = noisy(centers, [20] * 4)
    top = top_features(X, labels, original=X + 100)

    assert not top.same_size

    ratios = (top.means - top.others) / top.contrasts  # noise levels of columns

    assert_allclose(ratios, np.tile(ratios[0], (4, 1)))
    assert 2 not in np.concatenate(top.features)
    assert (np.abs(top_features(X, labels).contrasts[:, 2]) > 1).any()


def test_a_column_without_noise_among_others():
    X, labels = noisy(2 * np.eye(3) + 1, [20, 20, 20])
    X = np.column_stack([X, 1000.0 * (labels == 1), np.zeros(60)])
    top = top_features(X, labels)

    assert np.isfinite(top.contrasts).all()
    assert top.more[1][0] == 3
    assert top.p_values[1, 3] == 0
    assert (top.p_values[:, 4] == 1).all()


def test_clusters_without_rows_single_clusters_and_outliers():
    X, labels = noisy(2 * np.eye(3) + 1, [20, 20, 20])
    model = IhSC(3, random_state=0).fit(X)
    model.labels_ = np.where(labels == 2, -1, labels)
    model.scales_ = np.where(labels == 2, np.nan, model.scales_)
    top = top_features(X, model)

    assert top.sizes.tolist() == [20, 20, 0]
    assert not top.contrasts[2].any()
    assert len(top.more[2]) == len(top.less[2]) == 0

    top_of_two = top_features(X[:40], labels[:40])

    assert_allclose(top.means[:2], top_of_two.means)
    assert typical_rows(X, model)[2].tolist() == []
    assert "2 (0 rows): nothing that could not be chance" in str(top)

    top_of_one = top_features(X, np.zeros(60, int), n_features=2)

    assert np.isnan(top_of_one.others).all()
    assert top_of_one.features[0].tolist() == [*np.argsort(-top_of_one.scores[0])[:2]]


def test_nothing_is_said_of_what_was_not_observed():
    X, labels = noisy(2 * np.eye(3, 6) + 1, [20, 20, 20])
    X[labels == 1, 3] = np.nan
    X[labels != 2, 4] = np.nan
    top = top_features(X, IhSC(3, missing="fit", random_state=0).fit(X))
    order = np.argsort([*map(int, np.nanargmax(top.means[:, :3], axis=1))])
    lacks_mean = np.isnan(top.means[order])
    lacks_others = np.isnan(top.others[order])

    assert_array_equal(np.argwhere(lacks_mean), [[0, 4], [1, 3], [1, 4]])
    assert_array_equal(np.argwhere(lacks_others), [[2, 4]])

    is_silent = lacks_mean | lacks_others

    assert_array_equal(top.contrasts[order] == 0, is_silent)
    assert not (top.is_clear[order] & is_silent).any()


@pytest.mark.parametrize("counts", [False, True])
def test_errors_of_contrasts(counts):
    # Clusters of one pattern, of 150, 100 and 50 rows: every contrast is 0.
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [150, 100, 50])
    is_beyond = []
    for _ in range(20):
        means = rng.lognormal(0, 0.4, (300, 1)) * (3 + rng.gamma(2, 3, 40))
        X = rng.poisson(means) if counts else rng.normal(means, 3)
        top = top_features(X.astype(float), labels)
        is_beyond.append(np.abs(top.contrasts) > 2 * top.errors)
        assert_array_equal(is_beyond[-1], top.p_values < 0.0455)

    assert 0.02 < np.mean(is_beyond) < 0.08


@pytest.mark.parametrize("missing", [0, 0.3])
def test_errors_are_those_of_rows_drawn_anew(missing):
    X, _ = make_ihgmm(200, 10, 2, scale_ratio=10, random_state=0)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < missing] = np.nan
    model = IhSC(2, missing="fit", random_state=0).fit(X)
    top = top_features(X, model)
    labels = model.labels_
    differences = []
    for _ in range(300):
        rows = [
            rng.choice(np.flatnonzero(labels == k), sum(labels == k)) for k in (0, 1)
        ]
        means = np.stack([np.nanmean(X[part], axis=0) for part in rows])
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        differences.append(means - lengths * (means / lengths)[::-1])
    difference = top.means - top.others
    noise = difference / top.contrasts

    assert_allclose(np.std(differences, axis=0) / noise, top.errors, rtol=0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_arrays_say_the_same(kind, tmp_path):
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    model = IhSC(3, random_state=0).fit(X)
    top = top_features(X, model)
    result = top_features(kind(X, tmp_path), model)

    assert result.names == top.names
    assert_allclose(result.contrasts, top.contrasts)
    assert_allclose(result.errors, top.errors)


def test_names_and_frames():
    X, labels = noisy(2 * np.eye(3) + 1, [20, 30, 40])
    frame = pd.DataFrame(X, columns=["ink", "oil", "tea"])
    model = IhSC(3, random_state=0).fit(frame)
    for top in (top_features(frame, model), top_features(X, model)):
        assert top.names == ["ink", "oil", "tea"]

    assert top_features(X, labels).names == ["x0", "x1", "x2"]

    top = top_features(X, labels, names=["A", "B", "C"])
    lines = top.to_frame()

    assert [*lines] == ["cluster", "feature", "mean", "others", "contrast", "error"]
    assert lines["cluster"].value_counts().to_dict() == {0: 3, 1: 3, 2: 3}

    first = lines.groupby("cluster").first()

    assert first["feature"].tolist() == ["A", "B", "C"]
    assert_allclose(first["contrast"], np.diag(top.contrasts))
    assert_allclose(first["mean"] > first["others"], True)
    assert "0 (20 rows): more A; less" in str(top)


def test_rare_words_are_told_by_where_they_are():
    rng = np.random.default_rng(0)
    topics = np.repeat(range(6), 60)
    chance = np.where(np.arange(90) // 15 == topics[:, None], 0.15, 0.01)
    chance[topics == 5, 75:] = 0.08  # which may be chance
    words = (rng.random(chance.shape) < chance).astype(float)
    shared = (topics != 0) | (rng.random(360) < 0.1)
    top = top_features(sp.csr_array(np.column_stack([words, shared])), topics)
    lines = " ".join(str(top).split()).split("rows): ")[1:]
    for topic, line in enumerate(lines):
        topic_words = {f"x{j}" for j in range(15 * topic, 15 * topic + 15)}
        assert len(topic_words & {*re.findall(r"x\d+", line)}) >= 2

    assert "perhaps more" in lines[5]

    lacking_words = [re.findall("less ([^;]*?)(?: .*)?$", line) for line in lines]

    assert lacking_words == [["x90"], [], [], [], [], []]
    assert min(map(len, top.less)) == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_features": 0}, "n_features=0 is out of range"),
        ({"names": ["a"]}, "names has 1 entries and X has 3 features"),
        ({"model": [0, 1]}, "labels has 2 entries and X has 60 rows"),
        ({"original": np.ones((60, 2))}, "original has 60 rows and 2 features"),
        ({"X": np.ones((60, 2))}, "X has 60 rows and 2 features, and the labels"),
        ({"model": IhSC(3)}, "has no labels_; fit it first"),
    ],
)
def test_bad_input(change, message):
    X, _ = noisy(2 * np.eye(3) + 1, [20, 20, 20])
    arguments = {"X": X, "model": IhSC(3, random_state=0).fit(X)} | change

    with pytest.raises(ValueError, match=message):
        top_features(**arguments)


def typical_by_definition(X, fit, n_rows):
    """Return typical rows by the definition, cluster by cluster and row by row."""
    lengths = np.linalg.norm(fit.cluster_centers_, axis=1)
    typical = []
    for k, center in enumerate(fit.cluster_centers_):
        rows = [i for i in np.flatnonzero(fit.labels_ == k) if X[i].any()]
        sizes = np.abs(fit.scales_ * lengths[k])
        lower, upper = np.quantile(sizes[rows], [0.25, 0.75])
        cosines = {
            i: np.abs(X[i] @ center) / np.linalg.norm(X[i])
            for i in rows
            if lower <= sizes[i] <= upper
        }
        typical.append(sorted(cosines, key=cosines.get)[: -n_rows - 1 : -1])
    return typical


@pytest.mark.parametrize("signed", [False, True])
def test_typical_rows_follow_the_definition(signed):
    for seed in range(3):
        X, _ = make_ihgmm(90, 12, 3, random_state=seed)
        if signed:
            X = X * np.random.default_rng(seed).choice([-1, 1], (90, 1))
        fit = IhSC(3, signed=signed, random_state=0).fit(X)
        result = typical_rows(X, fit, n_rows=4)
        assert [rows.tolist() for rows in result] == typical_by_definition(X, fit, 4)


def test_a_pipeline_stands_for_its_last_step():
    texts = ["oars " * i + "sail wave" for i in range(1, 9)]
    texts += ["oven " * i + "salt pan" for i in range(1, 9)]
    model = make_pipeline(CountVectorizer(), TfidfTransformer(norm=None), IhSC(2))
    model.fit(texts)
    X = model[:-1].transform(texts)
    estimator = model[-1]
    top = top_features(texts, model)
    counts = model[0].transform(texts).toarray()
    mean = counts[estimator.labels_ == 0].mean(axis=0)

    assert_allclose(top.means[0], mean)  # no weights

    words = [{top.names[j] for j in columns} for columns in top.more]

    assert sorted(map(sorted, words)) == [
        ["oars", "sail", "wave"],
        ["oven", "pan", "salt"],
    ]

    rows = typical_rows(texts, model)

    assert [*map(list, rows)] == [*map(list, typical_rows(X, estimator))]
    assert diagnose(texts, model).verdict == diagnose(X, estimator).verdict

    title = plot_confidence(texts, model).get_title()

    assert title == plot_confidence(X, estimator).get_title()

    page = write_report(texts, model).html

    assert f"{texts[rows[0][0]]}</q>" in page
    assert "Pipeline(" in page


def test_means_of_a_pipeline_are_in_the_units_of_the_data():
    X, _ = make_ihgmm(100, 5, 2, random_state=0)
    frame = pd.DataFrame(1000 + X * [1, 10, 100, 1, 1], columns=list("abcde"))
    model = make_pipeline(ColumnScaler(), IhSC(2)).fit(frame)
    top = top_features(frame, model)

    assert top.names == list("abcde")

    means = frame.groupby(model[-1].labels_).mean()

    assert_allclose(top.means, means)


@pytest.mark.parametrize("columns", ["auto", "given", "counts"])
def test_data_in_other_units_than_those_of_the_fit_are_told(columns):
    rng = np.random.default_rng(0)
    patterns = np.repeat(rng.gamma(1, 5, (3, 60)), 50, axis=0)
    X = rng.poisson(patterns * rng.uniform(0.5, 1.5, (150, 1))).astype(float)
    model = IhSC(3, columns=columns, random_state=0).fit(X)
    with warnings.catch_warnings(action="error"):
        for data in (X, X.astype(np.float32), sp.csr_array(X)):
            top_features(data, model)
            diagnose(data, model)

    for changed in (np.log1p(X), 10 * X):
        with pytest.warns(PreparationWarning, match=r"^Rows of X are .* such as one"):
            top_features(changed, model)


def test_wild_cells_have_no_part_in_what_sets_apart():
    X, _ = noisy(5 * np.eye(3, 30) + 1, [40, 40, 40])
    X[[3, 50, 90], [4, 0, 7]] = 400.0
    model = make_pipeline(ColumnScaler("scale"), IhSC(3, outliers="cells"))
    top = top_features(X, model.fit(X))
    estimator = model[-1]
    cells = {*map(tuple, estimator.outlier_cells_.tolist())}

    assert {(3, 4), (50, 0), (90, 7)} <= cells

    observed = X.copy()
    observed[tuple(estimator.outlier_cells_.T)] = np.nan
    means = [np.nanmean(observed[estimator.labels_ == k], axis=0) for k in range(3)]

    assert_allclose(top.means, means)
    assert top.same_size

    noise = (top.means - top.others) / top.contrasts

    assert_allclose(noise, noise[[0, 0, 0]])


def test_typical_rows_are_complete_and_many():
    X, labels = noisy(2 * np.eye(3) + 1, [20, 20, 4])
    X[np.arange(18), np.arange(18) % 3] = np.nan
    rows = typical_rows(X, IhSC(3, missing="fit", random_state=0).fit(X))

    assert not np.isnan(X[np.concatenate(rows)]).any()
    assert sorted(map(len, rows)) == [0, 1, 3]  # of fewer than five none is typical

    with pytest.raises(ValueError, match="n_rows=0 is out of range"):
        typical_rows(X[20:], labels[20:], n_rows=0)


def test_others_are_the_observed_cells_of_other_rows():
    X, _ = noisy(2 * np.eye(3) + 1, [20, 20, 20])
    X[:15, 1] = np.nan
    top = top_features(X, IhSC(3, missing="fit").fit(X), original=X + 100)
    labels = IhSC(3, missing="fit").fit(X).labels_
    expected = [np.nanmean(X[labels != k] + 100, axis=0) for k in range(3)]

    assert_allclose(top.others, expected)
