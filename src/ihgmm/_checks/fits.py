"""What every fit asks of its rows and clusters: errors and warnings."""

from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from ihgmm._checks.data import count_rows
from ihgmm._parameters import call, option
from ihgmm._warnings import (
    ClusterCountWarning,
    PreparationWarning,
    UnstableLabelsWarning,
    warn,
)
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.matrix.materialized import Materialized
from ihgmm.policy import Roots


def check_row_count(
    n_samples: int, n_clusters: int, n_nonzero: int | None = None
) -> None:
    """Raise when there are fewer rows, or fewer that are not zero, than clusters."""
    n_usable = n_samples if n_nonzero is None else n_nonzero
    if n_clusters <= n_usable:
        return

    limit = f"the {n_usable:,} rows of X that are not zero"
    if n_clusters > n_samples:
        n_usable = n_samples
        limit = option("n_samples", n_samples)

    raise ValueError(
        f"{option('n_clusters', n_clusters)} is more than {limit}; give at most "
        f"{n_usable} clusters, or more rows."
    )


def warn_missing(X: Matrix, names: Any = None) -> int:
    """Name columns without an observed cell; return how many rows have none."""
    if not np.isnan(X.ops.number(X.ops.xp.sum(X.sqnorms))):
        return 0

    def count_missing(block: Matrix) -> tuple[np.ndarray, int]:
        """Return missing cells of each column, and rows without an observed cell."""
        missing = block.missing()
        is_empty_row = to_host(missing.sqnorms) == block.shape[1]
        return missing.column_sqnorms(), int(np.count_nonzero(is_empty_row))

    counts = list(X.map(count_missing))
    missing_cells = sum(of_columns for of_columns, _ in counts)  # (n_features,)

    empty_columns = np.flatnonzero(missing_cells == X.shape[0])
    if len(empty_columns):
        columns = empty_columns[:5].tolist()
        if names is not None:
            columns = [names[j] for j in columns]
        listed = ", ".join(map(repr, columns)) + ", ..." * (len(empty_columns) > 5)
        warn(
            f"{len(empty_columns):,} of {X.shape[1]:,} columns of X have no observed "
            f"cell: {listed}. They are filled with zeros; leave them out.",
            DataConversionWarning,
        )

    return sum(n_empty_rows for _, n_empty_rows in counts)


def warn_zero_rows(X: Matrix, n_unobserved: int = 0) -> int:
    """Return how many rows are not zero; warn of zero ones, raise if all are.

    ``n_unobserved`` rows have no observed cell, and are zero for that reason.
    """
    n_nonzero = count_rows(X, X.sqnorms)
    n_zero = X.shape[0] - n_nonzero
    if not n_nonzero:
        raise ValueError(
            f"All {n_zero:,} rows of X are zero: they show no pattern to cluster by. "
            "Check how X was read or preprocessed."
        )

    if n_zero:
        are_zero = "are zero"
        if n_zero <= n_unobserved:
            are_zero = "have no observed cell"
        elif X.gaps is not None:
            are_zero = "have nothing but zeros or empty cells"
        warn(
            f"{n_zero:,} of {X.shape[0]:,} rows {are_zero}. They show no pattern, and "
            "their labels mean nothing; drop them if they should not be labelled.",
            DataConversionWarning,
        )

    return n_nonzero


def warn_negative_entries(X: Matrix) -> None:
    """Warn of many negative entries in later rows of a model that compares roots.

    A few of them do no harm: their root has their sign.
    """

    def count_signs(block: Materialized) -> np.ndarray:
        """Return how many entries of each column are below 0, and not 0."""
        signs = block.where_negative(), block.where_nonzero()
        return np.stack([where.column_sqnorms() for where in signs])

    n_negative, n_nonzero = X.sum_blocks(count_signs).sum(axis=1)
    if n_negative <= Roots.NEGATIVE * n_nonzero:
        return

    warn(
        f"Of the entries of X that are not 0, {n_negative / n_nonzero:.1%} are "
        "negative. The model compares roots of rows, since those of its fit had hardly "
        "any, and labels of such rows may be wrong. Prepare them as the rows of the "
        f"fit, or fit to all rows anew, with {option('columns', 'given')}.",
        PreparationWarning,
    )


def warn_unstable_labels(missing: str | None, remedy: str = "") -> None:
    """Warn of labels that fits to other rows would change, and say what may help."""
    if not remedy:
        tree = (
            "cluster_tree(X, missing='fit')" if missing == "fit" else "cluster_tree(X)"
        )
        remedy = (
            "Look at diagnose(X, model), or ask for another number of clusters: "
            f"{tree} shows which are stable, if any; give it X as prepared for this "
            "fit."
        )

    warn(
        "Labels may be unstable: fits to halves of the rows doubt many of them. "
        f"{remedy}",
        UnstableLabelsWarning,
    )


def warn_empty_clusters(X: Matrix, labels: Tall, n_clusters: int) -> bool:
    """Return whether some clusters of the rows of X have no rows, with a warning."""
    cluster_sizes = X.ops.groups(labels, n_clusters).sizes
    n_used = int(np.count_nonzero(cluster_sizes))
    if n_used == n_clusters:
        return False

    warn(
        f"Rows are in {n_used} of {option('n_clusters', n_clusters)} clusters; the "
        f"others are empty. Ask for fewer clusters ({call('select_n_clusters')} "
        "counts them), or look for duplicates in X.",
        ClusterCountWarning,
    )

    return True
