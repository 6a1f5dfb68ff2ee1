"""Rows of zeros show no pattern, and get label 0.

Clusters are numbered by decreasing size, so that 0 is the largest, unless known labels
or an older model (``init``) give the numbers. Where the origin is a point like others,
as in :class:`~ihgmm.numerics.recipe.Recipe` without rows of unit norm, rows of zeros
are labelled as other rows are, and nothing here is used.
"""

from ihgmm.matrix import Matrix, RowSubset, Tall

#: The label of a row of zeros, of every method that compares rows by direction.
ZERO_ROW_LABEL = 0


def nonzero_rows(X: Matrix) -> RowSubset:
    """Return the rows of X that show a pattern, from which clusters are learnt."""
    return RowSubset.where(X, X.is_nonzero_row)


def label_zero_rows(X: Matrix, labels: Tall) -> Tall:
    """Return labels of the rows of X, with 0 for those that are zero."""
    return labels * X.ops.xp.astype(X.is_nonzero_row, labels.dtype)
