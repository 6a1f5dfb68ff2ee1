"""One contract for all places that data may be in: the answers of NumPy, same seed."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhSC, make_ihgmm
from ihgmm.matrix import to_host


def needed(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


def memory_map(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def hdf5(X, folder):
    return needed("h5py").File(folder / "x.h5", "w").create_dataset("X", data=X)


def zarr_array(X, folder):
    zarr = needed("zarr")
    chunks = (200, X.shape[1])
    array = zarr.create_array(
        folder / "x.zarr", shape=X.shape, dtype=X.dtype, chunks=chunks
    )
    array[:] = X
    return array


def csr_on_disk(X, folder):
    group = needed("h5py").File(folder / "csr.h5", "w").create_group("X")
    X = sp.csr_array(X)
    for name in ("data", "indices", "indptr"):
        group.create_dataset(name, data=getattr(X, name))
    group.attrs["encoding-type"] = "csr_matrix"
    group.attrs["shape"] = X.shape
    return group


def parquet(X, folder):
    needed("pyarrow")
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    table = importlib.import_module("pyarrow").table(columns)
    importlib.import_module("pyarrow.parquet").write_table(
        table, folder / "x.parquet", row_group_size=300
    )
    return importlib.import_module("pyarrow.dataset").dataset(folder / "x.parquet")


def dask_dense(X, folder):
    needed("dask")
    array = importlib.import_module("dask.array")
    return array.from_array(X, chunks=(250, X.shape[1]))


def dask_sparse(X, folder):
    return dask_dense(X, folder).map_blocks(sp.csr_array)


def torch_cpu(X, folder):
    return needed("torch").asarray(X)


def torch_cuda(X, folder):
    torch = needed("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    return torch.asarray(X, device="cuda")


def cupy(X, folder):
    return needed("cupy").asarray(X)


def array_api_strict(X, folder):
    return needed("array_api_strict").asarray(X)


BACKENDS = [
    memory_map,
    hdf5,
    zarr_array,
    csr_on_disk,
    parquet,
    dask_dense,
    dask_sparse,
    torch_cpu,
    torch_cuda,
    cupy,
    array_api_strict,
]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", ["auto", "block"])
@pytest.mark.parametrize("options", [{}, {"gram": "cosine"}, {"refine": True}], ids=str)
def test_the_answers_of_numpy(backend, dtype, solver, options, tmp_path):
    X, _ = make_ihgmm(700, 40, 4, random_state=0, dtype=dtype)
    stored = backend(X, tmp_path)
    found, wanted = (
        IhSC(4, eigen_solver=solver, random_state=0, **options).fit(data)
        for data in (stored, X)
    )
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    assert_array_equal(to_host(found.labels_), wanted.labels_)
    assert_allclose(to_host(found.eigenvalues_), wanted.eigenvalues_, rtol=tolerance)
    assert_allclose(to_host(found.scales_), wanted.scales_, rtol=100 * tolerance)
    assert_array_equal(to_host(found.predict(stored)), wanted.predict(X))
