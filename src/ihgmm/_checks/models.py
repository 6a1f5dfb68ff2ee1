"""Functions that take data and labels take a fitted model in the place of labels."""

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from ihgmm._checks.data import check_matrix
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.matrix import HOST, Matrix, Scaled, row_lengths, to_host
from ihgmm.numerics.missing import Filler
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.roots import RootColumns
from ihgmm.policy import Small


def is_model(value: Any) -> bool:
    """Tell estimators from arrays and tables, which may have a column named "fit"."""
    acts_as_model = hasattr(value, "fit") or hasattr(value, "labels_")
    return acts_as_model and not hasattr(value, "shape")


def refuse_model(X: Any) -> None:
    """Raise if a model is given where the data belong."""
    if is_model(X):
        raise TypeError(
            f"X is of type {type(X).__name__}, which is no data; give the data first, "
            "then the model or labels."
        )


def data_and_labels(X: Any, labels: Any, *, whitened: bool = False) -> tuple[Any, Any]:
    """Return data and labels.

    A fitted model may stand for labels. X is then as its last step had it, with missing
    cells filled in and, if ``whitened``, with noise made alike.
    """
    refuse_model(X)
    if not is_model(labels):
        return X, labels

    X, model, *_ = last_step(X, labels)
    if not hasattr(model, "labels_"):
        name = type(model).__name__
        raise ValueError(f"This {name} has no labels_; fit it first, or give labels.")

    if hasattr(model, "preparation_"):
        X = complete_matrix(X, model, whitened=whitened)
    # Scales are not those of whitened rows. A model that has grown has no whitening.
    has_grown = hasattr(model, "growth_")
    has_scales = hasattr(model, "scales_") and not whitened
    if has_scales or has_grown:
        _check_rows_of_fit(check_matrix(X), model, has_grown)

    return X, model.labels_


def _check_rows_of_fit(data: Matrix, model: Any, has_grown: bool) -> None:
    """Raise or warn if the scales that a model found are not those of these rows."""
    labels = to_host(model.labels_)
    fit_shape = (len(labels), model.cluster_centers_.shape[1])
    if fit_shape != data.shape:
        return  # for which callers raise
    if data.streamed and not has_grown:
        return  # a warning is not worth another reading

    # At most fifty rows, evenly spread among those that are in clusters.
    clustered_rows = np.flatnonzero(labels >= 0)
    spread = np.linspace(0, len(clustered_rows) - 1, 50, dtype=np.intp)
    rows = clustered_rows[np.unique(spread)]
    sample = to_host(data.rows(rows))
    centers = to_host(model.cluster_centers_)[labels[rows]]  # one for each row

    # The length of each row along its centre: as it is here, and as it was in the fit.
    lengths = np.einsum("ij,ij->i", sample, HOST.unit_rows(centers), dtype=float)
    fit_scales = np.abs(to_host(model.scales_)[rows])
    fit_lengths = fit_scales * row_lengths(centers) / data.unit
    largest_difference = np.abs(lengths.clip(0) - fit_lengths).max(initial=0.0)
    if has_grown and largest_difference > 1e-2 * fit_lengths.max(initial=0.0):
        raise ValueError(
            "X is not the rows of the last partial_fit, which labels_ and scales_ are "
            "of; give those, or labels of these rows: model.predict(X)."
        )

    # By least squares.
    squares = max(fit_lengths @ fit_lengths, Small.TINY)
    ratio = float(np.abs(lengths) @ fit_lengths / squares)
    if not 0.5 < ratio < 2 and fit_lengths.any():
        warn(
            f"Rows of X are {ratio:.2g} times as large as those of the fit were. Give "
            "the data of the fit: the same rows in the same units, such as one layer.",
            PreparationWarning,
        )


def complete_matrix(
    X: Any, model: Any, *, of_fit: bool = True, whitened: bool = False
) -> Matrix:
    """Return data with cells filled in and rows turned, as a fitted model had them.

    Only rows ``of_fit`` are turned. Data are ``whitened`` where labels are judged, by
    what they were made from; all else is in the user's units.
    """
    data = check_matrix(X, missing=getattr(model, "missing", None))
    for change in getattr(model, "preparation_", ()):
        if whitened or isinstance(change, Filler):
            data = change(data)
    return turned_rows(data, model) if of_fit else data


def roots_of(model: Any) -> RootColumns | None:
    """Return how a fitted model takes roots of rows; None if it does not, or labels."""
    placement = getattr(model, "placement_", None)
    return placement.embedding.roots if isinstance(placement, Placement) else None


def turned_rows(data: Matrix, model: Any) -> Matrix:
    """Return rows of a fit; a signed model's, turned to the side of their centre."""
    if not getattr(model, "signed", False):
        return data

    signs = np.where(to_host(model.scales_) < 0, -1.0, 1.0)
    if len(signs) != data.shape[0]:
        return data
    return Scaled(data, rows=data.cast(signs))


def last_step(
    X: Any, model: Any, names: Any = None, original: Any = None
) -> tuple[Any, Any, Any, Any]:
    """Return the last step of a pipeline, and what it was given by the steps before.

    Any model that is no pipeline stays as it is, and so does all else.

    Parameters
    ----------
    X : array-like, or None
        The data of the pipeline.
    model : estimator or pipeline
        The model, or any labels.
    names : sequence, optional
        Names of the columns that the last step sees, if the user gave some.
    original : array-like, optional
        The data in units that people know, if the user gave some.

    Returns
    -------
    X, model
        The data of the last step, and this step.
    names
        Names of its columns, if the steps before it name them.
    original
        The data before all steps at the end that keep the columns and only change
        cells, such as weights of words: often X itself.
    """
    if not (is_model(model) and hasattr(model, "steps")):
        return X, model, names, original

    *steps_before, (_, last) = model.steps
    if not steps_before:
        return X, last, names, original

    if original is None and X is not None:
        keeps_columns = [
            isinstance(step, OneToOneFeatureMixin) for _, step in steps_before
        ]
        # After the last step that makes other columns.
        start = max(np.flatnonzero(np.logical_not(keeps_columns)) + 1, default=0)
        if start < len(steps_before):
            original = model[:start].transform(X) if start else X

    if names is None:
        with suppress(AttributeError, ValueError):  # some steps name no columns
            names = model[:-1].get_feature_names_out()
    if X is not None:
        X = model[:-1].transform(X)

    return X, last, names, original


def check_fit_shape(name: str, data: Matrix, model: Any) -> None:
    """Raise unless data have the rows, and the columns, of the fit of a model."""
    n, p = data.shape
    # The model may be labels itself.
    n_fit_rows = len(to_host(getattr(model, "labels_", model)))
    n_fit_columns = getattr(model, "n_features_in_", p)
    if (n, p) != (n_fit_rows, n_fit_columns):
        raise ValueError(
            f"{name} has {n} rows and {p} features, and the labels of the model are of "
            f"{n_fit_rows} and {n_fit_columns}; give those of the fit, or of the last "
            "partial_fit."
        )
