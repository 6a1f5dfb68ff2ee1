"""The facts of a report, worked out once from the model and its data."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
from ihgmm.statistics.described_fit import described_fit
from ihgmm.statistics.diagnosis import Diagnosis, Verdict, diagnose
from ihgmm.statistics.missing_cells import filled_cells
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.statistics.tree_building import tree_of_model
from ihgmm.statistics.typical_rows import nearest_rows
from ihgmm.words.diagnoses import caution_text
from ihgmm.words.phrases import shorten


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
    sizes: np.ndarray  # how much each has of the pattern of its cluster
    certainty: np.ndarray
    highest: float  # the certainty of the surest row
    filled: np.ndarray  # how many cells were filled in
    places: np.ndarray  # (n_samples, 2): on the map
    basis: str  # what the map shows rows by

    # The clusters
    clusters: Clusters
    names: list[str]  # empty where a cluster has none
    lengths: np.ndarray  # (n_clusters,): of their centres
    features: list[str]
    apart: TopFeatures
    typical_rows: list[np.ndarray]  # for each cluster
    snippets: list[list[str]] | None  # how texts of typical rows begin

    # Known labels
    known: Clusters | None  # classes of rows
    agreement: ClassAgreement | None  # of clusters with classes
    rival: ClassAgreement | None  # the same of k-means, if it is quick

    @property
    def n_clusters(self) -> int:
        """Number of clusters, also of those without rows."""
        return len(self.names)

    @property
    def n_surest(self) -> int:
        """How many rows are as sure as the surest; 0 where labels were given."""
        if self.diagnosis.n_given:
            return 0
        # Rows beyond what is written as "> 99.9%" count as equally sure.
        is_surest = self.certainty >= min(self.highest - 1e-6, 0.999)
        return int(is_surest.sum())

    @property
    def typical(self) -> list[list[str]]:
        """The names of the most typical rows of each cluster."""
        ids = self.ids or [str(position) for position in self.positions]
        return [[shorten(ids[row]) for row in rows] for rows in self.typical_rows]


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
    X_of_user = X
    call = repr(model)  # of the pipeline, where it is one
    X, model, feature_names, original = checks.last_step(
        X, model, feature_names, original
    )
    _check_has_clusters(model)

    # Rows in clusters; outliers are only counted.
    fit = described_fit(X, model)
    n_rows = len(fit.labels)
    n_clusters = len(fit.clusters)
    is_clustered = fit.labels >= 0
    positions = np.flatnonzero(is_clustered)
    data = fit.data if is_clustered.all() else fit.data.keep_rows(positions)
    scales = fit.scales[positions]
    clusters = Clusters(
        codes=fit.labels[positions],
        names=[str(cluster) for cluster in range(n_clusters)],
    )
    lengths = np.minimum(row_lengths(fit.centers), np.finfo(np.float64).max)
    with np.errstate(over="ignore"):
        sizes = scales * lengths[clusters.codes]

    # Names of clusters, rows and features.
    cluster_names = _cluster_names(names, n_clusters)
    tree = _tree(model, n_clusters)
    row_names = _row_names(ids, X_of_user, n_rows)
    features = checks.feature_names(
        feature_names, model, X, fit.data.shape[1], "feature_names"
    )

    # What clusters are, beside known labels too, and how sure that is.
    if labels_true is not None:
        labels_true = checks.label_array("labels_true", labels_true, n_rows)
    known = compare_known(labels_true, fit.labels, fit.data, n_clusters)
    if described_by is not None:
        apart = _of_clusters(described_by, clusters.sizes)
    else:
        # Of many clusters fewer features are shown, so that their cards fit a page.
        n_features = 8 if n_clusters <= 30 else 4
        apart = rank_features(fit, model, features, n_features, original)
    diagnosis = diagnose(X, model)
    places, basis = _map(model, data, clusters, positions, scales, fit.centers)
    certainty = known_certainty(diagnosis, fit.data)[positions]
    typical_rows = nearest_rows(data, clusters.codes, fit.centers, scales)
    if texts is None and X is not X_of_user:
        texts = _texts_of_pipeline(X_of_user)

    return Facts(
        method=type(model).__name__,
        call=_with_n_clusters(call, model),
        parameters=model.get_params(deep=False),
        recipe=_recipe_name(model),
        count=getattr(model, "selection_", None),
        tree=tree,
        diagnosis=diagnosis,
        cautions=_cautions(diagnosis, features, is_prepared=original is not None),
        n_samples=len(positions),
        n_outliers=n_rows - len(positions),
        n_zero_rows=int((to_host(data.sqnorms) == 0).sum()),
        positions=positions,
        ids=row_names and [row_names.ids[row] for row in positions],
        id_name=str(id_name or (row_names.what if row_names else "position")),
        scales=scales,
        sizes=sizes,
        certainty=certainty,
        highest=float(np.fmax.reduce(certainty)),
        filled=filled_cells(data),
        places=places,
        basis=basis,
        clusters=clusters,
        names=cluster_names,
        lengths=lengths,
        features=features,
        apart=apart,
        typical_rows=typical_rows,
        snippets=_snippets(texts, n_rows, positions, typical_rows),
        known=known.classes_of(positions),
        agreement=known.agreement,
        rival=known.rival,
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
    recipe = Recipe.of(model.get_params(deep=False).get("recipe", "default"))
    return next((name for name in RECIPES if RECIPES[name] == recipe), "")


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
    return [
        caution_text(caution, names, prepared=is_prepared)
        for caution in diagnosis.cautions
    ]


def _map(
    model: Any,
    data: Matrix,
    clusters: Clusters,
    positions: np.ndarray,
    scales: np.ndarray,
    centers: np.ndarray,
) -> tuple[np.ndarray, str]:
    """Return where rows are on the map, (n, 2), and what it shows them by."""
    used = np.flatnonzero(clusters.sizes)
    if len(used) == 1:  # nothing to keep apart
        smallest = scales[scales > 0].min(initial=1.0)
        log_scales = np.log(np.maximum(scales, smallest))
        fit = to_host(cosines(centers[used], data))
        return np.column_stack([log_scales, fit]), "scale and fit"

    if hasattr(model, "embedding_"):
        rows = to_host(model.embedding_).astype(np.float64)[positions]
        lengths = row_lengths(rows)
        are_units = np.allclose(lengths[lengths > 0], 1, atol=1e-3)
        basis = "unit rows" if are_units else "rows of all sizes"
    else:
        rows = to_host(cosines(centers, data))
        basis = "cosines"

    # Twelve clusters find room side by side on a circle; more need a disc.
    view = circle_view(rows, clusters, most_on_circle=12)
    return view.points, basis


def _texts_of_pipeline(X: Any) -> Any:
    """Return what a pipeline was given, if it is texts; else None."""
    is_table = hasattr(X, "columns") or isinstance(X, Matrix)
    if not is_table and all(isinstance(row, str) for row in X):
        return X
    return None


def _snippets(
    texts: Any, n_rows: int, positions: np.ndarray, typical_rows: list[np.ndarray]
) -> list[list[str]] | None:
    """Return how texts of the typical rows of each cluster begin, if there are any."""
    if texts is None:
        return None

    texts = checks.names_of("texts", texts, n_rows, "row")

    def beginning(row: int) -> str:
        words = texts[positions[row]].split()
        return shorten(" ".join(words), 120)

    return [[beginning(row) for row in rows] for rows in typical_rows]


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

    known = labels_true.astype(object)
    known[labels < 0] = None
    classes = _classes_of(known)
    rows = np.flatnonzero(classes.codes >= 0)
    if len(rows) == 0:
        return KnownComparison(classes)

    class_names = np.array(classes.names, object)[classes.codes[rows]]
    agreement = class_agreement(class_names, labels[rows])
    rival = None
    if data is not None and _is_quick_for_kmeans(data, n_clusters):
        rival_labels = _kmeans_labels(data, n_clusters)
        rival = class_agreement(class_names, rival_labels[rows], agreement.by_majority)
    return KnownComparison(classes, agreement=agreement, rival=rival)


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

    ids: list[str]  # of all rows
    what: str  # what the names are


def _row_names(ids: Any, X: Any, n_rows: int) -> RowNames | None:
    """Return the names of all rows, given or those of a frame; None for positions."""
    what = "id"
    if ids is None and hasattr(X, "iloc"):  # a frame has names, unless they count
        index = np.asarray(X.index)
        if index.dtype.kind != "i" or not np.array_equal(index, np.arange(n_rows)):
            ids = X.index
            what = checks.text_of(X.index.name) or "id"
    if ids is None:
        return None
    return RowNames(ids=checks.names_of("ids", ids, n_rows, "row"), what=what)


def _of_clusters(top: Any, sizes: np.ndarray) -> TopFeatures:
    """Return what describes clusters of these sizes; raise if it is of others."""
    if not isinstance(top, TopFeatures):
        raise TypeError(
            f"described_by is of type {type(top).__name__}; give what top_features "
            "returns: top_features(words, model.labels_, names=...)."
        )
    rows_of = dict(zip(top.clusters.tolist(), top.sizes.tolist(), strict=True))
    if [rows_of.get(k, 0) for k in range(len(sizes))] != sizes.tolist():
        raise ValueError(
            f"described_by has other clusters, of {[*rows_of.values()]} rows, than the "
            f"model, of {sizes.tolist()}; give top_features(words, model.labels_)."
        )
    return top


def _cluster_names(given: Any, k: int) -> list[str]:
    """Return a name for each cluster, empty where there is none."""
    names = {} if given is None else given
    if isinstance(names, Mapping):
        if not set(names) <= set(range(k)):
            raise ValueError(
                f"names has clusters {[*names]}, and the clusters are 0 to {k - 1}; "
                "give names for these."
            )
        names = [names.get(cluster) for cluster in range(k)]
    return [name.strip() for name in checks.names_of("names", names, k, "cluster")]


def _classes_of(labels: np.ndarray) -> Clusters:
    """Return the classes that known labels make, in the order that people expect."""
    # NaN differs from itself, and of pandas' NA not even that is known.
    texts = [
        checks.text_of(label)
        if str(label == label) == "True" and label != NA_OF_R
        else ""
        for label in labels
    ]
    names = sorted({*texts} - {""}, key=_reading_order)
    numbers = {name: number for number, name in enumerate(["", *names], -1)}
    return Clusters(codes=np.array([numbers[text] for text in texts]), names=names)


def _reading_order(name: str) -> tuple[Any, ...]:
    """Return by what to sort names: numbers by size, first and also within texts."""
    with suppress(ValueError):
        if np.isfinite(float(name)):
            return (0, float(name), name)

    pieces = re.split("0*([0-9]+)", name)  # texts and numbers in turn
    keys = [(len(s), s) if i % 2 else s for i, s in enumerate(pieces)]
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
    matched_classes = dict.fromkeys(class_of_cluster[class_of_cluster >= 0])
    partners = np.array([*matched_classes], dtype=np.intp)

    room = len(names) if len(names) <= most_columns else most_columns - 1
    unmatched = np.setdiff1d(np.arange(len(names)), partners)
    by_size = np.argsort(-counts[:, unmatched].sum(axis=0), kind="stable")
    n_unmatched = max(room - len(partners), 0)
    largest_unmatched = np.sort(unmatched[by_size[:n_unmatched]])
    columns = np.concatenate([partners[:room], largest_unmatched])

    return CrossTable(
        columns=[names[column] for column in columns],
        counts=counts[:, columns].tolist(),
        matched=(class_of_cluster[:, None] == columns).tolist(),
        n_others=len(names) - len(columns),
        others=np.delete(counts, columns, axis=1).sum(axis=1).tolist(),
    )


def known_certainty(diagnosis: Diagnosis, data: Matrix) -> np.ndarray:
    """Return the certainty of rows, NaN of labels that mean nothing, unless given."""
    certainty = to_host(diagnosis.certainty).astype(np.float64)
    says_nothing = diagnosis.verdict is Verdict.NO_SEPARATION
    is_zero_row = to_host(data.sqnorms) == 0
    certainty[(says_nothing | is_zero_row) & (certainty < 1)] = np.nan
    return certainty
