"""Sparse matrices: what all libraries share, scipy's, and those on a device."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from functools import cached_property, reduce
from operator import iadd
from typing import Any, Self

import array_api_compat as compat
import numpy as np
import scipy.sparse as sp

from ihgmm._warnings import ignored
from ihgmm.matrix.arrays import AnyArray, Tall, to_host
from ihgmm.matrix.base import NO_METADATA, CellChange, Index, Metadata
from ihgmm.matrix.device import OnDevice, check_form, real_floats
from ihgmm.matrix.host_ops import library_ops
from ihgmm.matrix.materialized import Materialized
from ihgmm.matrix.memory import InMemory, random_signs
from ihgmm.matrix.threads import in_parts, row_ranges


class CompressedRows(Materialized):
    """Rows by their stored entries, in three arrays; entries not stored are 0.

    Entries ``indptr[i]`` to ``indptr[i + 1]`` are those of row i: ``values`` in the
    columns ``indices``.
    """

    sparse = True
    indptr: AnyArray  # (n_samples + 1,)
    indices: AnyArray  # (n_entries,)

    @abstractmethod
    def with_entries(
        self, indptr: AnyArray, indices: AnyArray, values: AnyArray, metadata: Metadata
    ) -> Self:
        """Return the matrix of this kind that has these entries."""

    def with_values(self, values: AnyArray, metadata: Metadata) -> Self:
        return self.with_entries(self.indptr, self.indices, values, metadata)

    def entry(self, number: int) -> tuple[int, int, float]:
        row = int(np.searchsorted(to_host(self.indptr), number, side="right")) - 1
        return row, int(self.indices[number]), float(self.values[number])

    def numbers_and_rows(self, indptr: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return the numbers of all entries, and the row that each is in."""
        xp = self.ops.xp
        device = compat.device(indptr)
        numbers = xp.arange(int(indptr[-1]), dtype=indptr.dtype, device=device)
        return numbers, xp.searchsorted(indptr, numbers, side="right") - 1

    # Squares may take twice the memory of X: those of large data are made by blocks.

    def row_sqnorms_at_once(self, column_weights: np.ndarray | None) -> Tall:
        weights = np.ones(self.shape[1]) if column_weights is None else column_weights
        return self.with_values(self._squares(), NO_METADATA) @ weights

    def column_sqnorms(self) -> np.ndarray:
        if len(self.row_blocks) > 1:
            return super().column_sqnorms()

        return self.ops.group_sums(self.indices, self.shape[1], self._squares())

    def _squares(self) -> AnyArray:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self.ops.xp.square(self.ops.widen(self.values))

    def multiplied(
        self, rows: Tall | None, columns: AnyArray | None, metadata: Metadata
    ) -> Self:
        xp = self.ops.xp
        values = self.values

        if rows is not None:
            _, rows_of_entries = self.numbers_and_rows(self.indptr)
            values = values * xp.take(rows, rows_of_entries)
        if columns is not None:
            values = values * xp.take(columns, self.indices)

        return self.with_values(values, metadata)

    def filled(self, fill: CellChange | None = None) -> Self:
        xp = self.ops.xp
        is_missing = xp.isnan(self.values)
        if fill is not None:
            return self._change_entries(xp.nonzero(is_missing)[0], fill)

        values = xp.where(is_missing, xp.zeros_like(self.values), self.values)
        return self.with_values(values, self.metadata)

    def with_gaps(self, mark: CellChange) -> Self:
        return self._change_entries(self.ops.xp.nonzero(self.values)[0], mark)

    def _change_entries(self, numbers: AnyArray, change: CellChange) -> Self:
        """Return the rows with some entries as a change of dense rows makes them."""
        xp = self.ops.xp
        n_features = self.shape[1]
        values = xp.asarray(self.values, copy=True)
        numbers = xp.astype(numbers, xp.int64)

        # The rows that these entries are in, and which of these rows each is in.
        indptr = xp.astype(self.indptr, xp.int64)
        rows_of_entries = xp.searchsorted(indptr, numbers, side="right") - 1
        rows, ranks = xp.unique_inverse(rows_of_entries)

        # Work on a row takes several times its length.
        step = max(2**20, self.min_range_entries // 4) // n_features
        for part in row_ranges(rows.shape[0], step):
            changed_rows = change(self.rows(to_host(rows[part])))
            changed_cells = xp.reshape(changed_rows, (-1,))

            is_in_part = (ranks >= part.start) & (ranks < part.stop)
            entries = numbers[is_in_part]
            columns = xp.astype(xp.take(self.indices, entries), xp.int64)
            cells = (ranks[is_in_part] - part.start) * n_features + columns
            values[entries] = xp.take(changed_cells, cells)

        return self.with_values(values, self.metadata)

    def missing(self) -> Self:
        xp = self.ops.xp
        index_type = self.indptr.dtype

        numbers = xp.astype(xp.nonzero(xp.isnan(self.values))[0], index_type)

        return self.with_entries(
            indptr=xp.astype(xp.searchsorted(numbers, self.indptr), index_type),
            indices=xp.take(self.indices, numbers),
            values=xp.ones_like(xp.take(self.values, numbers)),
            metadata=NO_METADATA,
        )


class Sparse(InMemory, CompressedRows):
    """A CSR matrix or array of scipy; threads share more than ``parallel`` entries."""

    parallel = 2**20

    def __init__(
        self, array: sp.csr_array | sp.csr_matrix, metadata: Metadata = NO_METADATA
    ) -> None:
        super().__init__(array.shape, array.dtype, metadata)

        self.array = array
        self.n_entries = int(array.nnz)
        self.indptr = array.indptr
        self.indices = array.indices
        self.values = array.data

    def __matmul__(self, W: AnyArray) -> np.ndarray:
        return self._multiply(self.array, W)

    def adjoint(self, V: Tall) -> np.ndarray:
        X = self.array  # as the transpose, without a copy
        transpose = _csc_of_arrays(X.shape[1], X.indptr, X.indices, X.data)
        return self._multiply(transpose, V)

    def _multiply(self, X: sp.csr_array | sp.csc_array, W: AnyArray) -> np.ndarray:
        """Return ``X @ W``, of a large CSR or CSC matrix in several threads."""
        W = np.asarray(W, dtype=self.dtype)
        # Threads cost more than they bring to a product with one vector.
        parallel = self.parallel * (2 if W.shape[-1] == 1 else 1)
        if W.ndim != 2 or X.nnz <= parallel:
            return np.asarray(X @ W)

        if X.format == "csr":
            parts = in_parts(X.shape[0], lambda rows: _take_range(X, rows) @ W)
            return np.concatenate(list(parts))

        parts = in_parts(
            X.shape[1], lambda columns: _take_range(X, columns) @ W[columns]
        )
        return np.asarray(reduce(iadd, parts))

    def with_entries(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        metadata: Metadata,
    ) -> Sparse:
        return Sparse(_csr_of_arrays(self.shape[1], indptr, indices, values), metadata)

    def numbers_and_rows(self, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return np.arange(len(rows)), rows

    def take(self, rows: Index) -> Sparse:
        metadata = self.metadata.of_taken_rows()
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(self.shape[0])
            part = slice(start, max(start, stop))
            return Sparse(_take_range(self.array, part), metadata)

        return Sparse(self.array[rows], metadata)

    def rows(self, rows: Index) -> np.ndarray:
        return np.asarray(self.array[rows].toarray())

    def fit_at_entries(self, parts: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Return ``parts @ directions.T`` at stored entries, which are by rows."""
        fit = np.zeros_like(self.values)
        entries_of_rows = np.diff(self.indptr)
        for part, direction in zip(parts.T, directions.T, strict=True):
            fit += np.repeat(part, entries_of_rows) * direction[self.indices]
        return fit

    def minus_fit(
        self, parts: np.ndarray, directions: np.ndarray, gain: np.ndarray
    ) -> Sparse:
        """Return stored entries less their fit, each column times a gain."""
        residuals = self.values - self.fit_at_entries(parts, directions)
        metadata = self.metadata.of_taken_rows()
        return self.with_values(residuals * gain[self.indices], metadata)

    def with_random_signs(self, seed: tuple[int, ...]) -> Sparse:
        """Multiply stored entries by random signs that a seed gives."""
        signs = random_signs(np.random.default_rng(seed), self.n_entries, self.dtype)
        return self.with_values(self.values * signs, self.metadata.of_taken_rows())


def without_duplicates(X: sp.csr_array | sp.csr_matrix) -> sp.csr_array | sp.csr_matrix:
    """Return a CSR matrix in which each cell is stored once, and entries are in order.

    The given matrix, in which scipy also keeps what it finds out, is left as it is.
    """
    canonical = copy(X)
    if not canonical.has_canonical_format:
        canonical = X.copy()
        canonical.sum_duplicates()

    return canonical


def _take_range(X: Any, part: slice) -> Any:
    """Return some rows of a CSR matrix, or columns of a CSC one, without a copy."""
    indptr = X.indptr[part.start : part.stop + 1]
    entries = slice(indptr[0], indptr[-1])
    from_zero = indptr - entries.start

    if X.format == "csr":
        return _csr_of_arrays(
            X.shape[1], from_zero, X.indices[entries], X.data[entries]
        )
    return _csc_of_arrays(X.shape[0], from_zero, X.indices[entries], X.data[entries])


def _csr_of_arrays(
    n_columns: int, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray
) -> sp.csr_array:
    """Return a CSR matrix of these arrays, without a copy."""
    # Given to the constructor, arrays that are parts of others would be copied.
    X = sp.csr_array((len(indptr) - 1, n_columns), dtype=values.dtype)
    X.data = values
    X.indices = indices
    X.indptr = indptr
    return X


def _csc_of_arrays(
    n_rows: int, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray
) -> sp.csc_array:
    """Return a CSC matrix of these arrays, without a copy."""
    X = sp.csc_array((n_rows, len(indptr) - 1), dtype=values.dtype)
    X.data = values
    X.indices = indices
    X.indptr = indptr
    return X


class SparseDevice(OnDevice, CompressedRows):
    """A CSR matrix of torch or CuPy, and after its first adjoint a transposed copy."""

    def __init__(self, array: AnyArray, metadata: Metadata = NO_METADATA) -> None:
        if hasattr(array, "crow_indices"):  # torch
            self.indptr = array.crow_indices()
            self.indices = array.col_indices()
            self.values = array.values()
        else:
            self.indptr = array.indptr
            self.indices = array.indices
            self.values = array.data

        ops = library_ops(self.values)
        n, p = array.shape
        super().__init__((int(n), int(p)), ops.host_dtype(self.values), metadata, ops)
        self.array = array
        self.n_entries = int(self.values.shape[0])

    def with_entries(
        self, indptr: AnyArray, indices: AnyArray, values: AnyArray, metadata: Metadata
    ) -> Self:
        shape = int(indptr.shape[0]) - 1, self.shape[1]
        if compat.is_torch_array(values):
            import torch

            # Torch says, once, that it does not check what was checked before.
            with ignored(UserWarning):
                array = torch.sparse_csr_tensor(
                    indptr, indices, values, shape, check_invariants=False
                )
        else:
            from cupyx.scipy.sparse import csr_matrix

            array = csr_matrix((values, indices, indptr), shape=shape)
            array.has_canonical_format = True  # else CuPy looks before each product

        return type(self)(array, metadata)

    def __matmul__(self, W: AnyArray) -> Tall:
        return self._multiply(self.array, W)

    def adjoint(self, V: Tall) -> AnyArray:
        return self._multiply(self._transpose, V)

    def _multiply(self, X: AnyArray, W: AnyArray) -> AnyArray:
        """Return ``X @ W``, where libraries fail also: without entries or columns."""
        W = self.cast(W)
        if self.n_entries and 0 not in W.shape:
            return X @ W

        shape = (int(X.shape[0]), *W.shape[1:])
        return self.ops.xp.zeros(shape, dtype=W.dtype, device=compat.device(W))

    @cached_property
    def _transpose(self) -> AnyArray:
        X = self.array
        with ignored(UserWarning):
            return X.t().to_sparse_csr() if hasattr(X, "t") else X.T.tocsr()

    def take(self, rows: Index) -> Self:
        if isinstance(rows, slice) and rows.step in (None, 1):
            return self._take_range(rows)

        # Where entries of each row begin: in X, and in the result.
        xp = self.ops.xp
        positions = self.to_device(np.arange(self.shape[0])[rows])
        starts = xp.take(self.indptr, positions)
        sizes = xp.take(self.indptr, positions + 1) - starts
        ends = xp.astype(xp.cumulative_sum(sizes), sizes.dtype)
        indptr = xp.concat([xp.zeros_like(self.indptr[:1]), ends])

        # The numbers that entries of the result have in X.
        new_numbers, new_rows = self.numbers_and_rows(indptr)
        numbers = new_numbers + xp.take(starts - indptr[:-1], new_rows)

        return self.with_entries(
            indptr=indptr,
            indices=xp.take(self.indices, numbers),
            values=xp.take(self.values, numbers),
            metadata=self.metadata.of_taken_rows(),
        )

    def _take_range(self, rows: slice) -> Self:
        metadata = self.metadata.of_taken_rows()
        n = self.shape[0]
        start, stop, _ = rows.indices(n)
        if (start, stop) == (0, n):
            return self.with_metadata(metadata)  # with its transposed copy

        indptr = self.indptr[start : max(start, stop) + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))

        return self.with_entries(
            indptr=indptr - entries.start,
            indices=self.indices[entries],
            values=self.values[entries],
            metadata=metadata,
        )

    def rows(self, rows: Index) -> Tall:
        array = self.take(rows).array
        return array.to_dense() if hasattr(array, "to_dense") else array.toarray()

    def to_memory(self) -> Sparse:
        values = to_host(self.values)
        indices = to_host(self.indices)
        indptr = to_host(self.indptr)
        array = sp.csr_array((values, indices, indptr), shape=self.shape)
        return Sparse(array, self.metadata.of_taken_rows())


def open_sparse(X: Any) -> SparseDevice | None:
    """Return a sparse matrix of torch or CuPy as a matrix, and None for all else."""
    if compat.is_torch_array(X) and str(X.layout) != "torch.strided":
        csr = _csr_of_torch(X)
    # AnnData has a subclass of its own for views.
    elif any(t.__module__.startswith("cupyx.scipy.sparse") for t in type(X).__mro__):
        csr = _csr_of_cupy(X)
    else:
        return None

    matrix = SparseDevice(csr)
    _check_entries(matrix)
    return matrix.with_values(real_floats(matrix.values), NO_METADATA)


def _csr_of_torch(X: Any) -> Any:
    """Return a sparse tensor in CSR format, without gradients."""
    is_sparse = str(X.layout).startswith("torch.sparse_")

    if not is_sparse or (X.ndim == 2 and X.sparse_dim() != 2):
        raise TypeError(
            f"X is a torch tensor of layout {X.layout}, which has no rows of "
            "stored entries; give a dense one or one of layout torch.sparse_csr."
        )
    check_form(X)

    with ignored(UserWarning):  # torch says, once, that it may change what it has
        if str(X.layout) != "torch.sparse_csr":
            X = X.to_sparse_coo().coalesce()  # the only way torch knows for all
        return X.detach().to_sparse_csr()


def _csr_of_cupy(X: Any) -> Any:
    """Return a sparse matrix of CuPy in CSR format, each cell stored once."""
    csr = X.tocsr()  # always of rows and columns

    if not csr.has_canonical_format:
        if csr is X:  # CuPy would sort the user's own entries
            csr = csr.copy()
        csr.sum_duplicates()

    return csr


def _check_entries(X: SparseDevice) -> None:
    """Raise unless rows have all entries, in columns that there are."""
    xp = X.ops.xp
    p = X.shape[1]
    n_in_rows = int(X.indptr[-1])
    first_column = int(xp.min(X.indices)) if X.n_entries else 0
    last_column = int(xp.max(X.indices)) if X.n_entries else -1

    # Products with such a matrix would end the process.
    if n_in_rows != X.n_entries or first_column < 0 or last_column >= p:
        raise ValueError(
            f"X is a sparse matrix of {p} columns and {X.n_entries} entries, but its "
            f"rows have {n_in_rows} entries, in columns {first_column} to "
            f"{last_column}; check how it was made."
        )
