"""What can be done with tall arrays of NumPy, and with all that is small: ``HOST``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import attrgetter, getitem

import array_api_compat as compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.arrays import AnyArray, Tall, is_foreign, to_host
from ihgmm.matrix.ops import Ops, T, ops_of_namespace
from ihgmm.matrix.threads import in_parts, one_thread


class HostOps(Ops):
    """Tall arrays of NumPy: the same, by what is quicker there."""

    # Functions of Python and NumPy that do what the method says, without a call more.
    persist = staticmethod(np.asarray)
    to_host = staticmethod(np.asarray)
    number = float  # type: ignore[assignment]
    host_dtype = staticmethod(attrgetter("dtype"))  # type: ignore[assignment]
    widen = staticmethod(partial(np.asarray, dtype=np.float64))
    clip = staticmethod(np.clip)  # type: ignore[assignment]
    take_rows = staticmethod(getitem)  # type: ignore[assignment]
    take_lines = staticmethod(getitem)  # type: ignore[assignment]

    def __reduce__(self) -> str:
        return "HOST"

    def to_device(self, a: AnyArray, like: Tall) -> AnyArray:
        return a if type(a) is np.ndarray else to_host(a)

    def cast_like(self, a: AnyArray, like: Tall) -> AnyArray:
        array = a if type(a) is np.ndarray else to_host(a)
        return array.astype(like.dtype, copy=False)

    def rows_at_once(self, width: int) -> int:
        return 2**12

    def map_ranges(
        self, n_rows: int, width: int, work: Callable[[slice], T]
    ) -> list[T]:
        # Ranges, and sums over them, do not depend on how many threads there are.
        if n_rows < 2**15:
            return super().map_ranges(n_rows, width, work)

        with one_thread():  # those of BLAS would wait for ours
            return list(in_parts(n_rows, work))

    def row_dots(self, A: Tall, B: Tall) -> Tall:
        return np.einsum("ij,ij->i", A, B)  # several times faster, without a copy

    def row_max(self, values: Tall) -> Tall:
        if values.shape[1] <= 64:
            return reduce(np.maximum, values.T)  # several times faster for short rows
        return values.max(axis=1)

    def kth_smallest(self, values: Tall, position: int) -> Tall:
        return np.partition(values, position, axis=1)[:, position]

    def sums_of_rows(
        self, labels: Tall, n_groups: int, rows: Tall, weights: Tall
    ) -> np.ndarray:
        n = len(rows)

        if n * n_groups < 2**14:  # to make a sparse matrix would take longer
            members = np.zeros((n_groups, n))
            members[labels, np.arange(n)] = weights
        else:
            members = sp.csc_array((n_groups, n))
            members.data = weights
            members.indices = labels
            members.indptr = np.arange(n + 1)

        return np.asarray(members @ rows, dtype=np.float64)


HOST = HostOps(numpy_namespace)
"""What serves NumPy arrays, and all that is small."""


def library_ops(a: AnyArray) -> Ops:
    """Return what serves an array of NumPy or of another library, but not of dask."""
    if is_foreign(a):
        return ops_of_namespace(compat.array_namespace(a).__name__)
    return HOST


def row_lengths(rows: AnyArray) -> np.ndarray:
    """Return the norms of few rows, on the host, also where squares would overflow."""
    rows = to_host(rows).astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        return HOST.row_dots(rows, HOST.unit_rows(rows))
