"""The facts of a report, worked out once from the model and its data."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ihgmm import _checks as checks
from ihgmm._warnings import ignored
from ihgmm.estimators.clusterer import cosines
from ihgmm.matrix import Matrix, row_lengths, to_host
from ihgmm.matrix.kinds import NA_OF_R
from ihgmm.metrics import ClassAgreement, class_agreement
from ihgmm.numerics.recipe import RECIPES, Recipe
from ihgmm.plotting._clusters import Clusters
from ihgmm.plotting.embedding import circle_view
from ihgmm.statistics.contrasts import TopFeatures, rank_features
from ihgmm.statistics.described_fit import DescribedFit, described_fit
from ihgmm.statistics.diagnosis import Diagnosis, Verdict, diagnose
from ihgmm.statistics.missing_cells import filled_cells
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.statistics.tree_building import tree_of_model
from ihgmm.statistics.typical_rows import nearest_rows
from ihgmm.words.diagnoses import caution_text
from ihgmm.words.phrases import shorten


class RowMap(NamedTuple):
    """Where rows are on the map of the report."""

    points: np.ndarray  # (n_rows, 2)
    basis: str  # what it shows rows by


@dataclass(frozen=True, eq=False)
class Facts:
    """A model and its data in figures; outliers are counted, and else have no part.

    Arrays have a line for each row that is in a cluster, unless it says otherwise.
    """

    # The model
    method: str  # the name of its class
    call: str  # how it was made
    parameters: Mapping[str, Any]
    recipe: str  # the name of its recipe; empty where it has none
    count: ClusterCount | None  # how many clusters there are, if the fit counted them
    tree: ClusterTree | None  # of three clusters or more
    diagnosis: Diagnosis
    cautions: list[str]

    # The rows
    n_samples: int  # rows in clusters
    n_outliers: int
    n_zero_rows: int
    positions: np.ndarray  # of the rows among all
    ids: list[str] | None  # None for positions
    id_name: str
    scales: np.ndarray
    row_sizes: np.ndarray  # how much each has of the pattern of its cluster
    certainty: np.ndarray
    n_filled_cells: np.ndarray  # missing cells that were filled in
    map: RowMap
    texts: list[str] | None  # that rows stand for

    # The clusters
    clusters: Clusters
    names: list[str]  # empty where a cluster has none
    center_lengths: np.ndarray  # (n_clusters,)
    features: list[str]
    top_features: TopFeatures  # what sets clusters apart
    typical_rows: list[np.ndarray]  # for each cluster

    # Known labels
    known: Clusters | None  # classes of rows
    agreement: ClassAgreement | None  # of clusters with classes
    rival: ClassAgreement | None  # the same of k-means, if it is quick

    @property
    def n_clusters(self) -> int:
        """Number of clusters, also of those without rows."""
        return len(self.names)

    @cached_property
    def highest_certainty(self) -> float:
        """The certainty of the surest row."""
        return float(np.fmax.reduce(self.certainty))

    @property
    def n_surest(self) -> int:
        """How many rows are as sure as the surest; 0 where labels were given."""
        if self.diagnosis.n_given:
            return 0

        # Rows beyond what is written as "> 99.9%" count as equally sure.
        threshold = min(self.highest_certainty - 1e-6, 0.999)
        return int(np.count_nonzero(self.certainty >= threshold))

    @property
    def typical(self) -> list[list[str]]:
        """The names of the most typical rows of each cluster."""
        ids = self.ids or [str(position) for position in self.positions]

        names_of_clusters = []
        for rows in self.typical_rows:
            names_of_clusters.append([shorten(ids[row]) for row in rows])
        return names_of_clusters

    @cached_property
    def snippets(self) -> list[list[str]] | None:
        """How the texts of the most typical rows begin, if rows stand for texts."""
        if self.texts is None:
            return None

        snippets = []
        for rows in self.typical_rows:
            texts = [" ".join(self.texts[row].split()) for row in rows]
            snippets.append([shorten(text, 120) for text in texts])
        return snippets


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """The rows of a fit that are in clusters: all but outliers."""

    positions: np.ndarray  # of the rows among all
    data: Matrix
    clusters: Clusters
    scales: np.ndarray
    centers: np.ndarray  # (n_clusters, n_features)

    @classmethod
    def of(cls, fit: DescribedFit) -> Self:
        """Take the rows in clusters from a fit."""
        is_clustered = fit.labels >= 0
        positions = np.flatnonzero(is_clustered)

        clusters = Clusters(
            codes=fit.labels[positions],
            names=[str(cluster) for cluster in range(len(fit.clusters))],
        )
        return cls(
            positions=positions,
            data=fit.data if is_clustered.all() else fit.data.keep_rows(positions),
            clusters=clusters,
            scales=fit.scales[positions],
            centers=fit.centers,
        )

    @property
    def n_clusters(self) -> int:
        """Number of clusters, also of those without rows."""
        return len(self.clusters.names)

    @property
    def center_lengths(self) -> np.ndarray:
        """The length of each centre, finite also where its square is not."""
        return np.minimum(row_lengths(self.centers), np.finfo(np.float64).max)

    @property
    def sizes(self) -> np.ndarray:
        """How much each row has of the pattern of its cluster."""
        with np.errstate(over="ignore"):
            return self.scales * self.center_lengths[self.clusters.codes]

    def nearest_to_centers(self) -> list[np.ndarray]:
        """Return the most typical rows of each cluster."""
        return nearest_rows(self.data, self.clusters.codes, self.centers, self.scales)


def gather_facts(
    X: Any,
    model: Any,
    *,
    ids: Any = None,
    id_name: str | None = None,
    feature_names: Any = None,
    labels_true: Any = None,
    names: Any = None,
    original: Any = None,
    texts: Any = None,
    described_by: Any = None,
) -> Facts:
    """Work out what a report says; see :func:`ihgmm.report.write_report`."""
    # Of a pipeline, its last step and the data that this step was given.
    X_of_model, clusterer, feature_names, original = checks.last_step(
        X, model, feature_names, original
    )
    _check_has_clusters(clusterer)

    # Rows in clusters; outliers are only counted.
    fit = described_fit(X_of_model, clusterer)
    rows = ClusteredRows.of(fit)
    n_clusters = rows.n_clusters

    cluster_names = _cluster_names(names, n_clusters)
    row_names = RowNames.of(ids, X, fit.n_rows)
    features = checks.feature_names(
        feature_names, clusterer, X_of_model, fit.data.shape[1], "feature_names"
    )

    # What clusters are, beside known labels too, and how sure that is.
    comparison = compare_known(
        _checked_labels(labels_true, fit.n_rows), fit.labels, fit.data, n_clusters
    )
    if described_by is not None:
        top_features = _check_described_by(described_by, rows.clusters.sizes)
    else:
        # Of many clusters fewer features are shown, so that their cards fit a page.
        most_features = 8 if n_clusters <= 30 else 4
        top_features = rank_features(fit, clusterer, features, most_features, original)
    diagnosis = diagnose(X_of_model, clusterer)

    # What a pipeline was given may be texts.
    if texts is None and X_of_model is not X:
        texts = _texts_of_pipeline(X)

    return Facts(
        method=type(clusterer).__name__,
        call=_with_n_clusters(repr(model), clusterer),
        parameters=clusterer.get_params(deep=False),
        recipe=_recipe_name(clusterer),
        count=getattr(clusterer, "selection_", None),
        tree=_tree(clusterer, n_clusters),
        diagnosis=diagnosis,
        cautions=_cautions(diagnosis, features, is_prepared=original is not None),
        n_samples=len(rows.positions),
        n_outliers=fit.n_rows - len(rows.positions),
        n_zero_rows=int((to_host(rows.data.sqnorms) == 0).sum()),
        positions=rows.positions,
        ids=row_names.at(rows.positions),
        id_name=str(id_name or row_names.kind),
        scales=rows.scales,
        row_sizes=rows.sizes,
        certainty=known_certainty(diagnosis, fit.data)[rows.positions],
        n_filled_cells=filled_cells(rows.data),
        map=_map(clusterer, rows),
        texts=_texts_at(rows.positions, texts, fit.n_rows),
        clusters=rows.clusters,
        names=cluster_names,
        center_lengths=rows.center_lengths,
        features=features,
        top_features=top_features,
        typical_rows=rows.nearest_to_centers(),
        known=comparison.classes_of(rows.positions),
        agreement=comparison.agreement,
        rival=comparison.rival,
    )


def _check_has_clusters(model: Any) -> None:
    if not hasattr(model, "labels_") or not hasattr(model, "cluster_centers_"):
        raise ValueError(
            f"{type(model).__name__} has no labels_ or no cluster_centers_; fit a "
            "clusterer first: write_report(X, IhSC(3).fit(X), 'report.html')."
        )


def _with_n_clusters(call: str, model: Any) -> str:
    """Return how a model was made, with the number of clusters also if by default."""
    if "n_clusters=" in call:
        return call

    # scikit-learn leaves out parameters that have their defaults.
    name, _, options = call.partition("(")
    number = model.get_params(deep=False).get("n_clusters")
    separator = "" if options == ")" else ", "
    return f"{name}(n_clusters={number!r}{separator}{options}"


def _recipe_name(model: Any) -> str:
    """Return the name of a model's recipe, or nothing where it has none."""
    parameters = model.get_params(deep=False)
    recipe = Recipe.of(parameters.get("recipe", "default"))
    for name, settings in RECIPES.items():
        if settings == recipe:
            return name
    return ""


def _tree(model: Any, n_clusters: int) -> ClusterTree | None:
    """Return the tree of a model's clusters, where there is one to show."""
    if n_clusters <= 2 or not hasattr(model, "embedding_"):
        return None

    tree = tree_of_model(model, np.random.default_rng(0))
    return tree if tree.splits else None


def _cautions(
    diagnosis: Diagnosis, features: list[str], *, is_prepared: bool
) -> list[str]:
    """Return the cautions of a diagnosis in sentences, with names that fit a line."""
    names = [shorten(name, 120) for name in features]

    sentences = []
    for caution in diagnosis.cautions:
        sentences.append(caution_text(caution, names, prepared=is_prepared))
    return sentences


def _map(model: Any, rows: ClusteredRows) -> RowMap:
    """Return the map of rows: their places in the embedding, or by their cosines."""
    used = np.flatnonzero(rows.clusters.sizes)
    if len(used) == 1:  # nothing to keep apart
        fit = to_host(cosines(rows.centers[used], rows.data))
        points = np.column_stack([_log_scales(rows.scales), fit])
        return RowMap(points=points, basis="scale and fit")

    if hasattr(model, "embedding_"):
        embedding = to_host(model.embedding_).astype(np.float64)
        coordinates = embedding[rows.positions]
        basis = "unit rows" if _are_units(coordinates) else "rows of all sizes"
    else:
        coordinates = to_host(cosines(rows.centers, rows.data))
        basis = "cosines"

    # Twelve clusters find room side by side on a circle; more need a disc.
    view = circle_view(coordinates, rows.clusters, most_on_circle=12)
    return RowMap(points=view.points, basis=basis)


def _log_scales(scales: np.ndarray) -> np.ndarray:
    """Return logarithms of scales; a scale of 0 counts as the smallest of the rest."""
    smallest = scales[scales > 0].min(initial=1.0)
    return np.log(np.maximum(scales, smallest))


def _are_units(rows: np.ndarray) -> bool:
    """Return whether all rows that are not zero have length 1."""
    lengths = row_lengths(rows)
    return np.allclose(lengths[lengths > 0], 1, atol=1e-3)


def _texts_of_pipeline(X: Any) -> Any:
    """Return what a pipeline was given, if it is texts; else None."""
    is_table = hasattr(X, "columns") or isinstance(X, Matrix)
    if is_table:
        return None

    are_texts = all(isinstance(row, str) for row in X)
    return X if are_texts else None


def _texts_at(positions: np.ndarray, texts: Any, n_rows: int) -> list[str] | None:
    """Return the texts of the rows at some positions, if rows have texts."""
    if texts is None:
        return None
    texts = checks.names_of("texts", texts, n_rows, "row")
    return [texts[position] for position in positions]


@dataclass(frozen=True, eq=False)
class KnownComparison:
    """Known classes of all rows, and how clusters agree with them."""

    classes: Clusters  # -1 where no class is known, or the row is an outlier
    agreement: ClassAgreement | None = None  # None where no class is known
    rival: ClassAgreement | None = None  # of k-means, if it is quick

    def classes_of(self, positions: np.ndarray) -> Clusters | None:
        """Return the classes of some rows; None where no class is known at all."""
        if not self.classes.names:
            return None
        return replace(self.classes, codes=self.classes.codes[positions])


def compare_known(
    labels_true: np.ndarray | None,
    labels: np.ndarray,
    data: Matrix | None = None,
    n_clusters: int = 0,
) -> KnownComparison:
    """Compare clusters with known labels; if there are data, also those of k-means.

    Rows that are in no cluster, -1, are not compared.
    """
    if labels_true is None:
        return KnownComparison(Clusters(codes=np.full(len(labels), -1), names=[]))

    labels_true = labels_true.astype(object)
    labels_true[labels < 0] = None
    classes = _classes_of(labels_true)
    compared_rows = np.flatnonzero(classes.codes >= 0)
    if len(compared_rows) == 0:
        return KnownComparison(classes)

    class_names = np.array(classes.names, object)
    class_of_row = class_names[classes.codes[compared_rows]]
    agreement = class_agreement(class_of_row, labels[compared_rows])

    rival = None
    if data is not None and _is_quick_for_kmeans(data, n_clusters):
        rival_labels = _kmeans_labels(data, n_clusters)[compared_rows]
        rival = class_agreement(class_of_row, rival_labels, agreement.by_majority)
    return KnownComparison(classes, agreement=agreement, rival=rival)


def _checked_labels(labels_true: Any, n_rows: int) -> np.ndarray | None:
    """Return known labels as an array; raise unless there is one for each row."""
    if labels_true is None:
        return None
    return checks.label_array("labels_true", labels_true, n_rows)


def _is_quick_for_kmeans(data: Matrix, n_clusters: int) -> bool:
    # With a million entries k-means takes some ten seconds, unless they are only noise.
    n_numbers = data.n_entries + n_clusters * data.shape[1]
    return n_clusters > 1 and n_numbers <= 10**6


def _kmeans_labels(data: Matrix, n_clusters: int) -> np.ndarray:
    """Return the labels of scikit-learn's k-means, with which clusters are compared."""
    X = data.to_memory().array
    if data.sparse:  # k-means takes indices of 32 bits alone
        indices = X.indices.astype(np.int32)
        indptr = X.indptr.astype(np.int32)
        X = sp.csr_array((X.data, indices, indptr), shape=X.shape)

    with ignored(ConvergenceWarning):  # rows of fewer kinds than clusters
        kmeans = KMeans(n_clusters, n_init=10, random_state=0)
        return np.asarray(kmeans.fit_predict(X))


class RowNames(NamedTuple):
    """What rows are called."""

    ids: list[str] | None  # of all rows; None for positions
    kind: str  # what the names are: "id", "position" or that of an index

    @classmethod
    def of(cls, ids: Any, X: Any, n_rows: int) -> Self:
        """Take the names of all rows, given or those of a frame."""
        kind = "id"
        if ids is None and hasattr(X, "iloc"):  # a frame has names, unless they count
            index = np.asarray(X.index)
            only_counts = np.array_equal(index, np.arange(n_rows))
            if index.dtype.kind != "i" or not only_counts:
                ids = X.index
                kind = checks.text_of(X.index.name) or "id"

        if ids is None:
            return cls(ids=None, kind="position")
        return cls(ids=checks.names_of("ids", ids, n_rows, "row"), kind=kind)

    def at(self, positions: np.ndarray) -> list[str] | None:
        """Return the names of the rows at some positions."""
        if self.ids is None:
            return None
        return [self.ids[position] for position in positions]


def _check_described_by(top: Any, sizes: np.ndarray) -> TopFeatures:
    """Return what describes clusters of these sizes; raise if it is of others."""
    if not isinstance(top, TopFeatures):
        raise TypeError(
            f"described_by is of type {type(top).__name__}; give what top_features "
            "returns: top_features(words, model.labels_, names=...)."
        )

    described_sizes = top.sizes.tolist()
    size_of = dict(zip(top.clusters.tolist(), described_sizes, strict=True))
    sizes_in_order = [size_of.get(cluster, 0) for cluster in range(len(sizes))]
    if sizes_in_order != sizes.tolist():
        raise ValueError(
            f"described_by has other clusters, of {described_sizes} rows, than the "
            f"model, of {sizes.tolist()}; give top_features(words, model.labels_)."
        )
    return top


def _cluster_names(names: Any, n_clusters: int) -> list[str]:
    """Return a name for each cluster, empty where there is none."""
    if names is None:
        names = {}

    if isinstance(names, Mapping):
        if not set(names) <= set(range(n_clusters)):
            raise ValueError(
                f"names has clusters {[*names]}, and the clusters are 0 to "
                f"{n_clusters - 1}; give names for these."
            )
        names = [names.get(cluster) for cluster in range(n_clusters)]

    texts = checks.names_of("names", names, n_clusters, "cluster")
    return [text.strip() for text in texts]


def _classes_of(labels: np.ndarray) -> Clusters:
    """Return the classes that known labels make, in the order that people expect."""
    texts = [_class_text(label) for label in labels]
    names = sorted({*texts} - {""}, key=_reading_order)

    code_of = {name: code for code, name in enumerate(names)}
    code_of[""] = -1
    return Clusters(codes=np.array([code_of[text] for text in texts]), names=names)


def _class_text(label: Any) -> str:
    """Return a known label as text, empty where it stands for a missing one."""
    # NaN differs from itself, and of pandas' NA not even that is known.
    is_missing = str(label == label) != "True" or label == NA_OF_R
    return "" if is_missing else checks.text_of(label)


def _reading_order(name: str) -> tuple[Any, ...]:
    """Return by what to sort names: numbers by size, first and also within texts."""
    with suppress(ValueError):
        if np.isfinite(float(name)):
            return (0, float(name), name)

    pieces = re.split("0*([0-9]+)", name)  # texts and numbers in turn
    keys = [(len(piece), piece) if i % 2 else piece for i, piece in enumerate(pieces)]
    return (1, keys, name)


@dataclass(frozen=True, eq=False)
class CrossTable:
    """How many rows clusters, in lines, share with known classes, in columns."""

    columns: list[str]  # the classes that are shown
    counts: list[list[int]]
    matched: list[list[bool]]  # which cells pair a cluster with its class
    n_others: int  # classes that are not shown
    others: list[int]  # the rows of each cluster in these


def cross_table(facts: Facts, most_columns: int = 60) -> CrossTable:
    """Return the counts of clusters and known classes, those that match first.

    First come the classes that clusters are matched to, in the order of these, then
    classes without a partner; if there are too many, the largest. The last column
    counts the others, where there are any.
    """
    assert facts.known is not None
    assert facts.agreement is not None
    names = facts.known.names
    counts = facts.clusters.table(facts.known)  # (n_clusters, n_classes)
    class_of_cluster = facts.clusters.partners(
        facts.known, by_majority=facts.agreement.by_majority
    )

    room = len(names) if len(names) <= most_columns else most_columns - 1
    columns = _choose_columns(counts.sum(axis=0), class_of_cluster, room)

    return CrossTable(
        columns=[names[column] for column in columns],
        counts=counts[:, columns].tolist(),
        matched=(class_of_cluster[:, None] == columns).tolist(),
        n_others=len(names) - len(columns),
        others=np.delete(counts, columns, axis=1).sum(axis=1).tolist(),
    )


def _choose_columns(
    class_sizes: np.ndarray, class_of_cluster: np.ndarray, room: int
) -> np.ndarray:
    """Return at most so many classes: partners of clusters, then the largest others."""
    matched_classes = dict.fromkeys(class_of_cluster[class_of_cluster >= 0])
    partners = np.array([*matched_classes], dtype=np.intp)
    room_beside = max(room - len(partners), 0)

    all_classes = np.arange(len(class_sizes))
    unmatched = np.setdiff1d(all_classes, partners)
    by_size = np.argsort(-class_sizes[unmatched], kind="stable")
    largest_unmatched = np.sort(unmatched[by_size[:room_beside]])

    return np.concatenate([partners[:room], largest_unmatched])


def known_certainty(diagnosis: Diagnosis, data: Matrix) -> np.ndarray:
    """Return the certainty of rows, NaN of labels that mean nothing, unless given."""
    certainty = to_host(diagnosis.certainty).astype(np.float64)

    means_nothing = to_host(data.sqnorms) == 0
    if diagnosis.verdict is Verdict.NO_SEPARATION:
        means_nothing[:] = True

    is_given = certainty >= 1
    certainty[means_nothing & ~is_given] = np.nan
    return certainty
