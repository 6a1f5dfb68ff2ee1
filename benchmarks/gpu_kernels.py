"""Kernels that multiply by a transposed CSR matrix, to see what libraries could do.

Each row adds its entries times its row of the block to the rows of the result. Nothing
is stored besides; sums are in no fixed order. They are not part of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CUDA = r"""
extern "C" __global__ void scatter(
    const int* indptr, const int* indices, const float* values,
    const float* V, float* out, const int n, const int width)
{
    const int lane = threadIdx.x, step = blockDim.y * gridDim.x;
    for (int row = blockIdx.x * blockDim.y + threadIdx.y; row < n; row += step)
        for (int at = indptr[row]; at < indptr[row + 1]; ++at)
            for (int j = lane; j < width; j += blockDim.x)
                atomicAdd(out + (long long)indices[at] * width + j,
                          values[at] * V[(long long)row * width + j]);
}
"""


def in_cuda(X: Any) -> Callable[[Any], Any]:
    """Return the product by a kernel of CUDA, for a CSR matrix of CuPy, float32."""
    import cupy
    import numpy as np

    kernel = cupy.RawKernel(CUDA, "scatter")
    n, p = X.shape

    def product(V: Any) -> Any:
        width = V.shape[1]
        out = cupy.zeros((p, width), dtype=V.dtype)
        given = X.indptr, X.indices, X.data, cupy.ascontiguousarray(V), out
        kernel((4096,), (16, 16), (*given, np.int32(n), np.int32(width)))
        return out

    return product


def in_triton(X: Any) -> Callable[[Any], Any]:
    """Return the product by a kernel of Triton, for a matrix of torch."""
    import triton

    def product(V: Any) -> Any:
        n, width = V.shape
        out = V.new_zeros((X.shape[1], width))
        size = triton.next_power_of_2(width)
        _scatter[(n,)](X.indptr, X.indices, X.values, V, out, width, size, 32)
        return out

    return product


try:
    import triton
    import triton.language as tl
except ImportError:
    pass
else:

    @triton.jit
    def _scatter(
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
