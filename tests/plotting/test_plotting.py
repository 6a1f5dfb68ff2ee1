"""Pictures: drawn for real, then read back from the artists."""

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from nested_rows import nested
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import ihgmm
from ihgmm import IhSC, cluster_tree, diagnose, make_ihgmm, select_n_clusters
from ihgmm.matrix import as_matrix
from ihgmm.plotting import (
    plot_confidence,
    plot_confusion,
    plot_count,
    plot_embedding,
    plot_scales,
    plot_scree,
    plot_top_features,
    plot_tree,
)
from ihgmm.plotting._axes import DARK, LIGHT, NEUTRAL
from ihgmm.statistics.selection import Confidence
from ihgmm.statistics.tree_building import tree_of_rows
from ihgmm.words.phrases import percent

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    plt.close("all")  # what examples in docstrings have left open
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_ihgmm(240, 60, 4, scale_ratio=8, separation_constant=2, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return IhSC(4, random_state=0).fit(data[0])


def made_up(n, k, p=60, seed=0):
    """A model that looks fitted, of any size at no cost."""
    rng = np.random.default_rng(seed)
    fake = IhSC(k)
    fake.labels_ = np.sort(np.r_[np.arange(k), rng.integers(0, k, n - k)])
    rows = np.eye(k)[fake.labels_] + 0.3 * rng.standard_normal((n, k)) / np.sqrt(k)
    fake.embedding_ = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    fake.eigenvalues_ = np.linspace(90.0, 50.0, k)
    fake.cluster_centers_ = rng.standard_normal((k, p))
    fake.scales_ = rng.lognormal(0, 0.5, n)
    fake.noise_levels_ = rng.uniform(0.5, 1.5, n)
    fake.memberships_ = rng.dirichlet(np.ones(k) / k, n)
    return fake


def draw_features(model, X, ax):
    X = model.cluster_centers_[model.labels_] if X is None else X
    return plot_top_features(ihgmm.top_features(X, model), ax=ax)


PICTURES = {
    "scree": lambda m, X, ax: plot_scree(m, ax=ax),
    "embedding": lambda m, X, ax: plot_embedding(m, ax=ax),
    "scales": lambda m, X, ax: plot_scales(m, ax=ax),
    "features": draw_features,
    "confusion": lambda m, X, ax: plot_confusion(m.labels_[::-1], m.labels_, ax=ax),
    "confidence": lambda m, X, ax: plot_confidence(X, m, ax=ax),
}


@pytest.mark.parametrize("name", PICTURES)
def test_draws_on_the_axes_given_and_changes_no_array(name, data, model):
    X = data[0].copy()
    before = deepcopy(vars(model))
    figure, ax = plt.subplots()

    assert PICTURES[name](model, X, ax) is ax
    assert ax.get_title()
    assert plt.get_fignums() == [figure.number]

    new_ax = PICTURES[name](model, X, None)

    assert new_ax.figure is not figure
    assert len(plt.get_fignums()) == 2
    assert_array_equal(X, data[0])

    for key in ("labels_", "embedding_", "scales_", "noise_levels_", "eigenvalues_"):
        assert_array_equal(getattr(model, key), before[key])


def texts(artists):
    return [artist.get_text() for artist in artists]


def tick_labels(axis):
    """The labels that are drawn: those of ticks within the limits."""
    lower, upper = sorted(axis.get_view_interval())
    places = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label for place, label in places if lower <= place <= upper]


def check_texts(figure, ax):
    """No text leaves the figure, no two labels along an axis overlap."""
    figure.canvas.draw()
    page = figure.bbox.padded(1)
    words = [ax.xaxis.label, ax.yaxis.label, ax.title, *ax.texts]
    for axis in (ax.xaxis, ax.yaxis):
        labels = tick_labels(axis)
        extents = [label.get_window_extent() for label in labels]
        for extent, next_extent in pairwise(extents):
            assert not extent.padded(-1).overlaps(next_extent.padded(-1))
        words += labels
    for text in words:
        box = text.get_window_extent()
        if text.get_text():
            assert page.x0 <= box.x0 < box.x1 <= page.x1, text
            assert page.y0 <= box.y0 < box.y1 <= page.y1, text


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize(("n", "k"), [(20, 3), (200, 50)])
def test_texts_keep_apart_and_inside(name, n, k):
    ax = PICTURES[name](made_up(n, k), None, None)
    check_texts(ax.figure, ax)


@pytest.mark.parametrize("name", ["scales", "features", "confusion"])
def test_ticks_are_thinned_on_small_axes(name):
    figure, ax = plt.subplots(figsize=(4, 3), layout="constrained")
    PICTURES[name](made_up(400, 50), None, ax)
    check_texts(figure, ax)

    assert 5 <= len(ax.get_xticks()) < 50

    names = texts(ax.get_xticklabels())

    assert names == [str(place) for place in ax.get_xticks()] or name == "confusion"


@pytest.mark.parametrize(
    ("axes", "figure", "expected"),
    [
        ("white", "black", LIGHT),
        ("black", "white", DARK),
        ("#16191f", "white", DARK),
        ("none", "black", DARK),
        ("none", "none", LIGHT),
    ],
)
def test_colors_are_those_for_what_is_behind(axes, figure, expected):
    _, ax = plt.subplots(facecolor=figure)
    ax.set_facecolor(axes)
    plot_embedding(made_up(40, 3), ax=ax)
    colors = [to_hex(collection.get_facecolor()[0]) for collection in ax.collections]

    assert colors == list(expected[:3])


def legend(ax):
    return texts(ax.get_legend().get_texts())


def test_scree_marks_the_gap(model):
    ax = plot_scree(model)

    # The mark of a legend would pass for a fifth eigenvalue.
    assert ax.get_legend() is None
    assert_allclose(ax.lines[0].get_ydata(), model.eigenvalues_)
    assert ax.get_title() == "4 eigenvalues of the model"

    # With the next one, the drop after those of the clusters is seen.
    values = model.eigenvalues_
    values_with_next = np.append(values, values[3] / 2)
    wider = deepcopy(model)
    wider.eigenvalues_ = values_with_next
    ax = plot_scree(wider)

    assert {"clusters: 4", "the next", "gap: 2.0-fold"} == {*legend(ax)}
    assert ax.get_legend().get_frame_on()
    assert_allclose(ax.lines[-1].get_ydata(), values_with_next[3:5])
    assert_array_equal(ax.lines[-1].get_xdata(), 4.5)


@pytest.fixture(scope="module")
def three():
    return make_ihgmm(120, 12, 3, random_state=0)[0]


@pytest.fixture(scope="module")
def count(three):
    return select_n_clusters(three, random_state=0)


def line_of(ax, name):
    """Return the places and heights of a line, by its name in the legend."""
    (line,) = (line for line in ax.lines if line.get_label() == name)
    return line.get_xdata(), line.get_ydata()


def test_count_shows_the_evidence_for_each_number(count):
    ax = plot_count(count)
    numbers = [evidence.n_clusters for evidence in count.evidence]
    for name, figure in (
        ("score", "score"),
        ("links beyond chance", "modularity"),
        ("silhouette", "silhouette"),
    ):
        places, heights = line_of(ax, name)
        assert_array_equal(places, numbers)
        assert_allclose(heights, [getattr(one, figure) for one in count.evidence])

    places, heights = line_of(ax, "links beyond chance, clouds without clusters")

    assert_array_equal(places, count.clouds.numbers)
    assert_allclose(heights, count.clouds.of_clouds.mean(axis=0))

    # The band reaches from the least to the most modular cloud.
    (band,) = ax.collections
    heights_of_band = band.get_paths()[0].vertices[:, 1]

    assert heights_of_band.min() == pytest.approx(count.clouds.of_clouds.min())
    assert heights_of_band.max() == pytest.approx(count.clouds.of_clouds.max())
    assert ax.get_title() == "3 clusters (confidence high)"
    assert ax.get_xlabel() == "number of clusters"
    check_texts(ax.figure, ax)


def test_count_marks_the_plausible_numbers(count):
    several = replace(count, plausible=(3, 9, 1))
    ax = plot_count(several)

    # Of one cluster there is no score.
    assert texts(ax.texts) == ["3", "9"]

    for text in ax.texts:
        k = int(text.get_text())
        assert text.xy == (k, count.evidence_for(k).score)
        assert (text.get_weight() == "bold") == (k == 3)

    (line,) = (line for line in ax.lines if len(line.get_xdata()) == 2)

    assert_array_equal(line.get_xdata(), 3)

    doubtful = replace(several, confidence=Confidence.LOW)
    title = plot_count(doubtful).get_title()

    assert title == "perhaps 3 clusters, or 9 or 1 (confidence low)"


def test_count_of_a_model_that_counted(three, model):
    counted = IhSC("auto", random_state=0).fit(three)
    ax = plot_count(counted)

    assert ax.get_title() == "3 clusters (confidence high)"
    assert_allclose(
        line_of(ax, "score")[1], [one.score for one in counted.selection_.evidence]
    )

    remedy = r"fit it with n_clusters='auto', or give select_n_clusters\(X\)"
    with pytest.raises(
        TypeError, match=f"needs selection_, and IhSC has none; {remedy}"
    ):
        plot_count(model)
    with pytest.raises(ValueError, match="This IhSC is not fitted yet; call fit"):
        plot_count(IhSC("auto"))


def test_count_without_evidence(data):
    for few in (
        select_n_clusters(data[0][:8], random_state=0),
        select_n_clusters(data[0], max_clusters=1, random_state=0),
    ):
        with pytest.raises(ValueError, match="This count tried no number of clusters"):
            plot_count(few)
        with pytest.raises(ValueError, match="This count tried no number of clusters"):
            few.plot()


def test_count_of_one_cluster():
    noise = np.random.default_rng(0).normal(size=(80, 40))
    ax = plot_count(select_n_clusters(noise, random_state=0))

    assert ax.get_title() == "1 cluster (confidence middle)"
    assert not ax.texts


def test_count_on_given_axes(count):
    ax = count.plot()

    assert ax.figure.axes == [ax]

    _, user_ax = plt.subplots()

    assert count.plot(ax=user_ax) is user_ax
    assert user_ax.figure.axes == [user_ax]


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(0)
    return tree_of_rows(as_matrix(nested(0)[0]), n_clusters=9, max_clusters=50, rng=rng)


def brackets(ax):
    return [line for line in ax.lines if len(line.get_xdata()) == 4]


def test_tree_has_a_bracket_for_each_merger(tree):
    lines = brackets(plot_tree(tree))
    heights = [line.get_ydata()[1] for line in lines]

    # From the leaves to the root, and none below the one before.
    assert_allclose(heights, np.maximum.accumulate(tree.costs[::-1]))

    places = set(range(tree.n_leaves))  # of stems that nothing stands on
    for line in lines:
        x = line.get_xdata()
        y = line.get_ydata()
        assert x[0] == x[1] < x[2] == x[3]
        assert y[1] == y[2] >= max(y[0], y[3])
        assert {x[0], x[3]} <= places
        places = places - {x[0], x[3]} | {(x[0] + x[3]) / 2}

    assert len(places) == 1


def test_tree_marks_its_levels(tree):
    ax = plot_tree(tree)

    assert ax.get_title() == "the tree is stable at 3 and 9 clusters"

    marks = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]

    assert texts(ax.texts) == ["3 clusters", "9 clusters"]
    assert [text.get_position()[1] for text in ax.texts] == marks

    heights = np.array([line.get_ydata()[1] for line in brackets(ax)])

    # A line at k clusters is crossed by k stems.
    assert [(heights > mark).sum() for mark in marks] == [3 - 1, 9 - 1]

    # Clusters of the last level are named, and coloured inside.
    sizes = np.bincount(tree.labels(9))
    names = texts(ax.get_xticklabels())

    assert names == [f"{c}\n{sizes[c]}" for c in range(9)]
    assert all(float(name) > 0 for name in texts(ax.get_yticklabels()))  # no powers

    colors = np.array([to_hex(line.get_color()) for line in brackets(ax)])
    colors_above = colors[heights > marks[1]]
    colors_inside = colors[heights < marks[1]]

    assert len({*colors_above}) == 1
    assert colors_above[0] not in colors_inside


def test_tree_on_given_axes(tree):
    assert len(brackets(tree.plot())) == tree.n_leaves - 1

    _, user_ax = plt.subplots()

    assert tree.plot(ax=user_ax) is user_ax
    assert user_ax.figure.axes == [user_ax]


def test_tree_without_levels():
    noise = np.random.default_rng(0).normal(size=(80, 40))
    tree = cluster_tree(noise, random_state=0)
    ax = plot_tree(tree)

    assert ax.get_title() == "the tree is not stable at any number of clusters"
    assert len(brackets(ax)) == tree.n_leaves - 1
    assert not ax.texts
    assert texts(ax.get_xticklabels()) == ["0\n80"]

    # A model's clusters have the numbers that they have elsewhere.
    model = IhSC(5, random_state=0).fit(make_ihgmm(200, 40, 5, random_state=0)[0])
    names = plot_tree(cluster_tree(model, random_state=0)).get_xticklabels()
    sizes = np.bincount(model.labels_)

    assert {text.get_text() for text in names} == {f"{c}\n{sizes[c]}" for c in range(5)}

    # Of one leaf there is nothing to draw, and that is no error.
    leaf = cluster_tree(IhSC(1, random_state=0).fit(noise), random_state=0)

    assert not brackets(plot_tree(leaf))


def test_tree_is_drawn_of_trees_alone(count, model):
    for source in (count, model):
        kind = type(source).__name__
        with pytest.raises(TypeError, match=rf"{kind}; give cluster_tree\(X\)"):
            plot_tree(source)

    with pytest.raises(TypeError, match="needs eigenvalues_, and ClusterCount has"):
        plot_scree(count)


def points(ax):
    return [np.asarray(c.get_offsets()) for c in ax.collections]


def test_the_view_sends_each_cluster_to_a_corner():
    fake = made_up(200, 5)
    fake.embedding_ = np.eye(5)[fake.labels_]
    ax = plot_embedding(fake)
    corners = np.array([rows[0] for rows in points(ax)])

    assert_allclose(np.linalg.norm(corners, axis=1), 1)

    distances = np.linalg.norm(corners[:, None] - corners, axis=2)
    is_pair = ~np.eye(5, dtype=bool)

    assert_allclose(distances[is_pair].min(), 2 * np.sin(np.pi / 5))
    assert ax.get_aspect() == 1.0
    assert texts(ax.texts) == list("01234")

    # The number of a cluster is in its direction.
    for text, corner in zip(ax.texts, corners, strict=True):
        place = np.array(text.get_position())
        assert_allclose(place / np.linalg.norm(place), corner, atol=1e-12)


def test_the_view_is_linear_and_puts_like_clusters_side_by_side():
    fake = made_up(600, 6)
    rows = np.eye(6)[fake.labels_]
    pairs = [(0, 3), (3, 1), (1, 4)]
    for cluster, neighbor in pairs:  # rows between these
        rows[np.flatnonzero(fake.labels_ == cluster)[:20], neighbor] = 1
    fake.embedding_ = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    ax = plot_embedding(fake)
    angles = [np.arctan2(*t.get_position()) % (2 * np.pi) for t in ax.texts]
    for cluster, neighbor in pairs:
        turn = abs(angles[cluster] - angles[neighbor])
        assert_allclose(min(turn, 2 * np.pi - turn), np.pi / 3)


def test_two_clusters_leave_no_axis_empty():
    fake = made_up(200, 2)
    noise = np.random.default_rng(0).standard_normal((200, 4))
    fake.embedding_ = np.column_stack([fake.embedding_, noise])
    rows = points(plot_embedding(fake))
    spread = np.vstack(rows).std(axis=0)

    assert spread.min() > 0.2 * spread.max()
    assert np.linalg.norm(rows[0].mean(axis=0) - rows[1].mean(axis=0)) > 1


def test_many_rows_are_thinned_and_the_axes_say_so():
    for fake in (made_up(50_000, 3), made_up(50_000, 2)):
        ax = plot_embedding(fake)
        n_shown = sum(len(rows) for rows in points(ax))
        assert 19_990 < n_shown < 20_010
        assert ax.get_title().startswith("50,000 rows in ")
        assert f"{n_shown:,} of 50,000 rows shown" in ax.get_xlabel()
        assert all(c.get_rasterized() for c in ax.collections)


def test_what_cannot_be_drawn_of_an_embedding(data):
    with pytest.raises(ValueError, match="have 1 coordinate; fit more clusters"):
        plot_embedding(made_up(30, 1))
    with pytest.raises(ValueError, match="labels has 30 entries and X has 240 rows"):
        plot_embedding(data[0], made_up(30, 3))


def test_scales_are_violins_or_points_on_a_log_axis(model):
    ax = plot_scales(model)

    assert ax.get_yscale() == "log"

    cluster_scales = [model.scales_[model.labels_ == k] for k in range(4)]
    for violin, scales in zip(ax.collections, cluster_scales, strict=True):
        y = violin.get_paths()[0].vertices[:, 1]
        assert_allclose([y.min(), y.max()], [scales.min(), scales.max()])

    medians = [line.get_ydata()[0] for line in ax.lines if len(line.get_ydata()) == 1]

    assert_allclose(medians, [np.median(scales) for scales in cluster_scales])

    fake = made_up(100, 3)
    fake.labels_ = np.r_[np.zeros(93, int), np.full(6, 1), 2]
    fake.scales_[:2] = 0
    ax = plot_scales(fake)

    assert len(ax.collections) == 1  # of few rows there are points

    point_lines = [line for line in ax.lines if line.get_linestyle() == "None"]

    assert [len(line.get_ydata()) for line in point_lines] == [1, 6, 1]

    label = "cluster; bar: middle half, dot: median\nrows of scale 0, not shown: 2"

    assert ax.get_xlabel() == label


def test_top_features_show_contrasts_of_named_features(data, model):
    names = [f"a long name that never seems to end {j}" for j in range(60)]
    top = ihgmm.top_features(data[0], model, names=names)
    ax = plot_top_features(top, n_features=9)
    cells = ax.images[0].get_array()

    assert cells.shape == (9, 4)

    labels = texts(ax.get_yticklabels())
    features = [int(label.split()[-1]) for label in labels]

    assert all("…" in label for label in labels)
    assert_allclose(cells, top.contrasts[:, features].T)
    # Each cluster's best feature is there, in the order of the clusters.
    assert set(top.scores.argmax(axis=1)) <= set(features)

    owner = np.abs(cells).argmax(axis=1)

    assert_array_equal(owner, np.sort(owner))
    assert "noise levels" in ax.figure.axes[1].get_ylabel()

    with pytest.raises(TypeError, match=r"not a IhSC; write plot_top_features\(top_"):
        plot_top_features(model)


def test_confusion_is_matched_and_framed():
    labels_true = np.repeat(["ant", "bee", "cat"], [5, 4, 3])
    labels_pred = np.array([7, 7, 7, 7, 9, 3, 3, 3, 7, 5, 5, 3])
    ax = plot_confusion(labels_true, labels_pred)

    # Four clusters stand for the class of most of their rows: 7 and 9 for ant.
    assert texts(ax.get_xticklabels()) == ["7", "9", "3", "5"]
    assert texts(ax.get_yticklabels()) == ["ant", "bee", "cat"]

    table = np.array([[4, 1, 0, 0], [1, 0, 3, 0], [0, 0, 1, 2]])

    assert_allclose(ax.images[0].get_array(), table / [[5], [4], [3]])

    cells = {text.get_position(): text.get_text() for text in ax.texts}

    assert cells == {(j, i): str(table[i, j] or "") for i in range(3) for j in range(4)}

    frames = [(j - 0.5, i - 0.5) for j, i in enumerate([0, 0, 1, 2])]

    assert [patch.get_xy() for patch in ax.patches] == frames

    rand = adjusted_rand_score(labels_true, labels_pred)
    title = "16.7% of rows not of their cluster's main class, "

    assert " ".join(ax.get_title().split()) == f"{title}adjusted Rand index {rand:.2f}"

    ax.figure.draw_without_rendering()

    assert ax.title.get_window_extent().width < ax.get_window_extent().width

    labels_merged = np.where(labels_pred == 9, 7, labels_pred)  # as many as classes
    ax = plot_confusion(labels_true, labels_merged)

    assert texts(ax.get_xticklabels()) == ["7", "3", "5"]
    assert ax.get_title() == "16.7% of rows misplaced"
    assert "framed" in ax.get_xlabel()

    ax = plot_confusion([3, 4, 4, 5], [0, 1, 1, 1])  # with fewer clusters than labels

    assert texts(ax.get_xticklabels()) == ["0", "1"]
    assert len(ax.patches) == 2

    with pytest.raises(ValueError, match="labels_true has 2 entries and labels_pred"):
        plot_confusion([0, 1], [0])


def profiles(ax):
    """The sorted figures of each cluster that are drawn."""
    return [patch.get_data().values for patch in ax.patches[::2]]


def test_confidence_is_that_of_the_diagnosis(data, model):
    diagnosis = diagnose(data[0], model.labels_)
    ax = plot_confidence(data[0], model)
    for k, profile in enumerate(profiles(ax)):
        assert_allclose(profile, -np.sort(-diagnosis.certainty[model.labels_ == k]))

    share = percent(diagnosis.uncertain_share)

    assert ax.get_title() == f"{share} of rows are less than 90% certain"
    assert plot_confidence(data[0], model.labels_).get_title() == ax.get_title()

    # This model has memberships of its own.
    mixture = ihgmm.IhGMM(4, random_state=0).fit(data[0])
    profile = profiles(plot_confidence(mixture))[0]
    memberships = mixture.memberships_[mixture.labels_ == 0, 0]

    assert_allclose(profile, -np.sort(-memberships))


def test_a_model_that_lacks_what_is_drawn(data):
    kmeans = ihgmm.SphericalKMeans(4, random_state=0).fit(data[0])
    for draw in (plot_confidence, plot_embedding):
        expected = rf"and SphericalKMeans has none; .*: {draw.__name__}\(X, model\)"
        with pytest.raises(TypeError, match=expected):
            draw(kmeans)

    ax = plot_embedding(sp.csr_array(data[0]), kmeans)
    sizes = [len(rows) for rows in points(ax)]

    assert sizes == np.bincount(kmeans.labels_).tolist()

    for draw, name in ((plot_scales, "scales_"), (plot_scree, "eigenvalues_")):
        with pytest.raises(TypeError, match=f"needs {name}, and SphericalKMeans has"):
            draw(kmeans)
    for draw in (plot_scales, plot_scree, plot_embedding):
        with pytest.raises(ValueError, match="This IhSC is not fitted yet; call fit"):
            draw(IhSC(3))


def test_outliers_are_grey_and_in_no_cluster(data):
    X = data[0].copy()
    X[:5] = 1000 * np.random.default_rng(0).standard_normal((5, X.shape[1]))
    model = IhSC(4, outliers="auto", random_state=0).fit(X)

    assert (model.labels_ < 0).sum() == 5

    ax = plot_embedding(model)

    assert legend(ax) == ["outlier"]
    assert sum(len(collection.get_offsets()) for collection in ax.collections) == len(X)
    assert to_hex(ax.collections[-1].get_edgecolor()[0]) == NEUTRAL
    assert plot_scales(model).has_data()
    assert len(profiles(plot_confidence(X, model))) == 4

    ax = plot_confusion(np.maximum(model.labels_, 0), model.labels_)
    names = texts(tick_labels(ax.xaxis))

    assert names == ["0", "1", "2", "3", "outlier"]


def test_what_is_no_model_and_no_labels_is_named(data, model):
    X, _ = data
    diagnosis = diagnose(X, model.labels_)
    remedy = r"\); give one label for each row, as in labels_ of a model"
    for draw in (plot_confidence, plot_embedding):
        rule = f"{draw.__name__} takes a fitted model or its labels. What it was given"
        with pytest.raises(TypeError, match=f"{rule} .*of type Diagnosis{remedy}"):
            draw(diagnosis)
        for arguments in ((X,), (model, X)):
            message = rf"{rule} cannot be used .*\({len(X)}, "
            with pytest.raises(ValueError, match=message):
                draw(*arguments)

    with pytest.raises(TypeError, match="and Diagnosis has none; give a fitted"):
        plot_scales(diagnosis)
    with pytest.raises(TypeError, match=r"labels_true .*of type IhSC.; give one"):
        plot_confusion(model, model.labels_)
