"""The data, whatever kind of array it is.

:func:`as_matrix` looks at the data once and returns a :class:`Matrix`, which answers a
few questions about its rows. Nothing outside this folder asks what kind of array there
is. Tall arrays, a number or a few for each row, stay where the data are; ``X.ops``
serves them. Small arrays, one row for each cluster or column, are NumPy arrays.
"""

from ihgmm.matrix.arrays import Tall, to_host
from ihgmm.matrix.base import Gaps, Matrix, Metadata
from ihgmm.matrix.groups import Groups
from ihgmm.matrix.host_ops import HOST, row_lengths
from ihgmm.matrix.kinds import as_matrix, ops_of, recognize
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import Ops
from ihgmm.matrix.row_subset import RowSubset
from ihgmm.matrix.sampling import sample_positions
from ihgmm.matrix.sparse import Sparse
from ihgmm.matrix.stored import Blocks
from ihgmm.matrix.views import (
    Filled,
    MissingIndicator,
    Rooted,
    Scaled,
    Shifted,
    Stretched,
    filled,
    rooted,
    with_gaps,
)

__all__ = [
    "HOST",
    "Blocks",
    "Dense",
    "Filled",
    "Gaps",
    "Groups",
    "Matrix",
    "Metadata",
    "MissingIndicator",
    "Ops",
    "Rooted",
    "RowSubset",
    "Scaled",
    "Shifted",
    "Sparse",
    "Stretched",
    "Tall",
    "as_matrix",
    "filled",
    "ops_of",
    "recognize",
    "rooted",
    "row_lengths",
    "sample_positions",
    "to_host",
    "with_gaps",
]
