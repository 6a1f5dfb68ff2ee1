"""Some of the rows of the data: all of them, or those where a mask is true.

Rows are left out of a fit because their weight is 0, because they are outliers, or
because they are zero. What is learnt from the others is brought back to all rows here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix.arrays import Tall, to_host
from ihgmm.matrix.base import Matrix
from ihgmm.matrix.ops import Ops


@dataclass(frozen=True, eq=False)
class RowSubset:
    """Which rows of the data are meant: all of them, or some.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import RowSubset, as_matrix
    >>> X = as_matrix(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0]]))
    >>> nonzero = RowSubset.where(X, X.sqnorms > 0)
    >>> nonzero.positions()
    array([0, 2])
    >>> nonzero.matrix(X).shape
    (2, 2)
    >>> nonzero.scatter(np.array([7, 8]), np.array([-1, -1, -1]))
    array([ 7, -1,  8])
    """

    ops: Ops
    n_rows: int  #: of the data, whether they are in the subset or not
    is_member: Tall | None = None  #: a mask, where the data are; None for all rows

    @classmethod
    def everything(cls, X: Matrix) -> RowSubset:
        """Return the subset of all rows of X."""
        return cls(ops=X.ops, n_rows=X.shape[0])

    @classmethod
    def where(cls, X: Matrix, is_member: Tall) -> RowSubset:
        """Return the rows of X where a mask, on the host or with the data, is true."""
        if X.ops.number(X.ops.xp.all(X.to_device(is_member))):
            return cls.everything(X)
        return cls(ops=X.ops, n_rows=X.shape[0], is_member=X.to_device(is_member))

    @property
    def is_everything(self) -> bool:
        """Whether no row is left out."""
        return self.is_member is None

    @property
    def n_members(self) -> int:
        """How many rows are in the subset."""
        return self.n_rows if self.is_member is None else len(self.positions())

    def positions(self) -> np.ndarray:
        """Return the positions of the rows of the subset, in order, on the host."""
        if self.is_member is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(to_host(self.is_member))

    def matrix(self, X: Matrix) -> Matrix:
        """Return these rows of the data, with what belongs to them."""
        return X if self.is_member is None else X.keep_rows(self.positions())

    def select(self, tall: Tall) -> Tall:
        """Return the lines of these rows, of an array with a line for each row."""
        if self.is_member is None:
            return tall
        return self.ops.rows_where(tall, self.is_member)

    def scatter(self, lines: Tall, others: Tall | None = None) -> Tall:
        """Return an array for all rows: lines of the subset, and others, or 0.

        ``others`` has a line for each row of the data; only those of rows that are not
        in the subset are used.
        """
        if self.is_member is None:
            return lines
        return self.ops.place(lines, self.is_member, others)

    def without(self, is_left_out: Tall) -> RowSubset:
        """Return the rows of the subset where a mask of all rows is not true."""
        is_kept = ~is_left_out
        if self.is_member is not None:
            is_kept = self.is_member & is_kept
        return RowSubset(ops=self.ops, n_rows=self.n_rows, is_member=is_kept)
