"""Rules that are learnt where the classes of some rows are known."""

from dataclasses import replace

import numpy as np
import pytest

from ihgmm.matrix import HOST
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.numerics.known_rules import clusters_of_classes
from ihgmm.numerics.labels import learn_rule
from ihgmm.numerics.training import TrainingRows, best_of_spaces


def clouds(n=300, k=5, noise=0.5, seed=0):
    """Return unit rows about k directions in eight dimensions, and their kinds."""
    rng = np.random.default_rng(seed)
    centers = np.linalg.qr(rng.standard_normal((8, k)))[0].T
    kinds = np.arange(n) % k
    return HOST.unit_rows(centers[kinds] + noise / 3 * rng.normal(size=(n, 8))), kinds


def first_known(kinds, per_class):
    """Return the classes of the first rows of each class, else -1."""
    classes = np.full(len(kinds), -1)
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)[:per_class]
        classes[rows] = kind
    return classes


def labels_of(rows, k, classes, **options):
    known_labels = KnownLabels(classes=classes)
    fitted = learn_rule([rows], k, known_labels=known_labels, **options)
    return np.asarray(fitted.rule(HOST, rows))


@pytest.mark.parametrize("by_neighbors", [True, False])
@pytest.mark.parametrize("per_class", [1, 2, 3, 10])
def test_clusters_have_the_numbers_of_classes(per_class, by_neighbors):
    rows, kinds = clouds()
    classes = first_known(kinds, per_class)
    labels = labels_of(rows, 5, classes, by_neighbors=by_neighbors)

    assert np.mean(labels == kinds) > 0.97


@pytest.mark.parametrize("n_absent", [1, 3])
def test_clusters_without_known_rows_are_found(n_absent):
    rows, kinds = clouds()
    classes = first_known(kinds, 5)
    classes[kinds >= 5 - n_absent] = -1
    labels = labels_of(rows, 5, classes, by_neighbors=True)
    is_class = kinds < 5 - n_absent

    assert np.mean((labels == kinds)[is_class]) > 0.95
    for kind in range(5 - n_absent, 5):
        sizes = np.bincount(labels[kinds == kind], minlength=5)
        assert sizes.max() > 0.95 * sizes.sum()


def test_classes_with_few_known_rows_do_not_vote_but_teach():
    rows, kinds = clouds()
    classes = first_known(kinds, 6)
    rows_of_last = np.flatnonzero(classes == 4)
    classes[rows_of_last[1:]] = -1
    labels = labels_of(rows, 5, classes, by_neighbors=True)

    assert np.mean(labels == kinds) > 0.95


def test_known_rows_choose_what_no_cluster_shows():
    """Classes are halves of one cloud: only a discriminant rule tells them apart."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.full(400, 3.0), rng.standard_normal((400, 5))])
    kinds = (rows[:, 3] > 0).astype(int)
    rows = HOST.unit_rows(rows * [1, 1, 1, 0.5, 1, 1])
    labels = labels_of(rows, 2, first_known(kinds, 40), by_neighbors=True)

    assert np.mean(labels == kinds) > 0.85


def test_wrong_rows_are_outvoted():
    for seed in range(5):
        rows, kinds = clouds(seed=seed)
        classes = first_known(kinds, 6)
        wrong_rows = np.flatnonzero(classes >= 0)[::10]
        classes[wrong_rows] = (classes[wrong_rows] + 1) % 5
        labels = labels_of(rows, 5, classes, by_neighbors=True)

        assert np.mean((labels == kinds)[wrong_rows]) > 0.9
        assert np.mean(labels == kinds) > 0.95


def test_many_rows_teach_as_some_of_them_do():
    rows, kinds = clouds(n=9_000)
    labels = labels_of(rows, 5, first_known(kinds, 20), by_neighbors=True)
    labels_of_known = labels_of(rows, 5, kinds, by_neighbors=True)

    assert np.mean(labels == kinds) > 0.97
    assert np.mean(labels_of_known == kinds) > 0.97


def test_rows_that_count_twice_are_rows_given_twice():
    rows, kinds = clouds(noise=0.9)
    counts = np.random.default_rng(0).integers(1, 3, len(rows))
    classes = first_known(kinds, 6)
    repeated = np.repeat(rows, counts, axis=0)
    labels = labels_of(rows, 5, classes, weights=counts.astype(float))
    labels_of_repeated = labels_of(repeated, 5, np.repeat(classes, counts))

    assert np.mean(np.repeat(labels, counts) == labels_of_repeated) > 0.97


def test_a_cluster_may_be_lost_by_some_rules():
    """With two known rows at one place no rule need keep both classes apart."""
    rows, _ = clouds(n=40, k=2)
    rows = np.vstack([rows, rows[:1]])
    classes = np.full(41, -1)
    classes[[0, 40]] = [0, 1]
    training = TrainingRows(
        ops=HOST,
        spaces=[rows],
        weights=np.ones(41),
        known_labels=KnownLabels(),
        by_angle=True,
        signed=False,
    )
    plain = best_of_spaces(training, 2)
    training = replace(training, known_labels=KnownLabels(classes=classes))
    trial = clusters_of_classes(
        training, plain, 2, precise_rows=training, by_neighbors=True, max_iter=300
    )

    assert trial.clusters is None or trial.clusters.coefficients.shape == (8, 2)
