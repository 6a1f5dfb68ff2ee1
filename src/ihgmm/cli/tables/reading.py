"""Reading data: what is built in, and files in every format."""

import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ihgmm._files import regular_target
from ihgmm.cli.tables import notes
from ihgmm.cli.tables.array_tables import array_table
from ihgmm.cli.tables.blocks import table_by_blocks
from ihgmm.cli.tables.columns.choosing import choose_columns
from ihgmm.cli.tables.columns.transposing import transposed
from ihgmm.cli.tables.files.anndata_files import read_h5ad
from ihgmm.cli.tables.files.array_files import read_array
from ihgmm.cli.tables.files.parquet_files import load_parquet
from ihgmm.cli.tables.files.raw_table import (
    RawArray,
    RawTable,
    check_size,
    explain_damage,
    suffix_of,
)
from ihgmm.cli.tables.files.text_files import load_json_lines, load_text
from ihgmm.cli.tables.files.workbooks import WORKBOOKS, load_sheet
from ihgmm.cli.tables.names import as_option, quote
from ihgmm.cli.tables.preparation.missing_cells import complete_table
from ihgmm.cli.tables.preparation.scaling import prepare_columns
from ihgmm.cli.tables.request import PreparationRequest, Request
from ihgmm.cli.tables.table import Table
from ihgmm.datasets import list_datasets, load_dataset

BUILT_IN = ("iris", "wine", "digits", "demo")

# To read one more format, enter what makes a frame, or an array, of its files.
FRAME_READERS: dict[str, Callable[[Path, Request], RawTable]] = {
    ".csv": load_text,
    ".tsv": load_text,
    ".txt": load_text,
    ".parquet": load_parquet,
    ".jsonl": load_json_lines,
    ".ndjson": load_json_lines,
    **dict.fromkeys(WORKBOOKS, load_sheet),
}
ARRAY_READERS: dict[str, Callable[[Path, Request], RawArray]] = {
    ".h5ad": read_h5ad,
    ".npy": read_array,
    ".npz": read_array,
}
FORMATS = (*FRAME_READERS, *ARRAY_READERS)
# How large the data of these are, their readers know.
_WITH_SIZES = (".parquet", *ARRAY_READERS)


@dataclass(frozen=True)
class _FormatOption:
    """An option that asks for something that only some formats have."""

    name: str
    things: str  # that it asks for
    formats: Collection[str]


_FORMAT_OPTIONS = (
    _FormatOption("layer", "layers", [".h5ad"]),
    _FormatOption("sheet", "sheets", WORKBOOKS),
    _FormatOption("text_column", "columns of text", FRAME_READERS),
    _FormatOption("use_categories", "columns of text", FRAME_READERS),
    _FormatOption(
        "transpose", "features in its rows", [*FRAME_READERS, ".npy", ".npz"]
    ),
)


def read_table(request: Request, preparation: PreparationRequest) -> Table:
    """Read a file in one of the formats of ``ihgmm fit``, or a data set by its name.

    The table has the columns that are clustered by, ready for a model, and notes on
    what was done to them.
    """
    preparation.check()
    table = _read_source(request)
    has_choice = request.source not in BUILT_IN and (table.is_mixed or table.has_texts)

    table = complete_table(
        table,
        request,
        preparation.missing,
        # The factors of batches need whole rows.
        model_fills_cells=preparation.model_fills_cells
        and request.batch_column is None,
    )

    table = _with_note_on_shared_ids(table)
    if has_choice or table.left_out:
        table = _with_notes_on_columns(table)
    return prepare_columns(table, preparation)


def _with_note_on_shared_ids(table: Table) -> Table:
    """Say how many rows have the name of another, if any do."""
    from pandas import Index

    ids = table.rows.ids
    n_sharing = int(Index(ids).dropna().duplicated(keep=False).sum())
    if n_sharing == 0:
        return table
    return table.with_notes(notes.shared_ids(n_sharing, len(ids), table.rows.id_name))


def _with_notes_on_columns(table: Table) -> Table:
    """Say first which columns are clustered by, and which are not."""
    thing = "word" if table.has_texts else "column"
    first_notes = [
        notes.columns_used(table.column_names, thing),
        *notes.columns_left_out(table.left_out),
        *notes.where_all_are_listed(table.left_out),
    ]
    return replace(table, notes=[*first_notes, *table.notes])


def _read_source(request: Request) -> Table:
    """Return the columns of a file or a data set that may be clustered by."""
    path = Path(request.source)
    if request.source == "-":
        return _read_standard_input(request)
    if path.exists():
        return _read_file(path, request)
    return array_table(_built_in(request), request)


def _read_standard_input(request: Request) -> Table:
    """Read what is piped in: text, which may be compressed, or JSON lines."""
    content = sys.stdin.buffer.read(request.memory + 1) if sys.stdin else b""
    check_size(Path("Standard input"), request.memory, len(content))

    if not content or content.startswith((b"PK", b"\x93NUMPY", b"PAR1", b"\x89HDF")):
        raise ValueError(
            "Standard input is empty, or holds no text; pipe CSV, TSV or JSON lines "
            "into the command, and give a file of another kind by its name."
        )

    suffix = {b"\x1f": ".csv.gz", b"{": ".jsonl"}.get(content[:1], ".csv")
    with tempfile.TemporaryDirectory() as folder:
        # Readers take a path, and all that they read is in memory.
        path = Path(folder) / f"standard-input{suffix}"
        path.write_bytes(content)
        try:
            return _read_file(path, request)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "Standard input")) from error


def _read_file(path: Path, request: Request) -> Table:
    """Read a file into memory, or leave it on disk where it may and has to."""
    _check_file(path)
    suffix = suffix_of(path)
    _check_asked(request, suffix)
    check_size(path, request.memory, _n_bytes(path, suffix))

    if suffix in ARRAY_READERS:
        return array_table(ARRAY_READERS[suffix](path, request), request)
    if suffix == ".parquet" and not (request.text_column or request.transpose):
        table = table_by_blocks(path, request)
        if table is not None:
            return table

    raw = FRAME_READERS[suffix](path, request)
    if request.transpose:
        raw = transposed(raw)
    return choose_columns(raw, request)


def _check_file(path: Path) -> None:
    """Raise unless there is a file of a known format, with something in it."""
    is_folder = path.is_dir()
    if not is_folder:
        regular_target(path)

    if is_folder or suffix_of(path) not in FORMATS:
        fault = f"unknown format {path.suffix or '(no suffix)'!r}"
        if is_folder:
            fault = "a folder"
        raise ValueError(
            f"{path}: {fault}; give one of {', '.join(FORMATS)}. In Python, "
            "ihgmm.open_data reads HDF5, zarr, and folders of Parquet files."
        )

    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")


def _n_bytes(path: Path, suffix: str) -> int:
    """Return how much memory a file takes, as far as it is known before it is read."""
    if zipfile.is_zipfile(path):  # workbooks, and several arrays
        with explain_damage(path), zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    return 0 if suffix in _WITH_SIZES else path.stat().st_size


def _check_asked(request: Request, suffix: str) -> None:
    """Raise if something is asked for that files of a kind do not have."""
    for option in _FORMAT_OPTIONS:
        if getattr(request, option.name) and suffix not in option.formats:
            raise ValueError(
                f"{as_option(option.name)}: {request.source} has no {option.things}; "
                "leave it out."
            )

    if request.text_column is None:
        return
    for name in ("transpose", "columns", "drop_columns", "use_categories"):
        if getattr(request, name):
            raise ValueError(
                f"--text-column {quote(request.text_column)} and {as_option(name)}: "
                "with texts, words are the columns; drop one."
            )


def _built_in(request: Request) -> RawArray:
    """Return a data set that is known by its name."""
    from sklearn import datasets

    name = request.source
    names = list(dict.fromkeys([*BUILT_IN, *list_datasets()]))
    if name not in names:
        raise ValueError(
            f"{name}: no such file, nor a built-in data set ({', '.join(names)})."
        )
    _check_asked(request, suffix="")

    if name == "demo":
        from ihgmm.statistics.model import make_ihgmm

        X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
        return RawArray(X=X, labels=labels)

    bunch = datasets.load_digits() if name == "digits" else load_dataset(name)
    return RawArray(
        X=np.asarray(bunch.data, dtype=np.float64),
        names=[str(feature) for feature in bunch.feature_names],
        labels=np.asarray(bunch.target_names)[bunch.target],
        is_mixed=True,
    )
