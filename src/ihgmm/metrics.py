"""How far two clusterings are apart, after the best matching of their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks import check_labels, is_outlier
from ihgmm.matrix import to_host

__all__ = [
    "exact_recovery",
    "match_labels",
    "misclassification_loss",
    "misclassification_rate",
    "stability_score",
]


def misclassification_loss(labels_true: Any, labels_pred: Any) -> int:
    """Count the rows that are misclassified under the best matching of labels.

    This is the loss ``l(z_hat, z)`` of the paper's section on the model. The numbers
    of clusters may differ: rows of a predicted cluster that finds no partner count as
    misclassified.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Labels of any kind: numbers, strings, booleans. Beside clusters numbered from
        0, -1 marks outliers. It is matched with -1 alone: a row of a class that is
        taken for an outlier counts as misclassified, and so does an outlier that is
        taken for a row of a cluster. Leave out rows where that is not meant.

    Examples
    --------
    >>> misclassification_loss(["a", "a", "b", "b"], [1, 1, 0, 1])
    1
    """
    m = _matched(labels_true, labels_pred)
    return int(m.table.sum() - m.table[m.rows, m.columns].sum())


def misclassification_rate(labels_true: Any, labels_pred: Any) -> float:
    """Return the share of misclassified rows under the best matching of labels.

    It is :func:`misclassification_loss` over the number of rows.

    Examples
    --------
    >>> misclassification_rate(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.25
    """
    return misclassification_loss(labels_true, labels_pred) / len(labels_true)


def exact_recovery(labels_true: Any, labels_pred: Any) -> bool:
    """Return whether two clusterings are the same up to the names of the clusters.

    Labels are given as to :func:`misclassification_loss`.

    Examples
    --------
    >>> exact_recovery([0, 0, 1], ["x", "x", "y"])
    True
    """
    return misclassification_loss(labels_true, labels_pred) == 0


def match_labels(labels_true: Any, labels_pred: Any, *, unmatched: Any = None) -> Any:
    """Rename predicted clusters so that they agree best with the true ones.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Labels of any kind.
    unmatched : optional
        What rows are named whose predicted cluster finds no partner, which happens
        when there are more predicted than true clusters. Default: -1 for numbers,
        ``"unmatched"`` for anything else.

    Returns
    -------
    ndarray of shape (n_samples,)
        The predicted labels in the names of ``labels_true``.

    Examples
    --------
    >>> match_labels(["a", "a", "b", "b"], [7, 7, 3, 3])
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    """
    m = _matched(labels_true, labels_pred)
    names, n_pred = m.names, m.table.shape[1]
    if unmatched is None:
        unmatched = -1 if names.dtype.kind in "iuf" else "unmatched"
    complete = len(m.columns) == n_pred  # a partner for every predicted cluster
    kind = names.dtype if complete else np.result_type(names, np.asarray(unmatched))
    renamed = np.full(n_pred, names[0] if complete else unmatched, dtype=kind)
    renamed[m.columns] = names[m.rows]
    return renamed[m.pred]


@dataclass(frozen=True)
class ClassAgreement:
    """How clusters go with known classes."""

    misplaced: int  # rows of another class than the one that their cluster stands for
    rate: float  # the share of such rows
    adjusted_rand_index: float  # 1 for the same groups, about 0 for unrelated ones
    by_majority: bool  # whether a cluster stands for the class of most of its rows


def class_agreement(labels_true: Any, labels_pred: Any) -> ClassAgreement:
    """Compare clusters with known classes, also where their numbers differ.

    With as many clusters as classes, each cluster stands for one class, under the best
    matching. Otherwise it stands for the class that most of its rows have: clusters
    that are parts of a class are not wrong, and no cluster can stand for two classes.

    Examples
    --------
    >>> class_agreement(["a", "a", "b", "b"], [0, 0, 1, 2])
    ClassAgreement(misplaced=0, rate=0.0, adjusted_rand_index=0.57..., by_majority=True)
    """
    from sklearn.metrics import adjusted_rand_score

    m = _matched(labels_true, labels_pred)
    classes, clusters = (m.table.shape[axis] - m.first[axis] for axis in (0, 1))
    right = m.table[m.rows, m.columns].sum()
    if classes != clusters:
        inside = m.table[m.first[0] :, m.first[1] :]
        # Outliers go with each other alone.
        right = inside.max(axis=0, initial=0).sum() + all(m.first) * m.table[0, 0]
    n_wrong, n = int(m.table.sum() - right), len(m.pred)
    rand = float(adjusted_rand_score(m.true, m.pred))
    return ClassAgreement(n_wrong, n_wrong / n, rand, classes != clusters)


def stability_score(model: Any, X: Any, y: Any = None) -> float:
    """Return how far a fitted model and a fit to new rows agree on these rows.

    It is a scorer for ``GridSearchCV`` over the number of clusters. A model's own
    ``score`` says how well centres explain rows. More centres explain more, also of new
    rows where features share noise, so that it prefers too many clusters. This one is
    high only where rows that had no part in the fit show the same clusters.

    Parameters
    ----------
    model : fitted estimator
        A clusterer with ``predict``. It comes first, as in every scorer of
        scikit-learn.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows that were not in the fit. A copy of the model is fitted to them.
    y : ignored
        scikit-learn gives it to every scorer.

    Returns
    -------
    float
        The adjusted Rand index of ``model.predict(X)`` and the labels of the new fit:
        1 for the same clusters, about 0 for clusters that agree by chance. One
        cluster has 0, since there is nothing to agree on.

    See Also
    --------
    ihgmm.select_n_clusters : Counts the clusters by several criteria, in one call.

    Notes
    -----
    Few and large folds serve it best, such as ``cv=3``: each must show all clusters.
    Of eight designs with 2, 4 or 7 clusters (independent, correlated and heavy-tailed
    noise, unequal sizes, similar patterns, few features), each drawn three times, it
    found the number in all 24; a likelihood that counts each label's cost did in 18,
    and had too many with correlated and heavy-tailed noise. Where clusters are made of
    clusters, it may find the coarse ones.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.model_selection import GridSearchCV
    >>> from ihgmm import IhSC, UnstableLabelsWarning, make_ihgmm
    >>> X, _ = make_ihgmm(300, 50, 3, random_state=0)
    >>> search = GridSearchCV(
    ...     IhSC(random_state=0),
    ...     {"n_clusters": [2, 3, 4, 5]},
    ...     scoring=stability_score,
    ...     cv=3,
    ... )
    >>> with warnings.catch_warnings():  # fits of wrong numbers warn
    ...     warnings.simplefilter("ignore", UnstableLabelsWarning)
    ...     search.fit(X).best_params_
    {'n_clusters': 3}
    """
    from sklearn.base import clone
    from sklearn.metrics import adjusted_rand_score

    predicted = to_host(model.predict(X))
    refitted = to_host(clone(model).fit_predict(X))
    if len(np.unique(predicted)) < 2 or len(np.unique(refitted)) < 2:
        return 0.0
    return float(adjusted_rand_score(predicted, refitted))


class _Matching(NamedTuple):
    """Counts of true by predicted labels, and which of them match."""

    table: np.ndarray
    rows: np.ndarray  # of the table that match its columns
    columns: np.ndarray
    names: np.ndarray  # of the true labels
    true: np.ndarray  # the place of each label among those that are sorted
    pred: np.ndarray
    first: tuple[int, int]  # 1 where the first is that of outliers, for both


def _matched(labels_true: Any, labels_pred: Any) -> _Matching:
    """Return the best matching of two clusterings."""
    true = check_labels("labels_true", labels_true)
    pred = check_labels("labels_pred", labels_pred)
    if len(true) != len(pred):
        raise ValueError(
            f"labels_true has {len(true)} entries and labels_pred has {len(pred)}; "
            "give one label for each row in both."
        )
    names, true_code = np.unique(true, return_inverse=True)
    pred_names, pred_code = np.unique(pred, return_inverse=True)
    n_true, n_pred = len(names), len(pred_names)
    table = np.bincount(true_code * n_pred + pred_code, minlength=n_true * n_pred)
    table = table.reshape(n_true, n_pred)
    # Outliers, whose label sorts first, are matched with each other alone.
    first = int(is_outlier(true).any()), int(is_outlier(pred).any())
    rows, columns = linear_sum_assignment(table[first[0] :, first[1] :], maximize=True)
    rows, columns = rows + first[0], columns + first[1]
    if all(first):
        rows, columns = np.append(rows, 0), np.append(columns, 0)
    return _Matching(table, rows, columns, names, true_code, pred_code, first)
