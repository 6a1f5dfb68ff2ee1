"""Kernels for products of a CSR matrix on a CUDA device.

Libraries take long for the transposed one, or want a transposed copy. Here each row
adds its entries, times its row of the block, to the rows of the result. Nothing is
stored besides; sums are in no fixed order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

CUDA = r"""
extern "C" __global__ void scatter(
    const INDEX* indptr, const INDEX* indices, const REAL* values,
    const REAL* V, REAL* out, const long long n, const int width)
{
    const long long step = (long long)blockDim.y * gridDim.x;
    long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    for (; row < n; row += step)
        for (INDEX at = indptr[row]; at < indptr[row + 1]; ++at)
            for (int j = threadIdx.x; j < width; j += blockDim.x)
                atomicAdd(out + (long long)indices[at] * width + j,
                          values[at] * V[row * width + j]);
}

extern "C" __global__ void gather(
    const INDEX* indptr, const INDEX* indices, const REAL* values,
    const REAL* W, REAL* out, const long long n, const int width)
{
    const long long step = (long long)blockDim.y * gridDim.x;
    long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    for (; row < n; row += step)
        for (int j = threadIdx.x; j < width; j += blockDim.x) {
            REAL total = 0;
            for (INDEX at = indptr[row]; at < indptr[row + 1]; ++at)
                total += values[at] * W[(long long)indices[at] * width + j];
            out[row * width + j] = total;
        }
}
"""


@cache
def _compiled(name: str, index: str, real: str) -> Any:
    import cupy

    code = CUDA.replace("INDEX", index).replace("REAL", real)
    return cupy.RawKernel(code, name)


def product_in_cupy(
    name: str, indptr: Any, indices: Any, values: Any, block: Any, n_lines: int
) -> Any:
    """Return ``X @ block`` ("gather") or ``X.T @ block`` ("scatter") for a CSR matrix.

    The result has ``n_lines``.
    """
    import cupy

    n, width = indptr.shape[0] - 1, block.shape[1]
    real = "float" if values.dtype == np.float32 else "double"
    index = "int" if indices.dtype == np.int32 else "long long"
    out = cupy.zeros((n_lines, width), dtype=values.dtype)
    matrix = indptr.astype(indices.dtype, copy=False), indices, values
    given = *matrix, cupy.ascontiguousarray(block), out
    kernel = _compiled(name, index, real)
    kernel((4096,), (16, 16), (*given, np.int64(n), np.int32(width)))
    return out


def adjoint_in_torch(indptr: Any, indices: Any, values: Any, V: Any, p: int) -> Any:
    """Return ``X.T @ V`` for the three arrays of a CSR matrix of torch.

    None where Triton, which comes with torch for CUDA, is missing.
    """
    if triton is None:
        return None
    n, width = V.shape
    out = V.new_zeros((p, width))
    size = triton.next_power_of_2(width)
    _scatter[(n,)](indptr, indices, values, V.contiguous(), out, width, size, 32)
    return out


try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
else:

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _scatter(  # type: ignore[no-untyped-def]
        indptr, indices, values, V, out, width, WIDTH: tl.constexpr, STEP: tl.constexpr
    ):
        row = tl.program_id(0).to(tl.int64)
        first, last = tl.load(indptr + row), tl.load(indptr + row + 1)
        columns = tl.arange(0, WIDTH)
        own = tl.load(V + row * width + columns, mask=columns < width, other=0.0)
        for start in range(first, last, STEP):
            at = start + tl.arange(0, STEP)
            there = at < last
            to = tl.load(indices + at, mask=there, other=0).to(tl.int64)
            value = tl.load(values + at, mask=there, other=0.0)
            places = out + to[:, None] * width + columns[None, :]
            inside = there[:, None] & (columns < width)[None, :]
            tl.atomic_add(
                places, value[:, None] * own[None, :], mask=inside, sem="relaxed"
            )
