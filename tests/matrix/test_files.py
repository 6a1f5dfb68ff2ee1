"""Files that are opened by name: Parquet, AnnData, NumPy; good ones and bad ones."""

import gc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from array_kinds import needed, opened, table_of
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhSC, make_ihgmm, open_data
from ihgmm.matrix.parquet import open_parquet


@pytest.fixture
def decoded(monkeypatch):
    """How many batches were decoded, for each time that files were opened."""
    parquet = needed("pyarrow.parquet")
    counts = []

    class Counted(parquet.ParquetFile):
        def iter_batches(self, *arguments, **options):
            counts.append(0)
            for batch in super().iter_batches(*arguments, **options):
                counts[-1] += 1
                yield batch

    monkeypatch.setattr(parquet, "ParquetFile", Counted)
    return counts


@pytest.mark.parametrize(("group_size", "n_batches"), [(10, 1), (20_000, 20)])
def test_row_groups_are_decoded_once(tmp_path, decoded, group_size, n_batches):
    """Small ones together, and large ones in parts."""
    X = np.random.default_rng(0).standard_normal((20_000, 3))
    columns = dict(zip("abc", X.T, strict=True))
    data = table_of(tmp_path / "x.parquet", group_size, **columns)

    rows = opened(open_parquet(data, batch_bytes=480_000 // n_batches), 2**16)

    assert len(rows.row_blocks) > 5
    assert_allclose(rows.sqnorms, (X**2).sum(axis=1))

    positions = np.random.default_rng(1).choice(20_000, 50)

    assert_array_equal(rows.take(positions).toarray(), X[positions])
    assert decoded == [n_batches]
    assert rows.passes == 1


def test_a_folder_of_parquet_files_and_some_columns(tmp_path):
    (tmp_path / "x").mkdir()
    columns = {"a": [1.0, 2.0], "a.b": [3, None], "name": ["p", "q"]}
    for i in range(2):
        table_of(tmp_path / "x" / f"{i}.parquet", ok=[True, False], **columns)

    X = open_data(tmp_path / "x", columns=["a", "a.b", "ok"])

    assert X.names == ["a", "a.b", "ok"]
    assert_array_equal(X.toarray(), [[1, 3, 1], [2, np.nan, 0]] * 2)

    with pytest.raises(ValueError, match=r"name\. Name .* in 'ok', 'a', 'a.b'"):
        open_data(tmp_path / "x")
    with pytest.raises(ValueError, match=r"x cannot be read as parquet: .* c "):
        open_data(tmp_path / "x", columns=["a", "c"])


def test_the_temporary_file_goes_with_the_matrix(tmp_path):
    open_files = Path("/proc/self/fd")
    if not open_files.exists():
        pytest.skip("only Linux lists open files there")

    data = table_of(tmp_path / "x.parquet", x=np.ones(3))
    gc.collect()  # files of others may still be open
    n_open = len(list(open_files.iterdir()))

    rows = open_parquet(data)

    assert len(list(open_files.iterdir())) == n_open + 1

    del rows
    gc.collect()

    assert len(list(open_files.iterdir())) == n_open


def test_a_full_disk_names_the_folder(tmp_path):
    resource = pytest.importorskip("resource", reason="limits are of Unix")
    data = table_of(tmp_path / "x.parquet", x=np.ones(900), y=np.ones(900))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"no room .* environment variable TMPDIR"):
            open_parquet(data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def cells(X=None):
    """Counts of four kinds of cells, few of them, mostly zero."""
    if X is None:
        X, _ = make_ihgmm(400, 30, 4, random_state=0)
        X[X < 0.5] = 0
    return needed("anndata").AnnData(X)


@pytest.mark.parametrize("layout", [sp.csr_matrix, sp.csr_array, np.asarray])
def test_anndata(layout, tmp_path):
    X = cells().X
    adata = cells(layout(X))
    adata.var_names = [f"gene {j}" for j in range(30)]
    adata.layers["twice"] = layout(2 * X)
    adata.raw = adata.copy()
    adata = adata[:, :20].copy()
    path = tmp_path / "x.h5ad"
    adata.write_h5ad(path)
    content = path.read_bytes()

    parts = {"X": X[:, :20], "layers/twice": 2 * X[:, :20], "raw/X": X}
    for part, expected in parts.items():
        rows = opened(open_data(path, part=part), 2**12)

        assert rows.sparse == (layout is not np.asarray)
        assert rows.names == [f"gene {j}" for j in range(expected.shape[1])]
        assert_array_equal(rows.toarray(), expected)

        positions = np.array([399, 5, 6, 123])
        assert_array_equal(rows.take(positions).toarray(), expected[positions])

    labels = IhSC(4, random_state=0).fit(opened(open_data(path))).labels_

    assert_array_equal(labels, IhSC(4, random_state=0).fit(adata.X).labels_)
    assert path.read_bytes() == content


@pytest.mark.filterwarnings("ignore:Writing zarr v2:UserWarning")
def test_anndata_in_zarr_has_the_same_names(tmp_path):
    adata = cells(sp.csr_matrix(cells().X))
    adata.var_names = [f"gène {j}" for j in range(30)]
    adata.raw = adata.copy()
    adata = adata[:, :20].copy()
    adata.write_zarr(tmp_path / "x.zarr")
    adata.write_h5ad(tmp_path / "x.h5ad")
    for part in ("X", "raw/X"):
        rows = open_data(tmp_path / "x.zarr", part=part)
        of_hdf5 = open_data(tmp_path / "x.h5ad", part=part)

        assert rows.names == of_hdf5.names == list(adata.raw.var_names[: rows.shape[1]])
        assert_array_equal(rows.toarray(), of_hdf5.toarray())


def test_names_of_the_type_string(tmp_path):
    anndata = needed("anndata")
    pandas = needed("pandas")
    if not hasattr(anndata.settings, "allow_write_nullable_strings"):
        pytest.skip("this anndata writes no such names")
    adata = cells()
    adata.var_names = pandas.Index([f"gene {j}" for j in range(30)], dtype="string")
    with anndata.settings.override(allow_write_nullable_strings=True):
        adata.write_h5ad(tmp_path / "x.h5ad")

    assert open_data(tmp_path / "x.h5ad").names == [f"gene {j}" for j in range(30)]


def test_an_array_that_is_called_var_holds_no_names(tmp_path):
    with needed("h5py").File(tmp_path / "x.h5", "w") as file:
        file["X"] = np.eye(3)
        file["var"] = np.ones(3)

    assert open_data(tmp_path / "x.h5").names is None


def put(part, change):
    """Return a way to put something else in the place of a part of X."""

    def harm(file):
        values = change(file[f"X/{part}"][:])
        del file[f"X/{part}"]
        file[f"X/{part}"] = values

    return harm


def columns_first(file):
    file["X"].attrs["encoding-type"] = "csc_matrix"


def with_entry(at, value):
    return lambda values: np.where(np.arange(len(values)) == at, value, values)


@pytest.mark.parametrize(
    ("harm", "error", "message"),
    [
        (
            put("indptr", with_entry(5, 10**6)),
            ValueError,
            "parts do not fit: .* Write it again",
        ),
        (
            put("indices", with_entry(7, 30)),
            OSError,
            "columns from 0 to 30, with 30 features",
        ),
        (put("data", lambda values: values[:-1]), ValueError, "parts do not fit"),
        (
            put("indptr", lambda values: values[:-1]),
            ValueError,
            r"400 rows whose parts do not fit: .* \(400,\)",
        ),
        (
            put("indices", lambda values: np.zeros((2, 2))),
            ValueError,
            r"parts do not fit: .* \(2, 2\)",
        ),
        (
            columns_first,
            ValueError,
            r"by columns \(CSC\), .* adata.X = adata.X.tocsr\(\)",
        ),
        (lambda file: file.pop("X"), ValueError, "cannot be read as h5ad: .*'X'"),
    ],
)
def test_damaged_anndata(harm, error, message, tmp_path):
    adata = cells(sp.csr_matrix(cells().X))
    adata.layers["twice"] = 2 * adata.X
    adata.write_h5ad(tmp_path / "x.h5ad")
    with needed("h5py").File(tmp_path / "x.h5ad", "r+") as file:
        harm(file)

    with pytest.raises(error, match=message):
        IhSC(4).fit(open_data(tmp_path / "x.h5ad"))


def test_what_cannot_be_opened(tmp_path):
    needed("pyarrow")
    needed("h5py")
    for name in ("x.parquet", "x.h5ad", "x.npy", "x.csv"):
        (tmp_path / name).write_bytes(b"nothing of that kind")
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((3, 2))))

    for name, message in (
        ("x.parquet", "cannot be read as parquet"),
        ("x.h5ad", "cannot be read as h5ad"),
        ("x.npy", "cannot be read as npy"),
        ("f.npy", "is not stored row by row; save numpy.ascontiguousarray"),
        ("x.csv", r"format '.csv' cannot be read block by block; .*write_dataset"),
    ):
        with pytest.raises(ValueError, match=message):
            open_data(tmp_path / name)

    with pytest.raises(FileNotFoundError, match="no such file"):
        open_data(tmp_path / "none.csv")


def test_arrays_of_numpy_and_zarr(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", X)
    needed("zarr").create_array(tmp_path / "x.zarr", data=X)
    needed("zarr").create_group(tmp_path / "y.zarr").create_array("X", data=X)

    for name in ("x.npy", "x.zarr", "y.zarr"):
        rows = open_data(tmp_path / name, dtype="float32")
        assert rows.dtype == np.float32
        assert_array_equal(rows.toarray(), X)
