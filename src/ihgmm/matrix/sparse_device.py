"""Sparse matrices of torch and CuPy, on whatever device they are, as CSR."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import array_api_compat as compat
import numpy as np
import scipy.sparse as sp

from ihgmm._warnings import ignored
from ihgmm.matrix.base import NOTHING, About, Index
from ihgmm.matrix.device import OnDevice, check_form, real_floats
from ihgmm.matrix.ops import Tall, library_ops, to_host
from ihgmm.matrix.sparse import Entries, Sparse


class SparseDevice(OnDevice, Entries):
    """A CSR matrix of torch or CuPy, and after its first adjoint a transposed copy."""

    def __init__(self, array: Any, about: About = NOTHING) -> None:
        if hasattr(array, "crow_indices"):  # torch
            parts = array.crow_indices(), array.col_indices(), array.values()
        else:
            parts = array.indptr, array.indices, array.data
        self.indptr, self.indices, self.values = parts
        ops, shape = (
            library_ops(self.values),
            (int(array.shape[0]), int(array.shape[1])),
        )
        super().__init__(shape, ops.host_dtype(self.values), about, ops)
        self.array, self.n_entries = array, int(self.values.shape[0])

    def made(self, arrays: tuple[Any, Any, Any], about: About) -> Self:
        return type(self)(_csr(*arrays, self.shape[1]), about)

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
        array = sp.csr_array(parts, shape=self.shape)
        return Sparse(array, self.about.of_taken_rows())


def _csr(indptr: Any, indices: Any, values: Any, n_columns: int) -> Any:
    """Return the CSR matrix of a library of three of its arrays."""
    shape = int(indptr.shape[0]) - 1, n_columns
    if compat.is_torch_array(values):
        import torch

        # Torch says, once, that it does not check what was checked before.
        with ignored(UserWarning):
            return torch.sparse_csr_tensor(
                indptr, indices, values, shape, check_invariants=False
            )
    from cupyx.scipy.sparse import csr_matrix

    array = csr_matrix((values, indices, indptr), shape=shape)
    array.has_canonical_format = True  # else CuPy looks before each product
    return array


def open_sparse(X: Any) -> SparseDevice | None:
    """Return a sparse matrix of torch or CuPy as a matrix, and None for all else."""
    if compat.is_torch_array(X) and str(X.layout) != "torch.strided":
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
        given, X = X, X.tocsr()  # always of rows and columns
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
