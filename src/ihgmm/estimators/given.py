"""What users give beside rows: batches, classes, an older model, and rows that follow.

Here it is checked, and what is to be said of it is said.
"""

from copy import copy, deepcopy
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm._parameters import option
from ihgmm._warnings import DriftWarning, PreparationWarning, warn
from ihgmm.estimators.base import FitRows
from ihgmm.estimators.column_scaler import column_ranges
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.numerics.batches import Batches, learn_batches, without_factors
from ihgmm.numerics.incremental import IncrementalFit
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.numerics.whitening import learn_whitener
from ihgmm.policy import Batching, Growing
from ihgmm.statistics.selection import count_clusters


def fit_batches(
    model: Any, rows: FitRows, batch: Any, noise: Any, rng: np.random.Generator
) -> tuple[Batches, FitRows]:
    """Learn factors of batches; return them, and rows without these."""
    k, n = model.n_clusters, rows.counted.shape[0]
    if model.missing != "error" or model.outliers == "cells":
        which = f"{option('missing', 'fit')} and {option('outliers', 'cells')}"
        remedy = f"leave them out, and {option('drop or fill in incomplete rows')}"
        raise ValueError(f"batch cannot be combined with {which}: {remedy}.")
    if rows.everything.most_negative() < 0:
        raise ValueError(_why_negative(rows.everything))
    names = checks.check_labels("batch", batch, rows.everything.shape[0]).astype(str)
    if k != "auto":
        checks.check_row_count(n, k, rows.live)

    def label(data: Matrix) -> tuple[Tall, int]:
        if noise is not None:
            data = learn_whitener(data, noise, deepcopy(rng))(data)
        count = k
        if k == "auto":
            found = count_clusters(data, deepcopy(rng), signed=model.signed)
            count = max(found.n_clusters, 1)
        recipe = Recipe.of(model.recipe)
        fit = spectral_clustering(data, int(count), recipe, signed=model.signed)
        return fit.labels, int(count)

    counts = slice(None) if rows.counts is None else to_host(rows.counts)
    known, codes = np.unique(names[counts], return_inverse=True)
    batches, homes = learn_batches(rows.counted, codes, tuple(map(str, known)), label)
    alone = [f"{k} (batch {known[home]})" for k, home in enumerate(homes) if home >= 0]
    if alone and len(known) > 1:
        warn(
            f"Some clusters are in one batch alone: {', '.join(alone)}. Nothing tells "
            "what is theirs and what is the batch's, so that they gave no factors. "
            "Look at their rows, or ask for fewer clusters.",
            PreparationWarning,
        )
    everything = counted = without_factors(rows.counted, batches.factors, codes)
    if rows.counts is not None:
        everything = without_factors(
            rows.everything, batches.factors, batches.codes(names)
        )
    return batches, rows._replace(everything=everything, counted=counted)


def _why_negative(X: Matrix) -> str:
    """Say that columns are below zero, where a batch allows none, and what works."""
    array = cast(Any, X.to_memory()).array
    below = np.flatnonzero(column_ranges(array)[0] < 0)
    listed = ", ".join(str(X.names[j] if X.names else j) for j in below[:8])
    remedy = f"{option('leave out')} {listed!r}"
    if abs(array[:, below].sum()) < 1e-4 * abs(array[:, below]).sum():
        remedy = "divide without centring, " + option("ColumnScaler('scale')")
    where = f"X goes below 0 in {len(below):,} of {X.shape[1]:,} columns"
    return f"A batch multiplies values of 0 or more, and {where}: {remedy}."


def as_without_batches(model: Any, X: Any, batch: Any) -> tuple[Any, Any]:
    """Return a model and its data as if there were no batches, to describe clusters."""
    if not hasattr(model, "batches_"):
        return model, X
    X = model.without_batches(X, batch)
    model = copy(model)
    del model.batches_
    return model, X


def rows_without_batches(model: Any, X: Any, batch: Any) -> Matrix:
    """Return rows without the factors of their batches; new ones get theirs first."""
    check_is_fitted(model)
    if not hasattr(model, "batches_"):
        raise ValueError(
            "batch is given, and the model was fitted without batches; fit it with "
            "batch=..., or leave batch out."
        )
    data, batches = checks.check_matrix(X, model, reset=False), model.batches_
    if batch is None:
        raise ValueError(
            "The model was fitted with batches; give that of each row, "
            f"{option('batch')}: {', '.join(batches.names)} or a new one."
        )
    batch = [batch] * data.shape[0] if np.ndim(batch) == 0 else batch
    names = checks.check_labels("batch", batch, data.shape[0]).astype(str)
    codes, factors = batches.codes(names), batches.factors

    def label(part: Matrix) -> Tall:
        return model.placement_(model._prepared(part))

    for name in np.unique(names[codes < 0]):
        own = np.flatnonzero(names == name)
        if len(own) < Batching.NEW_ROWS:
            raise ValueError(
                f"Batch {str(name)!r} was not in the fit and has {len(own)} rows here, "
                "which are too few to learn its factors from; give "
                f"{Batching.NEW_ROWS} at least, or one of the batches "
                f"{', '.join(batches.names)}."
            )
        codes[own] = len(factors)
        factors = np.vstack([factors, batches.factors_of_new(data.take(own), label)])
    return without_factors(data, factors, codes)


def check_known(known_labels: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return classes, sorted, and the number of each row's class; -1 for unknown."""
    given = checks.label_array("known_labels", known_labels, n_samples)
    unknown = np.array([_is_unknown(label) for label in given.astype(object)])
    if unknown.all():
        raise ValueError(
            "known_labels has no known label: all are -1, None or NaN. Give one at "
            "least, or leave known_labels out."
        )
    labels = checks.check_labels("known_labels", given[~unknown])
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        labels = labels.astype(np.int64)  # NaN for unknown has made them floats
    numbers = np.full(n_samples, -1)
    classes, numbers[~unknown] = np.unique(labels, return_inverse=True)
    return classes, numbers


def _is_unknown(label: Any) -> bool:
    """Tell None, NaN, the missing values of pandas, -1 and no text from labels."""
    if label is None or type(label).__name__ == "NAType":
        return True
    # NumPy makes a text of -1 beside texts.
    return bool(label != label or label in (-1, "-1", ""))


def class_names(classes: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a name for each cluster: classes first, then new ones."""
    new = n_clusters - len(classes)
    if new < 0:
        raise ValueError(
            f"known_labels has {len(classes)} classes and n_clusters={n_clusters}; ask "
            f"for {len(classes)} clusters at least."
        )
    if not new:
        return classes
    if classes.dtype.kind in "iuf":
        return np.append(classes, int(np.floor(classes[-1])) + 1 + np.arange(new))
    return np.append(classes, [f"new {i}" for i in range(1, new + 1)])


def old_labels(model: Any, X: Any, batch: Any = None) -> tuple[np.ndarray, Any]:
    """Return the clusters in which an older model puts rows, and how near rows are.

    Near is what their centre explains over what it leaves, if the model tells.
    """
    if not hasattr(model, "_nearest"):
        raise TypeError(
            f"init={model!r} is no model of this package; give a fitted one, whose "
            "clusters should keep their numbers, or None."
        )
    text = "init is a %(name)s that is not fitted; give a fitted model, or None."
    check_is_fitted(model, msg=text)
    options = {"batch": batch} if hasattr(model, "batches_") else {}
    labels = to_host(model._nearest(X, **options)).astype(np.int64)
    if not hasattr(model, "placement_"):
        return labels, None
    cosines = to_host(model.transform(X, **options)).astype(np.float64)
    share = np.clip(cosines[np.arange(len(labels)), labels], 0.0, 0.995) ** 2
    return labels, share / (1 - share)


def check_growing(X: Matrix, sample_weight: Any) -> np.ndarray:
    """Return weights; raise if sums over calls would overflow, in float32 too."""
    if not Growing.LEAST_UNIT < X.unit < 1 / Growing.LEAST_UNIT:
        raise ValueError(
            f"Numbers of X are about {X.unit:.0e} in size, and sums of their squares "
            f"over all batches overflow; divide every batch by {X.unit:.0e}."
        )
    weights = checks.check_weights(sample_weight, X.shape[0])
    odd = weights[(weights > 0) & ((weights < 1e-9) | (weights > 1e9))]
    if len(odd):
        raise ValueError(
            f"sample_weight has {odd[0]:.3g}. Weights of all calls of partial_fit are "
            "added up: give 0, or numbers from 1e-9 to 1e9."
        )
    return weights


def check_can_grow(model: Any) -> None:
    """Raise unless a model has options with which it can grow."""
    usual = {"signed": False, "whiten": None, "outliers": None}
    given = {name: getattr(model, name) for name in usual}
    unusual = ["batch"] if hasattr(model, "batches_") else []
    unusual += [option(*item) for item in given.items() if item[1] != usual[item[0]]]
    recipe = Recipe.of(model.recipe)
    grows = recipe.rows == "unit" and recipe.labels == "tied" and recipe.unit_norm
    if not grows or recipe.placement != "embedding":
        unusual.append(f"{recipe!r}, in the place of the default")
    if unusual:
        raise ValueError(
            f"partial_fit cannot go on with {unusual[0]}; leave that out, or fit to "
            "all rows at once."
        )


def warn_of_drift(grown: IncrementalFit, n_clusters: int) -> None:
    """Say that clusters have emptied or appeared; a model says each once."""
    again = "clusters that are still there keep their numbers."
    if grown.emptied:
        fewer = max(n_clusters - len(grown.emptied), 1)
        warn(
            "Hardly any new row comes to clusters "
            f"{', '.join(map(str, grown.emptied))}. The model stays that of all rows "
            "seen. To forget old ones, fit to recent rows, "
            f"IhSC({fewer}, init=model).fit(X): {again}",
            DriftWarning,
        )
    if grown.novel_share:
        warn(
            f"{grown.novel_share:.0%} of the new rows are far from all clusters: one "
            "may have appeared. To give it a number, fit with one more, "
            f"IhSC({n_clusters + 1}, init=model).fit(X): {again}",
            DriftWarning,
        )
