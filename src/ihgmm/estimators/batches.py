"""Batches of rows: names that users give, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from ihgmm._checks import check_labels
from ihgmm._parameters import option
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.matrix import Matrix, Tall
from ihgmm.numerics.batches import Batches, learn_batches, without
from ihgmm.policy import Batching


def check_batch_fit(model: Any, X: Matrix, batch: Any) -> np.ndarray:
    """Return the name of each row's batch; raise if X cannot have factors."""
    if model.missing != "error" or model.outliers == "cells":
        raise ValueError(
            "batch cannot be combined with missing cells: leave out "
            f"{option('missing', 'fit')} and {option('outliers', 'cells')}, or fill in "
            "cells first."
        )
    least = X.most_negative() * X.unit
    if least < 0:
        raise ValueError(
            f"The smallest entry of X is {least:.3g}, and a batch multiplies values of "
            "0 or more. Give data before they are centred."
        )
    return check_labels("batch", batch, X.shape[0]).astype(str)


def fit_batches(
    X: Matrix, names: np.ndarray, label: Callable[[Matrix], tuple[Tall, int]]
) -> tuple[Batches, Matrix]:
    """Learn factors of batches; return them, and rows without these."""
    known, codes = np.unique(names, return_inverse=True)
    batches, homes = learn_batches(X, codes, tuple(map(str, known)), label)
    alone = [
        f"{cluster} (batch {known[home]})"
        for cluster, home in enumerate(homes)
        if home >= 0 and len(known) > 1
    ]
    if alone:
        warn(
            f"Some clusters are in one batch alone: {', '.join(alone)}. Nothing tells "
            "what is theirs and what is the batch's, so that they gave no factors. "
            "Look at their rows, or ask for fewer clusters.",
            PreparationWarning,
        )
    return batches, without(X, batches.factors, codes)


def as_without_batches(model: Any, X: Any, batch: Any) -> tuple[Any, Any]:
    """Return a model and its data as if there were no batches, to describe clusters."""
    if not hasattr(model, "batches_"):
        return model, X
    X = model.without_batches(X, batch)
    model = copy(model)
    del model.batches_
    return model, X


def take_out(
    batches: Batches, X: Matrix, batch: Any, label: Callable[[Matrix], Tall]
) -> Matrix:
    """Return new rows without the factors of their batches.

    Rows of a batch that the fit did not have get factors from themselves.
    """
    if batch is None:
        raise ValueError(
            "The model was fitted with batches; give the batch of each row, batch=..., "
            f"one of {', '.join(batches.names)} or a new one."
        )
    if isinstance(batch, str):
        batch = [batch] * X.shape[0]
    names = check_labels("batch", batch, X.shape[0]).astype(str)
    codes, factors = batches.codes(names), batches.factors
    new, sizes = np.unique(names[codes < 0], return_counts=True)
    for name, size in zip(new, sizes, strict=True):
        if size < Batching.NEW_ROWS:
            raise ValueError(
                f"Batch {str(name)!r} was not in the fit and has {size} rows here, "
                "which are too few to learn its factors from; give "
                f"{Batching.NEW_ROWS} at least, or one of the batches "
                f"{', '.join(batches.names)}."
            )
        own = np.flatnonzero(names == name)
        codes[own] = len(factors)
        found = batches.factors_of_new(X.take(own), label)
        factors = np.vstack([factors, found])
    return without(X, factors, codes)
