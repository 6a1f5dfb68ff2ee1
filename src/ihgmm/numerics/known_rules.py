"""Known rows choose the rule: what is learnt where users know the classes of some rows.

Four linear rules compete, all on the same embedding:

1. the classes of known rows spread along the links of a graph of neighbours, until each
   row has a class; Fisher's linear rule of these classes, with one covariance;
2. Gaussian clusters, by expectation and maximisation from the means of known rows;
3. the same of rows that have moved to their neighbours; one step of maximisation on the
   rows as they were gives the rule;
4. Fisher's linear rule of the known rows alone.

Known rows of a class that has three or more are left out in turn, in three parts; each
rule is learnt without them, and errs on some. The first rule is taken unless another
errs less often by more than chance would explain. Where no class has so many, there is
nothing to choose by, and the third rule is taken. A few wrong known rows are outvoted:
by their neighbours, by the other rows of their class, or as unlikely in its cluster.

Where some clusters have no known rows, only Gaussian clusters can find them: the second
and the third rule compete, and these clusters start as they would without known rows.

Where clusters that were found without classes already agree with most known rows, data
are likely to be what Gaussian clusters take them for. There the first rule is the
second one, but a known row weighs as much as any other; else a few weigh more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix import HOST
from ihgmm.numerics.matching import confusion, kept_order
from ihgmm.numerics.neighbor_walk import Cosines, NeighborGraph, moved_by, walk_size
from ihgmm.numerics.training import (
    TrainingRows,
    Trial,
    best_of_spaces,
    settle_on_all_rows,
)
from ihgmm.policy import Teaching


def clusters_of_classes(
    rows: TrainingRows,
    plain: Trial,
    n_clusters: int,
    *,
    precise_rows: TrainingRows,
    by_neighbors: bool,
    max_iter: int,
) -> Trial:
    """Return the clusters of the rule that known rows choose.

    Parameters
    ----------
    rows : TrainingRows
        The rows; some have known classes. Of many, Gaussian clusters settle on all.
    plain : Trial
        The clusters that the rows come to without their classes.
    n_clusters : int
        Number of clusters; the first are those of the classes.
    precise_rows : TrainingRows
        The rows before digits were cut, or the same; rules are learnt from these.
    by_neighbors : bool
        Whether rules may ask for neighbours, as the first and the third do.
    max_iter : int
        Cap on the iterations in which Gaussian clusters settle on all rows.

    Returns
    -------
    trial : Trial
        Cluster j is class j. There are no clusters where every rule loses one.
    """
    sample = _sample_of_known_and_others(precise_rows, n_clusters)
    agreement = _agreement(sample, plain, n_clusters)
    learner = _Learner.of_rows(
        sample,
        plain,
        n_clusters,
        by_neighbors=by_neighbors,
        all_rows=rows,
        max_iter=max_iter,
        is_agreed=agreement >= Teaching.AGREED,
    )
    return learner.rule_of_choice()


def _sample_of_known_and_others(rows: TrainingRows, n_clusters: int) -> TrainingRows:
    """Return some of the rows, on the host; at most half of many are known ones.

    Of known rows as many are taken of each class, as far as there are so many.
    """
    classes = _classes(rows)
    n_rows = walk_size(len(rows), n_clusters)
    known_rows = np.flatnonzero(classes >= 0)
    other_rows = np.flatnonzero(classes < 0)

    known_rows = known_rows[np.argsort(_rank_in_class(classes)[known_rows])]
    n_known = max(n_rows - len(other_rows), min(len(known_rows), n_rows // 2))
    positions = np.append(known_rows[:n_known], other_rows[: n_rows - n_known])
    return rows.take(positions).on_host().in_double_precision()


def _classes(rows: TrainingRows) -> np.ndarray:
    """Return the class of each row, -1 where it is not known."""
    classes = rows.known_labels.classes
    assert classes is not None
    return classes


def _rank_in_class(classes: np.ndarray) -> np.ndarray:
    """Return how many rows of the same class come before each row."""
    by_class = np.argsort(classes, kind="stable")
    sorted_classes = classes[by_class]
    first_of_class = np.searchsorted(sorted_classes, sorted_classes)

    ranks = np.empty(len(classes), dtype=np.intp)
    ranks[by_class] = np.arange(len(classes)) - first_of_class
    return ranks


def _agreement(rows: TrainingRows, plain: Trial, k: int) -> float:
    """Return the share of known rows that plain clusters put together by class."""
    assert plain.clusters is not None
    classes = _classes(rows)
    labels = _labels(rows, plain)
    counts = confusion(classes, labels, (k, k))

    order = kept_order(counts)
    n_agreeing = counts[np.arange(k), order].sum()
    return float(n_agreeing / counts.sum())


def _labels(rows: TrainingRows, trial: Trial) -> np.ndarray:
    """Return the labels of rows by the rule of some clusters."""
    assert trial.clusters is not None
    scores = rows.host_rows(trial.space) @ trial.clusters.coefficients
    return np.argmax(scores + trial.clusters.intercepts, axis=1)


@dataclass(frozen=True, eq=False)
class _Learner:
    """What all rules are learnt from, with all known classes or without some."""

    rows: TrainingRows
    walk: sp.csr_array | None  # a step to neighbours, (n, n); None: do without
    moved_rows: TrainingRows | None  # towards their neighbours
    n_clusters: int
    all_rows: TrainingRows | None  # that clusters settle on; None: rules only compete
    max_iter: int  # in which clusters settle, at most
    is_agreed: bool  # whether plain clusters are the classes, as far as it shows

    @classmethod
    def of_rows(
        cls,
        rows: TrainingRows,
        plain: Trial,
        n_clusters: int,
        *,
        by_neighbors: bool,
        all_rows: TrainingRows,
        max_iter: int,
        is_agreed: bool,
    ) -> _Learner:
        """Find the neighbours of rows, if rules may ask for them."""
        walk = None
        moved_rows = None
        if by_neighbors:
            assert plain.clusters is not None
            graph = NeighborGraph.of_clusters(rows, plain.space, plain.clusters)
            walk = graph.walk(*[Cosines(positions) for positions in rows.spaces])
            moved_rows = moved_by(walk, rows)

        return cls(
            rows=rows,
            walk=walk,
            moved_rows=moved_rows,
            n_clusters=n_clusters,
            all_rows=all_rows,
            max_iter=max_iter,
            is_agreed=is_agreed,
        )

    def without_classes_of(self, is_hidden: np.ndarray) -> _Learner:
        """Return what rules that compete are learnt from: some classes are hidden."""
        known_labels = self.rows.known_labels.hide(is_hidden)
        learner = replace(self, rows=self.rows.with_known_labels(known_labels))
        if self.moved_rows is None:
            return replace(learner, all_rows=None)

        moved_rows = self.moved_rows.with_known_labels(known_labels)
        return replace(learner, moved_rows=moved_rows, all_rows=None)

    def as_any_other(self) -> _Learner:
        """Return the same, of rows of known class that weigh as much as any other."""

        def lighter(rows: TrainingRows | None) -> TrainingRows | None:
            if rows is None:
                return None
            return rows.with_known_labels(rows.known_labels.as_any_other())

        rows = lighter(self.rows)
        assert rows is not None
        return replace(
            self,
            rows=rows,
            moved_rows=lighter(self.moved_rows),
            all_rows=lighter(self.all_rows),
        )

    def rules(self) -> list[_RuleOfClasses]:
        """Return the rules that compete; the first is taken unless another is better.

        Where there is nothing to choose by, it is the only one.
        """
        rules: list[_RuleOfClasses] = []
        if self.moved_rows is not None:
            rules.append(_clusters_of_moved_rows)
        rules.append(_clusters_from_means)

        classes = _classes(self.rows)
        if not _is_judge(classes).any():
            return [_as_any_other(rules[0])] if self.is_agreed else rules[:1]

        if len(np.unique(classes[classes >= 0])) == self.n_clusters:
            if self.walk is not None:
                rules.insert(0, _spread_classes)
            rules.append(_discriminant_of_known)
        if self.is_agreed:
            rules.insert(0, _as_any_other(_clusters_from_means))
        return rules

    def rule_of_choice(self) -> Trial:
        """Return the clusters of the first rule, or of one that errs clearly less.

        If a cluster vanishes, the next rule is taken.
        """
        rules = self.rules()
        if len(rules) > 1:
            n_errors = self._errors(rules)
            best = int(np.argmin(n_errors))
            lead = n_errors[0] - n_errors[best]
            if lead > Teaching.CLEARLY * np.sqrt(n_errors[0]):
                rules.insert(0, rules[best])

        for rule in [*rules, _clusters_from_means]:
            trial = rule(self)
            if trial.clusters is not None:
                return trial
        return Trial()

    def _errors(self, rules: list[_RuleOfClasses]) -> np.ndarray:
        """Count the errors of each rule on known rows that it was learnt without."""
        classes = _classes(self.rows)
        is_judge = _is_judge(classes)
        part_of_row = _rank_in_class(classes) % Teaching.PARTS

        n_errors = np.zeros(len(rules))
        for part in range(Teaching.PARTS):
            is_hidden = is_judge & (part_of_row == part)
            if not is_hidden.any():
                continue

            learner = self.without_classes_of(is_hidden)
            for i, rule in enumerate(rules):
                trial = rule(learner)
                if trial.clusters is None:
                    n_errors[i] += is_hidden.sum()
                    continue
                labels = _labels(self.rows, trial)
                n_errors[i] += (labels != classes)[is_hidden].sum()
        return n_errors


def _is_judge(classes: np.ndarray) -> np.ndarray:
    """Tell which known rows are of a class that can spare some."""
    is_known = classes >= 0
    class_sizes = np.bincount(classes[is_known])
    has_spare_rows = class_sizes >= Teaching.PARTS
    return is_known & has_spare_rows[np.where(is_known, classes, 0)]


_RuleOfClasses = Callable[[_Learner], Trial]


def _spread_classes(learner: _Learner) -> Trial:
    """Learn Fisher's linear rule of classes that have spread to neighbours.

    Notes
    -----
    With P a step of the walk and Y what is known, the classes F settle where
    ``F = a P F + (1 - a) Y``. Each class starts with the same weight in Y. The class of
    a row is the largest of its line in F; of a known row it may be another than known.
    """
    assert learner.walk is not None
    classes = _classes(learner.rows)
    is_class = _is_of_class(classes, learner.n_clusters)  # (k, n)
    known_shares = (is_class / is_class.sum(axis=1, keepdims=True)).T

    shares = known_shares  # (n, k)
    for _ in range(Teaching.SPREADING_STEPS):
        shares = Teaching.SPREADING * (learner.walk @ shares)
        shares += (1 - Teaching.SPREADING) * known_shares

    is_reached = shares.max(axis=1) > 0
    classes_of_rows = np.where(is_reached, shares.argmax(axis=1), -1)
    return _discriminant(learner, classes_of_rows)


def _clusters_of_moved_rows(learner: _Learner) -> Trial:
    """Learn Gaussian clusters of moved rows, and from these a rule for rows."""
    assert learner.moved_rows is not None
    k = learner.n_clusters
    trial = best_of_spaces(learner.moved_rows, k)
    if trial.clusters is None:
        return trial

    moved_rows = learner.moved_rows.spaces[trial.space]
    members = trial.clusters.memberships(
        HOST,
        moved_rows,
        signed=False,
        prior=learner.rows.known_labels.log_prior(HOST, moved_rows, k),
    )
    is_member = _is_of_class(members.argmax(axis=0), k)
    clusters = learner.rows.one_step(trial.space, is_member)
    return Trial(clusters=clusters, space=trial.space, is_settled=True)


def _as_any_other(rule: _RuleOfClasses) -> _RuleOfClasses:
    """Return a rule in which rows of known class weigh as much as any other."""

    def learn(learner: _Learner) -> Trial:
        return rule(learner.as_any_other())

    return learn


def _clusters_from_means(learner: _Learner) -> Trial:
    """Learn Gaussian clusters from the means of known rows."""
    trial = best_of_spaces(learner.rows, learner.n_clusters)
    if trial.clusters is None or learner.all_rows is None:
        return trial

    has_seen_all_rows = len(learner.rows) == len(learner.all_rows)
    trial = replace(trial, is_settled=trial.is_settled and has_seen_all_rows)
    assert trial.clusters is not None
    clusters = settle_on_all_rows(
        learner.all_rows, trial, trial.clusters, learner.n_clusters, learner.max_iter
    )
    return replace(trial, clusters=clusters, is_settled=True)


def _discriminant_of_known(learner: _Learner) -> Trial:
    """Learn Fisher's linear rule of known rows alone."""
    return _discriminant(learner, _classes(learner.rows))


def _discriminant(learner: _Learner, classes: np.ndarray) -> Trial:
    """Learn Fisher's linear rule of rows with a class, in the eigenvectors.

    It is one step of maximisation. Of n rows in m directions the covariance is pulled
    by the share ``m / (m + n)`` towards a sphere.
    """
    space = 0
    has_class = np.flatnonzero(classes >= 0)
    rows = learner.rows.take(has_class)
    n_directions = rows.spaces[space].shape[1]
    shrinkage = n_directions / (n_directions + len(rows))

    clusters = rows.fit_clusters(
        space,
        [_is_of_class(classes[has_class], learner.n_clusters)],
        shrinkages=[shrinkage],
        prior=None,
        max_iter=1,
    )
    return Trial(clusters=clusters, space=space, is_settled=True)


def _is_of_class(classes: np.ndarray, k: int) -> np.ndarray:
    """Return memberships, (k, n): 1 where a row is of a class, else 0."""
    return (classes == np.arange(k)[:, None]).astype(np.float64)
