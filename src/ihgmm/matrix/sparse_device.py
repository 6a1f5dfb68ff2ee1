"""Sparse matrices of other libraries, on whatever device they are.

CSR matrices of torch and of CuPy: how rows are taken, and who multiplies them.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Self

import array_api_compat as compat
import numpy as np
import scipy.sparse as sp

from ihgmm._warnings import ignored
from ihgmm.matrix.base import NOTHING, About, Index
from ihgmm.matrix.device import (
    OnDevice,
    check_numbers,
    check_two_dimensions,
    real_floats,
)
from ihgmm.matrix.ops import Tall, library_ops, to_host
from ihgmm.matrix.sparse import Entries, Sparse
from ihgmm.matrix.threads import row_ranges


class SparseDevice(OnDevice, Entries):
    """A CSR matrix of another library."""

    at_once = 2**24

    def __init__(self, array: Any, about: About = NOTHING) -> None:
        indptr, indices, values = self.arrays_of(array)
        ops, shape = library_ops(values), (int(array.shape[0]), int(array.shape[1]))
        super().__init__(shape, ops.host_dtype(values), about, ops)
        self.array, self.xp = array, ops.xp
        self.indptr, self.indices, self.values = indptr, indices, values
        self.n_entries = int(values.shape[0])

    @staticmethod
    @abstractmethod
    def arrays_of(array: Any) -> tuple[Any, Any, Any]:
        """Return indptr, indices and values of the library's matrix."""

    @staticmethod
    @abstractmethod
    def built(indptr: Any, indices: Any, values: Any, shape: tuple[int, int]) -> Any:
        """Return the library's matrix of three arrays, which are not copied."""

    def with_values(self, values: Any, about: About) -> Self:
        array = self.built(self.indptr, self.indices, values, self.shape)
        return type(self)(array, about)

    def of_places(self, indptr: Any, indices: Any, values: Any) -> Self:
        return type(self)(self.built(indptr, indices, values, self.shape))

    def spread(self, figures: Tall, at: slice) -> Any:
        return self.xp.take(figures, self._owners(at, self.indptr))

    def with_entries(self, X: Any) -> Any:
        """Return a scipy.sparse CSR matrix as one of this library, on this device."""
        places = (self.to_device(a.astype(np.int64)) for a in (X.indptr, X.indices))
        indptr, indices = (
            self.xp.astype(a, self.indptr.dtype, copy=False) for a in places
        )
        return self.built(indptr, indices, self.cast(X.data), X.shape)

    # Rows

    def take(self, rows: Index) -> Self:
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(self.shape[0])
            stop = max(start, stop)
            first, last = int(self.indptr[start]), int(self.indptr[stop])
            indptr = self.indptr[start : stop + 1] - first
            indices, values = self.indices[first:last], self.values[first:last]
        else:
            positions = self.to_device(np.arange(self.shape[0])[rows])
            indptr, indices, values = self._gathered(positions)
        shape = (int(indptr.shape[0]) - 1, self.shape[1])
        array = self.built(indptr, indices, values, shape)
        return type(self)(array, self.about.of_taken_rows())

    def _gathered(self, rows: Any) -> tuple[Any, Any, Any]:
        """Return the three arrays of rows in any order."""
        xp, kind = self.xp, self.indptr.dtype
        starts = xp.take(self.indptr, rows)
        sizes = xp.take(self.indptr, rows + 1) - starts
        ends = xp.astype(xp.cumulative_sum(sizes), kind)
        indptr = xp.concat([xp.zeros_like(self.indptr[:1]), ends])
        total = int(indptr[-1])
        values, indices = (
            xp.empty(total, dtype=a.dtype, device=compat.device(a))
            for a in (self.values, self.indices)
        )
        for at in row_ranges(total, self.at_once):
            places = self._range(at, kind)
            places = places + xp.take(starts - indptr[:-1], self._owners(at, indptr))
            values[at] = xp.take(self.values, places)
            indices[at] = xp.take(self.indices, places)
        return indptr, indices, values

    def _range(self, at: slice, dtype: Any) -> Any:
        device = compat.device(self.values)
        return self.xp.arange(at.start, at.stop, dtype=dtype, device=device)

    def _owners(self, at: slice, indptr: Any) -> Any:
        """Return the rows that some entries are in."""
        entries = self._range(at, indptr.dtype)
        return self.xp.searchsorted(indptr, entries, side="right") - 1

    def rows(self, rows: Index) -> Tall:
        array = self.take(rows).array
        return array.to_dense() if hasattr(array, "to_dense") else array.toarray()

    def toarray(self) -> np.ndarray:
        return self.to_memory().array.toarray()

    def to_memory(self) -> Sparse:
        parts = tuple(to_host(a) for a in (self.values, self.indices, self.indptr))
        array = sp.csr_array(parts, shape=self.shape)
        return Sparse(array, self.about.of_taken_rows())

    # Figures of rows, columns and entries

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        if column_weights is None:
            column_weights = np.ones(self.shape[1])
        weights = self.ops.widen(self.to_device(np.asarray(column_weights)))
        norms = []
        for rows in self.row_blocks:
            part = self.take(rows)
            squares = self.xp.square(self.ops.widen(part.values))
            squared = self.built(part.indptr, part.indices, squares, part.shape)
            norms.append(squared @ weights)
        return self.ops.stack(norms)

    def column_sqnorms(self) -> np.ndarray:
        total, p = np.zeros(self.shape[1]), self.shape[1]
        for at in self._parts():
            squares = self.xp.square(self.ops.widen(self.values[at]))
            total += self.ops.group_sums(self.indices[at], p, squares)
        return total


class TorchSparse(SparseDevice):
    """A torch tensor of layout CSR.

    Torch multiplies a transposed CSR tensor by sorting all its entries, each time. On a
    device a kernel of our own does it, on the host SciPy, in the same memory.
    """

    @staticmethod
    def arrays_of(array: Any) -> tuple[Any, Any, Any]:
        return array.crow_indices(), array.col_indices(), array.values()

    @staticmethod
    def built(indptr: Any, indices: Any, values: Any, shape: tuple[int, int]) -> Any:
        import torch

        # Torch says, once, that it does not check what was checked before.
        with ignored(UserWarning):
            return torch.sparse_csr_tensor(
                indptr, indices, values, shape, check_invariants=False
            )

    def __matmul__(self, W: Any) -> Tall:
        return self.array @ self.cast(W)

    def adjoint(self, V: Any) -> Tall:
        V = self.cast(V)
        if V.ndim == 1:
            return self.adjoint(V[:, None])[:, 0]
        if self.values.device.type == "cpu":
            return self.cast(self._in_scipy.adjoint(to_host(V)))
        if V.shape[0] == 0 or V.shape[1] == 0:
            return V.new_zeros((self.shape[1], V.shape[1]))
        from ihgmm.matrix.kernels import adjoint_in_torch

        given = self.indptr, self.indices, self.values
        product = adjoint_in_torch(*given, V, self.shape[1])
        return self.array.t() @ V if product is None else product

    @cached_property
    def _in_scipy(self) -> Sparse:
        return self.to_memory()


class CupySparse(SparseDevice):
    """A CSR matrix of CuPy.

    cuSPARSE takes twice as long as a kernel of our own, and gives columns one after the
    other where work on rows wants the rows.
    """

    @staticmethod
    def arrays_of(array: Any) -> tuple[Any, Any, Any]:
        return array.indptr, array.indices, array.data

    @staticmethod
    def built(indptr: Any, indices: Any, values: Any, shape: tuple[int, int]) -> Any:
        from cupyx.scipy.sparse import csr_matrix

        array = csr_matrix((values, indices, indptr), shape=shape)
        array.has_canonical_format = True  # else CuPy looks before each product
        return array

    def __matmul__(self, W: Any) -> Tall:
        return self._product("gather", self.cast(W), self.shape[0])

    def adjoint(self, V: Any) -> Tall:
        return self._product("scatter", self.cast(V), self.shape[1])

    def _product(self, name: str, block: Tall, n_lines: int) -> Tall:
        if block.ndim == 1:
            return self._product(name, block[:, None], n_lines)[:, 0]
        if 0 in block.shape:
            return self.xp.zeros((n_lines, block.shape[1]), dtype=block.dtype)
        from ihgmm.matrix.kernels import product_in_cupy

        given = self.indptr, self.indices, self.values
        return product_in_cupy(name, *given, block, n_lines)


def open_sparse(X: Any) -> SparseDevice | None:
    """Return a sparse matrix of torch or CuPy as a matrix, and None for all else.

    Other layouts than CSR are converted, once.
    """
    if compat.is_torch_array(X) and str(X.layout) != "torch.strided":
        return _from_torch(X)
    # AnnData has a subclass of its own for views.
    homes = (kind.__module__ for kind in type(X).__mro__)
    if any(home.startswith("cupyx.scipy.sparse") for home in homes):
        return _from_cupy(X)
    return None


def _from_torch(X: Any) -> TorchSparse:
    check_numbers(X)
    layout = str(X.layout)
    sparse = layout.startswith("torch.sparse_")
    if not sparse or (X.ndim == 2 and X.sparse_dim() != 2):
        raise TypeError(
            f"X is a torch tensor of layout {layout}, which has no rows of stored "
            "entries; give a dense tensor or one of layout torch.sparse_csr."
        )
    check_two_dimensions(X)
    X = X.detach()
    if layout != "torch.sparse_csr":
        # Torch says, once, that it may change what it has for CSR.
        with ignored(UserWarning):
            if layout in ("torch.sparse_bsr", "torch.sparse_bsc"):
                X = X.to_sparse_coo()  # the only way that torch knows
            if str(X.layout) == "torch.sparse_coo":
                X = X.coalesce()
            X = X.to_sparse_csr()
    indptr, indices, values = TorchSparse.arrays_of(X)
    _check_places(X, indptr, indices)
    floats = real_floats(values)
    if floats is not values:
        X = TorchSparse.built(indptr, indices, floats, X.shape)
    return TorchSparse(X)


def _from_cupy(X: Any) -> CupySparse:
    check_two_dimensions(X)
    found = X.tocsr()
    if not found.has_canonical_format:
        # In a copy: CuPy would sort the user's own entries.
        found = found.copy() if found is X else found
        found.sum_duplicates()
    indptr, indices, values = CupySparse.arrays_of(found)
    _check_places(found, indptr, indices)
    return CupySparse(
        CupySparse.built(indptr, indices, real_floats(values), found.shape)
    )


def _check_places(X: Any, indptr: Any, indices: Any) -> None:
    """Raise where entries are in no row or column: products would end the process."""
    n_entries, p = int(indices.shape[0]), int(X.shape[1])
    if int(indptr[-1]) != n_entries:
        raise ValueError(
            f"X is a sparse matrix with {n_entries} entries of which its rows have "
            f"{int(indptr[-1])}; check how it was made."
        )
    if not n_entries:
        return
    xp = library_ops(indices).xp
    least, most = int(xp.min(indices)), int(xp.max(indices))
    if least < 0 or most >= p:
        raise ValueError(
            f"X is a sparse matrix of {p} columns with an entry in column "
            f"{least if least < 0 else most}; check how it was made."
        )
