"""Known labels of some rows, as users give them: classes, and names of clusters."""

from typing import Any

import numpy as np

from ihgmm import _checks as checks


def check_known(known_labels: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of known labels, and which of them each row has.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        The labels that some rows have, sorted.
    codes : ndarray of shape (n_samples,)
        The position of each row's label among the classes; -1 for unknown.
    """
    labels = checks.label_array("known_labels", known_labels, n_samples)
    is_unknown = np.array([_is_unknown(label) for label in labels.astype(object)])
    if is_unknown.all():
        raise ValueError(
            "known_labels has no known label: all are -1, None or NaN. Give one at "
            "least, or leave known_labels out."
        )

    labels = checks.check_labels("known_labels", labels[~is_unknown])

    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        labels = labels.astype(np.int64)  # NaN for unknown has made them floats

    codes = np.full(n_samples, -1)
    classes, codes[~is_unknown] = np.unique(labels, return_inverse=True)
    return classes, codes


def _is_unknown(label: Any) -> bool:
    """Tell None, NaN, the missing values of pandas, -1 and no text from labels."""
    if label is None or type(label).__name__ == "NAType":
        return True
    # NumPy makes a text of -1 beside texts.
    return bool(label != label or label in (-1, "-1", ""))


def class_names(classes: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a name for each cluster: classes first, then new ones."""
    n_new = n_clusters - len(classes)
    if n_new < 0:
        raise ValueError(
            f"known_labels has {len(classes)} classes and n_clusters={n_clusters}; ask "
            f"for {len(classes)} clusters at least."
        )

    if n_new == 0:
        return classes

    if classes.dtype.kind in "iuf":
        first_number = int(np.floor(classes[-1])) + 1
        return np.append(classes, first_number + np.arange(n_new))

    return np.append(classes, [f"new {i}" for i in range(1, n_new + 1)])


def names_of_clusters(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class of each label; outliers, -1, are -1 or ``"outlier"``."""
    if (labels < 0).any():
        of_outliers = -1 if classes.dtype.kind in "iuf" else "outlier"
        classes = np.append(classes, of_outliers)  # the last one is at -1
    return classes[labels]
