"""The data, whatever kind of array it is.

:func:`as_matrix` looks at the data once and returns a :class:`Matrix`, which answers a
few questions about its rows. Nothing outside this folder asks what kind of array there
is. Tall arrays, a number or a few for each row, stay where the data are; ``X.ops``
serves them. Small arrays, one row for each cluster or column, are NumPy arrays.
"""

from ihgmm.matrix.base import About, Gaps, Matrix
from ihgmm.matrix.kinds import as_matrix, ops_of, recognize
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import HOST, Ops, Tall, to_host
from ihgmm.matrix.row_subset import RowSubset
from ihgmm.matrix.sparse import Sparse
from ihgmm.matrix.stored import Blocks
from ihgmm.matrix.views import Filled, Scaled, Shifted, Stretched, filled, with_gaps

__all__ = [
    "HOST",
    "About",
    "Blocks",
    "Dense",
    "Filled",
    "Gaps",
    "Matrix",
    "Ops",
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
    "to_host",
    "with_gaps",
]
