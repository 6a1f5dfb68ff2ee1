"""The facts of a report, worked out once from the model and its data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks import check_labels, check_matrix, complete_matrix
from ihgmm._text import caution_text
from ihgmm.matrix import Filled, Matrix, namespace, only, to_host
from ihgmm.matrix.tall import number, row_lengths, unit_rows
from ihgmm.plotting._clusters import Clusters, names_of, text_of
from ihgmm.plotting._view import circle_view
from ihgmm.plotting.eigenvalues import scree_of
from ihgmm.statistics.contrasts import telling_features
from ihgmm.statistics.diagnosis import diagnose_fit
from ihgmm.statistics.estimation import estimate_parameters
from ihgmm.statistics.likelihood import indicators


class Facts:
    """A model and its data in figures, all checked and worked out once."""

    def __init__(
        self,
        model: Any,
        X: Any,
        *,
        ids: Any,
        id_name: Any,
        features: Any,
        known: Any,
        names: Any,
        original: Any,
    ) -> None:
        self.method = type(model).__name__
        if not hasattr(model, "labels_") or not hasattr(model, "cluster_centers_"):
            raise ValueError(
                f"{self.method} has no labels_ or no cluster_centers_; fit a clusterer "
                "first: write_report(IhSC(3).fit(X), X, 'report.html')."
            )
        self.parameters = model.get_params(deep=False)
        # The numbers of clusters that the data speak for, where the fit asked them.
        counted = getattr(getattr(model, "selection_", None), "plausible", ())
        self.plausible = ", ".join(str(number.n_clusters) for number in counted)
        labels = to_host(model.labels_).astype(np.intp)
        data = complete_matrix(X, model)
        n, p = data.shape
        if n != len(labels):
            raise ValueError(
                f"X has {n} rows and the model was fitted to {len(labels)}; give the "
                "rows of the fit."
            )
        if p != model.n_features_in_:
            raise ValueError(
                f"X has {p} features and the model was fitted to "
                f"{model.n_features_in_}; give the data of the fit."
            )
        ids, usual = _index_of(X) if ids is None else (ids, "id")
        # None stands for the numbers of rows.
        self.ids = None if ids is None else names_of("ids", ids, n, "row")
        self.id_name: str = usual if id_name is None else id_name
        for source, name in ((model, "feature_names_in_"), (X, "columns")):
            features = getattr(source, name, None) if features is None else features
        if features is None:
            features = (f"feature {j}" for j in range(1, p + 1))
        self.features = names_of("feature_names", features, p, "feature")
        if known is not None:
            known = check_labels("labels_true", known, n)
            known = classes_of([text_of(name) for name in known])
        self.known: Clusters | None = known
        scales = model.scales_ if hasattr(model, "scales_") else None
        inside = np.flatnonzero(labels >= 0)
        self.n_outliers = n - len(inside)
        if self.n_outliers:  # the page is about rows of clusters
            data, labels, n = only(data, inside), labels[inside], len(inside)
            ids = range(1, self.n_outliers + n + 1) if self.ids is None else self.ids
            self.ids = [str(ids[i]) for i in inside]
            scales = None if scales is None else to_host(scales)[inside]
            if known is not None:
                self.known = classes_of([known.names[j] for j in known.codes[inside]])
        k = max(int(model.cluster_centers_.shape[0]), int(labels.max()) + 1)
        self.n_samples, self.n_clusters = n, k  # also clusters without rows
        self.clusters = Clusters(labels, [str(j) for j in range(k)])
        self.names = _cluster_names(names, k)
        self.n_zero_rows = int((to_host(data.sqnorms) == 0).sum())
        estimates = estimate_parameters(data, labels, k)
        # In units of which squares can be taken; the facts below have none.
        centers = to_host(estimates.centers).astype(np.float64) / data.unit
        levels = to_host(estimates.noise_levels).astype(np.float64) / data.unit
        noise = float(np.sqrt(np.mean(levels**2)))
        self.has_noise = noise > 0  # contrasts are in noise levels, else in lengths
        self.contrasts = telling_features(centers, noise or None, n_features=8)
        shown = data if original is None else _original(original, model, inside)
        self.means, self.other_means = _means(shown, labels, self.clusters.sizes)
        if scales is not None:
            lengths = row_lengths(model.cluster_centers_)
        else:
            scales, lengths = estimates.scales, row_lengths(estimates.centers)
        self.scales = to_host(scales).astype(np.float64)
        self.lengths = np.minimum(lengths, np.finfo(np.float64).max)  # of the centres
        with np.errstate(over="ignore"):
            self.sizes = self.scales * self.lengths[labels]
        self.diagnosis = diagnose_fit(model, X, labels, inside, estimates=estimates)
        self.cautions = [
            caution_text(caution, [*map(shorten, self.features)])
            for caution in self.diagnosis.cautions
        ]
        self.certainty = to_host(self.diagnosis.certainty).astype(np.float64)
        self.scree = scree_of(self.diagnosis, getattr(model, "selection_", None))
        # Where rows are on the map, and what it shows them by.
        self.places, self.basis = self._map(model, data, centers, inside)

    def _map(
        self, model: Any, data: Matrix, centers: np.ndarray, inside: np.ndarray
    ) -> tuple[np.ndarray, str]:
        used = np.flatnonzero(self.clusters.sizes)
        if len(used) == 1:  # nothing to keep apart
            least = self.scales[self.scales > 0].min(initial=1.0)
            sizes = np.log(np.maximum(self.scales, least))
            fit = _cosines(data, centers[used])
            return np.column_stack([sizes, fit]), "scale and fit"
        if hasattr(model, "embedding_"):
            rows = to_host(model.embedding_).astype(np.float64)[inside]
            lengths = np.linalg.norm(rows, axis=1)
            even = np.allclose(lengths[lengths > 0], 1, atol=1e-3)
            basis = "unit rows" if even else "rows of all sizes"
        else:
            rows, basis = _cosines(data, centers), "cosines"
        # Twelve clusters find room side by side on a circle; more need a disc.
        return circle_view(rows, self.clusters, most_on_circle=12).points, basis


def _cluster_names(given: Any, k: int) -> list[str]:
    """Return a name for each cluster, empty where there is none."""
    if given is None:
        return [""] * k
    if not isinstance(given, Mapping):
        return [name.strip() for name in names_of("names", given, k, "cluster")]
    names = [""] * k
    for cluster, name in given.items():
        if cluster not in range(k):
            raise ValueError(
                f"names has cluster {cluster!r}, and the clusters are 0 to {k - 1}; "
                "give names for these."
            )
        names[cluster] = text_of(name).strip()
    return names


def _original(original: Any, model: Any, inside: np.ndarray) -> Matrix:
    """Return the rows of clusters before anything was done to them."""
    data = check_matrix(original, missing="fit")
    n, p = data.shape
    rows, columns = len(model.labels_), model.n_features_in_
    if (n, p) != (rows, columns):
        raise ValueError(
            f"original has {n} rows and {p} features, and the data of the fit {rows} "
            f"and {columns}; give the same rows and columns, before they were scaled."
        )
    return data if len(inside) == n else only(data, inside)


def _means(
    data: Matrix, labels: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each feature in each cluster, and in all others together.

    Means are those of observed cells, and NaN where there are none.
    """
    members = indicators(data.to_device(labels), len(sizes))
    lacks = np.isnan(number(namespace(data.sqnorms).sum(data.sqnorms)))
    known = Filled(data, "filled") if lacks else data
    sums = to_host(known.adjoint(members)).astype(np.float64).T
    counts = np.broadcast_to(sizes.astype(np.float64)[:, None], sums.shape)
    if lacks:
        missing = to_host(Filled(data, "missing").adjoint(members))
        counts = counts - missing.astype(np.float64).T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        means = sums / counts * data.unit
        others = (sums.sum(axis=0) - sums) / (counts.sum(axis=0) - counts) * data.unit
    return means, others


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


def shorten(name: str, longest: int = 120) -> str:
    """Return a name, shortened if it is very long."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def classes_of(known: list[str]) -> Clusters:
    """Return the classes that known labels make, in the order that people expect."""
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


def cross_table(
    clusters: Clusters, other: Clusters, most_columns: int = 60
) -> dict[str, Any]:
    """Return how clusters and other labels go together."""
    names, counts = other.names, clusters.table(other)
    matched, partners = linear_sum_assignment(counts, maximize=True)
    # First come the classes that clusters are matched to, in the order of these, then
    # classes without a partner; if not all find room, the largest. The last column
    # counts the others, where there are any.
    room = len(names) if len(names) <= most_columns else most_columns - 1
    alone = np.setdiff1d(np.arange(len(names)), partners)
    largest = np.argsort(-counts[:, alone].sum(axis=0), kind="stable")
    more = np.sort(alone[largest[: max(room - len(partners), 0)]])
    columns = np.concatenate([partners[:room], more])
    return {
        "n_wrong": int(counts.sum() - counts[matched, partners].sum()),
        "partners": dict(zip(matched.tolist(), partners.tolist(), strict=True)),
        "columns": [names[j] for j in columns],
        "counts": counts[:, columns].tolist(),
        "n_others": len(names) - len(columns),
        "others": np.delete(counts, columns, axis=1).sum(axis=1).tolist(),
    }
