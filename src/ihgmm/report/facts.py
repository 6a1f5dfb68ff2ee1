"""What a report tells, worked out from the model and its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks.data import check_data
from ihgmm._checks.rows import check_labels
from ihgmm._devices import is_device, to_host
from ihgmm.estimation import TellingFeatures, estimate_parameters, telling_features
from ihgmm.gram import GramKind
from ihgmm.report.view import View, flat_view
from ihgmm.statistics.diagnosis import Diagnosis, diagnose

__all__ = ["Facts", "gather"]

N_TELLING = 8
"""Features that are shown of each cluster."""


@dataclass(frozen=True, eq=False)
class Facts:
    """A model and its data in figures.

    Attributes
    ----------
    method : str
        Name of the estimator.
    parameters : dict
        Its parameters.
    n_clusters : int
        Number of clusters, empty ones too.
    labels, scales, certainty : ndarray of shape (n_samples,)
        Cluster, scale and confidence of each row.
    zero_rows : int
        Rows without any entry but zero.
    telling : TellingFeatures
        The features that tell each cluster from the others.
    noise : float
        The noise level that contrasts of features are given in; 0 without noise.
    eigenvalues : ndarray
        Leading eigenvalues, one or more beyond the number of clusters.
    edge : float or None
        The edge of noise, where the number of clusters was counted.
    diagnosis : Diagnosis
        What to think of the labels.
    view : View
        The flat picture.
    ids : list of str or None
        Names of rows; None for their numbers.
    id_name : str
        What these are called.
    features : list of str
        Names of features.
    known : ndarray of shape (n_samples,) or None
        Known labels.
    notes : list of str
        What was done to the data before the fit.
    """

    method: str
    parameters: dict[str, Any]
    n_clusters: int
    labels: np.ndarray
    scales: np.ndarray
    certainty: np.ndarray
    zero_rows: int
    telling: TellingFeatures
    noise: float
    eigenvalues: np.ndarray
    edge: float | None
    diagnosis: Diagnosis
    view: View
    ids: list[str] | None
    id_name: str
    features: list[str]
    known: np.ndarray | None
    notes: list[str]

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        return np.bincount(self.labels, minlength=self.n_clusters)


def gather(
    model: Any,
    X: Any,
    *,
    ids: Any,
    id_name: str | None,
    feature_names: Any,
    labels_true: Any,
    notes: Any,
) -> Facts:
    """Check what was given and work out what the report tells."""
    labels = _fitted_labels(model)
    if ids is None:
        ids, usual = _index_of(X)
    else:
        usual = "id"
    if is_device(X):
        X = to_host(X)
    data = check_data(X, blocks=True)
    n, p = data.X.shape
    _check_same_data(model, n, p, len(labels))
    k = max(int(to_host(model.cluster_centers_).shape[0]), int(labels.max()) + 1)
    gram = gram_of(model)
    estimates = estimate_parameters(X, labels, k)
    centers = np.asarray(estimates.centers, dtype=np.float64)
    levels = np.asarray(estimates.noise_levels, dtype=np.float64)
    noise = float(np.sqrt(np.mean(levels**2)))
    scales = to_host(getattr(model, "scales_", estimates.scales)).astype(np.float64)
    selection = getattr(model, "selection_", None)
    found = diagnose(X, labels, gram=gram)
    return Facts(
        method=type(model).__name__,
        parameters=model.get_params(deep=False),
        n_clusters=k,
        labels=labels,
        scales=scales,
        certainty=np.asarray(found.certainty, dtype=np.float64),
        zero_rows=int((to_host(data.sqnorms) == 0).sum()),
        telling=telling_features(centers, noise or None, n_features=N_TELLING),
        noise=noise,
        eigenvalues=found.eigenvalues if selection is None else selection.eigenvalues,
        edge=None if selection is None else float(selection.edge),
        diagnosis=found,
        view=flat_view(model, data, labels, scales, centers),
        ids=None if ids is None else _names("ids", ids, n, "row"),
        id_name=usual if id_name is None else id_name,
        features=_features(model, X, feature_names, p),
        known=None if labels_true is None else _known(labels_true, n),
        notes=_sentences(notes),
    )


def gram_of(model: Any) -> GramKind:
    """Return the Gram matrix that belongs to a method."""
    methods: dict[str, GramKind] = {"PSC": "full", "SphericalKMeans": "cosine"}
    kind: GramKind = getattr(model, "gram", methods.get(type(model).__name__, "hollow"))
    return kind


def _fitted_labels(model: Any) -> np.ndarray:
    if not hasattr(model, "labels_") or not hasattr(model, "cluster_centers_"):
        raise ValueError(
            f"{type(model).__name__} has no labels_ or no cluster_centers_; fit a "
            "clusterer first: write_report(IhSC(3).fit(X), X, 'report.html')."
        )
    return np.asarray(to_host(model.labels_)).astype(np.intp)


def _check_same_data(model: Any, n: int, p: int, n_labels: int) -> None:
    if n != n_labels:
        raise ValueError(
            f"X has {n} rows and the model was fitted to {n_labels}; give the rows of "
            "the fit."
        )
    if p != model.n_features_in_:
        raise ValueError(
            f"X has {p} features and the model was fitted to {model.n_features_in_}; "
            "give the data of the fit."
        )


def _names(what: str, given: Any, count: int, thing: str) -> list[str]:
    if isinstance(given, str | bytes):
        raise TypeError(f"{what}={given!r} is one name; give one for each {thing}.")
    names = [_text(name) for name in given]
    if len(names) != count:
        raise ValueError(
            f"{what} has {len(names)} entries and X has {count} {thing}s; give one for "
            f"each {thing}."
        )
    return names


def _index_of(X: Any) -> tuple[list[Any] | None, str]:
    """Return the index of a frame and its name; None if it only counts the rows."""
    if not hasattr(X, "iloc"):
        return None, "row"
    values = np.asarray(X.index)
    if values.dtype.kind == "i" and np.array_equal(values, np.arange(len(values))):
        return None, "row"
    return list(X.index), "id" if X.index.name is None else _text(X.index.name)


def _sentences(notes: Any) -> list[str]:
    if isinstance(notes, str | bytes):
        raise TypeError(f"notes={notes!r} is one note; give a list of them.")
    return [_text(note) for note in notes]


def _text(name: Any) -> str:
    if name is None:
        return ""
    if isinstance(name, tuple):  # of an index of several levels
        return ", ".join(map(_text, name))
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _features(model: Any, X: Any, given: Any, p: int) -> list[str]:
    if given is None:
        given = getattr(model, "feature_names_in_", None)
    if given is None:
        given = getattr(X, "columns", None)
    if given is None:
        return [f"feature {j}" for j in range(1, p + 1)]
    return _names("feature_names", given, p, "feature")


def _known(labels_true: Sequence[Any], n: int) -> np.ndarray:
    known = check_labels("labels_true", labels_true)
    if len(known) != n:
        raise ValueError(
            f"labels_true has {len(known)} entries and X has {n} rows; give one for "
            "each row."
        )
    return np.array([_text(label) for label in known], dtype=object)
