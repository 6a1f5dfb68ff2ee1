"""Ways to hold a matrix: each takes a NumPy array and a folder to write to.

What they return is what a user would hand over. ``opened`` makes a Matrix of it, which
reads data on disk in small blocks.
"""

import warnings
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

from ihgmm.matrix import Matrix, as_matrix
from ihgmm.matrix.stored import Stored

# With NumPy 1, array_api_strict cannot move arrays between its devices.
NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
STRICT_DEVICE = "device1" if NUMPY_2 else "CPU_DEVICE"


def needed(name):
    pytest.importorskip(name.partition(".")[0], reason=f"{name} is not installed")
    return import_module(name)


def numpy_c(X, folder):
    return X.copy()


def numpy_fortran(X, folder):
    return np.asfortranarray(X)


def csr(X, folder):
    return sp.csr_array(X)


def csr_matrix(X, folder):
    return sp.csr_matrix(X)


def csc(X, folder):
    return sp.csc_array(X)


def torch_cpu(X, folder=None):
    return needed("torch").asarray(np.array(X))


def torch_cuda(X, folder=None):
    torch = needed("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    return torch.asarray(np.array(X), device="cuda")


def cupy(X, folder=None):
    return needed("cupy").asarray(X)


def quiet(make):
    """Make a tensor of which torch says, once, that it may change."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(support is in beta|in prototype stage)")
        return make()


def torch_csr(X, folder=None):
    return quiet(torch_cpu(X).to_sparse_csr)


def torch_csr_cuda(X, folder=None):
    return quiet(torch_cuda(X).to_sparse_csr)


def cupy_csr(X, folder=None):
    """CuPy's sparse matrices hold no integers."""
    floats = X if X.dtype.kind == "f" else X.astype(np.float64)
    return needed("cupyx.scipy.sparse").csr_matrix(cupy(floats))


def strict(X, folder=None):
    """On a device that mixes with no other and whose arrays NumPy cannot read."""
    xp = needed("array_api_strict")
    return xp.asarray(np.array(X), device=xp.Device(STRICT_DEVICE))


def memory_map(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def hdf5(X, folder, **options):
    file = needed("h5py").File(folder / "x.h5", "w")
    return file.create_dataset("X", data=X, **options)


def hdf5_chunked(X, folder):
    return hdf5(X, folder, chunks=(min(len(X), 70), X.shape[1] // 2))


def zarr(X, folder):
    chunks = (130, X.shape[1])
    return needed("zarr").create_array(folder / "x.zarr", data=X, chunks=chunks)


def write_csr(X, group, create):
    X = sp.csr_array(X)
    for name in ("data", "indices", "indptr"):
        values = getattr(X, name)
        create(name, data=values, chunks=(min(len(values), 5000),))
    group.attrs["encoding-type"] = "csr_matrix"
    group.attrs["shape"] = X.shape
    return group


def csr_hdf5(X, folder):
    group = needed("h5py").File(folder / "csr.h5", "w").create_group("X")
    return write_csr(X, group, group.create_dataset)


def csr_zarr(X, folder):
    group = needed("zarr").create_group(folder / "csr.zarr")
    return write_csr(X, group, group.create_array)


def table_of(path, group_size=None, **columns):
    """Write columns to a Parquet file, and return its data set."""
    table = needed("pyarrow").table(columns)
    needed("pyarrow.parquet").write_table(table, path, row_group_size=group_size)
    return needed("pyarrow.dataset").dataset(path)


def parquet(X, folder):
    """Two files, one of two row groups and one of many small ones."""
    (folder / "x").mkdir()
    group_sizes = (1 + len(X) // 4, 40)

    for i, half in enumerate(np.array_split(X, 2)):
        columns = {f"f{j}": column for j, column in enumerate(half.T)}
        table_of(folder / "x" / f"{i}.parquet", group_sizes[i], **columns)

    return needed("pyarrow.dataset").dataset(folder / "x")


def dask_dense(X, folder):
    return needed("dask.array").from_array(X, chunks=(230, X.shape[1]))


def dask_in_four(X, folder):
    return dask_dense(X, folder).rechunk({0: len(X) // 4})


def dask_csr(X, folder):
    return dask_dense(X, folder).map_blocks(sp.csr_array)


class Bare(Matrix):
    """As little as a kind may know: all else follows from its rows."""

    def __init__(self, X, folder=None):
        super().__init__(X.shape, X.dtype)
        self.X = X

    def take(self, rows):
        part = as_matrix(self.X[rows])
        return part.with_metadata(self.metadata.of_taken_rows())


class BareInRanges(Bare):
    """The same, gone through in several ranges of rows."""

    @property
    def row_blocks(self):
        return [slice(0, 1), slice(1, 15), slice(15, self.shape[0])]


# Kinds of a family share their class, or most of what estimators ask of it. They differ
# in how numbers are held and read.
FAMILIES = (
    (numpy_c, Bare, numpy_fortran, BareInRanges),
    (csr, csc, csr_matrix),
    (torch_cpu, strict),
    (torch_cuda,),
    (cupy,),
    (torch_csr,),
    (torch_csr_cuda,),
    (cupy_csr,),
    (memory_map, csr_hdf5, hdf5, zarr, parquet, hdf5_chunked, csr_zarr),
    (dask_dense, dask_csr),
)
KINDS = tuple(kind for family in FAMILIES for kind in family)


def opened(X, n_bytes=2**15):
    """Return a matrix that holds X; on disk, in several blocks."""
    matrix = as_matrix(X)
    if isinstance(matrix, Stored):
        return matrix._with_other_entries(block_bytes=n_bytes)
    return matrix


def hdf5_in_blocks(X, folder):
    return opened(hdf5(X, folder))
