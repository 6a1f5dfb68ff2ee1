"""Files that are opened by name: tables, Parquet, AnnData; good ones and bad ones."""

import gc
import gzip
import os
import re
import tracemalloc
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from array_kinds import needed, opened
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhSC, make_ihgmm, open_data
from ihgmm.matrix.delimited import open_text
from ihgmm.matrix.formats import open_parquet


@pytest.fixture
def path(tmp_path):
    needed("pyarrow")
    return tmp_path / "x.csv"


# Tables as text


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_numbers_are_those_that_are_written(header, end, suffix, tmp_path):
    needed("pyarrow")
    X = np.random.default_rng(0).standard_normal((700, 5))
    between = {"csv": ",", "tsv": "\t"}[suffix]
    lines = [between.join(map(repr, row)) for row in X.tolist()]
    names = [f"f{j}" for j in range(5)] if header else [f"col{j + 1}" for j in range(5)]
    file = tmp_path / f"x.{suffix}"
    text = end.join([between.join(names)] * header + lines)
    for last in ("", end, end + end):  # the last line may end or not
        file.write_bytes((text + last).encode())
        rows = open_data(file)
        assert rows.names == names
        assert_array_equal(rows.toarray(), X)
        chosen = np.array([699, 3, 128, 127, 400])
        assert_array_equal(rows.take(chosen).toarray(), X[chosen])


def test_random_tables_are_cut_where_rows_end(path):
    """Quotes, line ends in cells and empty lines, against Python's own parser."""
    csv = import_module("csv")
    rng = np.random.default_rng(1)
    for _ in range(5):
        rows = []
        for i in range(rng.integers(140, 600)):
            notes = ["plain", 'say ""so""', "two\nlines", "", "a, b", "\n\n", '""']
            note = '"' + str(rng.choice(notes)) + '"'
            rows.append(f"{i},{note if rng.random() < 0.7 else 'word'},{rng.random()}")
            rows += [""] * (rng.random() < 0.1)
        path.write_text('a,"the, note",b\n' + "\n".join(rows))
        with open(path, newline="") as file:
            read = [row for row in csv.reader(file) if row][1:]
        wanted = np.array([(float(a), float(b)) for a, _, b in read])
        read = open_text(path, lambda names: ["a", "b"], block_bytes=2**10)
        assert_array_equal(read.toarray(), wanted)


def test_missing_cells_flags_and_numbers_of_people(path):
    path.write_text(
        "\ufeffprices\n\na;b;ok;c;d\n1,5;NA;true;1.234,5;$ 12\n;2;False;0,5;7 %\n"
        "?;-0,25;;-;€1.000\n",
        encoding="utf-8",
    )
    X = open_data(path)
    assert X.names == ["a", "b", "ok", "c", "d"]
    nan = np.nan
    assert_array_equal(
        X.toarray(),
        [[1.5, nan, 1, 1234.5, 12], [nan, 2, 0, 0.5, 7], [nan, -0.25, nan, nan, 1000]],
    )
    assert open_data(path, dtype="float32").dtype == np.float32
    assert open_data(path, dtype="int32").dtype == np.float64


def test_columns_of_a_table(path):
    path.write_text("name,x,y\nAnn,1,2\nBob,3,4\n")
    assert_array_equal(
        open_data(path, drop_columns=["name"]).toarray(), [[1, 2], [3, 4]]
    )
    assert_array_equal(open_data(path, columns=["y", "x"]).toarray(), [[2, 1], [4, 3]])


def test_rows_longer_than_a_block(path):
    X = np.random.default_rng(0).integers(0, 9, (15, 1000)).astype(float)
    np.savetxt(path, X, "%d", delimiter=",")
    assert_array_equal(open_text(path, block_bytes=2**8).toarray(), X)


def test_a_fit_from_text_is_that_from_memory(path):
    X, _ = make_ihgmm(2000, 20, 4, random_state=0)
    header = ",".join(f"f{j}" for j in range(20))
    np.savetxt(path, X, "%.17g", delimiter=",", header=header, comments="")
    before = path.read_bytes(), path.stat().st_mtime_ns
    rows = opened(open_data(path), 2**16)
    model = IhSC(4, random_state=0).fit(rows)
    assert_array_equal(model.labels_, IhSC(4, random_state=0).fit(X).labels_)
    assert list(model.feature_names_in_)[:2] == ["f0", "f1"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in path.parent.iterdir()] == ["x.csv"]


def test_memory_is_that_of_a_few_blocks(path):
    pa = needed("pyarrow")
    line = ",".join(["0.123456789"] * 50) + "\n"
    path.write_text(line * 50_000)  # 30 MB of text, 20 MB of numbers
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        sqnorms = opened(open_text(path, block_bytes=2**20), 2**20).sqnorms
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert_allclose(sqnorms, 50 * 0.123456789**2)
    assert peak < 10 * 2**20
    assert pa.total_allocated_bytes() - before < 2**20


def test_the_temporary_file_goes_with_the_matrix(path):
    open_files = Path("/proc/self/fd")
    if not open_files.exists():
        pytest.skip("only Linux lists open files there")
    path.write_text("a,b\n1,2\n")
    before = len(list(open_files.iterdir()))
    rows = open_data(path)
    assert len(list(open_files.iterdir())) == before + 1
    del rows
    gc.collect()
    assert len(list(open_files.iterdir())) == before


def test_a_full_disk_names_the_folder(path):
    resource = pytest.importorskip("resource", reason="limits are of Unix")
    path.write_text("a,b\n" + "1,2\n" * 900)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"no room .* environment variable TMPDIR"):
            open_data(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\nx,3\n", r"column 'a' holds text, 'x' in row 2 .*drop_columns of"),
        ("a,b,c\n1,p,q\n", r"column 'b' holds text, 'p' in row 1 .*so do 'c'\. Leave"),
        ("a,b\n1,2\n3\n", r"as csv: .* Row #3: Expected 2 columns, got 1: 3"),
        ("a,b\n1,2\n3,4,5\n", r"as csv: .* Row #3: Expected 2 columns, got 3: 3,4,5"),
        ('a,b\n1,5" pipe\n', r"column 'b' holds text, '5\" pipe' in row 1 after"),
        ('a,b\n1,"2\n3,4\n', r"column 'b' holds text, '2\\n3,4' in row 1 after"),
        ("a,b\n", r"has a header but no rows"),
        ("", r"is empty"),
        ("\n\n", r"is empty"),
        (f"a,b\n1,{'x' * 999}\n", r"holds text, 'x{40}' in row 1"),
    ],
)
def test_text_that_is_no_table_of_numbers(text, message, path):
    path.write_bytes(text.encode())
    with pytest.raises(ValueError, match=message):
        open_data(path)


def test_other_encodings(path):
    for encoding in ("utf-16", "cp1252", "utf-8-sig"):
        path.write_bytes("größe,b\n1,2\n".encode(encoding))
        X = open_data(path)
        assert X.names == ["größe", "b"]
        assert_array_equal(X.toarray(), [[1, 2]])
    packed = path.with_name("x.csv.gz")
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert_array_equal(open_data(packed).toarray(), [[1, 2]])
    packed.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 900)[:40])
    with pytest.raises(ValueError, match=r"x\.csv\.gz cannot be read as csv"):
        open_data(packed)


def test_text_far_down_is_named(path):
    path.write_text("a,b\n" + "1,2\n" * 900 + "3,four\n" + "1,2\n" * 900)
    message = "column 'b' holds text, 'four' in row 901 after the header"
    with pytest.raises(ValueError, match=message):
        open_text(path, block_bytes=2**8)


# Parquet


def write_parquet(path, X, group):
    table = needed("pyarrow").table({f"f{j}": column for j, column in enumerate(X.T)})
    files = import_module("pyarrow.parquet")
    files.write_table(table, path, row_group_size=group)
    return import_module("pyarrow.dataset").dataset(path)


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


@pytest.mark.parametrize(("group", "batches"), [(10, 1), (20_000, 20)])
def test_row_groups_are_decoded_once(tmp_path, decoded, group, batches):
    """Small ones together, and large ones in parts."""
    X = np.random.default_rng(0).standard_normal((20_000, 3))
    data = write_parquet(tmp_path / "x.parquet", X, group)
    rows = opened(open_parquet(data, batch_bytes=480_000 // batches), 2**16)
    assert len(rows.row_blocks) > 5
    assert_allclose(rows.sqnorms, (X**2).sum(axis=1))
    chosen = np.random.default_rng(1).choice(20_000, 50)
    assert_array_equal(rows.take(chosen).toarray(), X[chosen])
    assert decoded == [batches]
    assert rows.passes == 1


def test_random_ranges_of_parquet(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4)).astype(np.float32)
    (tmp_path / "x").mkdir()
    for i, (rows, group) in enumerate(
        [((0, 900), 7), ((900, 950), 50), ((950, 3000), 999)]
    ):
        write_parquet(tmp_path / "x" / f"{i}.parquet", X[slice(*rows)], group)
    data = import_module("pyarrow.dataset").dataset(tmp_path / "x")
    rows = open_parquet(data, batch_bytes=1000)
    for _ in range(60):
        start, stop = np.sort(rng.integers(0, 3001, 2))
        assert_array_equal(rows.take(slice(start, stop)).toarray(), X[start:stop])


def test_a_folder_of_parquet_files_and_some_columns(tmp_path):
    pa = needed("pyarrow")
    (tmp_path / "x").mkdir()
    columns = {
        "a": [1.0, 2.0],
        "a.b": [3, None],
        "name": ["p", "q"],
        "ok": [True, False],
    }
    for i in range(2):
        path = tmp_path / "x" / f"{i}.parquet"
        import_module("pyarrow.parquet").write_table(pa.table(columns), path)
    X = open_data(tmp_path / "x", drop_columns=["name"])
    assert X.names == ["a", "a.b", "ok"]
    assert_array_equal(X.toarray(), [[1, 3, 1], [2, np.nan, 0]] * 2)
    X = open_data(tmp_path / "x", columns=["a.b", "a"])
    assert_array_equal(X.toarray(), [[3, 1], [np.nan, 2]] * 2)


def test_a_damaged_part_of_a_folder_is_named(tmp_path):
    pa = needed("pyarrow")
    for name in "ab":
        path = tmp_path / f"{name}.parquet"
        import_module("pyarrow.parquet").write_table(pa.table({"x": [1.0, 2.0]}), path)
    whole = path.read_bytes()
    for content in (b"", whole[:40], whole[:-9] + bytes(9), whole[:4] + whole[60:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"b\.parquet cannot be read as parquet: "):
            open_data(tmp_path)


def test_columns_of_one_name_and_names_that_are_not_utf_8(tmp_path):
    pa = needed("pyarrow")
    data, path = pa.table([[1.0], [2.0]], names=["x", "x"]), tmp_path / "a.parquet"
    import_module("pyarrow.parquet").write_table(data, path)
    with pytest.raises(ValueError, match=r"a\.parquet .* two columns have one name"):
        open_data(path)
    data = data.rename_columns(["x", "y"])
    import_module("pyarrow.parquet").write_table(data, path)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    for suffix in (".parquet", ".csv"):
        odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe9" + suffix.encode()))
        (tmp_path / f"a{suffix}").rename(odd)
        assert_array_equal(open_data(odd).toarray(), [[1, 2]])
        with pytest.raises(ValueError, match=re.escape(f"{odd} has no column 'z'")):
            open_data(odd, columns=["z"])


# AnnData


def test_data_of_other_files_are_taken_only_if_asked(tmp_path):
    h5py, X = needed("h5py"), np.arange(12.0).reshape(4, 3)
    X.tofile(tmp_path / "raw")
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["X"] = X
    source = str(tmp_path / "source.h5")
    layout = h5py.VirtualLayout((4, 3), "f8")
    layout[:] = h5py.VirtualSource(source, "X", shape=(4, 3))
    raw = [(str(tmp_path / "raw"), 0, 96)]

    def soft(file):
        file["Y"], file["X"] = h5py.ExternalLink(source, "X"), h5py.SoftLink("/Y")

    for make in (
        lambda file: file.update(X=h5py.ExternalLink(source, "X")),
        lambda file: file.create_virtual_dataset("X", layout),
        lambda file: file.create_dataset("X", (4, 3), "f8", external=raw),
        soft,
    ):
        with h5py.File(tmp_path / "x.h5ad", "w") as file:
            make(file)
        with pytest.raises(ValueError, match=r"x\.h5ad takes '.' from other files, .*"):
            open_data(tmp_path / "x.h5ad")
        assert_array_equal(open_data(tmp_path / "x.h5ad", external=True).toarray(), X)


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
    before = path.read_bytes()
    parts = {None: X[:, :20], "layers/twice": 2 * X[:, :20], "raw/X": X}
    for part, wanted in parts.items():
        rows = opened(open_data(path, part=part), 2**12)
        assert rows.sparse == (layout is not np.asarray)
        assert rows.names == [f"gene {j}" for j in range(wanted.shape[1])]
        assert_array_equal(rows.toarray(), wanted)
        chosen = np.array([399, 5, 6, 123])
        assert_array_equal(rows.take(chosen).toarray(), wanted[chosen])
    labels = IhSC(4, random_state=0).fit(opened(open_data(path))).labels_
    assert_array_equal(labels, IhSC(4, random_state=0).fit(adata.X).labels_)
    backed = needed("anndata").read_h5ad(path, backed="r")
    assert_array_equal(labels, IhSC(4, random_state=0).fit(backed.X).labels_)
    backed.file.close()
    assert path.read_bytes() == before


def damage(part, place, value):
    def harm(file):
        file[f"X/{part}"][place] = value

    return harm


def cut(part):
    def harm(file):
        values = file[f"X/{part}"][:-1]
        del file[f"X/{part}"]
        file[f"X/{part}"] = values

    return harm


def set_kind(file):
    file["X"].attrs["encoding-type"] = "csc_matrix"


def flat(file):
    del file["X/indices"]
    file["X/indices"] = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("harm", "error", "message"),
    [
        (damage("indptr", 5, 10**6), ValueError, "parts do not fit: .* Write it again"),
        (damage("indptr", 5, -3), ValueError, "parts do not fit"),
        (damage("indices", 7, 30), OSError, "columns from 0 to 30, with 30 features"),
        (damage("indices", 7, -1), OSError, "columns from -1 to 29, with 30 features"),
        (cut("data"), ValueError, "parts do not fit"),
        (cut("indices"), ValueError, "parts do not fit"),
        (cut("indptr"), ValueError, "400 rows whose parts do not fit: .* 400 row poin"),
        (flat, ValueError, "part 'indices' is no array of one dimension"),
        (set_kind, ValueError, r"stored by columns .* adata.X = adata.X.tocsr\(\)"),
        (lambda file: file.pop("X"), ValueError, "no part 'X'; .* 'layers/twice'"),
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


# What cannot be opened


def test_what_cannot_be_opened(tmp_path):
    needed("pyarrow")
    needed("h5py")
    for name in ("x.parquet", "x.h5ad", "x.npy", "x.xlsx"):
        (tmp_path / name).write_bytes(b"nothing of that kind")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((3, 2))))
    for name, options, message in (
        ("x.parquet", {}, "cannot be read as parquet"),
        ("x.h5ad", {}, "cannot be read as h5ad"),
        ("x.npy", {}, "cannot be read as npy"),
        ("f.npy", {}, r"shape \(3, 2\) that is not stored row by row; save numpy.asc"),
        ("x.xlsx", {}, r"format '.xlsx' cannot be read block by block; give one of"),
        ("x.csv", {"columns": ["c"]}, "no column 'c'; it has 'a', 'b'"),
        ("x.csv", {"drop_columns": ["a", "b"]}, "no column is left"),
        ("x.csv", {"columns": ["a"], "drop_columns": ["b"]}, "not both"),
        ("x.csv", {"part": "X"}, "part='X' is for HDF5"),
        ("x.npy", {"columns": ["a"]}, "are for tables"),
    ):
        with pytest.raises(ValueError, match=message):
            open_data(tmp_path / name, **options)
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_data(tmp_path / "none.csv")


def test_arrays_of_numpy(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", X)
    assert_array_equal(open_data(tmp_path / "x.npy", dtype="float32").toarray(), X)
