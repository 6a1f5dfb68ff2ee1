"""Batches of rows: what they do is learnt in a fit, and taken out of new rows."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm._parameters import option
from ihgmm._warnings import PreparationWarning, sklearn_filters, warn
from ihgmm.estimators.clusterer import FitRows
from ihgmm.estimators.column_scaler import column_ranges
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.numerics.batch_walk import (
    mixing_of_batches,
    shift_of_new,
    walk_between_batches,
)
from ihgmm.numerics.batches import (
    Batches,
    learn_batches,
    no_factors,
    without_factors,
)
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.numerics.placement import CosinePlacement, Placement
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.root_choice import AS_GIVEN, try_roots
from ihgmm.numerics.rules import FittedRule, LinearRule
from ihgmm.numerics.spectral import (
    SpectralFit,
    spectral_clustering,
    with_other_rule,
)
from ihgmm.numerics.whitening import NoiseKind, learn_whitener
from ihgmm.policy import Batching
from ihgmm.statistics.selection import count_clusters

if TYPE_CHECKING:
    from ihgmm.estimators.ihsc import IhSC

RowPlacement = Placement | CosinePlacement


@dataclass(frozen=True, eq=False)
class BatchRows:
    """The rows of a fit without factors of batches, and what is known of batches."""

    rows: FitRows
    batches: Batches
    codes: np.ndarray  # (n_samples,): the batch of each of all rows


def fit_batches(
    model: IhSC,
    rows: FitRows,
    batch: Any,
    noise: NoiseKind | None,
    rng: np.random.Generator,
) -> BatchRows:
    """Learn what batches do, and how to take it out; return rows without factors.

    Factors are learnt by turns with labels of the counted rows, which are whitened
    before they are clustered if there is a ``noise`` to make alike. Where they leave
    batches apart inside of clusters, neighbours in every batch are to take these out.
    """
    _check_can_have_batches(model, rows)
    names = checks.check_labels("batch", batch, rows.everything.shape[0]).astype(str)
    if model.n_clusters != "auto":
        n_counted = rows.counted.shape[0]
        checks.check_row_count(n_counted, model.n_clusters, rows.n_nonzero)

    counted_names = names[rows.subset.positions()]
    _check_batches_count(names, counted_names)
    batch_names, codes = np.unique(counted_names, return_inverse=True)

    search = _BatchSearch(
        X=rows.counted,
        codes=codes,
        names=tuple(map(str, batch_names)),
        cluster=_clustering(model, noise, rng),
        may_walk=_may_walk(model),
        may_walk_without_factors=model.n_clusters != "auto",
    )
    batches = search.best()

    codes_of_all = batches.codes(names)
    counted = without_factors(rows.counted, batches.factors, codes)
    everything = counted
    if not rows.subset.is_everything:
        everything = without_factors(rows.everything, batches.factors, codes_of_all)
    return BatchRows(
        rows=replace(rows, everything=everything, counted=counted),
        batches=batches,
        codes=codes_of_all,
    )


def _may_walk(model: IhSC) -> bool:
    """Tell whether neighbours may teach the rule of a model."""
    recipe = Recipe.of(model.recipe)
    return (
        recipe.neighbors
        and recipe.unit_norm
        and recipe.labels == "tied"
        and recipe.placement == "embedding"
        and not model.signed
    )


def _check_batches_count(names: np.ndarray, counted_names: np.ndarray) -> None:
    """Raise if no row of some batch counts: nothing would tell what it does."""
    without_rows = np.setdiff1d(names, counted_names)
    if len(without_rows):
        raise ValueError(
            f"All rows of batch {str(without_rows[0])!r} have weight 0, so that the "
            "fit cannot learn what it does to rows; leave them out of the fit, and "
            "give them to predict as a new batch."
        )


@dataclass(frozen=True, eq=False)
class _Clustered:
    """Rows without factors, perhaps made alike in noise, and their clusters."""

    X: Matrix
    fit: SpectralFit
    n_clusters: int


class Clustering(Protocol):
    """Clusters rows, of roots where these may be taken."""

    def __call__(self, data: Matrix, *, may_root: bool = True) -> _Clustered:
        """Return the clusters of rows."""


@dataclass(frozen=True, eq=False)
class _BatchSearch:
    """The search for what takes batches out of rows."""

    X: Matrix  # the counted rows
    codes: np.ndarray  # (n,): their batches
    names: tuple[str, ...]
    cluster: Clustering
    may_walk: bool  # whether neighbours may teach the rule
    may_walk_without_factors: bool  # not where clusters would be counted with batches

    def best(self) -> Batches:
        """Return batches with the factors to divide rows by, and how they were chosen.

        Nothing is done where batches are mixed inside of clusters. Factors are enough
        where they mix them. Else neighbours in every batch take the batches out, of
        rows with or without factors: of what shows clusters more clearly.
        """
        # Stored rows are read once.
        rows = without_factors(self.X, np.ones((1, self.X.shape[1])), 0 * self.codes)
        plain = self.cluster(rows)
        labels = to_host(plain.fit.labels)
        untouched = no_factors(rows, self.codes, self.names, labels, plain.n_clusters)
        if len(self.names) == 1:
            return untouched

        mixing = mixing_of_batches(plain.X, plain.fit, self.codes)
        _warn_of_clusters_like_batches(labels, self.codes)
        untouched = replace(untouched, mixing=mixing.ratio)
        if mixing.is_complete:
            return untouched

        # The only batch of each cluster that is in one batch alone; else -1.
        batches, only_batch = learn_batches(
            rows, self.codes, self.names, self._labels_without_factors
        )
        batches = replace(batches, mixing=mixing.ratio)
        chosen = self._by_neighbors(plain, untouched, batches)

        if chosen.has_factors:
            _warn_of_clusters_in_one_batch(only_batch, np.array(self.names))
        return chosen

    def _labels_without_factors(self, data: Matrix) -> tuple[Tall, int]:
        # Columns as they are: roots over spreads would make more of batches.
        clustered = self.cluster(data, may_root=False)
        return clustered.fit.labels, clustered.n_clusters

    def _by_neighbors(
        self, plain: _Clustered, untouched: Batches, batches: Batches
    ) -> Batches:
        """Return batches with factors or without, if neighbours may take out more."""
        if not self.may_walk:
            return batches

        divided = self.cluster(without_factors(self.X, batches.factors, self.codes))
        mixing = mixing_of_batches(divided.X, divided.fit, self.codes)
        if mixing.is_complete:
            return batches

        walked = replace(batches, taken_out_by="factors and neighbors")
        candidates = [(walked, divided)]
        if self.may_walk_without_factors:
            candidates.append((replace(untouched, taken_out_by="neighbors"), plain))

        chosen = batches
        clearness = -np.inf
        for candidate, clustered in candidates:
            walk = walk_between_batches(
                clustered.X,
                clustered.fit,
                self.codes,
                len(self.names),
                clustered.n_clusters,
            )
            if walk is None or walk.matched < Batching.MATCHED:
                continue
            if walk.clearness > clearness:
                chosen = candidate
                clearness = walk.clearness
        return chosen


def take_out_shifts(
    X: Matrix,
    fit: SpectralFit,
    batches: Batches,
    codes: np.ndarray,
    n_clusters: int,
    known_labels: KnownLabels,
) -> tuple[SpectralFit, Batches]:
    """Return clusters of rows less the shifts of their batches, and these shifts.

    Clusters stay as they are where neighbours do not take batches out.
    """
    if batches.taken_out_by not in ("neighbors", "factors and neighbors"):
        return fit, batches

    walk = walk_between_batches(
        X, fit, codes, len(batches.names), n_clusters, known_labels
    )
    if walk is None:
        by_factors = replace(
            batches, taken_out_by="factors" if batches.has_factors else "nothing"
        )
        return fit, by_factors

    fitted = FittedRule(
        rule=LinearRule(
            coefficients=walk.clusters.coefficients,
            intercepts=walk.clusters.intercepts,
        ),
        space=walk.space,
        n_iter=walk.clusters.n_iter,
        bic_gain=walk.clusters.bic_gain,
        shrinkage=walk.clusters.shrinkage,
        clearness=walk.clearness,
    )
    shifted_fit = with_other_rule(
        X,
        fit,
        fitted,
        n_clusters,
        shifts=walk.shifts[codes],
        sample=walk.sample,
        known_labels=known_labels,
    )
    return shifted_fit, replace(batches, shifts=walk.shifts, sample=walk.sample)


def _check_can_have_batches(model: IhSC, rows: FitRows) -> None:
    """Raise if cells are to be filled in, or if some are negative."""
    if model.missing != "error" or model.outliers == "cells":
        options = f"{option('missing', 'fit')} and {option('outliers', 'cells')}"
        remedy = f"leave them out, and {option('drop or fill in incomplete rows')}"
        raise ValueError(f"batch cannot be combined with {options}: {remedy}.")

    if rows.everything.most_negative() < 0:
        raise ValueError(_why_negative(rows.everything))


def _why_negative(X: Matrix) -> str:
    """Say that columns are below zero, where a batch allows none, and what works."""
    array = X.to_memory().array
    lowest, _ = column_ranges(array)
    negative_columns = np.flatnonzero(lowest < 0)

    values = array[:, negative_columns]

    if abs(values.sum()) < 1e-4 * abs(values).sum():  # columns are centred
        remedy = "divide without centring, " + option("ColumnScaler('scale')")
    else:
        listed = ", ".join(
            str(X.names[j] if X.names else j) for j in negative_columns[:8]
        )
        remedy = f"{option('leave out')} {listed!r}"

    where = f"X goes below 0 in {len(negative_columns):,} of {X.shape[1]:,} columns"
    return f"A batch multiplies values of 0 or more, and {where}: {remedy}."


def _clustering(
    model: IhSC, noise: NoiseKind | None, rng: np.random.Generator
) -> Clustering:
    """Return a function that clusters rows as a model would, or without roots."""
    recipe = Recipe.of(model.recipe)

    def cluster(data: Matrix, *, may_root: bool = True) -> _Clustered:
        # What is drawn is the same each time, and again in the fit itself.
        if noise is not None:
            data = learn_whitener(data, noise, deepcopy(rng))(data)
        n_clusters = model.n_clusters
        if n_clusters == "auto":
            count = count_clusters(data, deepcopy(rng), columns=model.columns)
            n_clusters = max(count.n_clusters, 1)
        k = int(n_clusters)

        trial = AS_GIVEN
        if may_root and model.columns in ("auto", "roots"):
            always = model.columns == "roots"
            trial = try_roots(data, k, recipe, always=always)
        fit = trial.fit or spectral_clustering(data, k, recipe, roots=trial.columns)
        return _Clustered(X=data, fit=fit, n_clusters=k)

    return cluster


def _warn_of_clusters_like_batches(labels: np.ndarray, codes: np.ndarray) -> None:
    """Warn where clusters that were found without batches nearly are the batches."""
    with sklearn_filters:
        agreement = adjusted_rand_score(codes, labels)
    if agreement > Batching.COINCIDE:
        warn(
            "Clusters that are found without batch nearly are the batches (adjusted "
            f"Rand index {agreement:.2f}). Either batches change rows much, or their "
            "rows are of other kinds, and nothing in the data tells which: kinds that "
            "are in one batch alone may be lost. Compare labels without batch.",
            PreparationWarning,
        )


def _warn_of_clusters_in_one_batch(
    only_batch: np.ndarray, batch_names: np.ndarray
) -> None:
    """Warn of clusters whose rows are of one batch, and say which."""
    listed = [
        f"{cluster} (batch {batch_names[batch]})"
        for cluster, batch in enumerate(only_batch)
        if batch >= 0
    ]

    if listed:
        warn(
            f"Some clusters are in one batch alone: {', '.join(listed)}. Nothing tells "
            "what is theirs and what is the batch's, so that they gave no factors. "
            "Look at their rows, or ask for fewer clusters.",
            PreparationWarning,
        )


def as_without_batches(model: Any, X: Any, batch: Any) -> tuple[Any, Any]:
    """Return a model and its data as if there were no batches, to describe clusters.

    The model may place these rows, all of them at once, and no others.
    """
    if not hasattr(model, "batches_"):
        return model, X
    rows = rows_without_batches(model, X, batch)
    placement = placement_of_batches(model, rows)

    model = copy(model)
    model.placement_ = placement
    del model.batches_
    return model, rows.X.to_memory().array * rows.X.unit


@dataclass(frozen=True, eq=False)
class RowsWithoutBatches:
    """Rows, new or old, without the factors of their batches."""

    X: Matrix
    names: np.ndarray  # (n,): of their batches


def rows_without_batches(model: IhSC, X: Any, batch: Any) -> RowsWithoutBatches:
    """Return rows without the factors of their batches; new ones get theirs first.

    ``batch`` names the batch of each row, or of all rows.
    """
    check_is_fitted(model)
    if not hasattr(model, "batches_"):
        raise ValueError(
            "batch is given, and the model was fitted without batches; fit it with "
            "batch=..., or leave batch out."
        )

    data = checks.check_matrix(X, model, reset=False)
    batches = model.batches_
    if batch is None:
        raise ValueError(
            "The model was fitted with batches; give that of each row, "
            f"{option('batch')}: {', '.join(batches.names)} or a new one."
        )

    if np.ndim(batch) == 0:
        batch = [batch] * data.shape[0]
    names = checks.check_labels("batch", batch, data.shape[0]).astype(str)
    codes = batches.codes(names)
    factors = batches.factors

    for name in np.unique(names[codes < 0]):
        new_rows = np.flatnonzero(names == name)
        codes[new_rows] = len(factors)
        factors = np.vstack([factors, _factors_of_new(model, data, name, new_rows)])

    return RowsWithoutBatches(X=without_factors(data, factors, codes), names=names)


def placement_of_batches(model: IhSC, rows: RowsWithoutBatches) -> RowPlacement:
    """Return how rows without factors are placed, by the shifts of their batches."""
    batches = model.batches_
    placement = model.placement_
    if batches.shifts is None or not isinstance(placement, Placement):
        return placement

    codes = batches.codes(rows.names)
    shifts = batches.shifts
    for name in np.unique(rows.names[codes < 0]):
        new_rows = np.flatnonzero(rows.names == name)
        codes[new_rows] = len(shifts)
        part = model._prepared(rows.X.take(new_rows))
        embedded = to_host(placement.embedding(part)).astype(np.float64)
        shifts = np.vstack([shifts, _shift_of_new(batches, embedded, name)])

    return replace(placement, shifts=shifts[codes])


def _shift_of_new(batches: Batches, rows: np.ndarray, name: str) -> np.ndarray:
    """Return the shift, (1, m), of a batch that the fit did not have."""
    assert batches.sample is not None
    shift = shift_of_new(rows[rows.any(axis=1)], batches.sample)
    if shift is None:
        warn(
            f"Batch {str(name)!r} was not in the fit, and few of its rows are like "
            "those of the fit: they are placed as if the batch changed nothing. Fit "
            "the model with these rows, too.",
            PreparationWarning,
        )
        shift = np.zeros(rows.shape[1])
    return shift[None]


def _factors_of_new(
    model: IhSC, data: Matrix, name: str, rows: np.ndarray
) -> np.ndarray:
    """Return factors, (1, n_features), of a batch that the fit did not have."""
    batches = model.batches_
    if len(rows) < Batching.NEW_ROWS:
        raise ValueError(
            f"Batch {str(name)!r} was not in the fit and has {len(rows)} rows here, "
            "which are too few to learn what it does to them; give "
            f"{Batching.NEW_ROWS} at least, or one of the batches "
            f"{', '.join(batches.names)}."
        )
    if len(batches.names) > 1 and not batches.has_factors:
        return np.ones((1, data.shape[1]))

    def label(part: Matrix) -> Tall:
        return model.placement_(model._prepared(part))

    return batches.factors_of_new(data.take(rows), label)
