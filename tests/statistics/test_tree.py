"""Trees of clusters: levels, labels at any level, and what halves say of them."""

import numpy as np
import pytest
from nested_rows import nested
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from ihgmm import IhGMM, IhSC, cluster_tree, make_ihgmm, select_n_clusters
from ihgmm.metrics import misclassification_rate


@pytest.mark.parametrize(("types", "kinds", "seed"), [(3, 3, 0), (3, 3, 1), (2, 4, 0)])
def test_nested_clusters_have_two_levels(types, kinds, seed):
    X, labels_of_types, labels_of_kinds = nested(seed, types=types, kinds=kinds)
    tree = cluster_tree(X, random_state=seed)

    assert tree.levels == (types, types * kinds)
    assert adjusted_rand_score(labels_of_types, tree.labels(types)) > 0.98
    assert adjusted_rand_score(labels_of_kinds, tree.labels(types * kinds)) > 0.9

    count = select_n_clusters(X, random_state=seed)

    assert set(count.plausible) == {types, types * kinds}


def test_a_finer_level_is_inside_a_coarser_one():
    X, *_ = nested(0)
    tree = cluster_tree(X, random_state=0)
    for k in range(2, tree.n_leaves + 1):
        pairs = {*zip(tree.labels(k), tree.labels(k - 1), strict=True)}
        assert len(pairs) == k
        sizes = np.bincount(tree.labels(k))
        assert (np.diff(sizes) <= 0).all()  # numbered by decreasing size

    assert not tree.labels(1).any()

    with pytest.raises(ValueError, match=r"is more than the .* leaves"):
        tree.labels(tree.n_leaves + 1)


def test_the_clusters_of_a_model_are_shown_whether_or_not_they_are_a_level():
    X, *_ = nested(0)
    tree = cluster_tree(IhSC(9, random_state=0).fit(X), random_state=0)

    assert 9 not in tree.levels
    assert "    cluster 8 of 9: " in str(tree)

    # Numbers need not be by size: those of an older model stay, at each level.
    model = IhSC(9, random_state=0).fit(X)
    model.labels_ = (model.labels_ + 4) % 9
    tree = cluster_tree(model, random_state=0)

    assert (tree.labels(9) == model.labels_).all()
    assert (tree.labels(8) == model.labels_).mean() > 0.7

    with pytest.raises(TypeError, match="IhGMM has no embedding_; give the data"):
        cluster_tree(IhGMM(3, random_state=0).fit(X))
    with pytest.raises(NotFittedError):
        cluster_tree(IhSC(3))


@pytest.mark.parametrize(
    "model",
    [
        IhSC(9, random_state=0),
        IhSC(9, signed=True, random_state=0),
        IhSC.paper(9, random_state=0),
        IhSC(9, recipe="psc", random_state=0),
    ],
    ids=["default", "signed", "paper", "psc"],
)
def test_every_model_with_an_embedding_has_a_tree(model):
    X, labels_of_types, _ = nested(0)
    if getattr(model, "signed", False):
        X *= np.random.default_rng(0).choice([-1, 1], (450, 1))
    model.fit(X)
    tree = cluster_tree(model, random_state=0)

    assert tree.n_leaves == 9

    # Leaves are the clusters of the model, which need not be ordered by size.
    pairs = {*zip(tree.labels(9), model.labels_, strict=True)}

    assert len(pairs) == 9
    assert 3 in tree.levels

    # Each goes with the type that most of its rows have.
    main_types = [
        np.bincount(labels_of_types[model.labels_ == leaf]).argmax()
        for leaf in range(9)
    ]

    assert adjusted_rand_score(np.take(main_types, model.labels_), tree.labels(3)) == 1


def test_the_tree_of_a_model_with_few_rows():
    # Halves have fewer rows than the model has clusters.
    X, *_ = nested(0, n=12)
    tree = cluster_tree(IhSC(10, random_state=0).fit(X), random_state=0)

    assert tree.n_leaves == 10
    assert tree.levels == ()

    for k, n_leaves in ((1, 1), (2, 2)):
        tree = cluster_tree(IhSC(k, random_state=0).fit(X), random_state=0)
        assert (tree.n_leaves, len(set(tree.labels(k)))) == (n_leaves, k)


def test_outliers_of_a_model_stay_outliers():
    X, *_ = nested(0)
    X[:5] = 200 * np.random.default_rng(0).standard_normal((5, 100))
    model = IhSC(9, outliers="auto", random_state=0).fit(X)

    assert (model.labels_ == -1).any()

    tree = cluster_tree(model, random_state=0)

    assert ((tree.labels(3) == -1) == (model.labels_ == -1)).all()


def test_rows_without_weight_are_in_no_leaf():
    X, *_ = nested(0)
    weights = np.ones(450)
    weights[:10] = 0
    tree = cluster_tree(X, sample_weight=weights, random_state=0)

    assert (tree.leaves[:10] == -1).all()
    assert (tree.leaves[10:] >= 0).all()


def test_leaves_of_many_rows_are_of_all():
    X, labels = make_ihgmm(2500, 30, 4, random_state=0)
    tree = cluster_tree(X, random_state=0)

    assert tree.n_rows == 2000
    assert misclassification_rate(labels, tree.labels(4)) < 0.01


def test_too_few_rows_for_a_tree():
    X, _ = make_ihgmm(8, 50, 2, random_state=0)

    with pytest.raises(ValueError, match=r"too few rows .* give at least 10"):
        cluster_tree(X)
