"""Reading data: what is built in, and files in every format."""

import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import regular_target
from ihgmm._parameters import check_choice
from ihgmm.cli.tables import columns, loading
from ihgmm.cli.tables import preparation as prep
from ihgmm.cli.tables.arrays import BY_BLOCKS, array_table, read_array, read_h5ad
from ihgmm.cli.tables.loading import suffix_of
from ihgmm.cli.tables.table import BESIDE, Request, Table, as_option, quote, quote_all
from ihgmm.datasets import list_datasets, load_dataset
from ihgmm.matrix import as_matrix
from ihgmm.words.phrases import counted

BUILT_IN = ("iris", "wine", "digits", "demo")
# To read one more format, enter what makes a table of the path and the request.
LOADERS: dict[str, Callable[[Path, Request], loading.RawTable]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), loading.load_text),
    ".parquet": loading.load_parquet,
    **dict.fromkeys((".jsonl", ".ndjson"), loading.load_json_lines),
    **dict.fromkeys(loading.WORKBOOKS, loading.load_sheet),
}
READERS = {".h5ad": read_h5ad, ".npy": read_array, ".npz": read_array}
# What options ask for, and the formats that have it.
HAVE: dict[str, tuple[str, Any]] = {
    "layer": ("layers", [".h5ad"]),
    "sheet": ("sheets", loading.WORKBOOKS),
    "text_column": ("columns of text", LOADERS),
    "use_categories": ("columns of text", LOADERS),
    "transpose": ("features in its rows", [*LOADERS, ".npy", ".npz"]),
}


def read_table(
    source: str,
    *,
    missing: str = "auto",
    prepare: str = "auto",
    memory: float | None = None,
    fills: bool = True,
    wild_cells: bool = False,
    whiten: str | None = None,
    **asked: Any,
) -> Table:
    """Read a file in one of the formats of ``ihgmm fit``, or a data set by its name.

    Options are those of the command. The model ``fills`` missing cells in, takes
    ``wild_cells`` for missing, or whitens: then columns are left alone.
    """
    from pandas import Index

    from ihgmm.estimators.column_scaler import METHODS

    check_choice("missing", missing, ("auto", "fit", "zero", "drop", "error"))
    check_choice("prepare", prepare, METHODS)
    if memory is not None and not 0 <= memory < float("inf"):
        raise ValueError(f"--memory {memory:g}: give a number of GB from 0 on.")
    # A fit and what it makes of the data take up to three times as much again.
    limit = free_memory() / 4 if memory is None else 1e9 * memory
    request, path = Request(source, memory=int(limit), **asked), Path(source)
    fills &= request.batch_column is None  # factors need whole rows
    if source == "-":
        table = _read_standard_input(request)
    else:
        table = _read(path, request) if path.exists() else _built_in(request)
    has_texts = table.texts is not None
    has_choice = source not in BUILT_IN and (table.is_mixed or has_texts)
    table = prep.complete_table(table, request, missing, fills)
    if shared := int(Index(table.ids).dropna().duplicated(keep=False).sum()):
        text = f"{shared:,} of {len(table.ids):,} rows share their {table.id_name!r} "
        text += "with another row: labels joined by it would be ambiguous."
        table = table.noting(text)
    if has_choice or table.left_out:
        names, thing = table.column_names, "word" if has_texts else "column"
        most = 40 if len(names) <= 40 else 8  # the reader is to look at them
        said = [f"Used {counted(len(names), thing)}: {quote_all(names, most)}."]
        said += filter(None, [columns.left_out_note(table.left_out)])
        said += ["--json lists all."] * (len(table.left_out) > columns.MOST_NAMED)
        table = replace(table, notes=[*said, *table.notes])
    return prep.prepare_columns(table, prepare, wild_cells=wild_cells, whiten=whiten)


def _read_standard_input(request: Request) -> Table:
    """Read what is piped in: text, which may be compressed, or JSON lines."""
    content = sys.stdin.buffer.read(request.memory + 1) if sys.stdin else b""
    loading.check_size(Path("Standard input"), request, len(content))
    if not content or content.startswith((b"PK", b"\x93NUMPY", b"PAR1", b"\x89HDF")):
        raise ValueError(
            "Standard input is empty, or holds no text; pipe CSV, TSV or JSON lines "
            "into the command, and give a file of another kind by its name."
        )
    suffix = {b"\x1f": ".csv.gz", b"{": ".jsonl"}.get(content[:1], ".csv")
    with tempfile.TemporaryDirectory() as folder:
        # Loaders take a path, and all that they read is in memory.
        path = Path(folder) / f"standard-input{suffix}"
        path.write_bytes(content)
        try:
            return _read(path, request)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "Standard input")) from error


def _read(path: Path, request: Request) -> Table:
    """Read a file into memory, or leave it on disk where it may and has to."""
    suffix, known = suffix_of(path), [*LOADERS, *READERS]
    if not path.is_dir():
        regular_target(path)
    if path.is_dir() or suffix not in known:
        what = f"unknown format {path.suffix or '(no suffix)'!r}"
        raise ValueError(
            f"{path}: {'a folder' if path.is_dir() else what}; give one of "
            f"{', '.join(known)}. In Python, ihgmm.open_data reads HDF5, zarr, and "
            "folders of Parquet files."
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    _check_asked(request, suffix)
    n_bytes = 0 if suffix in (".parquet", *READERS) else path.stat().st_size
    if zipfile.is_zipfile(path):  # workbooks, and several arrays
        with loading.explain_damage(path), zipfile.ZipFile(path) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
    loading.check_size(path, request, n_bytes)
    if suffix in READERS:
        return READERS[suffix](path, request)
    if suffix == ".parquet" and not (request.text_column or request.transpose):
        table = _by_blocks(path, request)
        if table is not None:
            return table
    raw = LOADERS[suffix](path, request)
    raw = columns.transposed(raw) if request.transpose else raw
    return columns.choose_columns(raw, request)


def _check_asked(request: Request, suffix: str) -> None:
    """Raise if something is asked for that files of a kind do not have."""
    for name, (things, kinds) in HAVE.items():
        if getattr(request, name) and suffix not in kinds:
            lack = f"{request.source} has no {things}"
            raise ValueError(f"{as_option(name)}: {lack}; leave it out.")
    for name in ("transpose", "columns", "drop_columns", "use_categories"):
        if request.text_column is not None and getattr(request, name):
            both = f"--text-column {quote(request.text_column)} and {as_option(name)}"
            raise ValueError(f"{both}: with texts, words are the columns; drop one.")


def _by_blocks(path: Path, request: Request) -> Table | None:
    """Return a Parquet table that is read block by block; None if it is small."""
    import pyarrow as pa
    from pyarrow import dataset, parquet

    with loading.explain_damage(path), path.open("rb") as file:
        stored = parquet.ParquetFile(file)
        about, names = stored.metadata, stored.schema_arrow.names
        size = 8 * about.num_rows * about.num_columns
        if size <= request.memory or about.num_rows == 0:
            return None
        # Four stretches, each elsewhere in its group: rows may be sorted by month.
        size, batches = 2**11, list[Any]()
        for at in (0.125, 0.375, 0.625, 0.875):
            group = int(at * about.num_row_groups)
            first = int(at * about.row_group(group).num_rows) // size
            batches += islice(stored.iter_batches(size, [group]), first, first + 1)
        head = loading.from_arrow(pa.Table.from_batches(batches))
    table = columns.choose_columns(head, request)
    if len(set(names)) < len(names) or not set(table.column_names) <= set(names):
        what = "categories, or two columns of one name"
        raise ValueError(f"{path}: {what}, are read in memory alone; raise --memory.")
    request, _ = columns.find_ids(head, request)
    named = [name for _, name in request.named(*BESIDE.values())]
    others = loading.from_arrow(parquet.read_table(path, columns=named)).frame
    places = np.arange(1, about.num_rows + 1)
    beside = columns.beside_rows(others, request, places)
    rows = dataset.dataset(path, format="parquet")
    chosen = pa.schema([rows.schema.field(name) for name in table.column_names])
    by_rows = "" if request.columns or request.features else " Columns were chosen by "
    text = BY_BLOCKS + (by_rows and f"{by_rows}{len(head.frame):,} rows.")
    X, notes = as_matrix(rows.replace_schema(chosen)), [text, *table.notes]
    return replace(table, X=X, notes=notes, **beside, places=places)


def _built_in(request: Request) -> Table:
    """Return a data set that is known by its name."""
    from sklearn import datasets

    name, known = request.source, ", ".join({}.fromkeys([*BUILT_IN, *list_datasets()]))
    if name not in known.split(", "):
        raise ValueError(f"{name}: no such file, nor a built-in data set ({known}).")
    _check_asked(request, "")
    if name == "demo":
        from ihgmm.statistics.model import make_ihgmm

        X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
        return array_table(request, X, labels=labels)
    bunch = datasets.load_digits() if name == "digits" else load_dataset(name)
    X = np.asarray(bunch.data, dtype=np.float64)
    labels = np.asarray(bunch.target_names)[bunch.target]
    names = [str(feature) for feature in bunch.feature_names]
    return array_table(request, X, labels=labels, names=names, is_mixed=True)


def free_memory() -> float:
    """Return the bytes of memory that this process could have, as far as is known."""
    free = [8e9]  # of a small machine
    with suppress(OSError, ValueError, IndexError):  # as Linux tells it
        info = Path("/proc/meminfo").read_text()
        free = [1024 * int(info.partition("MemAvailable:")[2].split()[0])]
    with suppress(OSError, ValueError):  # what a container may have
        names = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
        most, used = (int(Path(name).read_text()) for name in names)
        free.append(most - used)
    return max(0.0, min(free))
