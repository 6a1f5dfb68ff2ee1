"""Tall arrays of every library, against plain NumPy."""

import numpy as np
import pytest
from array_kinds import cupy, needed, strict, torch_cpu, torch_cuda
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm.matrix import ops_of, sample_positions, to_host


def on_host(a):
    return np.array(a)


def dask_blocks(a):
    """In several blocks, one of them without rows."""
    a = np.asarray(a)
    first_rows = 2 * len(a) // 3
    row_chunks = (first_rows, 0, len(a) - first_rows)
    chunks = (row_chunks, *((size,) for size in a.shape[1:]))
    return needed("dask.array").from_array(a, chunks=chunks)


@pytest.fixture(
    params=[on_host, torch_cpu, torch_cuda, cupy, strict, dask_blocks],
    ids=lambda p: p.__name__,
)
def put(request):
    """A way to put an array somewhere."""
    request.param(np.zeros(1))
    return request.param


@pytest.fixture
def ops(put):
    return ops_of(put(np.zeros((2, 1))))


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def close(result, expected, dtype=np.float64):
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    assert_allclose(to_host(result), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [3, 64, 200])
def test_the_largest_entry_of_each_column_becomes_positive(put, ops, dtype, n):
    U = np.random.default_rng(0).standard_normal((n, 5)).astype(dtype)
    largest_rows = np.abs(U).argmax(axis=0)
    signs = np.sign(U[largest_rows, range(5)])

    assert_array_equal(to_host(ops.fix_signs(put(U))), U * signs)


@pytest.mark.parametrize(("n", "count"), [(10, 3), (10, 10), (1000, 5), (1023, 64)])
def test_the_largest_values(put, ops, n, count):
    values = np.random.default_rng(0).permutation(n).astype(float)
    positions = ops.largest(put(values), count)

    assert isinstance(positions, np.ndarray)
    assert_array_equal(np.sort(values[positions]), np.arange(n - count, n))


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_order_is_exact(put, ops, scale):
    """Whatever the spread: all alike, ordinary, over many orders of magnitude."""
    rng = np.random.default_rng(0)
    values = np.round(np.exp(scale * rng.standard_normal(20_000)), 3)
    ranks = np.array([0, 19_999, 7])

    assert_array_equal(ops.in_order(put(values), ranks), np.sort(values)[ranks])


def test_some_rows(put, ops):
    A = np.random.default_rng(0).standard_normal((30, 4))
    positions = np.array([7, 3, 29, 3])
    is_chosen = A[:, 0] > 0.5

    assert_array_equal(to_host(ops.take_rows(put(A), positions)), A[positions])
    assert_array_equal(to_host(ops.take_rows(put(A), slice(None))), A)

    subset = ops.rows_where(put(A), put(is_chosen))

    assert_array_equal(to_host(subset), A[is_chosen])

    restored = to_host(ops.place(subset, put(is_chosen), put(-A)))

    assert_array_equal(restored, np.where(is_chosen[:, None], A, -A))

    is_placed = np.array([False, True, True, False, True, False])
    scattered = to_host(ops.place(put([5, 6, 7]), put(is_placed)))

    assert_array_equal(scattered, [0, 5, 6, 0, 7, 0])


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_unit_rows(put, ops, dtype, scale):
    U = np.random.default_rng(0).standard_normal((50, 4)).astype(dtype)
    U[0] = 0
    U[1] *= dtype(scale)
    copy = U.copy()

    result = to_host(ops.unit_rows(put(U)))

    assert result.dtype == dtype
    assert_array_equal(U, copy)
    assert_array_equal(result[0], 0)

    norms = np.linalg.norm(U.astype(np.float64), axis=1, keepdims=True)

    assert_allclose(result[1:], U[1:] / norms[1:], rtol=1e-5)

    extreme = np.array([[3e300, 4e300], [3e-300, -4e-300], [0.0, 0.0]])
    close(ops.unit_rows(put(extreme)), [[0.6, 0.8], [0.6, -0.8], [0, 0]])


@pytest.mark.parametrize(
    ("labels", "k", "expected"),
    [
        ([3, 3, 1, 1, 1, 0], 5, [1, 1, 0, 0, 0, 2]),
        ([1, 0, 0, 1], 2, [0, 1, 1, 0]),  # equal sizes: by first appearance
        ([3, 1, 1, 0, 2, 2, 4], 6, [2, 0, 0, 3, 1, 1, 4]),
    ],
)
def test_labels_are_numbered_by_size_then_first_appearance(
    put, ops, labels, k, expected
):
    rank = np.argsort(ops.order_by_size(put(labels), k))
    assert_array_equal(rank[labels], expected)


@pytest.mark.parametrize(("n", "size"), [(10, 3), (400, 399), (402, 150), (7, 20)])
def test_rows_are_drawn_once_each_from_all_stretches(n, size):
    counts = np.zeros(n)

    for seed in range(300):
        rows = sample_positions(n, size, np.random.default_rng(seed))
        assert len(rows) == min(n, size)
        assert (np.diff(rows) > 0).all()
        counts[rows] += 1

    assert (counts > 50).all()
