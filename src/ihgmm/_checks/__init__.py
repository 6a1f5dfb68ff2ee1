"""Checks of what users give, and warnings of what it shows, by subject.

``data`` opens and checks X; ``labels`` and ``weights`` check what goes with its rows,
and ``names`` what its columns and rows are called. ``models`` is for functions that
take a fitted model in the place of labels, and ``fits`` for what every fit asks.
"""

from ihgmm._checks.data import check_matrix, count_rows, open_matrix
from ihgmm._checks.fits import (
    check_row_count,
    warn_empty_clusters,
    warn_missing,
    warn_negative_entries,
    warn_unstable_labels,
    warn_zero_rows,
)
from ihgmm._checks.labels import check_labels, is_outlier, label_array, labelled_rows
from ihgmm._checks.models import (
    check_fit_shape,
    complete_matrix,
    data_and_labels,
    is_model,
    last_step,
    refuse_model,
    roots_of,
    turned_rows,
)
from ihgmm._checks.names import feature_names, names_of, text_of
from ihgmm._checks.weights import check_weights, counted_rows, warn_few_weighty_rows

__all__ = [
    "check_fit_shape",
    "check_labels",
    "check_matrix",
    "check_row_count",
    "check_weights",
    "complete_matrix",
    "count_rows",
    "counted_rows",
    "data_and_labels",
    "feature_names",
    "is_model",
    "is_outlier",
    "label_array",
    "labelled_rows",
    "last_step",
    "names_of",
    "open_matrix",
    "refuse_model",
    "roots_of",
    "text_of",
    "turned_rows",
    "warn_empty_clusters",
    "warn_few_weighty_rows",
    "warn_missing",
    "warn_negative_entries",
    "warn_unstable_labels",
    "warn_zero_rows",
]
