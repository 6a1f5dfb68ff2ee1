"""How far two clusterings are apart, after the best matching of their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from ihgmm._checks import check_labels, is_outlier
from ihgmm._parameters import usual_errors
from ihgmm._warnings import sklearn_filters
from ihgmm.matrix import to_host
from ihgmm.numerics.matching import best_matching, confusion

__all__ = ["misclassification_loss", "misclassification_rate"]
__all__ += ["exact_recovery", "match_labels", "stability_score"]


def misclassification_loss(labels_true: Any, labels_pred: Any) -> int:
    """Count the rows that are misclassified under the best matching of labels.

    This is the loss ``l(z_hat, z)`` of the paper. The numbers of clusters may differ:
    rows of a predicted cluster without a partner count as misclassified.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Labels of any kind. Beside clusters numbered from 0, -1 marks outliers and is
        matched with -1 alone; leave out rows where that is not meant.

    Examples
    --------
    >>> misclassification_loss(["a", "a", "b", "b"], [1, 1, 0, 1])
    1
    """
    m = _matched(labels_true, labels_pred)
    return len(m.pred) - m.right


def misclassification_rate(labels_true: Any, labels_pred: Any) -> float:
    """Return :func:`misclassification_loss` over the number of rows.

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


def match_labels(old: Any, new: Any) -> np.ndarray:
    """Rename new labels to the old ones that they overlap with most.

    Each old label is given once, such that as many rows as possible keep theirs.

    Parameters
    ----------
    old, new : array-like of shape (n_samples,)
        Labels of any kind, of the same rows.

    Returns
    -------
    ndarray of shape (n_samples,)
        ``new`` in the names of ``old``. Labels without a partner get numbers above
        those of ``old``, or beside texts the names "unmatched 1", "unmatched 2", ...
        Outliers, -1 beside clusters numbered from 0, stay -1, or are "outlier".

    Examples
    --------
    >>> match_labels([0, 0, 1, 1, 1], [7, 7, 3, 3, 5])
    array([0, 0, 1, 1, 2])
    >>> match_labels(["a", "a", "b", "b"], [7, 7, 3, 3])
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    """
    m = _matched(old, new, ("old", "new"))
    alone = np.flatnonzero(m.partners < 0)
    places = m.partners.copy()
    places[alone] = len(m.names) + np.arange(len(alone))
    numbers = m.names.dtype.kind in "biuf"
    if numbers:
        others: Any = int(np.floor(m.names[-1])) + 1 + np.arange(len(alone))
    else:
        others = [f"unmatched {i}" for i in range(1, len(alone) + 1)]
    known = np.concatenate([m.names, others]) if len(alone) else m.names
    if (m.pred < 0).any():  # their code, -1, takes the last place
        known = np.append(known, -1 if numbers else "outlier")
    return known[np.append(places, len(known) - 1)[m.pred]]


@dataclass(frozen=True)
class ClassAgreement:
    """How clusters go with known classes."""

    misplaced: int  # rows of another class than the one that their cluster stands for
    rate: float  # the share of such rows
    adjusted_rand_index: float  # 1 for the same groups, about 0 for unrelated ones
    by_majority: bool  # whether a cluster stands for the class of most of its rows


def class_agreement(
    labels_true: Any, labels_pred: Any, by_majority: bool | None = None
) -> ClassAgreement:
    """Compare clusters with known classes, also where their numbers differ.

    As many clusters as classes are matched one to one. Otherwise a cluster stands for
    the class that most of its rows have: parts of a class are not wrong; so
    it is too with ``by_majority``, or matched one to one where that is False.
    """
    m = _matched(labels_true, labels_pred)
    if by_majority is None:
        by_majority = m.counts.shape[0] != m.counts.shape[1]
    right = m.n_outliers + int(m.counts.max(axis=0).sum()) if by_majority else m.right
    wrong, n = len(m.pred) - right, len(m.pred)
    with sklearn_filters:
        rand = float(adjusted_rand_score(m.true, m.pred))
    return ClassAgreement(wrong, wrong / n, rand, by_majority)


@usual_errors()
def stability_score(model: Any, X: Any, y: Any = None) -> float:
    """Return how far a fitted model and a fit to new rows agree on these rows.

    It is a scorer for ``GridSearchCV`` over the number of clusters, where a model's own
    ``score`` prefers too many. Few and large folds serve it best, such as ``cv=3``.

    Parameters
    ----------
    model : fitted estimator
        A clusterer with ``predict``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows that were not in the fit. A copy of the model is fitted to them.
    y : ignored

    Returns
    -------
    float
        The adjusted Rand index of ``model.predict(X)`` and the labels of the new fit:
        1 for the same clusters, about 0 by chance, and 0 for one cluster.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.model_selection import GridSearchCV
    >>> from ihgmm import IhSC, UnstableLabelsWarning, make_ihgmm
    >>> X, _ = make_ihgmm(300, 50, 3, random_state=0)
    >>> grid = {"n_clusters": [2, 3, 4, 5]}
    >>> search = GridSearchCV(IhSC(), grid, scoring=stability_score, cv=3)
    >>> with warnings.catch_warnings():  # fits of wrong numbers warn
    ...     warnings.simplefilter("ignore", UnstableLabelsWarning)
    ...     search.fit(X).best_params_
    {'n_clusters': 3}
    """
    predicted = to_host(model.predict(X))
    refitted = to_host(clone(model).fit_predict(X))
    if len(np.unique(predicted)) < 2 or len(np.unique(refitted)) < 2:
        return 0.0
    with sklearn_filters:
        return float(adjusted_rand_score(predicted, refitted))


class _Matching(NamedTuple):
    """Two clusterings of the same rows, and which of their clusters match."""

    names: np.ndarray  # of the true labels, sorted
    true: np.ndarray  # the place of each label among those, -1 for outliers
    pred: np.ndarray
    counts: np.ndarray  # of rows by true and predicted cluster
    partners: np.ndarray  # the true cluster of each predicted one, -1 for none
    n_outliers: int  # rows that both take for outliers, which match each other alone
    right: int  # rows whose labels match


def _matched(
    first: Any, second: Any, arguments: Sequence[str] = ("labels_true", "labels_pred")
) -> _Matching:
    pair = [check_labels(*one) for one in zip(arguments, (first, second), strict=True)]
    if len(pair[0]) != len(pair[1]):
        raise ValueError(
            f"{arguments[0]} has {len(pair[0])} entries and {arguments[1]} has "
            f"{len(pair[1])}; give one label for each row in both."
        )
    (names, true), (pred_names, pred) = map(_codes, pair)
    counts = confusion(true, pred, (len(names), len(pred_names)))
    n_outliers = int(np.count_nonzero((true < 0) & (pred < 0)))
    partners = best_matching(counts)
    columns = np.flatnonzero(partners >= 0)
    right = int(counts[partners[columns], columns].sum()) + n_outliers
    return _Matching(names, true, pred, counts, partners, n_outliers, right)


def _codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of clusters, sorted, and their places, -1 for outliers."""
    inside = ~is_outlier(labels)
    codes = np.full(len(labels), -1)
    names, codes[inside] = np.unique(labels[inside], return_inverse=True)
    return names, codes
