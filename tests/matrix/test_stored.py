"""Data on disk: what is read and how often, and files that are not what they were."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from array_kinds import (
    csr_hdf5,
    dask_in_four,
    hdf5,
    hdf5_chunked,
    memory_map,
    needed,
    opened,
    parquet,
    table_of,
    zarr,
)
from numpy.testing import assert_array_equal

from ihgmm import IhSC, make_ihgmm
from ihgmm.matrix import as_matrix, recognize
from ihgmm.matrix.stored import Stored


def sample(n=500):
    X, _ = make_ihgmm(n, 40, 4, random_state=0)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = 0
    return X


def labels_of(X):
    return np.asarray(IhSC(4, random_state=0).fit(X).labels_)


@pytest.mark.parametrize("kind", [memory_map, csr_hdf5, dask_in_four])
def test_passes(kind, tmp_path):
    options = {"separation_constant": 0.5, "dtype": np.float32, "random_state": 0}
    X, _ = make_ihgmm(20_000, 100, 5, **options)
    rows = opened(kind(X, tmp_path), 2**20)

    labels = IhSC(5, random_state=0).fit(rows).labels_

    assert 3 <= rows.passes <= 6
    # In single precision rounding may choose a neighbour, and move a row at the edge.
    labels_in_memory = IhSC(5, random_state=0).fit(X).labels_
    assert np.count_nonzero(labels != labels_in_memory) <= 2


def test_cells_that_a_file_holds_twice_count_once():
    X = sp.csr_array(([3.0, 4.0, 1.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))

    stored = Stored(lambda a, b: X[a:b], X.shape, X.dtype, n_entries=3, sparse=True)

    assert_array_equal(stored.sqnorms, [49, 1])
    assert X.nnz == 3


def break_after(rows, passes, harm):
    """Do some harm to what is stored once so many passes were made."""
    original_map = rows.map
    passes_to_go = iter(range(passes - 1, -1, -1))

    def map_then_harm(*arguments):
        yield from original_map(*arguments)
        if next(passes_to_go, None) == 0:
            harm()

    vars(rows)["map"] = map_then_harm  # a matrix does not let itself be changed
    return rows


def test_memory_map_cut_short_while_it_is_read(tmp_path):
    # Reading the pages themselves would end the process.
    rows = opened(memory_map(sample(), tmp_path), 2**14)
    maxima = rows.map(lambda block: block.max_abs())
    next(maxima)

    os.truncate(tmp_path / "x.npy", 1000)

    with pytest.raises(OSError, match=r"x.npy came in shape .* had 500 rows.*Leave"):
        list(maxima)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_map_cut_short_before_it_is_read(mode, tmp_path):
    memory_map(sample(), tmp_path)
    stored = np.load(tmp_path / "x.npy", mmap_mode=mode)

    os.truncate(tmp_path / "x.npy", 1000)

    for view in (stored, stored[3:], stored[:, :7]):
        with pytest.raises(OSError, match=r"x.npy now ends at byte 1000, not 160128"):
            IhSC(4).fit(view)


def grow(stored, path):
    with open(path, "ab") as file:
        file.write(bytes(1000))


def flush(stored, path):
    getattr(stored, "file", stored).flush()


@pytest.mark.parametrize(
    ("kind", "change"), [(memory_map, grow), (hdf5_chunked, flush)]
)
def test_changes_that_do_no_harm(kind, change, tmp_path):
    X = sample()
    stored = kind(X, tmp_path)
    (path,) = tmp_path.iterdir()
    rows = break_after(opened(stored), 1, lambda: change(stored, path))

    assert_array_equal(labels_of(rows), labels_of(X))


@pytest.mark.parametrize("kind", [memory_map, hdf5])
def test_files_that_are_overwritten(kind, tmp_path):
    stored = kind(sample(), tmp_path)
    (path,) = tmp_path.iterdir()
    if kind is hdf5:
        stored.file.close()
        stored = needed("h5py").File(path)["X"]
    time_of_write = path.stat().st_mtime + 1  # clocks of files are coarse
    rows = break_after(
        opened(stored), 1, lambda: os.utime(path, (time_of_write, time_of_write))
    )

    with pytest.raises(OSError, match=r"file of the .* was written to after"):
        labels_of(rows)


def test_views_and_copies_of_memory_maps(tmp_path):
    X = sample(1000)
    stored = memory_map(X, tmp_path)

    assert_array_equal(opened(stored[301:900]).toarray(), X[301:900])
    assert recognize(stored.copy()) is None
    assert recognize(stored[:, :7]) is None

    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[500] = 1.0
    rows = opened(changed)

    list(rows.map(lambda block: block.sqnorms))
    result = rows.take(slice(500, 502)).toarray()

    assert_array_equal(result, np.stack([np.ones(40), X[501]]))
    assert_array_equal(changed[500], 1.0)

    os.replace(tmp_path / "x.npy", tmp_path / "old.npy")
    memory_map(np.ones((3, 40)), tmp_path)  # another file of this name

    assert recognize(stored) is None


@pytest.mark.parametrize(
    ("kind", "mode", "passes"),
    [(hdf5, "r", 1), (hdf5_chunked, "r+", 2), (csr_hdf5, "r", 2)],
)
def test_hdf5_cut_short(kind, mode, passes, tmp_path):
    # HDF5 reads zeros where there is nothing.
    kind(sample(2000), tmp_path).file.close()
    (path,) = tmp_path.iterdir()
    with needed("h5py").File(path, mode) as file:
        rows = opened(file["X"])
        rows.take(slice(0, 2000))
        size = path.stat().st_size
        broken = break_after(rows, passes, lambda: os.truncate(path, size // 2))

        message = f"file of the data /X in .* now ends at byte {size // 2}, not"
        with pytest.raises(OSError, match=message):
            labels_of(broken)

        os.truncate(path, size)  # so that it can be closed


def test_hdf5_file_that_is_closed(tmp_path):
    stored = hdf5(sample(), tmp_path)
    rows = break_after(opened(stored), 1, stored.file.close)

    with pytest.raises(OSError, match=r"array /X in .*could not be read.*stays op"):
        labels_of(rows)
    with pytest.raises(ValueError, match="HDF5 file that is closed; open the file"):
        IhSC(4).fit(stored)


def corrupt_hdf5(folder):
    stored = hdf5(sample(), folder, chunks=(100, 40), fletcher32=True)
    offset = stored.id.get_chunk_info(3).byte_offset
    stored.file.close()

    with open(folder / "x.h5", "r+b") as file:
        file.seek(offset)
        file.write(b"harm" * 10)
    return needed("h5py").File(folder / "x.h5")["X"]


def corrupt_zarr(folder):
    stored = zarr(sample(), folder)
    (folder / "x.zarr" / "c" / "2" / "0").write_bytes(b"no chunk")
    return stored


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (corrupt_hdf5, r"Rows 300 to 399 of the stored array /X in .*x.h5 could not"),
        (corrupt_zarr, r"Rows 260 to 389 of the stored array .*x.zarr could not be"),
    ],
)
def test_a_corrupt_chunk(make, message, tmp_path):
    with pytest.raises(OSError, match=message):
        labels_of(opened(make(tmp_path)))


def test_zarr_that_loses_chunks_in_the_last_pass(tmp_path):
    rows = opened(zarr(sample(), tmp_path))
    shapes = rows.map(lambda block: block.shape)
    next(shapes)

    (tmp_path / "x.zarr" / "c" / "3" / "0").unlink()

    message = r"zarr array .* now has 3 chunks; it had 4"
    with pytest.raises(OSError, match=message):
        list(shapes)
    with pytest.raises(OSError, match=message):
        rows.take(np.array([1, 499]))


def csr_without_shape(folder):
    group = csr_hdf5(sample(), folder)
    del group.attrs["shape"]
    return group


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (csr_without_shape, ValueError, r"'shape' is None; .*\(n, p\)"),
        (lambda f: csr_hdf5(sample(), f).file, ValueError, r"with \['X'\] whose"),
        (lambda f: hdf5(np.ones((4, 3, 2)), f), ValueError, r"shape \(4, 3, 2\); giv"),
        (lambda f: hdf5(np.ones((0, 3)), f), ValueError, r"0 row\(s\) and 3 feature"),
        (lambda f: hdf5(np.full((9, 2), "a", object), f), ValueError, "object, not"),
        (lambda f: hdf5(np.ones((9, 2), "c8"), f), ValueError, "complex64, not real"),
        (lambda f: memory_map(np.ones((9, 2), "M8[s]"), f), ValueError, "datetime64"),
        (lambda f: memory_map(np.ones(9), f), ValueError, "Expected 2D array, got 1D"),
    ],
)
def test_not_a_matrix_of_numbers(make, error, message, tmp_path):
    with pytest.raises(error, match=message):
        IhSC(2).fit(make(tmp_path))


def test_parquet_of_other_things_than_numbers(tmp_path):
    message = r"not numbers: name\. Name those .*open_data.*Numbers are in 'x'"
    path = tmp_path / "x.parquet"

    with pytest.raises(ValueError, match=message):
        IhSC(2).fit(table_of(path, x=[1.0, 2.0], name=["a", "b"]))
    with pytest.raises(ValueError, match="contains NaN at row 2, column 'x'"):
        IhSC(2).fit(table_of(path, x=[1.0, 2.0, None], y=[3, 4, 5]))


def test_data_sets_that_are_not_parquet(tmp_path):
    pa = needed("pyarrow")
    dataset = needed("pyarrow.dataset").dataset
    (tmp_path / "x.csv").write_text("x,y\n1,2\n")
    (tmp_path / "empty").mkdir()

    for data_set in (
        dataset(pa.table({"x": [1.0, 2.0]})),
        dataset(tmp_path / "x.csv", format="csv"),
        dataset(tmp_path / "empty"),
    ):
        with pytest.raises(TypeError, match="not in Parquet files; check its path, or"):
            IhSC(2).fit(data_set)


def test_columns_of_parquet_have_names(tmp_path):
    X = sample()
    model = IhSC(4, random_state=0).fit(parquet(X, tmp_path))

    assert list(model.feature_names_in_) == [f"f{j}" for j in range(40)]

    reversed_columns = {f"f{j}": X[:, j] for j in reversed(range(40))}
    reordered = table_of(tmp_path / "x.parquet", **reversed_columns)

    with pytest.raises(ValueError, match="feature 0 is 'f39' and was 'f0'"):
        model.predict(reordered)

    assert not hasattr(model.fit(X), "feature_names_in_")


def test_files_of_parquet_that_differ(tmp_path):
    stored = parquet(sample(), tmp_path)
    parquet_module = needed("pyarrow.parquet")
    table = parquet_module.read_table(tmp_path / "x" / "1.parquet").drop_columns(["f7"])
    parquet_module.write_table(table, tmp_path / "x" / "1.parquet")

    with pytest.raises(ValueError, match=r"files differ: column 'f7' of .*1.parquet"):
        IhSC(4).fit(stored)


def test_files_and_tables(tmp_path):
    X = sample(60)[:, :3]
    path = tmp_path / "x.parquet"
    table_of(path, **dict(zip("abc", X.T, strict=True)))

    with pytest.raises(TypeError, match=r"X is of type \w+, .* of a file ihgmm.open_d"):
        IhSC(4).fit(path)

    table = needed("pyarrow.parquet").read_table(path)

    assert_array_equal(as_matrix(table).toarray(), X)
