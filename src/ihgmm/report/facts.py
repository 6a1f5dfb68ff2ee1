"""The facts of a report, worked out once from the model and its data."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks import check_labels, check_matrix
from ihgmm.matrix import Matrix, to_host
from ihgmm.numerics.gram import GramKind
from ihgmm.plotting._clusters import Clusters, cosines, names_of, text_of
from ihgmm.plotting._view import circle_view
from ihgmm.plotting.eigenvalues import Scree, scree_of
from ihgmm.statistics.contrasts import TellingFeatures, telling_features
from ihgmm.statistics.diagnosis import Diagnosis, diagnose
from ihgmm.statistics.estimation import estimate_parameters

Basis = Literal["unit rows", "rows of all sizes", "cosines", "scale and fit"]
"""What a map shows rows by."""


@dataclass(frozen=True, eq=False)
class Facts:
    """A model and its data in figures."""

    method: str  # the name of the estimator
    parameters: dict[str, Any]
    clusters: Clusters  # the cluster of each row; some may be empty
    scales: np.ndarray  # of each row
    certainty: np.ndarray  # of the label of each row
    n_zero_rows: int
    contrasts: TellingFeatures  # the features that set each cluster apart
    has_noise: bool  # contrasts are in noise levels, or else in shares of length
    scree: Scree
    diagnosis: Diagnosis
    places: np.ndarray  # of the rows on the map, shape (n_samples, 2)
    basis: Basis
    ids: list[str] | None  # None for the numbers of rows
    id_name: str
    features: list[str]
    known: np.ndarray | None  # known labels
    notes: list[str]  # what was done to the data before the fit

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.clusters.codes)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, empty ones too."""
        return len(self.clusters.names)


def gather(
    model: Any, X: Any, *, ids: Any, id_name: str | None, feature_names: Any,
    labels_true: Any, notes: Any,
) -> Facts:  # fmt: skip
    """Check what was given and work out the facts."""
    if not hasattr(model, "labels_") or not hasattr(model, "cluster_centers_"):
        raise ValueError(
            f"{type(model).__name__} has no labels_ or no cluster_centers_; fit a "
            "clusterer first: write_report(IhSC(3).fit(X), X, 'report.html')."
        )
    labels = to_host(model.labels_).astype(np.intp)
    data = check_matrix(X)
    n, p = data.shape
    if n != len(labels):
        raise ValueError(
            f"X has {n} rows and the model was fitted to {len(labels)}; give the rows "
            "of the fit."
        )
    if p != model.n_features_in_:
        raise ValueError(
            f"X has {p} features and the model was fitted to {model.n_features_in_}; "
            "give the data of the fit."
        )
    usual = "id"
    if ids is None:
        ids, usual = _index_of(X)
    if ids is not None:
        ids = names_of("ids", ids, n, "row")
    for source, name in ((model, "feature_names_in_"), (X, "columns")):
        if feature_names is None:
            feature_names = getattr(source, name, None)
    if feature_names is None:
        feature_names = (f"feature {j}" for j in range(1, p + 1))
    features = names_of("feature_names", feature_names, p, "feature")
    if labels_true is not None:
        labels_true = check_labels("labels_true", labels_true)
        labels_true = names_of("labels_true", labels_true, n, "row")
        labels_true = np.array(labels_true, dtype=object)
    notes = names_of("notes", notes)
    k = max(int(model.cluster_centers_.shape[0]), int(labels.max()) + 1)
    estimates = estimate_parameters(data, labels, k)
    # In units of which squares can be taken; the facts below have none.
    centers = to_host(estimates.centers).astype(np.float64) / data.unit
    levels = to_host(estimates.noise_levels).astype(np.float64) / data.unit
    noise = float(np.sqrt(np.mean(levels**2)))
    scales = to_host(getattr(model, "scales_", estimates.scales)).astype(np.float64)
    diagnosis = diagnose(data, labels, gram=_gram_of(model), estimates=estimates)
    places, basis = _map(model, data, labels, scales, centers)
    return Facts(
        method=type(model).__name__,
        parameters=model.get_params(deep=False),
        clusters=Clusters(labels, [str(j) for j in range(k)]),
        scales=scales,
        certainty=to_host(diagnosis.certainty).astype(np.float64),
        n_zero_rows=int((to_host(data.sqnorms) == 0).sum()),
        contrasts=telling_features(centers, noise or None, n_features=8),
        has_noise=noise > 0,
        scree=scree_of(diagnosis, getattr(model, "selection_", None)),
        diagnosis=diagnosis,
        places=places,
        basis=basis,
        ids=ids,
        id_name=usual if id_name is None else id_name,
        features=features,
        known=labels_true,
        notes=notes,
    )


def _gram_of(model: Any) -> GramKind:
    """Return the Gram matrix that belongs to a method."""
    methods: dict[str, GramKind] = {"PSC": "full", "SphericalKMeans": "cosine"}
    gram: GramKind = getattr(model, "gram", methods.get(type(model).__name__, "hollow"))
    return gram


def _map(
    model: Any,
    data: Matrix,
    labels: np.ndarray,
    scales: np.ndarray,
    centers: np.ndarray,
) -> tuple[np.ndarray, Basis]:
    """Return a place in the plane for each row, and what it shows."""
    used = np.unique(labels)
    if len(used) == 1:  # nothing to keep apart
        least = scales[scales > 0].min(initial=1.0)
        sizes = np.log(np.maximum(scales, least))
        return np.column_stack([sizes, cosines(data, centers[used])]), "scale and fit"
    basis: Basis = "cosines"
    if hasattr(model, "embedding_"):
        rows = to_host(model.embedding_).astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1)
        even = np.allclose(lengths[lengths > 0], 1, atol=1e-3)
        basis = "unit rows" if even else "rows of all sizes"
    else:
        rows = cosines(data, centers)
    # Twelve clusters find room side by side on a circle; more are spread over a disc.
    return circle_view(rows, labels, len(centers), most_on_circle=12)(rows), basis


def _index_of(X: Any) -> tuple[list[Any] | None, str]:
    """Return the index of a frame and its name; None if it only counts the rows."""
    if not hasattr(X, "iloc"):
        return None, "row"
    values = np.asarray(X.index)
    if values.dtype.kind == "i" and np.array_equal(values, np.arange(len(values))):
        return None, "row"
    return list(X.index), "id" if X.index.name is None else text_of(X.index.name)


def classes_of(known: np.ndarray) -> Clusters:
    """Return the classes that known labels make, numbers in order of size.

    Examples
    --------
    >>> classes_of(np.array(["10", "9", "b", "a 10", "a 9", "9"], dtype=object))
    Clusters(codes=array([1, 0, 4, 3, 2, 0]), names=['9', '10', 'a 9', 'a 10', 'b'])
    """
    names, codes = np.unique(known.astype(str), return_inverse=True)
    order = sorted(range(len(names)), key=lambda j: _as_read(str(names[j])))
    return Clusters(np.argsort(order)[np.ravel(codes)], [str(names[j]) for j in order])


def _as_read(name: str) -> tuple[Any, ...]:
    """Return a key that sorts numbers by size, before and within texts."""
    try:
        value = float(name)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return (0, value, name)
    pieces = re.split("0*([0-9]+)", name)  # texts and numbers in turn
    return (1, [(len(s), s) if i % 2 else s for i, s in enumerate(pieces)], name)


@dataclass(frozen=True, eq=False)
class Agreement:
    """Clusters and known labels, counted."""

    n_wrong: int  # rows outside the class that their cluster is matched to
    columns: list[str]  # classes that are counted one by one
    counts: np.ndarray  # rows of each cluster by these
    n_others: int  # classes that are counted together
    others: np.ndarray  # rows of each cluster in those


def agreement(facts: Facts, most_columns: int = 60) -> Agreement | None:
    """Return how clusters and known labels agree; None without such labels.

    First come the classes that clusters are matched to, in the order of these, then
    classes without a partner; if not all find room, the largest.
    """
    if facts.known is None:
        return None
    known = classes_of(facts.known)
    names, counts = known.names, facts.clusters.table(known)
    matched, partners = linear_sum_assignment(counts, maximize=True)
    # The last column counts the others, where there are any.
    room = len(names) if len(names) <= most_columns else most_columns - 1
    alone = np.setdiff1d(np.arange(len(names)), partners)
    largest = np.argsort(-counts[:, alone].sum(axis=0), kind="stable")
    more = np.sort(alone[largest[: max(room - len(partners), 0)]])
    columns = np.concatenate([partners[:room], more])
    return Agreement(
        n_wrong=facts.n_samples - int(counts[matched, partners].sum()),
        columns=[names[j] for j in columns],
        counts=counts[:, columns],
        n_others=len(names) - len(columns),
        others=np.delete(counts, columns, axis=1).sum(axis=1),
    )
