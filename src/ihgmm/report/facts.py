"""The facts of a report, worked out once from the model and its data."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ihgmm import _checks as checks
from ihgmm._warnings import ignored
from ihgmm.estimators.base import cosines
from ihgmm.matrix import Matrix, to_host
from ihgmm.matrix.kinds import NA_OF_R
from ihgmm.matrix.ops import row_lengths
from ihgmm.metrics import class_agreement
from ihgmm.numerics.recipe import RECIPES, Recipe
from ihgmm.plotting._clusters import Clusters
from ihgmm.plotting.embedding import circle_view
from ihgmm.statistics import contrasts as ct
from ihgmm.statistics.diagnosis import Diagnosis, Verdict, diagnose
from ihgmm.statistics.missing_cells import filled_cells
from ihgmm.statistics.tree import ClusterTree, tree_of_model
from ihgmm.words.diagnoses import caution_text
from ihgmm.words.phrases import shorten


class Facts:
    """A model and its data in figures; outliers are counted, and else have no part."""

    tree: ClusterTree | None = None  # of three clusters or more
    known: Any = None  # classes of rows, if there are known labels
    agreement: Any = None  # with these labels
    rival: Any = None  # the same of k-means, if it is quick
    snippets: list[list[str]] | None = None  # how texts of typical rows begin

    def __init__(
        self,
        X: Any,
        model: Any,
        ids: Any,
        features: Any,
        known: Any,
        original: Any,
        texts: Any,
        names: Any,
        described_by: Any,
    ) -> None:
        self.call, given = repr(model), X
        X, model, features, original = checks.last_step(X, model, features, original)
        self.method = type(model).__name__
        if not hasattr(model, "labels_") or not hasattr(model, "cluster_centers_"):
            raise ValueError(
                f"{self.method} has no labels_ or no cluster_centers_; fit a clusterer "
                "first: write_report(X, IhSC(3).fit(X), 'report.html')."
            )
        fit = ct.described_fit(X, model)
        every, labels = fit.data, fit.labels
        inside = np.flatnonzero(labels >= 0)
        data = every.keep_rows(inside) if len(inside) < len(labels) else every
        own = labels[inside]
        self.n_samples, self.n_outliers = len(inside), len(labels) - len(inside)
        self.filled = filled_cells(data)
        self.n_zero_rows = int((to_host(data.sqnorms) == 0).sum())
        self.parameters = model.get_params(deep=False)
        if "n_clusters=" not in self.call:  # the default, which scikit-learn leaves out
            method, _, options = self.call.partition("(")
            number = f"n_clusters={self.parameters.get('n_clusters')!r}"
            self.call = f"{method}({number}{', ' * (options != ')')}{options}"
        # The name of the recipe, or nothing where it has none.
        recipe = Recipe.of(self.parameters.get("recipe", "default"))
        self.recipe = next((name for name in RECIPES if RECIPES[name] == recipe), "")
        # How many clusters the data have, if the fit counted them.
        self.count: Any = getattr(model, "selection_", None)
        self.n_clusters = k = len(fit.clusters)  # also of those without rows
        self.names = _cluster_names(names, k)
        if k > 2 and hasattr(model, "embedding_"):
            tree = tree_of_model(model, np.random.default_rng(0))
            self.tree = tree if tree.splits else None
        self.clusters = Clusters(own, [str(j) for j in range(k)])
        self.ids, self.id_name = _ids(ids, given, len(labels), inside)
        self.positions = inside  # of rows in clusters, among all
        columns = features, model, X, every.shape[1]
        self.features = checks.feature_names(*columns, "feature_names")
        if known is not None:
            known = checks.label_array("labels_true", known, len(labels))
            classes, self.agreement, self.rival = compare_known(known, labels, every, k)
            if classes.names:
                self.known = replace(classes, codes=classes.codes[inside])
        self.scales, self.centers = fit.scales[inside], fit.centers
        self.lengths = np.minimum(row_lengths(fit.centers), np.finfo(np.float64).max)
        with np.errstate(over="ignore"):
            self.sizes = self.scales * self.lengths[own]
        # Of many clusters fewer features are shown, so that their cards fit a page.
        self.apart = (
            ct.rank_features(fit, model, self.features, 8 if k <= 30 else 4, original)
            if described_by is None
            else _of_clusters(described_by, self.clusters.sizes)
        )
        self.diagnosis = diagnose(X, model)
        shown = [shorten(name, 120) for name in self.features]
        self.cautions = [
            caution_text(caution, shown, prepared=original is not None)
            for caution in self.diagnosis.cautions
        ]
        self.certainty = known_certainty(self.diagnosis, every)[inside]
        # Rows beyond what is written as "> 99.9%" count as equally sure.
        self.highest = float(np.fmax.reduce(self.certainty))
        surest = self.certainty >= min(self.highest - 1e-6, 0.999)
        self.n_surest = int(surest.sum()) * (self.diagnosis.n_given == 0)
        # Where rows are on the map, and what it shows them by.
        self.places, self.basis = self._map(model, data, inside)
        # The names of the most typical rows of each cluster.
        self.typical_rows = ct.nearest_rows(data, own, self.centers, self.scales)
        ids = self.ids or [*map(str, inside)]
        self.typical = [[shorten(ids[i]) for i in rows] for rows in self.typical_rows]
        table = hasattr(given, "columns") or isinstance(given, Matrix)
        if texts is None and X is not given and not table:
            texts = given if all(isinstance(one, str) for one in given) else None
        if texts is not None:
            self._show_texts(checks.names_of("texts", texts, len(labels), "row"))

    def _show_texts(self, texts: list[str]) -> None:
        # How the most typical ones of each cluster begin.
        self.snippets = [
            [shorten(" ".join(texts[self.positions[i]].split()), 120) for i in rows]
            for rows in self.typical_rows
        ]

    def _map(self, model: Any, data: Matrix, own: np.ndarray) -> tuple[np.ndarray, str]:
        used = np.flatnonzero(self.clusters.sizes)
        if len(used) == 1:  # nothing to keep apart
            least = self.scales[self.scales > 0].min(initial=1.0)
            sizes = np.log(np.maximum(self.scales, least))
            fit = to_host(cosines(self.centers[used], data))
            return np.column_stack([sizes, fit]), "scale and fit"
        if hasattr(model, "embedding_"):
            rows = to_host(model.embedding_).astype(np.float64)[own]
            lengths = row_lengths(rows)
            even = np.allclose(lengths[lengths > 0], 1, atol=1e-3)
            basis = "unit rows" if even else "rows of all sizes"
        else:
            rows, basis = to_host(cosines(self.centers, data)), "cosines"
        # Twelve clusters find room side by side on a circle; more need a disc.
        return circle_view(rows, self.clusters, most_on_circle=12).points, basis


def compare_known(
    known: np.ndarray, labels: np.ndarray, data: Matrix | None = None, k: int = 0
) -> tuple[Clusters, Any, Any]:
    """Return known classes, how clusters agree with them, and with data k-means.

    Rows that are no cluster's, -1, are not compared.
    """
    known = known.astype(object)
    known[labels < 0] = None
    classes = _classes_of(known)
    rows = np.flatnonzero(classes.codes >= 0)
    if len(rows) == 0:
        return classes, None, None
    texts = np.array(classes.names, object)[classes.codes[rows]]
    agreement, rival = class_agreement(texts, labels[rows]), None
    # With a million entries k-means takes some ten seconds, unless they are only noise.
    if data is not None and k > 1 and data.n_entries + k * data.shape[1] <= 10**6:
        X: Any = data.to_memory().array  # type: ignore[attr-defined]
        if data.sparse:  # k-means takes indices of 32 bits alone
            indices = X.indices.astype(np.int32), X.indptr.astype(np.int32)
            X = sp.csr_array((X.data, *indices), shape=X.shape)
        with ignored(ConvergenceWarning):  # rows of fewer kinds than clusters
            others = KMeans(k, n_init=10, random_state=0).fit_predict(X)
        rival = class_agreement(texts, others[rows], agreement.by_majority)
    return classes, agreement, rival


def _ids(given: Any, X: Any, n: int, own: np.ndarray) -> tuple[list[str] | None, str]:
    """Return the names of rows in clusters, None for positions; what they are."""
    usual = "id"
    if given is None and hasattr(X, "iloc"):  # a frame has names, unless they count
        values = np.asarray(X.index)
        if values.dtype.kind != "i" or not np.array_equal(values, np.arange(n)):
            given, usual = X.index, checks.text_of(X.index.name) or "id"
    if given is None:
        return None, "position"
    texts = checks.names_of("ids", given, n, "row")
    return [texts[i] for i in own], usual


def _of_clusters(top: Any, sizes: np.ndarray) -> ct.TopFeatures:
    """Return what describes clusters of these sizes; raise if it is of others."""
    if not isinstance(top, ct.TopFeatures):
        raise TypeError(
            f"described_by is of type {type(top).__name__}; give what top_features "
            "returns: top_features(words, model.labels_, names=...)."
        )
    told = dict(zip(top.clusters.tolist(), top.sizes.tolist(), strict=True))
    if [told.get(k, 0) for k in range(len(sizes))] != sizes.tolist():
        raise ValueError(
            f"described_by has other clusters, of {[*told.values()]} rows, than the "
            f"model, of {sizes.tolist()}; give top_features(words, model.labels_)."
        )
    return top


def _cluster_names(given: Any, k: int) -> list[str]:
    """Return a name for each cluster, empty where there is none."""
    names: Any = {} if given is None else given
    if isinstance(names, Mapping):
        if not set(names) <= set(range(k)):
            raise ValueError(
                f"names has clusters {[*names]}, and the clusters are 0 to {k - 1}; "
                "give names for these."
            )
        names = [names.get(cluster) for cluster in range(k)]
    return [name.strip() for name in checks.names_of("names", names, k, "cluster")]


def _classes_of(known: np.ndarray) -> Clusters:
    """Return the classes that known labels make, in the order that people expect."""

    def as_read(name: str) -> tuple[Any, ...]:  # numbers by size, before and in texts
        with suppress(ValueError):
            if np.isfinite(float(name)):
                return (0, float(name), name)
        pieces = re.split("0*([0-9]+)", name)  # texts and numbers in turn
        return (1, [(len(s), s) if i % 2 else s for i, s in enumerate(pieces)], name)

    # NaN differs from itself, and of pandas' NA not even that is known.
    texts = [
        checks.text_of(one) if str(one == one) == "True" and one != NA_OF_R else ""
        for one in known
    ]
    names = sorted({*texts} - {""}, key=as_read)
    numbers = {name: j for j, name in enumerate(["", *names], -1)}
    return Clusters(np.array([numbers[name] for name in texts]), names)


def cross_table(facts: Facts) -> dict[str, Any]:
    """Return how many rows clusters and known classes share, and which go together."""
    known, by_majority = facts.known, facts.agreement.by_majority
    names, counts = known.names, facts.clusters.table(known)
    pairs = facts.clusters.partners(known, by_majority=by_majority)
    partners = np.array([*dict.fromkeys(pairs[pairs >= 0])], dtype=np.intp)
    # First come the classes that clusters are matched to, in the order of these, then
    # classes without a partner; if 60 columns are too few, the largest. The last
    # one counts the others, where there are any.
    room = len(names) if len(names) <= 60 else 59
    alone = np.setdiff1d(np.arange(len(names)), partners)
    largest = np.argsort(-counts[:, alone].sum(axis=0), kind="stable")
    more = np.sort(alone[largest[: max(room - len(partners), 0)]])
    columns = np.concatenate([partners[:room], more])
    return {
        "columns": [names[j] for j in columns],
        "counts": counts[:, columns].tolist(),
        "matched": (pairs[:, None] == columns).tolist(),
        "n_others": len(names) - len(columns),
        "others": np.delete(counts, columns, axis=1).sum(axis=1).tolist(),
    }


def known_certainty(diagnosis: Diagnosis, data: Matrix) -> np.ndarray:
    """Return the certainty of rows, NaN of labels that mean nothing, unless given."""
    certainty = to_host(diagnosis.certainty).astype(np.float64)
    silent = diagnosis.verdict is Verdict.NO_SEPARATION
    # A row of zeros shows no pattern.
    certainty[(silent | (to_host(data.sqnorms) == 0)) & (certainty < 1)] = np.nan
    return certainty
