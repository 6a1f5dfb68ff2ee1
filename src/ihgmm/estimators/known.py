"""What users say of rows: classes that they know, and an older model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ihgmm._checks import check_labels
from ihgmm.matrix import to_host


def check_known(known_labels: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return classes, sorted, and the number of each row's class; -1 for unknown."""
    given = to_host(known_labels)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.shape != (n_samples,):
        raise ValueError(
            f"known_labels has shape {given.shape} and X has {n_samples} rows; give "
            "one label for each row of X, -1 for those that are unknown."
        )
    kind = given.dtype.kind
    if kind == "O":
        unknown = np.array([_is_unknown(label) for label in given])
    elif kind in "fM":
        unknown = np.isnan(given) | (given == -1 if kind == "f" else False)
    else:
        unknown = given == -1 if kind in "i" else np.zeros(n_samples, dtype=bool)
    if unknown.all():
        raise ValueError(
            "known_labels has no known label: all are -1, None or NaN. Give one at "
            "least, or leave known_labels out."
        )
    labels = check_labels("known_labels", given[~unknown])
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        labels = labels.astype(np.int64)  # NaN for unknown has made them floats
    classes, codes = np.unique(labels, return_inverse=True)
    numbers = np.full(n_samples, -1)
    numbers[~unknown] = codes
    return classes, numbers


def _is_unknown(label: Any) -> bool:
    """Tell None, NaN, the missing values of pandas, and -1 from labels."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, int | float | np.number) and (
        label == -1 or bool(np.isnan(label))
    )


def class_names(classes: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a name for each cluster: classes first, then new ones."""
    new = n_clusters - len(classes)
    if new < 0:
        raise ValueError(
            f"known_labels has {len(classes)} classes and n_clusters={n_clusters}; ask "
            f"for {len(classes)} clusters at least."
        )
    if classes.dtype.kind in "iuf":
        names = int(np.floor(classes[-1])) + 1 + np.arange(new)
    else:
        names = np.array([f"new {i}" for i in range(1, new + 1)], dtype=str)
    return np.concatenate([classes, names]) if new else classes


def old_labels(model: Any, X: Any, batch: Any = None) -> tuple[np.ndarray, Any]:
    """Return the clusters in which an older model puts rows, and how near rows are.

    Near is what their centre explains over what it leaves, if the model tells.
    """
    if not hasattr(model, "_nearest"):
        raise TypeError(
            f"init={model!r} is no model of this package; give a fitted one, whose "
            "clusters should keep their numbers, or None."
        )
    if not hasattr(model, "cluster_centers_"):
        raise NotFittedError(
            f"init is a {type(model).__name__} that is not fitted; give a fitted model "
            "whose clusters should keep their numbers, or None."
        )
    options = {"batch": batch} if hasattr(model, "batches_") else {}
    labels = to_host(model._nearest(X, **options)).astype(np.int64)
    if not hasattr(model, "placement_"):
        return labels, None
    cosines = to_host(model.transform(X, **options)).astype(np.float64)
    share = np.clip(cosines[np.arange(len(labels)), labels], 0.0, 0.995) ** 2
    return labels, share / (1 - share)
