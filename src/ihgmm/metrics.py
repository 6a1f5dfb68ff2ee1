"""How far two clusterings are apart, after the best matching of their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from ihgmm._checks import check_labels, is_outlier, last_step
from ihgmm._parameters import usual_errors
from ihgmm._warnings import sklearn_filters
from ihgmm.matrix import to_host
from ihgmm.numerics.matching import best_matching, confusion

__all__ = [
    "exact_recovery",
    "match_labels",
    "misclassification_loss",
    "misclassification_rate",
    "stability_score",
]


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
    matching = _match(labels_true, labels_pred)
    return len(matching.pred) - matching.n_right


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
    matching = _match(old, new, argument_names=("old", "new"))
    partners = matching.partners
    without_partner = np.flatnonzero(partners < 0)
    n_more = len(without_partner)

    # The names of old labels, then those of new ones without a partner.
    names = matching.names
    are_numbers = names.dtype.kind in "biuf"
    positions = partners.copy()  # of the name of each new label
    positions[without_partner] = len(names) + np.arange(n_more)

    if n_more and are_numbers:
        first_number = int(np.floor(names[-1])) + 1
        names = np.concatenate([names, first_number + np.arange(n_more)])
    elif n_more:
        texts = [f"unmatched {i}" for i in range(1, n_more + 1)]
        names = np.concatenate([names, texts])

    if (matching.pred < 0).any():  # the code of outliers, -1, is the last position
        names = np.append(names, -1 if are_numbers else "outlier")
        positions = np.append(positions, len(names) - 1)
    return names[positions[matching.pred]]


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
    the class that most of its rows have, so that parts of a class are not wrong.
    ``by_majority`` asks for the second way (True) or the first (False) whatever the
    numbers are.
    """
    matching = _match(labels_true, labels_pred)
    counts = matching.counts
    if by_majority is None:
        n_classes, n_clusters = counts.shape
        by_majority = n_classes != n_clusters

    n_right = matching.n_right
    if by_majority:
        n_right = matching.n_outliers + int(counts.max(axis=0).sum())

    n_rows = len(matching.pred)
    misplaced = n_rows - n_right
    with sklearn_filters:
        rand_index = float(adjusted_rand_score(matching.true, matching.pred))

    return ClassAgreement(
        misplaced=misplaced,
        rate=misplaced / n_rows,
        adjusted_rand_index=rand_index,
        by_majority=by_majority,
    )


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
        Rows that were not in the fit. A copy of the model is fitted to them, and takes
        roots of rows if the model does.
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
    copy = clone(model)
    choice = getattr(last_step(None, model)[1], "columns_", None)
    if choice is not None and choice.reason != "asked":  # else it may choose otherwise
        columns = "roots" if choice.roots else "given"
        last_step(None, copy)[1].set_params(columns=columns)

    refitted = to_host(copy.fit_predict(X))
    if len(np.unique(predicted)) < 2 or len(np.unique(refitted)) < 2:
        return 0.0

    with sklearn_filters:
        return float(adjusted_rand_score(predicted, refitted))


@dataclass(frozen=True, eq=False)
class _Matching:
    """Two clusterings of the same rows, and which of their clusters match."""

    names: np.ndarray  # (n_true,): the true labels, sorted
    true: np.ndarray  # (n_samples,): the position of each label there, -1 for outliers
    pred: np.ndarray  # (n_samples,): the same of predicted labels
    counts: np.ndarray  # (n_true, n_pred): rows by true and predicted cluster
    partners: np.ndarray  # (n_pred,): the true cluster of each, -1 for none
    n_outliers: int  # rows that both take for outliers, which match each other alone
    n_right: int  # rows whose labels match


def _match(
    labels_true: Any,
    labels_pred: Any,
    argument_names: tuple[str, str] = ("labels_true", "labels_pred"),
) -> _Matching:
    """Match clusters one to one, such that as many rows as possible agree."""
    true_name, pred_name = argument_names
    labels_true = check_labels(true_name, labels_true)
    labels_pred = check_labels(pred_name, labels_pred)
    if len(labels_true) != len(labels_pred):
        raise ValueError(
            f"{true_name} has {len(labels_true)} entries and {pred_name} has "
            f"{len(labels_pred)}; give one label for each row in both."
        )

    true_classes, true_codes = _codes(labels_true)
    pred_classes, pred_codes = _codes(labels_pred)
    counts = confusion(true_codes, pred_codes, (len(true_classes), len(pred_classes)))

    partners = best_matching(counts)
    matched = np.flatnonzero(partners >= 0)
    n_in_partners = int(counts[partners[matched], matched].sum())
    n_outliers = int(np.count_nonzero((true_codes < 0) & (pred_codes < 0)))

    return _Matching(
        names=true_classes,
        true=true_codes,
        pred=pred_codes,
        counts=counts,
        partners=partners,
        n_outliers=n_outliers,
        n_right=n_in_partners + n_outliers,
    )


def _codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of clusters, sorted, and their places, -1 for outliers."""
    is_clustered = ~is_outlier(labels)

    codes = np.full(len(labels), -1)
    names, codes[is_clustered] = np.unique(labels[is_clustered], return_inverse=True)
    return names, codes
