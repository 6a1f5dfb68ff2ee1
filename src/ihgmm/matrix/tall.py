"""Tall arrays: a number or a few for each row of the data, where the data are.

They are arrays of NumPy, of another library on its device, or of dask, whose blocks are
on the workers of a cluster. Each function here has one body, written against the array
API standard; for dask it works on blocks. What is small, a number or a row for each
cluster or column, is a NumPy array on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce, wraps
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeVar, cast

import array_api_compat as compat
import numpy as np
import scipy.sparse as sp
from scipy import special

from ihgmm.matrix.threads import in_parts, one_thread

F = TypeVar("F", bound=Callable[..., Any])
Tall = Any
"""An array of n rows: of NumPy, of dask, or of another library on its device."""


namespace = compat.array_namespace
"""Returns the functions of the array API standard that go with an array."""


def is_foreign(a: Any) -> bool:
    """Tell whether ``a`` is an array of a library other than NumPy and SciPy."""
    if isinstance(a, (np.ndarray, np.generic)) or sp.issparse(a):
        return False
    known = compat.is_torch_array(a) or compat.is_cupy_array(a)
    return known or hasattr(a, "__array_namespace__")


def is_lazy(a: Any) -> bool:
    """Tell whether ``a`` is a dask array, without the import of dask."""
    return type(a).__module__.partition(".")[0] == "dask"


def is_tall(a: Any) -> bool:
    """Tell whether ``a`` is an array of a library other than NumPy, or of dask."""
    return is_foreign(a) or (is_lazy(a) and hasattr(a, "chunks"))


def _lazy() -> Any:
    """Return what works on blocks of dask arrays, once there are some."""
    from ihgmm.matrix import dask_ops

    return dask_ops


def by_block(function: F) -> F:
    """Make a function of tall arrays, row by row, work on blocks of dask arrays."""

    @wraps(function)
    def on_any(*given: Any) -> Any:
        if any(map(is_lazy, given)):
            return _lazy().map_blocks(function, *_aligned(given))
        return function(*given)

    return cast(F, on_any)


def summed(function: F) -> F:
    """Make a function that sums over rows, to the host, work on blocks of dask."""

    @wraps(function)
    def on_any(*given: Any) -> Any:
        if any(map(is_lazy, given)):
            return _lazy().sum_blocks(function, *_aligned(given))
        return function(*given)

    return cast(F, on_any)


def _aligned(given: Sequence[Any]) -> list[Any]:
    """Put arrays of the host that have as many rows as dask arrays in their blocks."""
    like = next(each for each in given if is_lazy(each))
    host = [isinstance(each, np.ndarray) for each in given]
    return [
        to_device(each, like) if numpy else each
        for each, numpy in zip(given, host, strict=True)
    ]


def keep(a: Tall) -> Tall:
    """Return an array that is used more than once; one of dask is made now."""
    return _lazy().keep(a) if is_lazy(a) else a


def number(a: Any) -> float:
    """Return the one number that an array holds; waits for the device or cluster."""
    return float(to_host(a))


def to_host(a: Any) -> np.ndarray:
    """Return any array as a NumPy array; waits for the device or cluster.

    Examples
    --------
    >>> from ihgmm.matrix import to_host
    >>> to_host([1.0, 2.0])
    array([1., 2.])
    """
    if type(a) is np.ndarray:
        return a
    if is_lazy(a):
        return to_host(_lazy().compute(a)[0])
    if not is_foreign(a):
        return np.asarray(a)
    if hasattr(a, "detach"):  # torch
        if a.device.type == "meta":
            raise ValueError(
                f"A tensor of shape {tuple(a.shape)} is on meta: it has no numbers; "
                "give one that holds data."
            )
        dense = a.detach() if _is_strided(a) else a.detach().to_dense()
        return np.asarray(dense.cpu().numpy())
    if compat.is_cupy_array(a):
        return np.asarray(a.get())
    host = namespace(a).__array_namespace_info__().default_device()
    return np.asarray(compat.to_device(a, host))


def _is_strided(a: Any) -> bool:
    """Tell whether an array stores all its entries; sparse tensors of torch do not."""
    return str(getattr(a, "layout", "torch.strided")) == "torch.strided"


def to_device(a: Any, like: Tall) -> Tall:
    """Return ``a`` where another array is, its type unchanged."""
    if isinstance(like, np.ndarray):
        return a if type(a) is np.ndarray else to_host(a)
    if is_lazy(like) and not is_lazy(a):
        # What has no line for each row goes with every block.
        kind = like._meta
        if np.ndim(a) > 0 and np.shape(a)[0] == like.shape[0] > 1:
            return _lazy().from_host(to_host(a), like.chunks[0], kind)
        return a if isinstance(kind, np.ndarray) else to_device(a, kind)
    if is_foreign(a) or is_lazy(a):
        return a
    # Torch warns of arrays that are read-only.
    a = np.require(a, requirements=["C", "W"])
    if min(a.strides, default=0) < 0:  # along an axis of one, and torch takes none
        a = a.copy()
    dtype = widest(like) if a.dtype == np.float64 else None
    return namespace(like).asarray(a, dtype=dtype, device=compat.device(like))


def cast_like(a: Any, like: Tall) -> Tall:
    """Return ``a`` where another array is, in its type."""
    if isinstance(like, np.ndarray) and isinstance(a, np.ndarray):
        return a.astype(like.dtype, copy=False)
    if not (is_foreign(a) or is_lazy(a)):
        a = np.asarray(a, dtype=host_dtype(like))
    a = to_device(a, like)
    return namespace(a).astype(a, like.dtype, copy=False)


def host_dtype(a: Tall) -> np.dtype:
    """Return float32 or float64, the type of an array as NumPy calls it."""
    if isinstance(a.dtype, np.dtype):
        return a.dtype
    narrow = a.dtype == namespace(a).float32
    return np.dtype(np.float32 if narrow else np.float64)


def widen(a: Tall) -> Tall:
    """Return an array in float64, or in float32 on a device that has no other."""
    return namespace(a).astype(a, widest(a), copy=False)


def widest(a: Tall) -> Any:
    """Return the type of float64, or of float32 on a device that has no other."""
    # Apple's GPUs know no float64.
    narrow = getattr(getattr(a, "device", None), "type", "") == "mps"
    return namespace(a).float32 if narrow else namespace(a).float64


def tall_ranges(rows: Tall, width: int = 1) -> list[slice]:
    """Cut rows into ranges to work on at a time, each row turned into width numbers.

    So few rows stay in the cache of a host; a device does best with many. Those of dask
    are in blocks already.
    """
    n, step = rows.shape[0], 2**12
    if is_lazy(rows):
        return [slice(0, n)]
    if not isinstance(rows, np.ndarray):
        step = max(step, 2**24 // max(width, 1))
    return [slice(*edge) for edge in pairwise([*range(0, n, step), n])]


def map_ranges(rows: Tall, width: int, work: Callable[[slice], Any]) -> list[Any]:
    """Return the results of some work on ranges of rows, in order.

    Many rows of a host are shared among threads. The ranges do not depend on how many
    threads there are, and so do not sums over them.
    """
    n = rows.shape[0]
    if isinstance(rows, np.ndarray) and n >= 2**15:
        with one_thread():  # those of BLAS would wait for ours
            return list(in_parts(n, work))
    return [work(block) for block in tall_ranges(rows, width)]


def few_rows(tall: Tall, positions: np.ndarray | slice) -> Tall:
    """Return some rows, or numbers of rows, of a tall array: where it is.

    Of dask arrays they come to the host, and should be few.
    """
    if isinstance(tall, np.ndarray) or (
        isinstance(positions, slice) and not is_lazy(tall)
    ):
        return tall[positions, ...]
    if is_lazy(tall):
        return _rows_of_blocks(tall, np.arange(tall.shape[0])[positions])
    return namespace(tall).take(tall, to_device(positions, tall), axis=0)


def _rows_of_blocks(tall: Tall, positions: np.ndarray) -> np.ndarray:
    order = np.argsort(positions, kind="stable")
    ends = np.cumsum([0, *tall.chunks[0]])
    cuts = np.searchsorted(positions[order], ends)
    parts, lazy = [to_host(tall._meta)[:0].reshape((0, *tall.shape[1:]))], _lazy()
    blocks = lazy.blocks_of(tall)
    wanted = [
        lazy.delayed(_host_rows)(blocks[i], positions[order[first:last]] - ends[i])
        for i, (first, last) in enumerate(pairwise(cuts))
        if first < last
    ]
    found = np.concatenate(parts + list(lazy.compute(*wanted)))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return found[back]


def _host_rows(block: Tall, positions: np.ndarray) -> np.ndarray:
    return to_host(few_rows(block, positions))


def rows_where(tall: Tall, mask: Tall) -> Tall:
    """Return the rows of a tall array where a mask is true."""
    if not is_lazy(mask):
        return tall[mask]
    counts = tuple(count or 0 for count in _lazy().gather(_count, mask))
    return _lazy().map_blocks(rows_where, tall, mask, chunks=counts)


def in_blocks_of(values: np.ndarray, mask: np.ndarray, tall_mask: Tall) -> Tall:
    """Return values of the host, for rows where a mask is true, where the mask is."""
    if not is_lazy(tall_mask):
        return values
    ends = np.cumsum([0, *tall_mask.chunks[0]])
    counts = np.diff(np.append(0, np.cumsum(mask))[ends])
    return _lazy().from_host(values, tuple(counts.tolist()), tall_mask._meta)


def _count(mask: Tall) -> int:
    return int(namespace(mask).count_nonzero(mask))


def side_by_side(rows: Tall, count: int) -> int:
    """Return how many of several runs on some rows to take at once.

    A device works on all as fast as on one. On a host, one stays in the cache.
    """
    on_host = isinstance(rows, np.ndarray) or str(compat.device(rows)) == "cpu"
    return 1 if on_host else count


def stack(parts: Sequence[Tall], axis: int = 0) -> Tall:
    """Put tall arrays below each other, or with ``axis=1`` beside each other."""
    if len(parts) == 1:
        return parts[0]
    return _beside(*parts) if axis else namespace(parts[0]).concat(parts)


@by_block
def _beside(*parts: Tall) -> Tall:
    return namespace(parts[0]).concat(parts, axis=1)


def row_map(work: Callable[..., Tall], *tall: Tall, width: int = 1) -> Tall:
    """Return the lines that some work makes of the rows of tall arrays.

    It gets blocks of rows, or ranges, and makes about ``width`` numbers of each row.
    """
    if is_lazy(tall[0]):
        return _lazy().map_blocks(work, *tall)

    out: Any = None

    def part(rows: slice) -> None:
        out[rows, ...] = work(*(each[rows, ...] for each in tall))

    n, few = tall[0].shape[0], [each[:1, ...] for each in tall]
    if n <= 1:
        return work(*tall)
    line = work(*few)
    xp, shape = namespace(line), (n, *line.shape[1:])
    out = xp.empty(shape, dtype=line.dtype, device=compat.device(line))
    map_ranges(tall[0], width, part)
    return out


def row_sums(
    work: Callable[..., tuple[Any, ...]], *tall: Tall, width: int = 1
) -> tuple[np.ndarray, ...]:
    """Return the sums, on the host, of what some work makes of rows of tall arrays."""
    work = partial(_to_hosts, work)
    if is_lazy(tall[0]):
        return tuple(_lazy().sum_blocks(work, *tall))

    def part(rows: slice) -> tuple[np.ndarray, ...]:
        return work(*(each[rows, ...] for each in tall))

    parts = map_ranges(tall[0], width, part)
    return tuple(sum(each) for each in zip(*parts, strict=True))


def _to_hosts(work: Callable[..., tuple[Any, ...]], *tall: Tall) -> Any:
    return tuple(map(to_host, work(*tall)))


@summed
def tall_dot(A: Tall, B: Tall) -> np.ndarray:
    """Return ``A.T @ B`` in float64, on the host.

    Products of batches of rows are taken in A's type and added up in float64: one sum
    over millions of rows would lose digits in float32 and keep little of a device busy.
    """
    xp, batch = namespace(A), 2**12
    batches = A.shape[0] // batch
    if batches <= 1 or A.shape[1] == 0 or B.shape[1] == 0:
        total = A.T @ B
    else:
        end = batches * batch
        first = xp.reshape(A[:end, :], (batches, batch, A.shape[1]))
        second = xp.reshape(B[:end, :], (batches, batch, B.shape[1]))
        total = xp.sum(widen(xp.matmul(xp.matrix_transpose(first), second)), axis=0)
        if end < A.shape[0]:
            total = total + widen(A[end:, :].T @ B[end:, :])
    total = total if isinstance(total, np.ndarray) else to_host(total)
    return total.astype(np.float64, copy=False)


def weighted_gram(blocks: list[Tall], weights: Tall) -> np.ndarray:
    """Return ``Y.T @ diag(weights) @ Y``, Y being some blocks side by side."""
    return _weighted_gram(weights, *blocks)


@summed
def _weighted_gram(weights: Tall, *blocks: Tall) -> np.ndarray:
    width = sum(block.shape[1] for block in blocks)
    total = np.zeros((width, width))
    for rows in tall_ranges(weights, width):
        few = stack([block[rows, :] for block in blocks], axis=1)
        total += tall_dot(few, few * weights[rows][:, None])
    return total


def basis_dot(basis: list[Tall], Y: Tall) -> np.ndarray:
    """Return ``hstack(basis).T @ Y`` without stacking, as :func:`tall_dot` does."""
    return _basis_dot(Y, *basis)


@summed
def _basis_dot(Y: Tall, *basis: Tall) -> np.ndarray:
    return np.concatenate([tall_dot(q, Y) for q in basis])


@by_block
def row_dots(A: Tall, B: Tall) -> Tall:
    """Return the inner product of each row of A with that of B."""
    if isinstance(A, np.ndarray):  # several times faster, and without a copy
        return np.einsum("ij,ij->i", A, B)
    return namespace(A).sum(A * B, axis=1)


@by_block
def row_norms(rows: Tall) -> Tall:
    """Return the Euclidean norm of each row, in the rows' type."""
    with np.errstate(over="ignore", under="ignore"):
        return namespace(rows).sqrt(row_dots(rows, rows))


def row_lengths(rows: Any) -> np.ndarray:
    """Return the Euclidean norms of few rows in float64, on the host.

    Unlike :func:`row_norms` this serves entries whose squares vanish or overflow.
    """
    rows = to_host(rows).astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        return row_dots(rows, unit_rows(rows))


@by_block
def unit_rows(U: Tall) -> Tall:
    """Return rows scaled to unit Euclidean norm; zero rows stay zero.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix.tall import unit_rows
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    xp, norms = namespace(U), row_norms(U)
    info = np.finfo(host_dtype(U))
    low, high = float(np.sqrt(info.tiny / info.eps)), float(np.sqrt(info.max))
    if xp.all((norms > low) & (norms < high)):
        return U / norms[:, None]
    # Squares of some rows under- or overflow: divide each by its largest entry first.
    U = U / _nonzero(xp.max(xp.abs(U), axis=1))[:, None]
    return U / _nonzero(row_norms(U))[:, None]


def _nonzero(sizes: Tall) -> Tall:
    xp = namespace(sizes)
    return xp.where(sizes > 0, sizes, xp.ones_like(sizes))


def fix_signs(vectors: Tall) -> tuple[Tall, np.ndarray]:
    """Make the entry of largest magnitude of each column positive; return signs too."""
    ends = np.concatenate(gather_blocks(_column_ends, vectors))
    flip = np.where(-ends.min(axis=0) > ends.max(axis=0), -1, 1)
    vectors *= cast_like(flip, vectors)
    return vectors, flip


def gather_blocks(work: Callable[..., Any], *tall: Tall) -> list[Any]:
    """Return what some work makes of each block of dask, or of the whole."""
    if not is_lazy(tall[0]):
        return [work(*tall)]
    return [found for found in _lazy().gather(work, *tall) if found is not None]


def block_starts(tall: Tall) -> list[int]:
    """Return the first row of each block of dask that has some; else 0."""
    chunks = tall.chunks[0] if is_lazy(tall) else [tall.shape[0]]
    ends = np.cumsum([0, *chunks]).tolist()
    return [start for start, rows in zip(ends, chunks, strict=False) if rows]


def _column_ends(vectors: Tall) -> np.ndarray:
    """Return rows that hold the largest and the smallest entry of each column."""
    xp, k = namespace(vectors), vectors.shape[1]
    # NumPy reduces wide rows much faster than narrow ones: 64 rows make one.
    fold = vectors.shape[0] // 64 * 64
    if fold == 0:
        return to_host(vectors)
    folded = xp.reshape(vectors[:fold, :], (-1, 64 * k))
    most = xp.reshape(xp.max(folded, axis=0), (-1, k))
    least = xp.reshape(xp.min(folded, axis=0), (-1, k))
    return to_host(xp.concat([most, least, vectors[fold:, :]]))


def largest(values: Tall, count: int) -> np.ndarray:
    """Return the positions of the ``count`` largest values, in any order."""
    if is_lazy(values):
        parts = gather_blocks(partial(_largest_in, count), values)
        starts = zip(parts, block_starts(values), strict=True)
        places = np.concatenate([at + start for (at, _), start in starts])
        found = np.concatenate([few for _, few in parts])
        return places[np.argsort(found, kind="stable")[len(found) - count :]]
    xp, n = namespace(values), values.shape[0]
    width = max(1, int(np.sqrt(n)))
    rows = n // width
    if rows <= 2 * count:
        return to_host(xp.argsort(values)[n - count :])
    # They lie in the groups with the largest maxima, or in the rest beyond all groups.
    groups = xp.reshape(values[: rows * width], (rows, width))
    top = to_host(xp.argsort(xp.max(groups, axis=1))[rows - count :])
    places = (top[:, None] * width + np.arange(width)).ravel()
    places = np.concatenate([places, np.arange(rows * width, n)])
    found = to_host(xp.take(values, to_device(places, values)))
    return places[np.argpartition(found, len(found) - count)[len(found) - count :]]


def _largest_in(count: int, block: Tall) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and values of the largest of a block."""
    places = largest(block, min(count, block.shape[0]))
    return places, to_host(few_rows(block, places))


def median(
    values: Tall, weights: Tall | None = None, where: Tall | None = None
) -> float:
    """Return the median of numbers, counted by weights; the upper one of two.

    A mask may say ``where`` numbers count.
    """
    if is_lazy(values):
        return _median_of_blocks(values, weights, where)
    if where is not None:
        values = values[where]
        weights = None if weights is None else weights[where]
    if weights is not None:
        xp, order = namespace(values), namespace(values).argsort(values)
        below = xp.cumulative_sum(xp.take(weights, order))
        half = int(xp.count_nonzero(below <= below[-1] / 2))
        return float(values[order[min(half, values.shape[0] - 1)]])
    if isinstance(values, np.ndarray):
        half = len(values) // 2
        return float(np.partition(values, half)[half])
    return float(namespace(values).sort(values)[values.shape[0] // 2])


def quantiles(values: Tall, where: Tall, shares: list[float]) -> np.ndarray:
    """Return quantiles of the values where a mask is true; NaN where it never is."""
    count = int(number(namespace(where).count_nonzero(where)))
    if count == 0:
        return np.full(len(shares), np.nan)
    at = np.array(shares) * (count - 1)
    low = np.floor(at).astype(int)
    places = np.concatenate([low, np.minimum(low + 1, count - 1)])
    first, second = in_order(values, places, where).reshape(2, -1)
    return np.asarray(first + (at - low) * (second - first))


def in_order(values: Tall, places: np.ndarray, where: Tall | None = None) -> np.ndarray:
    """Return the values at some places once they are sorted, those that count first.

    A mask may say ``where`` values count.
    """
    if is_lazy(values):
        given = _given(values, None, where)
        ends = _extents(given)[:2]
        each = {i: _with_more_below(given, *ends, i) for i in set(places.tolist())}
        return np.array([each[i] for i in places.tolist()])
    xp = namespace(values)
    if where is not None:
        values = xp.where(where, values, xp.full_like(values, np.inf))
    if isinstance(values, np.ndarray):
        return np.partition(values, np.unique(places))[places]
    return to_host(few_rows(xp.sort(values), places))


def sampled(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of so many of n rows, drawn at random, in their order.

    One is drawn from each of as many equal stretches: rows that are sorted in some way
    are all shown, and to draw takes no longer for many rows than for few.
    """
    if size >= n:
        return np.arange(n)
    edges = np.arange(size + 1) * n // size
    return edges[:-1] + (rng.random(size) * np.diff(edges)).astype(np.int64)


def draw_rows(where: Tall, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of rows where a mask is true: at most so many, at random.

    They are in increasing order.
    """
    n = where.shape[0]
    if number(namespace(where).count_nonzero(where)) == n:
        return sampled(n, most, rng)
    positions = np.flatnonzero(to_host(where))
    return positions[sampled(len(positions), most, rng)]


def _median_of_blocks(values: Tall, weights: Tall | None, where: Tall | None) -> float:
    """Return the median of a dask array: no more than a few numbers of a block move.

    It is the smallest number with more than half of the weight up to it. Counts in bins
    show the bin that holds it, until that has few numbers.
    """
    given = _given(values, weights, where)
    low, high, total = _extents(given)
    return _with_more_below(given, low, high, total / 2)


def _given(values: Tall, weights: Tall | None, where: Tall | None) -> list[Tall]:
    """Return numbers and how much they count, unless all count alike."""
    if weights is None and where is None:
        return [values]
    counts = 1.0 if weights is None else weights
    return [values, counts * (1.0 if where is None else where)]


def _extents(given: list[Tall]) -> tuple[float, float, float]:
    low, high, total = np.array(gather_blocks(_extent, *given)).T
    return float(low.min()), float(high.max()), float(total.sum())


def _with_more_below(
    given: list[Tall], low: float, high: float, target: float
) -> float:
    """Return the smallest number with more than so much weight up to it."""
    while True:
        edges = np.linspace(low, high, 2**10 + 1)
        mass, rows = _lazy().sum_blocks(partial(_in_bins, edges), *given)
        at = int(np.searchsorted(np.cumsum(mass), target, side="right"))
        if at >= len(edges):  # only the largest of all
            return high
        low, high = float(edges[at - 1]), float(edges[at])
        if not low < (low + high) / 2 < high:  # no other number lies between
            return low
        if rows[at] <= 2**12:
            break
    parts = gather_blocks(partial(_in_bin, low, high), *given)
    found, few = (np.concatenate(each) for each in zip(*parts, strict=True))
    order, below = np.argsort(found, kind="stable"), mass[:at].sum()
    at = int(np.searchsorted(below + np.cumsum(few[order]), target, side="right"))
    return float(found[order[min(at, len(found) - 1)]])


def _counted(values: Tall, counts: Tall | None) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers that count, and how much, on the host of the block."""
    values = to_host(values).astype(np.float64, copy=False)
    if counts is None:
        return values, np.ones(len(values))
    counts = to_host(counts)
    return values[counts > 0], counts[counts > 0]


def _extent(values: Tall, counts: Tall | None = None) -> tuple[float, float, float]:
    """Return the ends and the weight of the numbers of a block."""
    values, counts = _counted(values, counts)
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    return float(least), float(most), float(counts.sum())


def _in_bins(edges: np.ndarray, values: Tall, counts: Tall | None = None) -> Any:
    """Return the weight and the number of numbers up to, between and from edges on."""
    values, counts = _counted(values, counts)
    bins, size = np.searchsorted(edges, values, side="right"), len(edges) + 1
    return np.bincount(bins, counts, size), np.bincount(bins, minlength=size)


def _in_bin(low: float, high: float, values: Tall, counts: Tall | None = None) -> Any:
    """Return the numbers between two edges, and how much they count."""
    values, counts = _counted(values, counts)
    inside = (values >= low) & (values < high)
    return values[inside], counts[inside]


@by_block
@by_block
def ratio(a: Any, b: Tall, otherwise: float = 0.0) -> Tall:
    """Return ``a / b`` where b is positive, another number elsewhere."""
    xp, some = namespace(b), b > 0
    one = xp.ones_like(b)
    return xp.where(some, a / xp.where(some, b, one), otherwise * one)


@by_block
def clip(a: Tall, least: Any, most: Any) -> Tall:
    """Return numbers, none less and none more than given; None for no limit.

    Block by block: what dask makes of limits itself, blocks on a GPU do not take.
    """
    return namespace(a).clip(a, least, most)


def place(values: Tall, where: Tall, others: Tall | None = None) -> Tall:
    """Return values for all rows: these where a mask is true, elsewhere others or 0."""
    if is_lazy(where):
        given = [values, where] if others is None else [values, where, others]
        return _lazy().map_blocks(place, *given, chunks=where.chunks[0])
    xp = namespace(where)
    if values.shape[0] == 0:  # a line to take, which is nowhere
        shape = (1, *values.shape[1:])
        values = xp.zeros(shape, dtype=values.dtype, device=compat.device(values))
    at = xp.clip(xp.cumulative_sum(xp.astype(where, xp.int64)) - 1, 0, None)
    all_rows = xp.take(values, at, axis=0)
    others = xp.zeros_like(all_rows) if others is None else others
    return xp.where(where if values.ndim == 1 else where[:, None], all_rows, others)


@by_block
def softmax(values: Tall) -> Tall:
    """Return exponentials of each row, over their sum."""
    odds = namespace(values).exp(values - row_max(values)[:, None])
    return odds / row_totals(odds)[:, None]


@by_block
def logsumexp(values: Tall) -> Tall:
    """Return the logarithm of the sum of exponentials of each row."""
    xp = namespace(values)
    peaks = row_max(values)
    return peaks + xp.log(row_totals(xp.exp(values - peaks[:, None])))


@by_block
def log_ndtr(values: Tall) -> Tall:
    """Return the logarithm of the normal distribution function."""
    if compat.is_torch_array(values):
        return namespace(values).special.log_ndtr(values)
    if compat.is_cupy_array(values):
        return import_module("cupyx.scipy.special").log_ndtr(values)
    host = to_host(values)
    # Most rows are far on one side, where it is zero up to rounding; and the logarithm
    # of the function is quicker than scipy's, and as good but in the far tail.
    found, near = np.zeros_like(host), host < 8
    few = host[near]
    logs = np.log(special.ndtr(np.maximum(few, -20)))
    if few.size and few.min() < -20:
        logs = np.where(few < -20, special.log_ndtr(few), logs)
    found[near] = logs
    return to_device(found, values)


def row_max(values: Tall) -> Tall:
    """Return the largest entry of each row."""
    if isinstance(values, np.ndarray) and values.shape[1] <= 64:
        return reduce(np.maximum, values.T)  # several times faster for short rows
    return namespace(values).max(values, axis=1)


def row_totals(values: Tall) -> Tall:
    """Return the sum of each row."""
    if isinstance(values, np.ndarray):
        return values @ np.ones(values.shape[1], dtype=values.dtype)
    return namespace(values).sum(values, axis=1)


def column_totals(values: Tall) -> Tall:
    """Return the sum of each column."""
    if isinstance(values, np.ndarray):
        return np.ones(values.shape[0], dtype=values.dtype) @ values
    return namespace(values).sum(values, axis=0)


@by_block
def pick(rows: Tall, labels: Tall) -> Tall:
    """Return one entry of each row, at the column its label says."""
    xp = namespace(rows)
    n, k = rows.shape
    start = xp.arange(n, dtype=labels.dtype, device=compat.device(rows)) * k
    return xp.take(xp.reshape(rows, (-1,)), start + labels)


@by_block
def sign_of(values: Tall) -> Tall:
    """Return 1 where values are 0 or more, -1 elsewhere, in their type."""
    xp = namespace(values)
    one = xp.ones_like(values)
    return xp.where(values >= 0, one, -one)


def one_hot(labels: Tall, n_groups: int, like: Tall) -> Tall:
    """Return an n by n_groups block in another's type: 1 in the column of the label."""
    return take_lines(np.eye(n_groups, dtype=host_dtype(like)), labels)


def take_lines(table: np.ndarray, labels: Tall) -> Tall:
    """Return for each row the line of a small table that its label says."""
    if is_lazy(labels):
        return _lazy().map_blocks(partial(take_lines, table), labels)
    return namespace(labels).take(to_device(table, labels), labels, axis=0)


def order_by_size(
    labels: Tall, n_clusters: int, weights: Tall | None = None
) -> np.ndarray:
    """Return clusters in the order of decreasing size; ties by first appearance."""
    rows = Groups.of(labels, n_clusters)
    # Weights have mean 1. Libraries add them up in orders of their own, and rounding
    # must not decide between clusters of one size.
    sizes = rows.sizes if weights is None else rows.sums(weights).round(6)
    first = np.zeros(n_clusters)
    if len(np.unique(sizes)) < n_clusters:
        found = gather_blocks(partial(_first_rows, n_clusters), labels)
        parts = zip(found, block_starts(labels), strict=True)
        first = np.min([own + start for own, start in parts], axis=0)
    return np.lexsort((first, -sizes))


def _first_rows(n_clusters: int, labels: Tall) -> np.ndarray:
    """Return the position of the first row of each cluster; ``inf`` if it has none."""
    xp, first = namespace(labels), np.full(n_clusters, np.inf)
    for k in range(n_clusters):
        own = labels == k
        if bool(xp.any(own)):
            first[k] = int(xp.argmax(xp.astype(own, xp.uint8)))
    return first


def number_by_size(labels: Tall, n_clusters: int, weights: Tall | None = None) -> Tall:
    """Renumber labels by decreasing cluster size; ties by first appearance.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix.tall import number_by_size
    >>> number_by_size(np.array([2, 0, 2, 1, 2, 0]), 3)
    array([0, 1, 0, 2, 0, 1])
    """
    rank = np.argsort(order_by_size(labels, n_clusters, weights))
    return take_lines(rank, labels)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups, and sums over each. Build one with :meth:`of`."""

    labels: Tall  # the group of each row, from 0
    weights: Tall | None  # how much rows count in means; None: all alike
    sizes: np.ndarray  # rows in each group
    sums: Callable[[Tall], np.ndarray]  # the sum of values over each group, float64
    spread: Callable[[np.ndarray], Tall]  # for each row, the value of its group

    @classmethod
    def of(cls, labels: Tall, n_groups: int, weights: Tall | None = None) -> Groups:
        """Return the groups that labels make; some may be empty."""
        if weights is not None:
            weights = to_device(weights, labels)
        # Loops call these many times, so that the kind of array is asked once.
        if isinstance(labels, np.ndarray):
            sums: Any = partial(np.bincount, labels, minlength=n_groups)
            spread = partial(np.take, indices=labels)
            return cls(labels, weights, sums(), sums, spread)
        sums = partial(_group_sums, labels, n_groups)
        sizes, spread = sums().astype(np.intp), partial(take_lines, labels=labels)
        return cls(labels, weights, sizes, sums, spread)

    def maxima(self, values: Tall) -> np.ndarray:
        """Return the largest value of each group, 0 if none is positive."""
        work = partial(_maxima, len(self.sizes))
        return np.asarray(np.max(gather_blocks(work, self.labels, values), axis=0))

    def row_sums(self, values: Tall) -> Tall:
        """Return, for each row, the sum over its group."""
        return self.spread(self.sums(values))

    def many_row_sums(self, *values: Tall) -> list[Tall]:
        """Return, for each row, sums of several values over its group."""
        if is_lazy(self.labels):  # to wait for a cluster once
            work = partial(_many_sums, len(self.sizes))
            return [*map(self.spread, _lazy().sum_blocks(work, self.labels, *values))]
        return [*map(self.row_sums, values)]

    def means(self, values: Tall) -> Tall:
        """Return, for each row, the mean of its group."""
        if self.weights is None:
            return self.spread(self.sums(values) / np.maximum(self.sizes, 1))
        return self.spread(
            ratio(self.sums(self.weights * values), self.sums(self.weights))
        )

    def counted(self, values: Tall) -> Tall:
        """Return values times how much their rows count."""
        return values if self.weights is None else values * self.weights

    def over_mean(self, values: Tall) -> Tall:
        """Divide by the mean of each group; ones where that is zero."""
        return ratio(values, self.means(values), 1.0)

    def weighted_sums(self, X: Any, weights: Tall) -> np.ndarray:
        """Return the sum of weight times row of a matrix for each group."""
        work = partial(_sums_of_rows, len(self.sizes))
        _, (sums,) = X.sweep(work, X.to_device(self.labels), X.cast(weights))
        return np.asarray(sums.T.astype(X.dtype))

    def inner_products(self, X: Any, centers: np.ndarray) -> Tall:
        """Return the inner product of each row with the centre of its group."""
        work = partial(_own_products, centers)
        (inner,), _ = X.sweep(work, X.to_device(self.labels))
        return to_device(inner, self.labels)


def _sums_of_rows(
    n_groups: int, block: Any, labels: Tall, weights: Tall
) -> tuple[tuple[()], tuple[Tall]]:
    # On a device products run best at multiples of eight.
    width = n_groups if isinstance(weights, np.ndarray) else -(-n_groups // 8) * 8
    members = one_hot(labels, width, weights)
    members *= weights[:, None]
    return (), (widen(block.adjoint(members)[:, :n_groups]),)


def _own_products(
    centers: np.ndarray, block: Any, labels: Tall
) -> tuple[tuple[Tall], tuple[()]]:
    return (widen(pick(block @ centers.T, labels)),), ()


def _group_sums(labels: Tall, n_groups: int, values: Tall | None = None) -> np.ndarray:
    """Return the sum of values, or the number of rows, of each group on a device."""
    if is_lazy(labels):
        given = [labels] if values is None else [labels, to_device(values, labels)]
        return np.asarray(_lazy().sum_blocks(partial(_sums_in, n_groups), *given))
    xp = namespace(labels)
    if hasattr(xp, "bincount"):  # beyond the standard, but libraries have it
        return to_host(xp.bincount(labels, values, minlength=n_groups))
    if values is None:
        values = xp.astype(xp.ones_like(labels), widest(labels))
    # A product with indicators would spread what is not finite to all groups.
    values, nothing = widen(values), xp.zeros_like(widen(values))
    sums = [xp.sum(xp.where(labels == k, values, nothing)) for k in range(n_groups)]
    return to_host(xp.stack(sums))


def _many_sums(n_groups: int, labels: Tall, *values: Tall) -> np.ndarray:
    return np.array([_group_sums(labels, n_groups, each) for each in values])


def _sums_in(n_groups: int, labels: Tall, *values: Tall) -> np.ndarray:
    return _group_sums(labels, n_groups, *values)


def _maxima(n_groups: int, labels: Tall, values: Tall) -> np.ndarray:
    if isinstance(values, np.ndarray):
        most = np.zeros(n_groups)
        np.maximum.at(most, labels, values)
        return most
    xp = namespace(values)
    parts = [
        to_host(xp.max(one_hot(few, n_groups, part) * part[:, None], axis=0))
        for few, part in (
            (labels[rows], values[rows]) for rows in tall_ranges(values, n_groups)
        )
    ]
    return np.maximum(np.max(parts, axis=0), 0.0)


def sorted_integers(labels: Any, n_samples: int) -> tuple[np.ndarray, Tall] | None:
    """Return the labels that there are, and the number of each row's, where they are.

    None is returned unless labels are integers, one for each row. Sorting takes long,
    and counting does not where integers are within a short range.
    """
    if not (isinstance(labels, np.ndarray) or is_tall(labels)):
        return None
    if not _is_strided(labels):
        return None
    xp = namespace(labels)
    if labels.shape != (n_samples,) or not xp.isdtype(labels.dtype, "integral"):
        return None
    labels = xp.astype(labels, xp.int64)
    least, most = int(number(xp.min(labels))), int(number(xp.max(labels)))
    if most - least > n_samples:
        return None
    groups = Groups.of(labels - least, most - least + 1)
    classes = np.flatnonzero(groups.sizes)
    rank = np.zeros(len(groups.sizes), dtype=np.int64)
    rank[classes] = np.arange(len(classes))
    return classes + least, groups.spread(rank)
