"""What can be done with tall arrays: a number or a few for each row of the data.

They are where the data are, and a matrix carries the ops of its kind. Bodies are
written once, against the array API standard; ``HostOps`` of ``host_ops`` has NumPy's
quicker ways, and ``BlockOps`` of ``dask`` does them to blocks of rows. What is small, a
number or a row for each cluster or column, is a NumPy array: ``HOST`` serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import array_api_compat as compat
import numpy as np
from scipy import special

from ihgmm.matrix.arrays import AnyArray, Tall, is_foreign, to_host
from ihgmm.matrix.groups import Groups
from ihgmm.matrix.sampling import sample_positions
from ihgmm.matrix.threads import row_ranges

T = TypeVar("T")


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

    def __reduce__(self) -> str | tuple[Any, ...]:
        return ops_of_namespace, (self.xp.__name__,)

    # Where arrays are, and of which type.

    def persist(self, a: Tall) -> Tall:
        """Return an array that is used more than once; one of dask is made now."""
        return a

    def to_host(self, a: AnyArray) -> np.ndarray:
        """Return an array as a NumPy array; waits for the device or cluster."""
        return to_host(a)

    def number(self, a: AnyArray) -> float:
        """Return the one number that an array holds; waits for device or cluster."""
        return float(self.to_host(a))

    def to_device(self, a: AnyArray, like: Tall) -> AnyArray:
        """Return an array where another is, its type unchanged."""
        if is_foreign(a):
            return a

        # Torch warns of arrays that are read-only.
        a = np.require(a, requirements=["C", "W"])
        if min(a.strides, default=0) < 0:  # along an axis of one, and torch takes none
            a = a.copy()

        dtype = self.widest(like) if a.dtype == np.float64 else None
        return self.xp.asarray(a, dtype=dtype, device=compat.device(like))

    def cast_like(self, a: AnyArray, like: Tall) -> AnyArray:
        """Return an array where another is, in its type."""
        if not is_foreign(a):
            a = np.asarray(a, dtype=self.host_dtype(like))
        return self.xp.astype(self.to_device(a, like), like.dtype, copy=False)

    def host_dtype(self, a: AnyArray) -> np.dtype:
        """Return float32 or float64, the type of an array as NumPy calls it."""
        if isinstance(a.dtype, np.dtype):
            return a.dtype
        return np.dtype(np.float32 if a.dtype == self.xp.float32 else np.float64)

    def widen(self, a: AnyArray) -> AnyArray:
        """Return an array in float64, or in float32 on a device that has no other."""
        return self.xp.astype(a, self.widest(a), copy=False)

    def widest(self, a: AnyArray) -> Any:
        """Return the type of float64, or of float32 on a device that has no other."""
        # Apple's GPUs know no float64.
        device_type = getattr(getattr(a, "device", None), "type", "")
        return self.xp.float32 if device_type == "mps" else self.xp.float64

    # Work on ranges of rows, where more would take too much memory.

    def rows_at_once(self, width: int) -> int:
        """Return how many rows to work on at a time, ``width`` numbers a row."""
        return max(2**12, 2**24 // max(width, 1))

    def map_ranges(
        self, n_rows: int, width: int, work: Callable[[slice], T]
    ) -> list[T]:
        """Return the results of some work on ranges of rows, in order."""
        ranges = row_ranges(n_rows, self.rows_at_once(width))
        return [work(rows) for rows in ranges]

    def row_map(self, work: Callable[..., Tall], *tall: Tall, width: int = 1) -> Tall:
        """Return lines that ``work(ops, *rows)`` makes, of ``width`` numbers each."""
        n = tall[0].shape[0]
        if n <= self.rows_at_once(width):
            return work(self, *tall)

        # The first line shows what kind of lines there will be.
        line = work(self, *(array[:1, ...] for array in tall))
        shape = (n, *line.shape[1:])
        lines = self.xp.empty(shape, dtype=line.dtype, device=compat.device(line))

        def write(rows: slice) -> None:
            lines[rows, ...] = work(self, *(array[rows, ...] for array in tall))

        self.map_ranges(n, width, write)
        return lines

    # Some of the rows, and rows or columns put together.

    def take_rows(self, tall: Tall, positions: np.ndarray | slice) -> Tall:
        """Return some rows of a tall array; those of dask come to the host."""
        if isinstance(positions, slice):
            return tall[positions, ...]

        return self.xp.take(tall, self.to_device(positions, tall), axis=0)

    def rows_where(self, tall: Tall, is_member: Tall) -> Tall:
        """Return the rows of a tall array where a mask is true."""
        return tall[is_member]

    def place(self, lines: Tall, is_member: Tall, others: Tall | None = None) -> Tall:
        """Return an array for all rows: lines where a mask is true, else others or 0.

        ``lines`` has a line for each row where the mask is true, ``others`` for every
        row.
        """
        xp = self.xp
        lines = self.to_device(lines, is_member)
        if lines.shape[0] == 0:  # a line to take, which is nowhere
            shape = (1, *lines.shape[1:])
            lines = xp.zeros(shape, dtype=lines.dtype, device=compat.device(lines))

        # A row takes the line of the last member at or before it.
        n_members_so_far = xp.cumulative_sum(xp.astype(is_member, xp.int64))
        all_rows = xp.take(lines, xp.clip(n_members_so_far - 1, 0, None), axis=0)
        if others is None:
            others = xp.zeros_like(all_rows)

        is_taken = is_member if lines.ndim == 1 else is_member[:, None]
        return xp.where(is_taken, all_rows, others)

    def draw_rows(
        self, is_member: Tall, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return positions, in order, of at most ``size`` rows where a mask is true."""
        n = is_member.shape[0]
        if self.number(self.xp.count_nonzero(is_member)) == n:
            return sample_positions(n, size, rng)

        positions = np.flatnonzero(self.to_host(is_member))
        return positions[sample_positions(len(positions), size, rng)]

    def stack(self, parts: Sequence[Tall]) -> Tall:
        """Put tall arrays below each other."""
        return parts[0] if len(parts) == 1 else self.xp.concat(parts)

    def beside(self, *parts: Tall) -> Tall:
        """Put tall arrays beside each other."""
        return self.xp.concat(parts, axis=1)

    # Products over rows, which come to the host.

    def tall_dot(self, A: Tall, B: Tall) -> np.ndarray:
        """Return ``A.T @ B`` in float64, on the host.

        Products of batches of rows are added up in float64: one sum over millions of
        rows would lose digits in float32 and keep little of a device busy.
        """
        xp = self.xp
        batch_size = 2**12
        n_batches = A.shape[0] // batch_size

        if n_batches <= 1 or A.shape[1] == 0 or B.shape[1] == 0:
            total = A.T @ B
            return self.to_host(total).astype(np.float64, copy=False)

        end = n_batches * batch_size
        batches_of_A = xp.reshape(A[:end, :], (n_batches, batch_size, A.shape[1]))
        batches_of_B = xp.reshape(B[:end, :], (n_batches, batch_size, B.shape[1]))
        products = xp.matmul(xp.matrix_transpose(batches_of_A), batches_of_B)

        total = xp.sum(self.widen(products), axis=0)
        if end < A.shape[0]:
            total = total + self.widen(A[end:, :].T @ B[end:, :])

        return self.to_host(total).astype(np.float64, copy=False)

    def basis_dot(self, Y: Tall, *basis: Tall) -> np.ndarray:
        """Return ``hstack(basis).T @ Y`` without stacking, as :meth:`tall_dot` does."""
        return np.concatenate([self.tall_dot(vectors, Y) for vectors in basis])

    # Numbers of each row, made of that row alone.

    def row_dots(self, A: Tall, B: Tall) -> Tall:
        """Return the inner product of each row of A with that of B."""
        return self.xp.sum(A * B, axis=1)

    def row_norms(self, rows: Tall) -> Tall:
        """Return the Euclidean norm of each row, in the rows' type."""
        with np.errstate(over="ignore", under="ignore"):
            return self.xp.sqrt(self.row_dots(rows, rows))

    def unit_rows(self, U: Tall) -> Tall:
        """Return rows scaled to unit Euclidean norm; zero rows stay zero."""
        xp = self.xp
        norms = self.row_norms(U)

        # Of norms between these, no square has over- or underflowed.
        info = np.finfo(self.host_dtype(U))
        lower = float(np.sqrt(info.tiny / info.eps))
        upper = float(np.sqrt(info.max))
        if xp.all((norms > lower) & (norms < upper)):
            return U / norms[:, None]

        # Else rows are first divided by their largest entry.
        U = self.ratio(U, xp.max(xp.abs(U), axis=1)[:, None])
        return self.ratio(U, self.row_norms(U)[:, None])

    def row_max(self, values: Tall) -> Tall:
        """Return the largest entry of each row."""
        return self.xp.max(values, axis=1)

    def kth_smallest(self, values: Tall, position: int) -> Tall:
        """Return the entry of each row that has this position once they are sorted."""
        return self.xp.sort(values, axis=1)[:, position]

    def ratio(self, a: AnyArray, b: Tall, otherwise: float = 0.0) -> Tall:
        """Return ``a / b`` where b is positive, another number elsewhere."""
        xp = self.xp
        ones = xp.ones_like(b)
        is_positive = b > 0
        quotients = a / xp.where(is_positive, b, ones)
        return xp.where(is_positive, quotients, otherwise * ones)

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
        ones = self.xp.ones_like(values)
        return self.xp.where(values >= 0, ones, -ones)

    # Columns.

    def column_peaks(self, values: Tall) -> np.ndarray:
        """Return the largest entry of each column, and of their negatives.

        Returns
        -------
        ndarray of shape (2, n_columns)
        """
        peaks = self.xp.max(values, axis=0), self.xp.max(-values, axis=0)
        return self.to_host(self.xp.stack(peaks))

    def fix_signs(self, vectors: Tall) -> Tall:
        """Make the entry of largest magnitude of each column positive, in place."""
        peaks, negative_peaks = self.column_peaks(vectors)
        signs = np.where(negative_peaks > peaks, -1, 1)
        vectors *= self.cast_like(signs, vectors)
        return vectors

    # Labels, and sums over the rows of each.

    def as_labels(self, labels: Tall) -> Tall:
        """Return labels for users: int32 as of KMeans, of torch what it indexes by."""
        is_torch = "torch" in self.xp.__name__
        integer_type = self.xp.int64 if is_torch else self.xp.int32
        return self.xp.astype(labels, integer_type, copy=False)

    def pick(self, rows: Tall, labels: Tall) -> Tall:
        """Return one entry of each row, at the column its label says."""
        xp = self.xp
        n, k = rows.shape
        row_starts = xp.arange(n, dtype=xp.int64, device=compat.device(rows)) * k
        return xp.take(xp.reshape(rows, (-1,)), row_starts + labels)

    def one_hot(self, labels: Tall, n_groups: int, like: Tall) -> Tall:
        """Return a column for each group, in another's type: 1 for its own rows."""
        return self.take_lines(np.eye(n_groups, dtype=self.host_dtype(like)), labels)

    def take_lines(self, table: np.ndarray, labels: Tall) -> Tall:
        """Return for each row the line of a small table that its label says."""
        return self.xp.take(self.to_device(table, labels), labels, axis=0)

    def order_by_size(
        self, labels: Tall, k: int, weights: Tall | None = None
    ) -> np.ndarray:
        """Return clusters in the order of decreasing size; ties by first appearance."""
        clusters = self.groups(labels, k)
        sizes = clusters.sizes
        if weights is not None:
            # Weights have mean 1. Libraries add them up in orders of their own, and
            # rounding must not decide between clusters of one size.
            sizes = clusters.sums(weights).round(6)

        first_rows = np.full(k, np.inf)
        if len(np.unique(sizes)) < k:
            # Of rows that are written from the last to the first, the first one stays.
            labels_backwards = self.to_host(labels)[::-1]
            first_rows[labels_backwards] = np.arange(len(labels_backwards))[::-1]

        return np.lexsort((first_rows, -sizes))

    def groups(
        self, labels: Tall, n_groups: int, weights: Tall | None = None
    ) -> Groups:
        """Return the groups that labels make; some may be empty."""
        if weights is not None:
            weights = self.to_device(weights, labels)

        sizes = self.group_sums(labels, n_groups).astype(np.intp)
        return Groups(ops=self, labels=labels, weights=weights, sizes=sizes)

    def group_sums(
        self, labels: Tall, n_groups: int, of: Tall | None = None
    ) -> np.ndarray:
        """Return the sum of values, or the number of rows, of each group."""
        # Beyond the standard, but libraries have it; others leave it to the host.
        bincount = getattr(self.xp, "bincount", None)
        if bincount is None:
            of = None if of is None else self.to_host(of)
            return np.bincount(self.to_host(labels), of, n_groups)

        return self.to_host(bincount(labels, of, minlength=n_groups))

    def many_group_sums(self, labels: Tall, n_groups: int, *values: Tall) -> np.ndarray:
        """Return sums of several values over each group, waiting for them once."""
        return np.array([self.group_sums(labels, n_groups, each) for each in values])

    def group_maxima(self, labels: Tall, n_groups: int, values: Tall) -> np.ndarray:
        """Return the largest value of each group, 0 if none is positive."""
        maxima = np.zeros(n_groups)
        np.maximum.at(maxima, self.to_host(labels), self.to_host(values))
        return maxima

    def sums_of_rows(
        self, labels: Tall, n_groups: int, rows: Tall, weights: Tall
    ) -> np.ndarray:
        """Return the sum of weight times row for each group.

        Returns
        -------
        ndarray of shape (n_groups, n_columns), float64
        """

        def sum_range(part: slice) -> np.ndarray:
            members = self.one_hot(labels[part], n_groups, rows)
            members *= self.cast_like(weights[part], rows)[:, None]
            return self.tall_dot(members, rows[part, ...])

        sums = self.map_ranges(rows.shape[0], n_groups, sum_range)
        return np.asarray(sum(sums))

    # Order.

    def largest(self, values: Tall, count: int) -> np.ndarray:
        """Return the positions of the ``count`` largest values, in any order."""
        order = self.xp.argsort(values)
        return self.to_host(order[values.shape[0] - count :])

    def in_order(self, values: Tall, ranks: np.ndarray) -> np.ndarray:
        """Return the values at some places of their order."""
        return self.to_host(self.take_rows(self.xp.sort(values), ranks))


@cache
def ops_of_namespace(name: str) -> Ops:
    """Return what serves arrays of a namespace of the standard, by its name."""
    return Ops(import_module(name))
