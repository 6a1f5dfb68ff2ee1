import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.linalg import toeplitz
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from ihgmm import IhSC, SphericalKMeans, make_ihgmm
from ihgmm.metrics import (
    class_agreement,
    exact_recovery,
    match_labels,
    misclassification_loss,
    misclassification_rate,
    stability_score,
)


def test_classes_and_clusters_of_different_numbers():
    classes = np.repeat(["a", "b", "c"], [4, 4, 2])
    agreement = class_agreement(classes, [0] * 4 + [1] * 6)

    assert (agreement.misplaced, agreement.by_majority) == (2, True)

    agreement = class_agreement(classes, [0, 0, 1, 1, 2, 2, 3, 3, 4, 0])

    assert (agreement.misplaced, agreement.rate) == (1, 0.1)
    assert class_agreement(classes, classes).adjusted_rand_index == 1

    labels = [0] * 8 + [1, 2]
    loss = misclassification_loss(classes, labels)

    assert class_agreement(classes, labels).misplaced == loss

    # Rows of no cluster are of no class.
    assert class_agreement(classes, [0] * 4 + [-1] * 6).misplaced == 6


def by_permutation(true, pred):
    """The definition, tried out: the best of all ways to rename predicted clusters."""
    size = 1 + max(true.max(), pred.max())
    permutations = itertools.permutations(range(size))
    return min((np.array(names)[pred] != true).sum() for names in permutations)


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_all_permutations(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, rng.integers(1, 5), 30)
    pred = rng.integers(0, rng.integers(1, 6), 30)
    loss = by_permutation(truth, pred)

    assert misclassification_loss(truth, pred) == loss
    assert misclassification_loss(pred, truth) == loss
    assert misclassification_rate(truth, pred) == loss / 30
    assert exact_recovery(truth, pred) == (loss == 0)

    matched = match_labels(truth, pred)

    assert (matched != truth).sum() == loss
    assert len(np.unique(matched)) == len(np.unique(pred))


@pytest.mark.parametrize(
    ("true", "pred"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0]),
        (["b", "b", "a", "a"], [5, 5, -1, -1]),
        ([True, True, False, False], ["x", "x", "y", "y"]),
        ([1.5, 1.5, 2.5, 2.5], np.array([[0], [0], [9], [9]])),
    ],
)
def test_any_label_values(true, pred):
    assert exact_recovery(true, pred)
    assert_array_equal(match_labels(true, pred), true)


def test_clusters_are_compared_by_the_rule_that_is_asked_for():
    truth = [0, 0, 0, 0, 1]
    pred = [0, 0, 1, 1, 1]
    agreements = [class_agreement(truth, pred, rule) for rule in (None, True, False)]

    assert [case.by_majority for case in agreements] == [False, True, False]
    assert [case.misplaced for case in agreements] == [2, 1, 2]

    agreement = class_agreement([0, 0, 1, 2], [0, 0, 1, 1], False)

    assert (agreement.misplaced, agreement.by_majority) == (1, False)


def test_unequal_numbers_of_clusters():
    assert misclassification_loss([0, 0, 0, 0], [0, 1, 2, 3]) == 3
    assert misclassification_loss([0, 1, 2, 3], [0, 0, 0, 0]) == 3

    matched = match_labels(["a", "a", "a", "b"], [0, 0, 1, 2])

    assert_array_equal(matched, ["a", "a", "unmatched 1", "b"])
    assert_array_equal(match_labels([4, 4, 4, 4], [0, 0, 1, 2]), [4, 4, 5, 6])

    matched = match_labels([True, True, True, False], [3, 3, 1, 2])

    assert_array_equal(matched, [1, 1, 2, 0])

    largest = np.array([255, 255, 255, 3], dtype=np.uint8)

    assert_array_equal(match_labels(largest, [0, 0, 1, 2]), [255, 255, 256, 3])

    # Outliers go with each other alone.
    assert_array_equal(match_labels([5, 5, 0, 0], [0, -1, 1, 1]), [5, -1, 0, 0])
    assert misclassification_loss([1, 1, -1], [-1, -1, 1]) == 0  # names of clusters

    # A merged cluster takes the name of the larger part.
    assert_array_equal(match_labels(["a", "b", "b"], [7, 7, 7]), ["b", "b", "b"])


@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([0, 1], [0, 1, 1], "labels_true has 2 entries and labels_pred has 3"),
        ([], [], "labels_true cannot be used .*empty"),
        ([[0, 1]], [0, 1], "labels_true cannot be used .*shape"),
        ([0.0, np.nan], [0, 1], "labels_true contains nan"),
    ],
)
def test_bad_labels(true, pred, message):
    with pytest.raises(ValueError, match=message):
        misclassification_loss(true, pred)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_a_search_finds_the_planted_number():
    rng = np.random.default_rng(0)
    planted = 4
    correlation = 0.8
    n = 60 * planted
    p = 40
    # Noise that neighbouring columns share.
    factor = np.linalg.cholesky(toeplitz(correlation ** np.arange(p)))
    noise = rng.standard_normal((n, p)) @ factor.T
    centers = np.linalg.qr(rng.standard_normal((p, planted)))[0].T
    scales = np.exp(0.5 * rng.standard_normal(n))
    X = scales[:, None] * 12 * centers[np.arange(n) % planted] + noise
    numbers = {"n_clusters": [1, 3, 4, 5]}
    folds = KFold(3, shuffle=True, random_state=0)

    def chosen(scorer):
        search = GridSearchCV(
            IhSC(random_state=0), numbers, scoring=scorer, cv=folds, refit=False
        )
        return search.fit(X).best_params_["n_clusters"]

    assert chosen(stability_score) == planted

    # What a model scores itself by grows with the number.
    assert chosen(None) == 5


def test_stability_of_a_pipeline_and_of_one_cluster():
    X, _ = make_ihgmm(150, 20, 3, random_state=0)
    model = make_pipeline(MaxAbsScaler(), SphericalKMeans(3, random_state=0))

    assert stability_score(model.fit(X[::2]), X[1::2]) == 1

    single_cluster = IhSC(1, random_state=0).fit(X)

    assert stability_score(single_cluster, X) == 0

    rng = np.random.default_rng(0)
    noise = rng.standard_normal((200, 50))
    model = SphericalKMeans(4, random_state=0).fit(noise[:100])

    assert abs(stability_score(model, noise[100:])) < 0.2
