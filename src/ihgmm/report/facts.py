"""The facts of a report, worked out once from the model and its data."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks import check_labels, check_matrix
from ihgmm.matrix import Matrix, to_host
from ihgmm.matrix.tall import unit_rows
from ihgmm.plotting._clusters import Clusters, names_of, text_of
from ihgmm.plotting._view import circle_view
from ihgmm.plotting.eigenvalues import Scree, scree_of
from ihgmm.statistics.contrasts import TellingFeatures, telling_features
from ihgmm.statistics.diagnosis import Diagnosis, diagnose
from ihgmm.statistics.estimation import estimate_parameters


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
    basis: str  # what the map shows rows by: a key of `maps` in words.html
    ids: list[str] | None  # None for the numbers of rows
    id_name: str
    features: list[str]
    known: Clusters | None  # rows by known label, as `classes_of` sorts them
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
    model: Any, X: Any, ids: Any, id_name: Any, features: Any, known: Any, notes: Any
) -> Facts:
    """Check what was given and work out the facts."""
    method = type(model).__name__
    if not hasattr(model, "labels_") or not hasattr(model, "cluster_centers_"):
        raise ValueError(
            f"{method} has no labels_ or no cluster_centers_; fit a clusterer first: "
            "write_report(IhSC(3).fit(X), X, 'report.html')."
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
        features = getattr(source, name, None) if features is None else features
    if features is None:
        features = (f"feature {j}" for j in range(1, p + 1))
    if known is not None:
        known = check_labels("labels_true", known, n)
        known = classes_of([text_of(name) for name in known])
    features = names_of("feature_names", features, p, "feature")
    notes = names_of("notes", notes)
    k = max(int(model.cluster_centers_.shape[0]), int(labels.max()) + 1)
    clusters = Clusters(labels, [str(j) for j in range(k)])
    estimates = estimate_parameters(data, labels, k)
    # In units of which squares can be taken; the facts below have none.
    centers = to_host(estimates.centers).astype(np.float64) / data.unit
    levels = to_host(estimates.noise_levels).astype(np.float64) / data.unit
    noise = float(np.sqrt(np.mean(levels**2)))
    scales = to_host(getattr(model, "scales_", estimates.scales)).astype(np.float64)
    usual_gram = {"PSC": "full", "SphericalKMeans": "cosine"}.get(method, "hollow")
    gram = getattr(model, "gram", usual_gram)
    diagnosis = diagnose(data, labels, gram=gram, estimates=estimates)
    places, basis = _map(model, data, clusters, scales, centers)
    return Facts(
        method=method,
        parameters=model.get_params(deep=False),
        clusters=clusters,
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
        known=known,
        notes=notes,
    )


def _map(
    model: Any,
    data: Matrix,
    clusters: Clusters,
    scales: np.ndarray,
    centers: np.ndarray,
) -> tuple[np.ndarray, str]:
    """Return a place in the plane for each row, and what it shows."""
    used = np.flatnonzero(clusters.sizes)
    if len(used) == 1:  # nothing to keep apart
        least = scales[scales > 0].min(initial=1.0)
        sizes = np.log(np.maximum(scales, least))
        return np.column_stack([sizes, _cosines(data, centers[used])]), "scale and fit"
    if hasattr(model, "embedding_"):
        rows = to_host(model.embedding_).astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1)
        even = np.allclose(lengths[lengths > 0], 1, atol=1e-3)
        basis = "unit rows" if even else "rows of all sizes"
    else:
        rows, basis = _cosines(data, centers), "cosines"
    # Twelve clusters find room side by side on a circle; more are spread over a disc.
    return circle_view(rows, clusters, most_on_circle=12).points, basis


def _cosines(data: Matrix, centers: np.ndarray) -> np.ndarray:
    """Return the cosine of each row with each centre; 0 for a zero row."""
    norms = np.sqrt(to_host(data.sqnorms))
    products = to_host(data @ unit_rows(centers).T).astype(np.float64)
    return np.asarray(products / np.where(norms > 0, norms, 1.0)[:, None])


def _index_of(X: Any) -> tuple[list[Any] | None, str]:
    """Return the index of a frame and its name; None if it only counts the rows."""
    if not hasattr(X, "iloc"):
        return None, "row"
    values = np.asarray(X.index)
    if values.dtype.kind == "i" and np.array_equal(values, np.arange(len(values))):
        return None, "row"
    return list(X.index), "id" if X.index.name is None else text_of(X.index.name)


def classes_of(known: list[str]) -> Clusters:
    """Return the classes that known labels make, numbers in order of size.

    Examples
    --------
    >>> classes_of(["10", "9", "b", "a 10", "a 9", "9"])
    Clusters(codes=array([1, 0, 4, 3, 2, 0]), names=['9', '10', 'a 9', 'a 10', 'b'])
    """
    names = sorted(set(known), key=_as_read)
    numbers = {name: j for j, name in enumerate(names)}
    return Clusters(np.array([numbers[name] for name in known]), names)


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


def agreement(facts: Facts, most_columns: int = 60) -> dict[str, Any] | None:
    """Return how clusters and known labels agree; None without such labels.

    First come the classes that clusters are matched to, in the order of these, then
    classes without a partner; if not all find room, the largest.
    """
    if facts.known is None:
        return None
    names, counts = facts.known.names, facts.clusters.table(facts.known)
    matched, partners = linear_sum_assignment(counts, maximize=True)
    # The last column counts the others, where there are any.
    room = len(names) if len(names) <= most_columns else most_columns - 1
    alone = np.setdiff1d(np.arange(len(names)), partners)
    largest = np.argsort(-counts[:, alone].sum(axis=0), kind="stable")
    more = np.sort(alone[largest[: max(room - len(partners), 0)]])
    columns = np.concatenate([partners[:room], more])
    return {
        "n_wrong": facts.n_samples - int(counts[matched, partners].sum()),
        "columns": [names[j] for j in columns],
        "counts": counts[:, columns].tolist(),
        "n_others": len(names) - len(columns),
        "others": np.delete(counts, columns, axis=1).sum(axis=1).tolist(),
    }
