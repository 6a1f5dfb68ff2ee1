"""Known labels of some rows, as users give them: classes, and names of clusters."""

from typing import Any

import numpy as np

from ihgmm import _checks as checks

LARGEST_NUMBER = 2**62  # of a class: numbers of new clusters follow it


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
    if np.ma.isMaskedArray(known_labels):
        is_unknown |= np.ma.getmaskarray(known_labels).ravel()

    if is_unknown.all():
        raise ValueError(
            "known_labels has no known label: all are -1, None, NaN or masked. Give "
            "one at least, or leave known_labels out."
        )

    labels = checks.check_labels("known_labels", labels[~is_unknown])
    labels = _of_one_kind(labels)

    codes = np.full(n_samples, -1)
    classes, codes[~is_unknown] = np.unique(labels, return_inverse=True)
    return classes, codes


def _is_unknown(label: Any) -> bool:
    """Tell None, NaN, the missing values of pandas, -1 and no text from labels."""
    if label is None or type(label).__name__ in ("NAType", "MaskedConstant"):
        return True
    # NumPy makes texts of -1 and of NaN beside texts.
    return bool(label != label or label in (-1, "-1", "nan", ""))


def _of_one_kind(labels: np.ndarray) -> np.ndarray:
    """Return known labels as whole numbers, other numbers, texts or dates."""
    if labels.dtype.kind == "O":
        given_labels = labels
        labels = np.array(given_labels.tolist())
        if labels.ndim != 1:
            _refuse(given_labels[0], "is no number, text or date")

    match labels.dtype.kind:
        case "f":
            is_finite = np.isfinite(labels)
            if not is_finite.all():
                _refuse(labels[~is_finite][0], "is no class")
        case "c" | "V":
            _refuse(labels[0], "is no number, text or date")

    if labels.dtype.kind in "iuf":
        is_large = (labels > LARGEST_NUMBER) | (labels < -LARGEST_NUMBER)
        if is_large.any():
            _refuse(labels[is_large][0], "is too large a number for a class")

    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        labels = labels.astype(np.int64)  # NaN for unknown has made them floats
    return labels


def _refuse(label: Any, reason: str) -> None:
    """Raise because of a label that can be no class."""
    raise ValueError(
        f"known_labels contains {label}, which {reason}; give rows of known class a "
        "name or a whole number, and all others -1 or None."
    )


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

    # A class that users have called "new 1" keeps this name for itself.
    n_names = n_new + len(classes)
    candidates = [f"new {i}" for i in range(1, n_names + 1)]
    taken_names = set(classes.astype(str))
    new_names = [name for name in candidates if name not in taken_names]
    return np.append(classes, new_names[:n_new])


def names_of_clusters(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class of each label; outliers, -1, are -1 or ``"outlier"``."""
    if (labels < 0).any():
        of_outliers = -1 if classes.dtype.kind in "iuf" else "outlier"
        classes = np.append(classes, of_outliers)  # the last one is at -1
    return classes[labels]
