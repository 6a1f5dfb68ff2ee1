"""Data that is not in memory gives the answers of data that is."""

import os
import re
import shutil

import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from ihgmm import (
    PSC,
    IhGMM,
    IhSC,
    SphericalKMeans,
    _stored,
    diagnose,
    estimate_parameters,
    make_ihgmm,
    scale_heterogeneity_test,
    select_n_clusters,
)
from ihgmm._readers import open_rows
from ihgmm.numerics.eigen import leading_eigenpairs
from ihgmm.numerics.gram import GramOperator


def memory_map(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def hdf5(X, folder, chunks=None):
    file = h5py.File(folder / "x.h5", "w")
    return file.create_dataset("X", data=X, chunks=chunks)


def hdf5_chunked(X, folder):
    return hdf5(X, folder, (min(len(X), 70), X.shape[1] // 2))


def zarr_array(X, folder):
    array = zarr.create_array(
        folder / "x.zarr", shape=X.shape, dtype=X.dtype, chunks=(130, X.shape[1])
    )
    array[:] = X
    return array


def write_csr(X, group):
    X = sp.csr_array(X)
    for name in ("data", "indices", "indptr"):
        values = getattr(X, name)
        create = group.create_array if hasattr(group, "store") else group.create_dataset
        create(name, data=values, chunks=(min(len(values), 5000),))
    group.attrs["encoding-type"] = "csr_matrix"
    group.attrs["shape"] = X.shape
    return group


def csr_hdf5(X, folder):
    return write_csr(X, h5py.File(folder / "csr.h5", "w").create_group("X"))


def csr_zarr(X, folder):
    return write_csr(X, zarr.create_group(folder / "csr.zarr"))


def parquet(X, folder):
    (folder / "x").mkdir()
    for i, part in enumerate(np.array_split(X, 2)):
        table = pa.table({f"f{j}": part[:, j] for j in range(X.shape[1])})
        pq.write_table(
            table, folder / "x" / f"{i}.parquet", row_group_size=1 + len(X) // 4
        )
    return pds.dataset(folder / "x")


def dask_dense(X, folder):
    return da.from_array(X, chunks=(230, X.shape[1]))


def dask_csr(X, folder):
    return dask_dense(X, folder).map_blocks(sp.csr_array)


KINDS = {
    kind.__name__: kind
    for kind in (
        memory_map,
        hdf5,
        hdf5_chunked,
        zarr_array,
        csr_hdf5,
        csr_zarr,
        parquet,
        dask_dense,
        dask_csr,
    )
}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(_stored, "BLOCK_BYTES", 2**15)


@pytest.fixture(params=list(KINDS))
def store(request, tmp_path, monkeypatch):
    """A way to put a matrix somewhere else than in memory; several blocks of it."""
    size = 2**16 if "csr" in request.param else 2**15
    monkeypatch.setattr(_stored, "BLOCK_BYTES", size)

    def put(X, name="x"):
        folder = tmp_path / name
        folder.mkdir()
        return KINDS[request.param](X, folder)

    return put


def sample(dtype=np.float64, n=500, p=40):
    X, _ = make_ihgmm(n, p, 4, random_state=0)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = 0
    return X.astype(dtype)


def like(stored, X):
    """Return X, sparse if it is stored so: sparse data is flipped in other ways."""
    return sp.csr_array(X) if open_rows(stored).sparse else X


TOLERANCE = {"float32": 1e-5, "float64": 1e-9}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_same_answer_as_in_memory(store, dtype):
    X = sample(dtype, n=700)
    stored = store(X)
    assert len(open_rows(stored).ranges) > 2
    model, wanted = (IhSC(4, random_state=0).fit(data) for data in (stored, X))
    rtol = TOLERANCE[dtype]
    assert_array_equal(model.labels_, wanted.labels_)
    assert_allclose(model.eigenvalues_, wanted.eigenvalues_, rtol=rtol)
    assert_allclose(model.scales_, wanted.scales_, rtol=100 * rtol)
    size = np.abs(wanted.cluster_centers_).max()
    assert_allclose(
        model.cluster_centers_, wanted.cluster_centers_, atol=10 * rtol * size
    )
    assert_allclose(model.noise_levels_, wanted.noise_levels_, rtol=1e3 * rtol)
    assert model.cluster_centers_.dtype == dtype
    assert_array_equal(model.predict(stored), wanted.predict(X))
    assert_allclose(model.transform(stored), wanted.transform(X), atol=100 * rtol)
    assert model.score(stored) == pytest.approx(wanted.score(X), rel=10 * rtol)
    assert_array_equal(open_rows(stored).toarray(), X)


OPTIONS = [
    {"refine": True},
    {"n_clusters": "auto"},
    {"gram": "cosine"},
    {"gram": "full"},
]
MORE_OPTIONS = [
    {"gram": "hetero"},
    {"assign_labels": "cluster_qr"},
    {"eigen_solver": "dense"},
    {"eigen_solver": "lanczos"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(store, options):
    X = sample()
    check_options(store(X), X, options)


@pytest.mark.parametrize("kind", [memory_map, csr_hdf5, dask_dense])
@pytest.mark.parametrize("options", MORE_OPTIONS, ids=str)
def test_more_options(kind, tmp_path, small_blocks, options):
    X = sample()
    check_options(kind(X, tmp_path), X, options)


def check_options(stored, X, options):
    options = {"n_clusters": 4, "random_state": 0} | options
    model, wanted = (IhSC(**options).fit(data) for data in (stored, like(stored, X)))
    assert model.n_clusters_ == wanted.n_clusters_
    assert_array_equal(model.labels_, wanted.labels_)
    assert_allclose(model.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)


def test_mixture(store):
    X = sample(n=300)
    stored = store(X)
    model, wanted = (IhGMM(4, random_state=0).fit(data) for data in (stored, X))
    assert_array_equal(model.labels_, wanted.labels_)
    assert_allclose(model.log_likelihood_, wanted.log_likelihood_, rtol=1e-9)
    assert_allclose(model.predict_proba(stored), wanted.predict_proba(X), atol=1e-9)
    assert model.bic(stored) == pytest.approx(wanted.bic(X))


def test_functions(store):
    X = sample(n=300)
    stored = store(X)
    labels = IhSC(4, random_state=0).fit_predict(X)
    found, wanted = (estimate_parameters(data, labels) for data in (stored, X))
    assert_allclose(found.scales, wanted.scales, rtol=1e-9)
    assert_allclose(found.scale_errors, wanted.scale_errors, rtol=1e-9)
    found, wanted = (
        select_n_clusters(data, random_state=0) for data in (stored, like(stored, X))
    )
    assert found.n_clusters == wanted.n_clusters == 4
    # The signs of sparse rows depend on how the rows are cut into blocks.
    rtol = 0.1 if open_rows(stored).sparse else 1e-6
    assert_allclose(found.edge, wanted.edge, rtol=rtol)
    found, wanted = (
        scale_heterogeneity_test(data, labels, random_state=0) for data in (stored, X)
    )
    assert_allclose(found.statistic, wanted.statistic, rtol=1e-6)
    assert diagnose(stored, labels).verdict == diagnose(X, labels).verdict


def test_integers(store):
    X = np.random.default_rng(0).poisson(np.abs(sample())).astype(np.int16)
    model, wanted = (IhSC(4, random_state=0).fit(data) for data in (store(X), X))
    assert_array_equal(model.labels_, wanted.labels_)
    assert model.cluster_centers_.dtype == np.float64
    assert_allclose(model.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)


def test_zero_rows(store):
    X = sample()
    X[[0, 333, 499]] = 0
    with pytest.warns(DataConversionWarning, match="3 of 500 rows are zero"):
        model = IhSC(4, random_state=0).fit(store(X))
    labels = np.asarray(model.labels_)
    assert_array_equal(labels[[0, 333, 499]], 0)
    assert_array_equal(model.scales_[[0, 333, 499]], 0)
    with pytest.warns(DataConversionWarning):
        assert_array_equal(labels, IhSC(4, random_state=0).fit(X).labels_)


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_not_finite(store, value, name):
    X = sample()
    good = store(X)
    X[417, 7] = X[420, 1] = value
    bad = store(X, "bad")
    message = f"contains {name} at row 417, column 7. IhSC does not accept .*drop"
    with pytest.raises(ValueError, match=message):
        IhSC(4).fit(bad)
    with pytest.raises(ValueError, match=message):
        IhSC(4, random_state=0).fit(good).transform(bad)


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [("float64", 1e200), ("float32", 1e-44)],
)
def test_huge_and_tiny_values(store, dtype, factor):
    X = (sample() * factor).astype(dtype)
    model, wanted = (IhSC(4, random_state=0).fit(data) for data in (store(X), X))
    assert_array_equal(model.labels_, wanted.labels_)
    assert_allclose(model.cluster_centers_, wanted.cluster_centers_, rtol=1e-3)


def test_wrong_number_of_features(store):
    model = IhSC(4, random_state=0).fit(store(sample(n=400)))
    message = "X has 39 features, but IhSC is expecting 40 features as input"
    with pytest.raises(ValueError, match=message):
        model.predict(store(sample(n=300)[:, :39], "other"))


def test_fewer_rows_than_clusters(store):
    message = "n_clusters=9 is more than n_samples=5; give at most 5 clusters"
    with pytest.raises(ValueError, match=message):
        IhSC(9).fit(store(sample()[:5]))


def test_few_rows(store):
    for rows in (1, 2, 5):
        X = sample()[:rows]
        stored, k = store(X, str(rows)), min(rows, 2)
        model, wanted = (IhSC(k, random_state=0).fit(data) for data in (stored, X))
        assert_array_equal(model.labels_, wanted.labels_)


@pytest.mark.parametrize("kind", [memory_map, csr_hdf5, dask_dense])
def test_passes(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(_stored, "BLOCK_BYTES", 2**20)
    X, _ = make_ihgmm(
        20_000, 100, 5, separation_constant=0.5, dtype=np.float32, random_state=0
    )
    rows = open_rows(kind(X, tmp_path))
    labels = IhSC(5, random_state=0).fit(rows).labels_
    assert 3 <= rows.passes <= 6
    assert_array_equal(labels, IhSC(5, random_state=0).fit(X).labels_)


def test_some_rows(store):
    X = sample(n=1000)
    rows = open_rows(store(X))
    for index in (
        slice(None),
        slice(250, 700),
        slice(900, 100, -7),
        slice(5, 5),
        np.array([3, 999, 4, 4, 0, 512, -1]),
        np.array([], dtype=int),
        np.arange(1000)[::-1],
        np.arange(0, 1000, 3),
        np.arange(1000) % 97 == 5,
    ):
        found = rows.take(index)
        found = found.toarray() if sp.issparse(found) else found
        assert_array_equal(found, X[index])


def test_few_rows_are_read_alone(tmp_path, small_blocks):
    asked = []
    X = sample(n=1000)

    def read(start, stop):
        asked.append(stop - start)
        return X[start:stop]

    rows = _stored.StoredRows(read, X.shape, X.dtype)
    assert_array_equal(rows.take(np.array([900, 3, 40])), X[[900, 3, 40]])
    assert asked == [1, 1, 1]
    asked.clear()
    chunked = _stored.StoredRows(read, X.shape, X.dtype, step=10)
    assert_array_equal(chunked.take(np.array([905, 3, 7])), X[[905, 3, 7]])
    assert asked == [5, 1]


def test_samples_of_chunks_count_as_passes(capsys):
    X = sample(n=1000)
    chunks = []

    def read(start, stop):
        chunks.extend(range(start // 100, -(-stop // 100)))
        return X[start:stop]

    rows = _stored.StoredRows(read, X.shape, X.dtype, step=100)
    rows.verbose = True
    rows.take(np.arange(7, 1000, 90))
    assert (len(chunks), rows.passes) == (10, 1)
    assert capsys.readouterr().err.count("pass 1 ") == 1
    rows.take(np.array([3, 5, 208]))
    assert rows.passes == 1
    alone = _stored.StoredRows(read, X.shape, X.dtype)
    alone.take(np.arange(7, 1000, 90))
    assert alone.passes == 0


def test_progress_is_shown(store, capsys):
    stored = store(sample())
    if isinstance(stored, da.Array):
        pytest.skip("dask has progress bars of its own")
    IhSC(4, random_state=0, verbose=True).fit(stored)
    shown = capsys.readouterr().err
    assert "pass 1 " in shown
    assert "100%" in shown


# -- bad input -------------------------------------------------------------------------


def break_after(rows, passes, harm):
    """Do some harm to what is stored once so many passes were made."""
    mapped = rows.map
    left = iter(range(passes - 1, -1, -1))

    def map_then_harm(*arguments):
        yield from mapped(*arguments)
        if next(left, None) == 0:
            harm()

    rows.map = map_then_harm
    return rows


def test_truncated_memory_map(tmp_path, small_blocks):
    rows = open_rows(memory_map(sample(n=2000), tmp_path))
    size = (tmp_path / "x.npy").stat().st_size

    def harm():
        os.truncate(tmp_path / "x.npy", size // 2)

    message = (
        "Rows .* of the memory map .*x.npy could not be read .*the file now ends "
        ".*Check that the file is whole"
    )
    with pytest.raises(OSError, match=message):
        IhSC(4, random_state=0).fit(break_after(rows, 1, harm))


def test_memory_map_that_is_overwritten(tmp_path, small_blocks):
    X = sample()
    rows = open_rows(memory_map(X, tmp_path))
    later = os.stat(tmp_path / "x.npy").st_mtime + 1

    def harm():
        with open(tmp_path / "x.npy", "r+b") as file:
            file.seek(-X[0].nbytes, os.SEEK_END)
            file.write(bytes(X[0].nbytes))
        os.utime(tmp_path / "x.npy", (later, later))  # clocks of files are coarse

    with pytest.raises(OSError, match=r"x.npy could not be read .*was written to afte"):
        IhSC(4, random_state=0).fit(break_after(rows, 1, harm))


def test_memory_map_of_a_file_that_grows(tmp_path, small_blocks):
    X = sample()
    rows = open_rows(memory_map(X, tmp_path))

    def more():
        with open(tmp_path / "x.npy", "ab") as file:
            file.write(bytes(1000))

    labels = IhSC(4, random_state=0).fit(break_after(rows, 1, more)).labels_
    assert_array_equal(labels, IhSC(4, random_state=0).fit(X).labels_)


def test_memory_map_that_may_be_written_to(tmp_path, small_blocks):
    X = sample()
    np.save(tmp_path / "x.npy", np.zeros_like(X))
    stored = np.load(tmp_path / "x.npy", mmap_mode="r+")
    stored[:] = X
    rows = break_after(open_rows(stored), 1, stored.flush)
    labels = IhSC(4, random_state=0).fit(rows).labels_
    assert_array_equal(labels, IhSC(4, random_state=0).fit(X).labels_)


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("kind", [hdf5, hdf5_chunked, csr_hdf5])
@pytest.mark.parametrize("passes", [1, 2])
def test_truncated_hdf5(kind, mode, passes, tmp_path, small_blocks):
    # HDF5 reads zeros where there is nothing.
    kind(sample(n=2000), tmp_path).file.close()
    (path,) = tmp_path.iterdir()
    with h5py.File(path, mode) as file:
        rows = open_rows(file["X"])
        rows.take(slice(0, 2000))
        size = path.stat().st_size
        model = IhSC(4, random_state=0)
        message = f"/X in .* could not be read .*now ends at byte {size // 2}, not"
        with pytest.raises(OSError, match=message):
            model.fit(break_after(rows, passes, lambda: os.truncate(path, size // 2)))
        os.truncate(path, size)  # so that it can be closed


def test_hdf5_that_is_overwritten(tmp_path, small_blocks):
    hdf5(sample(), tmp_path).file.close()
    path = tmp_path / "x.h5"
    later = path.stat().st_mtime + 1
    with h5py.File(path) as file:
        rows = break_after(open_rows(file["X"]), 1, lambda: os.utime(path, (0, later)))
        with pytest.raises(OSError, match="was written to after the work began"):
            IhSC(4, random_state=0).fit(rows)


def test_hdf5_that_is_not_yet_on_disk(tmp_path, small_blocks):
    X = sample()
    stored = hdf5_chunked(X, tmp_path)
    rows = break_after(open_rows(stored), 1, stored.file.flush)
    labels = IhSC(4, random_state=0).fit(rows).labels_
    assert_array_equal(labels, IhSC(4, random_state=0).fit(X).labels_)


def test_hdf5_in_memory():
    X = sample()
    with h5py.File("none.h5", "w", driver="core", backing_store=False) as file:
        labels = IhSC(4, random_state=0).fit_predict(file.create_dataset("X", data=X))
    assert_array_equal(labels, IhSC(4, random_state=0).fit(X).labels_)


def test_zarr_that_loses_chunks_in_the_last_pass(tmp_path, small_blocks):
    rows = open_rows(zarr_array(sample(), tmp_path))
    work = rows.map(len)
    next(work)
    (tmp_path / "x.zarr" / "c" / "3" / "0").unlink()
    with pytest.raises(OSError, match=r"zarr array .* now has 3 chunks; it had 4"):
        list(work)
    with pytest.raises(OSError, match=r"zarr array .* now has 3 chunks; it had 4"):
        rows.take(np.array([1, 499]))


def test_deleted_memory_map_is_still_there(tmp_path, small_blocks):
    X = sample()
    rows = open_rows(memory_map(X, tmp_path))
    if os.name == "nt":
        pytest.skip("Windows does not delete files that are mapped")
    model = IhSC(4, random_state=0).fit(
        break_after(rows, 1, (tmp_path / "x.npy").unlink)
    )
    assert_array_equal(model.labels_, IhSC(4, random_state=0).fit(X).labels_)


def test_views_and_copies_of_memory_maps(tmp_path, small_blocks):
    X = sample(n=1000)
    stored = memory_map(X, tmp_path)
    assert_array_equal(open_rows(stored[301:900]).toarray(), X[301:900])
    assert open_rows(stored.copy()) is None
    assert open_rows(stored[:, :7]) is None
    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[500] = 1.0
    rows = open_rows(changed)
    list(rows.map(len))
    assert_array_equal(rows.take(slice(500, 502)), np.stack([np.ones(40), X[501]]))
    assert_array_equal(changed[500], 1.0)


@pytest.mark.parametrize("kind", [zarr_array, csr_zarr])
def test_zarr_that_vanishes(kind, tmp_path, small_blocks):
    rows = open_rows(kind(sample(), tmp_path))
    (store,) = tmp_path.iterdir()
    with pytest.raises(OSError, match=r"zarr array .* now has 0 chunks; it had \d+"):
        IhSC(4).fit(break_after(rows, 1, lambda: shutil.rmtree(store)))


def test_corrupt_zarr_chunk(tmp_path, small_blocks):
    stored = zarr_array(sample(), tmp_path)
    (tmp_path / "x.zarr" / "c" / "2" / "0").write_bytes(b"no chunk")
    message = r"Rows 260 to 389 of the stored array .*x.zarr could not be read \(\w+"
    with pytest.raises(OSError, match=message):
        IhSC(4).fit(stored)


def test_corrupt_hdf5_chunk(tmp_path, small_blocks):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        chunk = (100, 40)
        data = file.create_dataset("X", data=sample(), chunks=chunk, fletcher32=True)
        at = data.id.get_chunk_info(3).byte_offset
    with open(tmp_path / "x.h5", "r+b") as raw:
        raw.seek(at)
        raw.write(b"harm" * 10)
    message = "Rows 300 to 399 of the stored array /X in .*x.h5 could not be read"
    with (
        h5py.File(tmp_path / "x.h5") as file,
        pytest.raises(OSError, match=message),
    ):
        IhSC(4).fit(file["X"])


def test_hdf5_file_that_is_closed(tmp_path, small_blocks):
    stored = hdf5(sample(), tmp_path)
    rows = open_rows(stored)
    with pytest.raises(
        OSError, match=r"array /X in .*x.h5 could not be read.*stays op"
    ):
        IhSC(4).fit(break_after(rows, 1, stored.file.close))
    with pytest.raises(ValueError, match="HDF5 file that is closed; open the file"):
        IhSC(4).fit(stored)


def test_parquet_that_vanishes(tmp_path, small_blocks):
    rows = open_rows(parquet(sample(), tmp_path))
    harm = (tmp_path / "x" / "1.parquet").unlink
    with pytest.raises(OSError, match=r"Rows .* of the Parquet .*FileNotFoundError"):
        IhSC(4).fit(break_after(rows, 1, harm))


def test_stored_array_that_shrinks(tmp_path, small_blocks):
    file = h5py.File(tmp_path / "x.h5", "w")
    stored = file.create_dataset("X", data=sample(), maxshape=(None, 40))
    rows = break_after(open_rows(stored), 1, lambda: stored.resize((450, 40)))
    with pytest.raises(OSError, match=r"came in shape \(\d+, 40\); it had 500 rows"):
        IhSC(4).fit(rows)


def without_shape(folder):
    group = csr_hdf5(sample(), folder)
    del group.attrs["shape"]
    return group


def csr_with(folder, **parts):
    group = csr_hdf5(sample(), folder)
    for name, value in parts.items():
        if name in group:
            group[name][-1] = value
        else:
            group.attrs[name.replace("_", "-")] = value
    return group


@pytest.mark.parametrize(
    ("stored", "error", "message"),
    [
        (lambda f: csr_with(f, encoding_type="csc_matrix"), ValueError, "tocsr"),
        (lambda f: csr_with(f, encoding_type="array"), ValueError, "kind 'array' with"),
        (lambda f: csr_with(f, indices=40), OSError, "columns from 0 to 40, with 40 f"),
        (lambda f: csr_with(f, indptr=7), ValueError, "pointers up to 7. Write it ag"),
        (without_shape, ValueError, r"'shape' is None; say how many .*\(n, p\)"),
        (lambda f: pds.dataset(f), ValueError, "Parquet data set without files; check"),
        (lambda f: csr_hdf5(sample(), f).file, ValueError, r"with \['X'\]; give a"),
        (lambda f: hdf5(np.ones((4, 3, 2)), f), ValueError, r"shape \(4, 3, 2\); giv"),
        (lambda f: hdf5(np.ones(4), f), ValueError, r"shape \(4,\); give one with two"),
        (lambda f: hdf5(np.ones((0, 3)), f), ValueError, r"0 row\(s\) and 3 feature"),
        (lambda f: hdf5(np.ones((3, 0)), f), ValueError, r"3 row\(s\) and 0 feature"),
        (lambda f: hdf5(np.ones((9, 2), "S3"), f), ValueError, r"type \|S3, not real"),
        (
            lambda f: hdf5(np.full((9, 2), "a", object), f),
            ValueError,
            "object, not real",
        ),
        (lambda f: hdf5(np.ones((9, 2), "c8"), f), ValueError, "complex64, not real"),
        (lambda f: memory_map(np.ones((9, 2), "M8[s]"), f), ValueError, "datetime64"),
        (lambda f: memory_map(np.ones(9), f), ValueError, "Expected 2D array, got 1D"),
    ],
)
def test_not_a_matrix_of_numbers(stored, error, message, tmp_path, small_blocks):
    with pytest.raises(error, match=message):
        IhSC(2).fit(stored(tmp_path))


@pytest.mark.parametrize("Estimator", [PSC, SphericalKMeans])
@pytest.mark.parametrize(
    ("kind", "name", "load"),
    [
        (csr_hdf5, "h5py.Group", "anndata.io.sparse_dataset(X).to_memory()"),
        (csr_zarr, "zarr.Group", "anndata.io.sparse_dataset(X).to_memory()"),
        (parquet, "pyarrow.FileSystemDataset", "X.to_table().to_pandas()"),
        (dask_csr, "dask.Array", "X.compute()"),
    ],
)
def test_estimators_that_work_in_memory(Estimator, kind, name, load, tmp_path):
    stored = kind(sample(), tmp_path)
    message = (
        f"X is of type {name}. {Estimator.__name__} works on data in memory: give "
        f"{load}, or take IhSC or IhGMM"
    )
    with pytest.raises(TypeError, match=re.escape(message)):
        Estimator(4).fit(stored)
    anndata = pytest.importorskip("anndata")
    loaded = eval(load, {"X": stored, "anndata": anndata})
    labels = Estimator(4, random_state=0).fit_predict(sample())
    assert_array_equal(Estimator(4, random_state=0).fit_predict(loaded), labels)


@pytest.mark.parametrize(
    "load",
    [
        lambda folder: pds.dataset(pa.table({"x": [1.0, 2.0]})),
        lambda folder: pds.dataset(folder / "x.csv", format="csv"),
    ],
)
def test_data_sets_that_are_not_parquet(load, tmp_path):
    (tmp_path / "x.csv").write_text("x,y\n1,2\n")
    with pytest.raises(TypeError, match="not in Parquet files; write it to some"):
        IhSC(2).fit(load(tmp_path))


def test_parquet_with_words(tmp_path):
    table = pa.table({"x": [1.0, 2.0], "name": ["a", "b"]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"not numbers: name\. Write it"):
        IhSC(2).fit(pds.dataset(tmp_path / "x.parquet"))


def test_parquet_with_nothing_in_a_place(tmp_path):
    table = pa.table({"x": [1.0, 2.0, None], "y": [3, 4, 5]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="contains NaN at row 2, column 0"):
        IhSC(2).fit(pds.dataset(tmp_path / "x.parquet"))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_hard_spectrum_is_read_about_once_for_each_product(tmp_path, dtype):
    X = np.random.default_rng(0).standard_normal((3000, 300)).astype(dtype)
    rows = open_rows(memory_map(X, tmp_path))
    found, wanted = (
        leading_eigenpairs(
            GramOperator.of(data),
            5,
            solver="block",
            tol=1e-3,
            rng=np.random.default_rng(1),
        )
        for data in (rows, X)
    )
    assert found.n_iter > 5
    assert rows.passes <= 1.5 * found.n_iter + 3
    assert_allclose(found.values, wanted.values, rtol=TOLERANCE[dtype])


def test_identical_rows_are_found_on_disk(store):
    X = np.eye(40)[np.random.default_rng(0).integers(3, size=700)]
    with pytest.warns(ConvergenceWarning, match="3 distinct rows"):
        labels = IhSC(4, random_state=0).fit_predict(store(X))
    assert_array_equal(np.asarray(labels)[:, None] == np.asarray(labels), X @ X.T == 1)


def test_columns_of_parquet_have_names(tmp_path):
    X = sample()
    model = IhSC(4, random_state=0).fit(parquet(X, tmp_path))
    assert list(model.feature_names_in_) == [f"f{j}" for j in range(X.shape[1])]
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match="feature 0 is 'f39' and was 'f0'"):
        model.predict(reversed_columns(X, tmp_path / "other"))
    assert not hasattr(model.fit(X), "feature_names_in_")


def reversed_columns(X, folder):
    table = pa.table({f"f{j}": X[:, j] for j in reversed(range(X.shape[1]))})
    pq.write_table(table, folder / "x.parquet")
    return pds.dataset(folder / "x.parquet")


def test_files_of_parquet_that_differ(tmp_path):
    stored = parquet(sample(), tmp_path)
    table = pq.read_table(tmp_path / "x" / "1.parquet").drop_columns(["f7"])
    pq.write_table(table, tmp_path / "x" / "1.parquet")
    with pytest.raises(ValueError, match=r"column 'f7' is double.*not there in .*1.pa"):
        IhSC(4).fit(stored)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: str(path), "X is the path .*; open it first"),
        (lambda path: path, "X is the path .*; open it first"),
        (pq.read_table, "X is a Table of pyarrow; give the data set"),
    ],
)
def test_what_is_not_open(tmp_path, make, message):
    reversed_columns(sample(), tmp_path)
    with pytest.raises(TypeError, match=message):
        IhSC(4).fit(make(tmp_path / "x.parquet"))


def test_map_of_a_file_that_was_deleted(tmp_path):
    X = sample()
    stored = memory_map(X, tmp_path)
    (tmp_path / "x.npy").unlink()
    assert_array_equal(open_rows(stored[100:]).toarray(), X[100:])


def test_file_cut_short_while_it_is_read(tmp_path, small_blocks):
    # Reading the pages themselves would end the process.
    rows = open_rows(memory_map(sample(), tmp_path))
    work = rows.map(lambda block: block.sum())
    next(work)
    os.truncate(tmp_path / "x.npy", 1000)
    with pytest.raises(OSError, match="could not be read"):
        list(work)


def test_chunks_that_are_not_stored(tmp_path):
    group = csr_zarr(sample(), tmp_path)
    next((tmp_path / "csr.zarr" / "data" / "c").iterdir()).unlink()
    with pytest.warns(UserWarning, match="1 of . chunks .* are not stored"):
        open_rows(group)
