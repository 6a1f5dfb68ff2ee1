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
from ihgmm.matrix.base import NOTHING, About, Index
from ihgmm.matrix.device import OnDevice, check_form, real_floats
from ihgmm.matrix.memory import Held, InMemory, random_signs
from ihgmm.matrix.ops import Tall, library_ops, to_host
from ihgmm.matrix.threads import in_parts, row_ranges


class Entries(Held):
    """Rows by their stored entries, in three arrays; entries not stored are 0.

    Entries ``indptr[i]`` to ``indptr[i + 1]`` are those of row i: ``values`` in the
    columns ``indices``.
    """

    sparse = True
    indptr: Any
    indices: Any

    @abstractmethod
    def made(self, arrays: tuple[Any, Any, Any], about: About) -> Self:
        """Return the matrix of this kind that has these pointers, columns, values."""

    def with_values(self, values: Any, about: About) -> Self:
        return self.made((self.indptr, self.indices, values), about)

    def entry(self, number: int) -> tuple[int, int, float]:
        row = int(np.searchsorted(to_host(self.indptr), number, side="right")) - 1
        return row, int(self.indices[number]), float(self.values[number])

    def owners(self, indptr: Any) -> tuple[Any, Any]:
        """Return the numbers of all entries, and the row that each is in."""
        device = compat.device(indptr)
        at = self.ops.xp.arange(int(indptr[-1]), dtype=indptr.dtype, device=device)
        return at, self.ops.xp.searchsorted(indptr, at, side="right") - 1

    # Squares may take twice the memory of X: those of large data are made by blocks.

    def own_row_sqnorms(self, column_weights: np.ndarray | None) -> Any:
        weights = np.ones(self.shape[1]) if column_weights is None else column_weights
        return self.with_values(self._squares(), NOTHING) @ weights

    def column_sqnorms(self) -> np.ndarray:
        if len(self.row_blocks) > 1:
            return super().column_sqnorms()
        return self.ops.group_sums(self.indices, self.shape[1], self._squares())

    def _squares(self) -> Any:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self.ops.xp.square(self.ops.widen(self.values))

    def multiplied(self, rows: Any, columns: Any, about: About) -> Self:
        take, values = self.ops.xp.take, self.values
        if rows is not None:
            values = values * take(rows, self.owners(self.indptr)[1])
        if columns is not None:
            values = values * take(columns, self.indices)
        return self.with_values(values, about)

    def filled(self, fill: Any = None) -> Self:
        xp, values = self.ops.xp, self.values
        bad = xp.isnan(values)
        if fill is not None:
            return self._changed(xp.nonzero(bad)[0], fill)
        values = xp.where(bad, xp.zeros_like(values), values)
        return self.with_values(values, self.about)

    def with_gaps(self, mark: Any) -> Self:
        return self._changed(self.ops.xp.nonzero(self.values)[0], mark)

    def _changed(self, at: Any, change: Any) -> Self:
        """Return the rows with some entries as a change of dense rows makes them."""
        xp, p = self.ops.xp, self.shape[1]
        values, at = xp.asarray(self.values, copy=True), xp.astype(at, xp.int64)
        owner = xp.searchsorted(xp.astype(self.indptr, xp.int64), at, side="right") - 1
        rows, which = xp.unique_inverse(owner)
        # Work on a row takes several times its length.
        for part in row_ranges(rows.shape[0], max(2**20, self.least_range // 4) // p):
            lines = xp.reshape(change(self.rows(to_host(rows[part]))), (-1,))
            inside = (which >= part.start) & (which < part.stop)
            mine = at[inside]
            columns = xp.astype(xp.take(self.indices, mine), xp.int64)
            values[mine] = xp.take(lines, (which[inside] - part.start) * p + columns)
        return self.with_values(values, self.about)

    def missing(self) -> Self:
        xp, kind = self.ops.xp, self.indptr.dtype
        bad = xp.astype(xp.nonzero(xp.isnan(self.values))[0], kind)
        indptr = xp.astype(xp.searchsorted(bad, self.indptr), kind)
        ones = xp.ones_like(xp.take(self.values, bad))
        return self.made((indptr, xp.take(self.indices, bad), ones), NOTHING)


class Sparse(InMemory, Entries):
    """A CSR matrix or array of scipy; threads share more than ``parallel`` entries."""

    parallel = 2**20

    def __init__(self, array: Any, about: About = NOTHING) -> None:
        super().__init__(array.shape, array.dtype, about)
        self.array = array
        self.n_entries = int(array.nnz)
        self.indptr, self.indices = array.indptr, array.indices
        self.values = array.data

    def __matmul__(self, W: Any) -> np.ndarray:
        return self._times(self.array, W)

    def adjoint(self, V: Any) -> np.ndarray:
        X = self.array  # as the transpose, without a copy
        return self._times(_stored("csc", X.shape[1], X.indptr, X.indices, X.data), V)

    def _times(self, X: Any, W: Any) -> np.ndarray:
        W = np.asarray(W, dtype=self.dtype)
        # Threads cost more than they bring to a product with one vector.
        most = self.parallel * (2 if W.shape[-1] == 1 else 1)
        if W.ndim != 2 or X.nnz <= most:
            return np.asarray(X @ W)
        if X.format == "csr":
            parts = in_parts(X.shape[0], lambda rows: _part(X, rows) @ W)
            return np.concatenate(list(parts))
        parts = in_parts(X.shape[1], lambda columns: _part(X, columns) @ W[columns])
        return np.asarray(reduce(iadd, parts))

    def made(self, arrays: tuple[Any, Any, Any], about: About) -> Sparse:
        return Sparse(_stored("csr", self.shape[1], *arrays), about)

    def owners(self, indptr: Any) -> tuple[Any, Any]:
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return np.arange(len(rows)), rows

    def take(self, rows: Index) -> Sparse:
        X, about = self.array, self.about.of_taken_rows()
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(X.shape[0])
            return Sparse(_part(X, slice(start, max(start, stop))), about)
        return Sparse(X[rows], about)

    def rows(self, rows: Index) -> np.ndarray:
        return np.asarray(self.array[rows].toarray())

    def fit_at_entries(self, parts: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Return ``parts @ directions.T`` at stored entries, which are by rows."""
        fit, sizes = np.zeros_like(self.values), np.diff(self.indptr)
        for part, direction in zip(parts.T, directions.T, strict=True):
            fit += np.repeat(part, sizes) * direction[self.indices]
        return fit

    def minus_fit(
        self, parts: np.ndarray, directions: np.ndarray, gain: np.ndarray
    ) -> Sparse:
        left = self.values - self.fit_at_entries(parts, directions)
        return self.with_values(left * gain[self.indices], self.about.of_taken_rows())

    def with_signs(self, _: Any, __: Any, seed: tuple[int, int]) -> Sparse:
        """Multiply stored entries by random signs that a seed gives."""
        signs = random_signs(np.random.default_rng(seed), self.n_entries, self.dtype)
        return self.with_values(self.values * signs, self.about.of_taken_rows())


def without_duplicates(X: Any) -> Any:
    """Return a CSR matrix in which each cell is stored once, and entries are in order.

    The given matrix, in which scipy also keeps what it finds out, is left as it is.
    """
    same = copy(X)
    if not same.has_canonical_format:
        same = X.copy()
        same.sum_duplicates()
    return same


def _part(X: Any, at: slice) -> Any:
    """Return some rows of a CSR matrix, or columns of a CSC one, without a copy."""
    indptr = X.indptr[at.start : at.stop + 1]
    own = slice(indptr[0], indptr[-1])
    arrays = indptr - own.start, X.indices[own], X.data[own]
    return _stored(X.format, X.shape[1 if X.format == "csr" else 0], *arrays)


def _stored(kind: str, width: int, indptr: Any, indices: Any, data: Any) -> Any:
    """Return a CSR matrix of so many columns, or a CSC one of so many rows."""
    # Given to the constructor, arrays that are parts of others would be copied.
    made = sp.csr_array((len(indptr) - 1, width), dtype=data.dtype)
    made = made if kind == "csr" else made.T
    made.data, made.indices, made.indptr = data, indices, indptr
    return made


class SparseDevice(OnDevice, Entries):
    """A CSR matrix of torch or CuPy, and after its first adjoint a transposed copy."""

    def __init__(self, array: Any, about: About = NOTHING) -> None:
        if hasattr(array, "crow_indices"):  # torch
            parts = array.crow_indices(), array.col_indices(), array.values()
        else:
            parts = array.indptr, array.indices, array.data
        self.indptr, self.indices, self.values = parts
        ops, (n, p) = library_ops(self.values), array.shape
        super().__init__((int(n), int(p)), ops.host_dtype(self.values), about, ops)
        self.array, self.n_entries = array, int(self.values.shape[0])

    def made(self, arrays: tuple[Any, Any, Any], about: About) -> Self:
        indptr, indices, values = arrays
        shape = int(indptr.shape[0]) - 1, self.shape[1]
        if compat.is_torch_array(values):
            import torch

            # Torch says, once, that it does not check what was checked before.
            with ignored(UserWarning):
                array = torch.sparse_csr_tensor(*arrays, shape, check_invariants=False)
        else:
            from cupyx.scipy.sparse import csr_matrix

            array = csr_matrix((values, indices, indptr), shape=shape)
            array.has_canonical_format = True  # else CuPy looks before each product
        return type(self)(array, about)

    def __matmul__(self, W: Any) -> Tall:
        return self._product(self.array, W)

    def adjoint(self, V: Any) -> Tall:
        return self._product(self._transposed, V)

    def _product(self, X: Any, W: Any) -> Tall:
        W = self.cast(W)
        if self.n_entries and 0 not in W.shape:
            return X @ W
        shape = (int(X.shape[0]), *W.shape[1:])
        return self.ops.xp.zeros(shape, dtype=W.dtype, device=compat.device(W))

    @cached_property
    def _transposed(self) -> Any:
        X = self.array
        with ignored(UserWarning):
            return X.t().to_sparse_csr() if hasattr(X, "t") else X.T.tocsr()

    def take(self, rows: Index) -> Self:
        about, n = self.about.of_taken_rows(), self.shape[0]
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(n)
            if (start, stop) == (0, n):
                return self.with_about(about)  # with its transposed copy
            indptr = self.indptr[start : max(start, stop) + 1]
            at = slice(int(indptr[0]), int(indptr[-1]))
            arrays = indptr - at.start, self.indices[at], self.values[at]
            return self.made(arrays, about)
        xp, places = self.ops.xp, self.to_device(np.arange(n)[rows])
        starts = xp.take(self.indptr, places)
        sizes = xp.take(self.indptr, places + 1) - starts
        ends = xp.astype(xp.cumulative_sum(sizes), sizes.dtype)
        indptr = xp.concat([xp.zeros_like(self.indptr[:1]), ends])
        at, owners = self.owners(indptr)
        at = at + xp.take(starts - indptr[:-1], owners)
        arrays = indptr, xp.take(self.indices, at), xp.take(self.values, at)
        return self.made(arrays, about)

    def rows(self, rows: Index) -> Tall:
        array = self.take(rows).array
        return array.to_dense() if hasattr(array, "to_dense") else array.toarray()

    def to_memory(self) -> Sparse:
        parts = tuple(map(to_host, (self.values, self.indices, self.indptr)))
        return Sparse(sp.csr_array(parts, shape=self.shape), self.about.of_taken_rows())


def open_sparse(given: Any) -> SparseDevice | None:
    """Return a sparse matrix of torch or CuPy as a matrix, and None for all else."""
    X, is_tensor = given, compat.is_torch_array(given)
    if is_tensor and str(X.layout) != "torch.strided":
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
            X = X.detach().to_sparse_csr()
    # AnnData has a subclass of its own for views.
    elif any(t.__module__.startswith("cupyx.scipy.sparse") for t in type(X).__mro__):
        X = X.tocsr()  # always of rows and columns
        if not X.has_canonical_format:
            X = X.copy() if X is given else X  # CuPy would sort the user's own entries
            X.sum_duplicates()
    else:
        return None
    matrix = SparseDevice(X)
    xp, p, n_entries = matrix.ops.xp, matrix.shape[1], matrix.n_entries
    n_in_rows, least, most = int(matrix.indptr[-1]), 0, -1
    if n_entries:
        least, most = int(xp.min(matrix.indices)), int(xp.max(matrix.indices))
    # Products with such a matrix would end the process.
    if n_in_rows != n_entries or least < 0 or most >= p:
        raise ValueError(
            f"X is a sparse matrix of {p} columns and {n_entries} entries, but its "
            f"rows have {n_in_rows} entries, in columns {least} to {most}; check how "
            "it was made."
        )
    return matrix.with_values(real_floats(matrix.values), NOTHING)
