"""What can be done with tall arrays: a number or a few for each row of the data.

They are where the data are, and a matrix carries the ops of its kind. Bodies are
written once, against the array API standard; :class:`HostOps` has NumPy's quicker ways,
and ``BlockOps`` of ``dask`` does them to blocks of rows. What is small, a number or
a row for each cluster or column, is a NumPy array: ``HOST`` serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from importlib import import_module
from operator import attrgetter, getitem
from typing import Any

import array_api_compat as compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse as sp
from scipy import special

from ihgmm.matrix.threads import in_parts, one_thread, row_ranges

Tall = Any
"""An array of n rows: of NumPy, of dask, or of another library on its device."""
RangeWork = Callable[[slice], Any]


class Ops:
    """Tall arrays of a library that follows the array API standard.

    ``xp`` are the functions of the standard. ``inner`` serves the blocks of rows that
    work is done on, ``taken_ops`` the rows that :meth:`take_rows` takes; both are the
    object itself, except for blocks on a cluster.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.inner: Ops = self
        self.taken_ops: Ops = self

    def __reduce__(self) -> Any:
        return _ops_of_namespace, (self.xp.__name__,)

    def persist(self, a: Tall) -> Tall:
        """Return an array that is used more than once; one of dask is made now."""
        return a

    def to_host(self, a: Any) -> np.ndarray:
        """Return an array as a NumPy array; waits for the device or cluster."""
        return to_host(a)

    def number(self, a: Any) -> float:
        """Return the one number that an array holds; waits for device or cluster."""
        return float(self.to_host(a))

    def to_device(self, a: Any, like: Tall) -> Tall:
        """Return an array where another is, its type unchanged."""
        if is_foreign(a):
            return a
        # Torch warns of arrays that are read-only.
        a = np.require(a, requirements=["C", "W"])
        if min(a.strides, default=0) < 0:  # along an axis of one, and torch takes none
            a = a.copy()
        dtype = self.widest(like) if a.dtype == np.float64 else None
        return self.xp.asarray(a, dtype=dtype, device=compat.device(like))

    def cast_like(self, a: Any, like: Tall) -> Tall:
        """Return an array where another is, in its type."""
        if not is_foreign(a):
            a = np.asarray(a, dtype=self.host_dtype(like))
        return self.xp.astype(self.to_device(a, like), like.dtype, copy=False)

    def host_dtype(self, a: Tall) -> np.dtype:
        """Return float32 or float64, the type of an array as NumPy calls it."""
        if isinstance(a.dtype, np.dtype):
            return a.dtype
        return np.dtype(np.float32 if a.dtype == self.xp.float32 else np.float64)

    def widen(self, a: Tall) -> Tall:
        """Return an array in float64, or in float32 on a device that has no other."""
        return self.xp.astype(a, self.widest(a), copy=False)

    def widest(self, a: Tall) -> Any:
        """Return the type of float64, or of float32 on a device that has no other."""
        # Apple's GPUs know no float64.
        narrow = getattr(getattr(a, "device", None), "type", "") == "mps"
        return self.xp.float32 if narrow else self.xp.float64

    def at_once(self, width: int) -> int:
        """Return how many rows to work on at a time, ``width`` numbers a row."""
        return max(2**12, 2**24 // max(width, 1))

    def map_ranges(self, rows: Tall, width: int, work: RangeWork) -> list[Any]:
        """Return the results of some work on ranges of rows, in order."""
        return [work(r) for r in row_ranges(rows.shape[0], self.at_once(width))]

    def row_map(self, work: Callable[..., Tall], *tall: Tall, width: int = 1) -> Tall:
        """Return lines that ``work(ops, *rows)`` makes, of ``width`` numbers each."""
        n = tall[0].shape[0]
        if n <= self.at_once(width):
            return work(self, *tall)
        line = work(self, *(array[:1, ...] for array in tall))
        shape, device = (n, *line.shape[1:]), compat.device(line)
        out = self.xp.empty(shape, dtype=line.dtype, device=device)

        def part(rows: slice) -> None:
            out[rows, ...] = work(self, *(array[rows, ...] for array in tall))

        self.map_ranges(tall[0], width, part)
        return out

    def take_rows(self, tall: Tall, positions: np.ndarray | slice) -> Tall:
        """Return some rows of a tall array; those of dask come to the host."""
        if isinstance(positions, slice):
            return tall[positions, ...]
        return self.xp.take(tall, self.to_device(positions, tall), axis=0)

    def rows_where(self, tall: Tall, mask: Tall) -> Tall:
        """Return the rows of a tall array where a mask is true."""
        return tall[mask]

    def place(self, values: Tall, where: Tall, others: Tall | None = None) -> Tall:
        """Return values for all rows: these where a mask is true, else others or 0."""
        xp, values = self.xp, self.to_device(values, where)
        if values.shape[0] == 0:  # a line to take, which is nowhere
            shape = (1, *values.shape[1:])
            values = xp.zeros(shape, dtype=values.dtype, device=compat.device(values))
        at = xp.clip(xp.cumulative_sum(xp.astype(where, xp.int64)) - 1, 0, None)
        all_rows = xp.take(values, at, axis=0)
        others = xp.zeros_like(all_rows) if others is None else others
        return xp.where(where if values.ndim == 1 else where[:, None], all_rows, others)

    def stack(self, parts: Sequence[Tall]) -> Tall:
        """Put tall arrays below each other."""
        return parts[0] if len(parts) == 1 else self.xp.concat(parts)

    def beside(self, *parts: Tall) -> Tall:
        """Put tall arrays beside each other."""
        return self.xp.concat(parts, axis=1)

    def tall_dot(self, A: Tall, B: Tall) -> np.ndarray:
        """Return ``A.T @ B`` in float64, on the host."""
        # Products of batches are added up in float64: one sum over millions of rows
        # would lose digits in float32 and keep little of a device busy.
        xp, batch = self.xp, 2**12
        batches = A.shape[0] // batch
        if batches <= 1 or A.shape[1] == 0 or B.shape[1] == 0:
            total = A.T @ B
        else:
            end = batches * batch
            first = xp.reshape(A[:end, :], (batches, batch, A.shape[1]))
            second = xp.reshape(B[:end, :], (batches, batch, B.shape[1]))
            products = xp.matmul(xp.matrix_transpose(first), second)
            total = xp.sum(self.widen(products), axis=0)
            if end < A.shape[0]:
                total = total + self.widen(A[end:, :].T @ B[end:, :])
        return self.to_host(total).astype(np.float64, copy=False)

    def basis_dot(self, Y: Tall, *basis: Tall) -> np.ndarray:
        """Return ``hstack(basis).T @ Y`` without stacking, as :meth:`tall_dot` does."""
        return np.concatenate([self.tall_dot(q, Y) for q in basis])

    def row_dots(self, A: Tall, B: Tall) -> Tall:
        """Return the inner product of each row of A with that of B."""
        return self.xp.sum(A * B, axis=1)

    def row_norms(self, rows: Tall) -> Tall:
        """Return the Euclidean norm of each row, in the rows' type."""
        with np.errstate(over="ignore", under="ignore"):
            return self.xp.sqrt(self.row_dots(rows, rows))

    def unit_rows(self, U: Tall) -> Tall:
        """Return rows scaled to unit Euclidean norm; zero rows stay zero."""
        xp, norms = self.xp, self.row_norms(U)
        info = np.finfo(self.host_dtype(U))
        low, high = float(np.sqrt(info.tiny / info.eps)), float(np.sqrt(info.max))
        if xp.all((norms > low) & (norms < high)):
            return U / norms[:, None]
        # Squares of some rows under- or overflow: divide by the largest entry first.
        U = self.ratio(U, xp.max(xp.abs(U), axis=1)[:, None])
        return self.ratio(U, self.row_norms(U)[:, None])

    def row_max(self, values: Tall) -> Tall:
        """Return the largest entry of each row."""
        return self.xp.max(values, axis=1)

    def column_peaks(self, values: Tall) -> np.ndarray:
        """Return the largest entry of each column, and of their negatives."""
        peaks = self.xp.max(values, axis=0), self.xp.max(-values, axis=0)
        return self.to_host(self.xp.stack(peaks))

    def fix_signs(self, vectors: Tall) -> Tall:
        """Make the entry of largest magnitude of each column positive, in place."""
        high, low = self.column_peaks(vectors)
        vectors *= self.cast_like(np.where(low > high, -1, 1), vectors)
        return vectors

    def ratio(self, a: Any, b: Tall, otherwise: float = 0.0) -> Tall:
        """Return ``a / b`` where b is positive, another number elsewhere."""
        xp, some = self.xp, b > 0
        one = xp.ones_like(b)
        return xp.where(some, a / xp.where(some, b, one), otherwise * one)

    def clip(self, a: Tall, least: Any, most: Any) -> Tall:
        """Return numbers, none less and none more than given; None for no limit."""
        # Block by block: what dask makes of limits itself, GPUs do not take.
        return self.xp.clip(a, least, most)

    def softmax(self, values: Tall) -> Tall:
        """Return exponentials of each row, over their sum."""
        odds = self.xp.exp(values - self.row_max(values)[:, None])
        return odds / self.xp.sum(odds, axis=1, keepdims=True)

    def logsumexp(self, values: Tall) -> Tall:
        """Return the logarithm of the sum of exponentials of each row."""
        peaks = self.row_max(values)
        odds = self.xp.exp(values - peaks[:, None])
        return peaks + self.xp.log(self.xp.sum(odds, axis=1))

    def log_ndtr(self, values: Tall) -> Tall:
        """Return the logarithm of the normal distribution function."""
        if compat.is_torch_array(values):
            return self.xp.special.log_ndtr(values)
        if compat.is_cupy_array(values):
            return import_module("cupyx.scipy.special").log_ndtr(values)
        return self.to_device(special.log_ndtr(self.to_host(values)), values)

    def sign_of(self, values: Tall) -> Tall:
        """Return 1 where values are 0 or more, -1 elsewhere, in their type."""
        one = self.xp.ones_like(values)
        return self.xp.where(values >= 0, one, -one)

    def as_labels(self, labels: Tall) -> Tall:
        """Return labels for users: int32 as of KMeans, of torch what it indexes by."""
        kind = self.xp.int64 if "torch" in self.xp.__name__ else self.xp.int32
        return self.xp.astype(labels, kind, copy=False)

    def pick(self, rows: Tall, labels: Tall) -> Tall:
        """Return one entry of each row, at the column its label says."""
        xp, (n, k) = self.xp, rows.shape
        start = xp.arange(n, dtype=xp.int64, device=compat.device(rows)) * k
        return xp.take(xp.reshape(rows, (-1,)), start + labels)

    def one_hot(self, labels: Tall, n_groups: int, like: Tall) -> Tall:
        """Return a column for each group, in another's type: 1 for its own rows."""
        return self.take_lines(np.eye(n_groups, dtype=self.host_dtype(like)), labels)

    def take_lines(self, table: np.ndarray, labels: Tall) -> Tall:
        """Return for each row the line of a small table that its label says."""
        return self.xp.take(self.to_device(table, labels), labels, axis=0)

    def order_by_size(self, labels: Tall, k: int, weights: Tall = None) -> np.ndarray:
        """Return clusters in the order of decreasing size; ties by first appearance."""
        rows = self.groups(labels, k)
        # Weights have mean 1. Libraries add them up in orders of their own, and
        # rounding must not decide between clusters of one size.
        sizes = rows.sizes if weights is None else rows.sums(weights).round(6)
        first = np.full(k, np.inf)
        if len(np.unique(sizes)) < k:
            back = self.to_host(labels)[::-1]
            first[back] = np.arange(len(back))[::-1]  # the last one written stays
        return np.lexsort((first, -sizes))

    def groups(self, labels: Tall, n_groups: int, weights: Tall = None) -> Groups:
        """Return the groups that labels make; some may be empty."""
        if weights is not None:
            weights = self.to_device(weights, labels)
        sizes = self.group_sums(labels, n_groups).astype(np.intp)
        return Groups(self, labels, weights, sizes)

    def group_sums(self, labels: Tall, n_groups: int, of: Tall = None) -> np.ndarray:
        """Return the sum of values, or the number of rows, of each group."""
        # Beyond the standard, but libraries have it; others leave it to the host.
        count = getattr(self.xp, "bincount", None)
        if count is None:
            of = None if of is None else self.to_host(of)
            return np.bincount(self.to_host(labels), of, n_groups)
        return self.to_host(count(labels, of, minlength=n_groups))

    def group_maxima(self, labels: Tall, n_groups: int, values: Tall) -> np.ndarray:
        """Return the largest value of each group, 0 if none is positive."""
        most = np.zeros(n_groups)
        np.maximum.at(most, self.to_host(labels), self.to_host(values))
        return most

    def sums_of_rows(
        self, labels: Tall, n_groups: int, rows: Tall, weights: Tall
    ) -> np.ndarray:
        """Return the sum of weight times row for each group."""

        def part(some: slice) -> np.ndarray:
            members = self.one_hot(labels[some], n_groups, rows)
            members *= self.cast_like(weights[some], rows)[:, None]
            return self.tall_dot(members, rows[some, ...])

        return sum(self.map_ranges(rows, n_groups, part))

    def many_group_sums(self, labels: Tall, n_groups: int, *values: Tall) -> np.ndarray:
        """Return sums of several values over each group, waiting for them once."""
        return np.array([self.group_sums(labels, n_groups, each) for each in values])

    def largest(self, values: Tall, count: int) -> np.ndarray:
        """Return the positions of the ``count`` largest values, in any order."""
        return self.to_host(self.xp.argsort(values)[values.shape[0] - count :])

    def in_order(self, values: Tall, places: np.ndarray) -> np.ndarray:
        """Return the values at some places of their order."""
        return self.to_host(self.take_rows(self.xp.sort(values), places))

    def draw_rows(self, where: Tall, most: int, rng: np.random.Generator) -> np.ndarray:
        """Return positions, in order, of at most so many rows where a mask is true."""
        n = where.shape[0]
        if self.number(self.xp.count_nonzero(where)) == n:
            return sampled(n, most, rng)
        positions = np.flatnonzero(self.to_host(where))
        return positions[sampled(len(positions), most, rng)]


class HostOps(Ops):
    """Tall arrays of NumPy: the same, by what is quicker there."""

    persist = to_host = staticmethod(np.asarray)
    number = float  # type: ignore[assignment]
    host_dtype = staticmethod(attrgetter("dtype"))  # type: ignore[assignment]
    widen = staticmethod(partial(np.asarray, dtype=np.float64))
    clip = staticmethod(np.clip)  # type: ignore[assignment]
    take_rows = take_lines = staticmethod(getitem)  # type: ignore[assignment]

    def __reduce__(self) -> str:
        return "HOST"

    def to_device(self, a: Any, like: Tall) -> Tall:
        return a if type(a) is np.ndarray else to_host(a)

    def cast_like(self, a: Any, like: Tall) -> Tall:
        return to_host(a).astype(like.dtype, copy=False)

    def at_once(self, width: int) -> int:
        return 2**12

    def map_ranges(self, rows: Tall, width: int, work: RangeWork) -> list[Any]:
        # Ranges, and sums over them, do not depend on how many threads there are.
        if rows.shape[0] < 2**15:
            return super().map_ranges(rows, width, work)
        with one_thread():  # those of BLAS would wait for ours
            return list(in_parts(rows.shape[0], work))

    def row_dots(self, A: Tall, B: Tall) -> Tall:
        return np.einsum("ij,ij->i", A, B)  # several times faster, without a copy

    def row_max(self, values: Tall) -> Tall:
        if values.shape[1] <= 64:
            return reduce(np.maximum, values.T)  # several times faster for short rows
        return values.max(axis=1)

    def sums_of_rows(
        self, labels: Tall, n_groups: int, rows: Tall, weights: Tall
    ) -> np.ndarray:
        n = len(rows)
        if n * n_groups < 2**14:  # to make a sparse matrix would take longer
            members = np.zeros((n_groups, n))
            members[labels, np.arange(n)] = weights
        else:
            members = sp.csc_array((n_groups, n))
            members.data, members.indices = weights, labels
            members.indptr = np.arange(n + 1)
        return np.asarray(members @ rows, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups, and sums over each. Build one with :meth:`Ops.groups`."""

    ops: Ops
    labels: Tall  # the group of each row, from 0
    weights: Tall | None  # how much rows count in means; None: all alike
    sizes: np.ndarray  # rows in each group

    def sums(self, values: Tall) -> np.ndarray:
        """Return the sum of values over each group, in float64."""
        return self.ops.group_sums(self.labels, len(self.sizes), values)

    def spread(self, values: np.ndarray) -> Tall:
        """Return, for each row, the value of its group."""
        return self.ops.take_lines(values, self.labels)

    def row_sums(self, *values: Tall) -> list[Tall]:
        """Return, for each row, the sum of each of some values over its group."""
        sums = self.ops.many_group_sums(self.labels, len(self.sizes), *values)
        return [self.spread(sum_of_values) for sum_of_values in sums]

    def means(self, values: Tall) -> Tall:
        """Return, for each row, the mean of its group."""
        if self.weights is None:
            return self.spread(self.sums(values) / np.maximum(self.sizes, 1))
        totals = self.sums(self.weights * values)
        return self.spread(HOST.ratio(totals, self.sums(self.weights)))

    def counted(self, values: Tall) -> Tall:
        """Return values times how much their rows count."""
        return values if self.weights is None else values * self.weights

    def over_mean(self, values: Tall) -> Tall:
        """Divide by the mean of each group; ones where that is zero."""
        return self.ops.ratio(values, self.means(values), 1.0)

    def weighted_sums(self, X: Any, weights: Tall) -> np.ndarray:
        """Return the sum of weight times row of a matrix for each group."""
        n_groups = len(self.sizes)

        def work(block: Any, labels: Tall, weights: Tall) -> Any:
            ops = block.ops
            # On a device products run best at multiples of eight.
            width = n_groups if ops is HOST else -(-n_groups // 8) * 8
            members = ops.one_hot(labels, width, weights)
            members *= weights[:, None]
            return (), (ops.widen(block.adjoint(members)[:, :n_groups]),)

        _, (sums,) = X.sweep(work, X.to_device(self.labels), X.cast(weights))
        return np.asarray(sums.T.astype(X.dtype))

    def inner_products(self, X: Any, centers: np.ndarray) -> Tall:
        """Return the inner product of each row with the centre of its group."""

        def work(block: Any, labels: Tall) -> Any:
            ops = block.ops
            return (ops.widen(ops.pick(block @ centers.T, labels)),), ()

        (inner,), _ = X.sweep(work, X.to_device(self.labels))
        return self.ops.to_device(inner, self.labels)


HOST = HostOps(numpy_namespace)
"""What serves NumPy arrays, and all that is small."""


@cache
def _ops_of_namespace(name: str) -> Ops:
    return Ops(import_module(name))


def library_ops(a: Any) -> Ops:
    """Return what serves an array of NumPy or of another library, but not of dask."""
    if is_foreign(a):
        return _ops_of_namespace(compat.array_namespace(a).__name__)
    return HOST


def is_foreign(a: Any) -> bool:
    """Tell whether ``a`` is an array of a library other than NumPy and SciPy."""
    if isinstance(a, (np.ndarray, np.generic)) or sp.issparse(a):
        return False
    known = compat.is_torch_array(a) or compat.is_cupy_array(a)
    return known or hasattr(a, "__array_namespace__")


def is_lazy(a: Any) -> bool:
    """Tell whether ``a`` is of dask, without the import of dask."""
    return type(a).__module__.partition(".")[0] == "dask"


def to_host(a: Any) -> np.ndarray:
    """Return any array as a NumPy array; waits for the device or cluster."""
    if type(a) is np.ndarray:
        return a
    if is_lazy(a):
        from ihgmm.matrix.dask_blocks import compute  # only where there is dask

        (a,) = compute(a)
    if not is_foreign(a):
        return np.asarray(a)
    if hasattr(a, "detach"):  # torch
        return np.asarray(a.detach().to_dense().cpu().numpy())
    if compat.is_cupy_array(a):
        return np.asarray(a.get())
    info = compat.array_namespace(a).__array_namespace_info__()
    return np.asarray(compat.to_device(a, info.default_device()))


def row_lengths(rows: Any) -> np.ndarray:
    """Return the norms of few rows, on the host, also where squares would overflow."""
    rows = to_host(rows).astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        return HOST.row_dots(rows, HOST.unit_rows(rows))


def sampled(n: int, size: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """Return the positions of so many of n rows, one from each of as many stretches.

    They are in order, and without a generator always the same. Stretches show all of
    rows that are sorted in some way, and take no longer to draw from many than few.
    """
    if size >= n:
        return np.arange(n)
    rng = np.random.default_rng(0) if rng is None else rng
    edges = np.arange(size + 1) * n // size
    return edges[:-1] + (rng.random(size) * np.diff(edges)).astype(np.int64)
