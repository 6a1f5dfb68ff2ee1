"""Batches of rows: their factors are learnt in a fit, and taken out of new rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm._parameters import option
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.estimators.clusterer import FitRows
from ihgmm.estimators.column_scaler import column_ranges
from ihgmm.matrix import Matrix, Tall
from ihgmm.numerics.batches import Batches, learn_batches, without_factors
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.numerics.whitening import NoiseKind, learn_whitener
from ihgmm.policy import Batching
from ihgmm.statistics.selection import count_clusters

if TYPE_CHECKING:
    from ihgmm.estimators.ihsc import IhSC


def fit_batches(
    model: IhSC,
    rows: FitRows,
    batch: Any,
    noise: NoiseKind | None,
    rng: np.random.Generator,
) -> tuple[FitRows, Batches]:
    """Learn the factors of batches; return rows without these, and the batches.

    Factors are learnt by turns with labels of the counted rows, which are whitened
    before they are clustered if there is a ``noise`` to make alike.
    """
    _check_can_have_batches(model, rows)
    names = checks.check_labels("batch", batch, rows.everything.shape[0]).astype(str)
    if model.n_clusters != "auto":
        n_counted = rows.counted.shape[0]
        checks.check_row_count(n_counted, model.n_clusters, rows.n_nonzero)

    counted_names = names[rows.subset.positions()]
    batch_names, codes = np.unique(counted_names, return_inverse=True)

    # The only batch of each cluster that is in one batch alone; else -1.
    batches, only_batch = learn_batches(
        rows.counted,
        codes,
        tuple(map(str, batch_names)),
        _clustering(model, noise, rng),
    )

    if len(batch_names) > 1:
        _warn_of_clusters_in_one_batch(only_batch, batch_names)

    counted = without_factors(rows.counted, batches.factors, codes)
    everything = counted
    if not rows.subset.is_everything:
        everything = without_factors(
            rows.everything, batches.factors, batches.codes(names)
        )
    return replace(rows, everything=everything, counted=counted), batches


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
) -> Callable[[Matrix], tuple[Tall, int]]:
    """Return a function that clusters rows as a model would, and says in how many."""
    recipe = Recipe.of(model.recipe)

    def label(data: Matrix) -> tuple[Tall, int]:
        # What is drawn is the same each time, and again in the fit itself.
        if noise is not None:
            data = learn_whitener(data, noise, deepcopy(rng))(data)
        n_clusters = model.n_clusters
        if n_clusters == "auto":
            count = count_clusters(data, deepcopy(rng), signed=model.signed)
            n_clusters = max(count.n_clusters, 1)
        k = int(n_clusters)
        return spectral_clustering(data, k, recipe, signed=model.signed).labels, k

    return label


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
    """Return a model and its data as if there were no batches, to describe clusters."""
    if not hasattr(model, "batches_"):
        return model, X
    X = model.without_batches(X, batch)
    model = copy(model)
    del model.batches_
    return model, X


def rows_without_batches(model: IhSC, X: Any, batch: Any) -> Matrix:
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

    return without_factors(data, factors, codes)


def _factors_of_new(
    model: IhSC, data: Matrix, name: str, rows: np.ndarray
) -> np.ndarray:
    """Return factors, (1, n_features), of a batch that the fit did not have."""
    batches = model.batches_
    if len(rows) < Batching.NEW_ROWS:
        raise ValueError(
            f"Batch {str(name)!r} was not in the fit and has {len(rows)} rows here, "
            "which are too few to learn its factors from; give "
            f"{Batching.NEW_ROWS} at least, or one of the batches "
            f"{', '.join(batches.names)}."
        )

    def label(part: Matrix) -> Tall:
        return model.placement_(model._prepared(part))

    return batches.factors_of_new(data.take(rows), label)
