"""Reading data: what is built in, and files in every format."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import regular_target
from ihgmm._parameters import check_choice
from ihgmm.cli.tables import columns, loading, sheets
from ihgmm.cli.tables.arrays import free_memory, read_array, read_h5ad
from ihgmm.cli.tables.loading import suffix_of
from ihgmm.cli.tables.missing import HANDLING, complete_table
from ihgmm.cli.tables.preparation import PREPARATIONS, prepare_columns
from ihgmm.cli.tables.table import BESIDE, Note, Request, Table, as_option, quote
from ihgmm.datasets import list_datasets, load_dataset
from ihgmm.matrix import as_matrix

BUILT_IN = ("iris", "wine", "digits", "demo")
# To read one more format, enter what makes a table of the path and the request.
LOADERS: dict[str, Callable[[Path, Request], loading.RawTable]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), loading.load_text),
    ".parquet": loading.load_parquet,
    **dict.fromkeys((".jsonl", ".ndjson"), loading.load_json_lines),
    **dict.fromkeys(sheets.SUFFIXES, sheets.load_sheet),
}
READERS: dict[str, Callable[[Path, Request], Table]] = {
    ".h5ad": read_h5ad,
    ".npy": read_array,
    ".npz": read_array,
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

    Options are those of the command. Data that would take more than ``memory`` GB stay
    on disk; by default that is a quarter of what is free, since a fit and what it makes
    of the data take up to three times as much again. The model ``fills`` missing cells
    in, takes ``wild_cells`` for missing, or whitens: then columns are left alone.
    """
    check_choice("missing", missing, HANDLING)
    check_choice("prepare", prepare, PREPARATIONS)
    if memory is not None and not 0 <= memory < float("inf"):
        raise ValueError(f"--memory {memory:g}: give a number of GB from 0 on.")
    limit = free_memory() / 4 if memory is None else 1e9 * memory
    request, path = Request(source, memory=int(limit), **asked), Path(source)
    if source == "-":
        table = _read_standard_input(request)
    elif path.exists():
        table = _read(path, request)
    else:
        table = _built_in(request)
    has_choice = table.is_mixed and source not in BUILT_IN
    table = complete_table(table, request, missing, fills)
    if has_choice or table.left_out:
        short, full = columns.choice_notes(table, 8), columns.choice_notes(table, 500)
        said = [Note(a, in_full=b) for a, b in zip(short, full, strict=True)]
        table = replace(table, notes=[*said, *table.notes])
    return prepare_columns(table, prepare, wild_cells=wild_cells, whiten=whiten)


def _read_standard_input(request: Request) -> Table:
    """Read what is piped in: text, which may be compressed, or JSON lines."""
    content = sys.stdin.buffer.read(request.memory + 1) if sys.stdin else b""
    loading.check_size(Path("Standard input"), request, len(content))
    if not content:
        raise ValueError("Standard input is empty; pipe a table into the command.")
    if content.startswith((b"PK", b"\x93NUMPY", b"PAR1", b"\x89HDF")):
        raise ValueError(
            "Standard input holds no text; pipe CSV, TSV or JSON lines into the "
            "command, and give a file of another kind by its name."
        )
    is_zipped, is_json = content[:2] == b"\x1f\x8b", content[:1] == b"{"
    suffix = ".csv.gz" if is_zipped else ".jsonl" if is_json else ".csv"
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
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give one file.{_folder_words(path)}")
    regular_target(path)
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    if suffix not in known:
        raise ValueError(
            f"{path}: unknown format {path.suffix or '(no suffix)'!r}; give one of "
            f"{', '.join(known)}."
        )
    _check_asked(request, suffix)
    loading.check_size(path, request, _n_bytes(path, suffix))
    if suffix in READERS:
        return READERS[suffix](path, request)
    if suffix == ".parquet" and not (request.text_column or request.transpose):
        table = _by_blocks(path, request)
        if table is not None:
            return table
    raw = LOADERS[suffix](path, request)
    if request.transpose:
        raw = columns.transposed(raw)
    return columns.choose_columns(raw, request)


def _folder_words(path: Path) -> str:
    """Return how Python reads a folder of zarr or of Parquet files."""
    if any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
        return f" It holds zarr: in Python, fit zarr.open({str(path)!r}, mode='r')."
    if any(path.glob("*.parquet")):
        ways = f"ihgmm.open_data or dask.dataframe.read_parquet of {str(path)!r}"
        return f" It holds Parquet files: in Python, fit {ways}."
    return ""


def _n_bytes(path: Path, suffix: str) -> int:
    """Return how many bytes a file makes, as far as it tells; 0 if it may stay."""
    if zipfile.is_zipfile(path):  # workbooks, and several arrays
        with loading.explain_damage(path), zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    return 0 if suffix in (".parquet", *READERS) else path.stat().st_size


def _check_asked(request: Request, suffix: str) -> None:
    """Raise if something is asked for that files of a kind do not have."""
    for name, kinds, things in (
        ("layer", [".h5ad"], "layers"),
        ("sheet", sheets.SUFFIXES, "sheets"),
        ("text_column", LOADERS, "columns of text"),
        ("use_categories", LOADERS, "columns of text"),
        ("transpose", [*LOADERS, ".npy", ".npz"], "features in its rows"),
    ):
        if getattr(request, name) and suffix not in kinds:
            raise ValueError(
                f"{as_option(name)}: {request.source} has no {things}; leave the "
                "option out."
            )
    for name in ("transpose", "columns", "drop_columns", "use_categories"):
        if request.text_column is not None and getattr(request, name):
            raise ValueError(
                f"--text-column {quote(request.text_column)} and {as_option(name)}: "
                "with texts, words are the columns. Leave one of the two out."
            )


def _by_blocks(path: Path, request: Request) -> Table | None:
    """Return a Parquet table whose rows are read block by block; None if it is small.

    Columns are chosen by the first rows; ids and labels are read as a whole.
    """
    import pyarrow as pa
    from pyarrow import dataset, parquet

    with loading.explain_damage(path), path.open("rb") as file:
        stored = parquet.ParquetFile(file)
        about, names = stored.metadata, stored.schema_arrow.names
        size = 8 * about.num_rows * about.num_columns
        if size <= request.memory or about.num_rows == 0:
            return None
        batch = next(stored.iter_batches(2**13))
        head = loading.from_arrow(pa.Table.from_batches([batch]))
    if len(set(names)) < len(names):
        reason = "two columns have one name; write it again with others"
        raise loading.damaged(path, reason)
    table = columns.choose_columns(head, request)
    if not set(table.column_names) <= set(names):
        raise ValueError(
            f"{path}: categories are used of a table in memory alone; raise --memory."
        )
    request, _ = columns.find_ids(head, request)
    named = [name for _, name in request.named(*BESIDE)]
    others = loading.from_arrow(parquet.read_table(path, columns=named))
    rows = dataset.dataset(path, format="parquet")
    chosen = pa.schema([rows.schema.field(name) for name in table.column_names])
    X = as_matrix(rows.replace_schema(chosen))
    text = "The data are read block by block; columns were chosen by the first "
    notes = [Note(f"{text}{len(head.frame):,} rows."), *table.notes]
    beside = columns.beside_rows(others, request, np.arange(X.shape[0]))
    return replace(table, X=X, notes=notes, **beside)


def _built_in(request: Request) -> Table:
    """Return a data set that is known by its name."""
    from sklearn import datasets

    name, known = request.source, dict.fromkeys([*BUILT_IN, *list_datasets()])
    if name not in known:
        raise ValueError(
            f"{name}: no such file, nor a built-in data set ({', '.join(known)})."
        )
    _check_asked(request, "")
    if name == "demo":
        from ihgmm.statistics.model import make_ihgmm

        X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
        return request.numbered(X, labels=labels)
    load = getattr(datasets, f"load_{name}", None)
    bunch = load_dataset(name) if load is None else load()
    return request.numbered(
        np.asarray(bunch.data, dtype=np.float64),
        labels=np.asarray(bunch.target_names)[bunch.target],
        names=[str(feature) for feature in bunch.feature_names],
        is_mixed=True,
    )
