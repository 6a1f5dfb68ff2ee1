"""Reading data: what is built in, and files in every format.

A reader takes the path of a file, what is asked of its columns and how many bytes the
data may take in memory, and returns a table. To read one more format, write such a
function and enter it in ``READERS``; or, for a table with named columns, a loader that
returns it as a library reads it, and enter that in ``LOADERS``. Work of a library is
inside :func:`explain_damage`.
"""

from __future__ import annotations

import io
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import plain_path
from ihgmm._parameters import check_choice
from ihgmm.cli.tables.arrays import free_memory, read_npy, read_npz
from ihgmm.cli.tables.columns import (
    RawTable,
    choose_columns,
    describe_columns,
    find_ids,
    is_turned,
)
from ihgmm.cli.tables.h5ad import read_h5ad
from ihgmm.cli.tables.missing import (
    HANDLING,
    examine,
    handle_missing,
    leave_out_constants,
)
from ihgmm.cli.tables.preparation import PREPARATIONS, prepare_columns
from ihgmm.cli.tables.sheets import load_sheet
from ihgmm.cli.tables.table import Note, Request, Table, quote
from ihgmm.datasets import list_datasets, load_dataset
from ihgmm.matrix import Matrix
from ihgmm.matrix.delimited import decimal_point, open_text, read_text
from ihgmm.matrix.faults import explain_damage
from ihgmm.matrix.files import open_data
from ihgmm.words.phrases import listed

STANDARD_INPUT = "-"  # what stands for it where a file is named
# How files begin that are told by it. Archives are told by what is in them.
STARTS = {
    b"PAR1": ".parquet",
    b"\x93NUMPY": ".npy",
    b"\x89HDF": ".h5ad",
    b"\x1f\x8b": ".csv.gz",
    b"{": ".jsonl",
}
STREAMED = (".csv", ".tsv", ".parquet")  # tables that need not fit in memory
BUILT_IN = ("iris", "wine", "digits", "demo")


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

    Parameters
    ----------
    source : str
        The file, ``"-"`` for standard input, or the name of a data set.
    missing, prepare, memory
        The options of that name of ``ihgmm fit``. Data that would take more than
        ``memory`` stay on disk; by default that is a quarter of what is free, since a
        fit and what it makes of the data take up to three times as much again.
    fills : bool
        Whether the model fills in missing cells. If it does not, ``missing="auto"``
        leaves out their rows.
    wild_cells : bool
        Whether the model takes cells that fit no row for missing. These then have no
        part in how columns are prepared.
    whiten : str, optional
        How the model whitens. With ``prepare="auto"`` its columns are then left alone.
    **asked
        ``label_column``, ``id_column``, ``text_column``, ``columns``, ``drop_columns``,
        ``transpose``, ``layer``, ``sheet`` and ``external``, as the command takes them.

    Returns
    -------
    Table
        With the matrix ``X``, ``ids``, ``labels``, ``names`` of columns, and ``notes``
        of what was done. A ValueError says what is missing, empty or damaged.
    """
    check_choice("missing", missing, HANDLING)
    check_choice("prepare", prepare, PREPARATIONS)
    if memory is not None and not 0 <= memory < float("inf"):
        raise ValueError(f"memory={memory:g}; give a number of GB from 0 on.")
    request, path = Request(source, **asked), Path(source)
    if source == STANDARD_INPUT:
        table = _read_standard_input(request)
    elif path.exists():
        table = _read(
            path, request, free_memory() / 4 if memory is None else 1e9 * memory
        )
    else:
        table = _built_in(request)
    if missing == "auto":
        missing = "fit" if fills else "drop"
    cells = examine(table)
    complete = handle_missing(table, request, missing, cells, fills=fills)
    if complete.X is not table.X and not table.on_disk:
        cells = examine(complete)
    has_choice = table.is_mixed and source not in BUILT_IN
    table = leave_out_constants(complete, request, cells)
    if has_choice or table.left_out:
        table = describe_columns(table)
    return prepare_columns(table, prepare, wild_cells=wild_cells, whiten=whiten)


def load_text(path: str | Path) -> dict[str, list[str]]:
    """Return the columns of a table as text, as they are written in the file."""
    path = Path(path)
    _check_kind(path)
    if _suffix(path) not in LOADERS:
        raise ValueError(
            f"{path} has no named columns; give one of {', '.join(LOADERS)}."
        )
    import pyarrow as pa

    with plain_path(path) as plain:
        arrow = LOADERS[_suffix(path)](plain, None).arrow
    with explain_damage(path, pa.ArrowException):  # lists are no text
        texts = [column.cast(pa.string()).fill_null("") for column in arrow.columns]
    return {
        name: column.to_pylist()
        for name, column in zip(arrow.column_names, texts, strict=True)
    }


def _read_standard_input(request: Request) -> Table:
    """Read what is piped in: a format that its first bytes tell, or else text."""
    content = sys.stdin.buffer.read()
    if not content:
        raise ValueError("Standard input is empty; pipe a table into the command.")
    suffix = next((s for start, s in STARTS.items() if content.startswith(start)), "")
    if content.startswith(b"PK"):
        with explain_damage(Path("-.npz"), zipfile.BadZipFile):
            names = zipfile.ZipFile(io.BytesIO(content)).namelist()
        suffix = ".npz" if any(name.endswith(".npy") for name in names) else ".xlsx"
    with tempfile.TemporaryDirectory() as folder:
        # Readers take a path, and all that they read is in memory.
        path = Path(folder) / f"standard-input{suffix or '.csv'}"
        path.write_bytes(content)
        try:
            return _read(path, request, float("inf"))
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "Standard input")) from error


def _check_kind(path: Path) -> None:
    """Raise if a file cannot be read, as its name or its size shows."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give one file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    suffix = _suffix(path)
    known = [*LOADERS, *READERS]
    if suffix not in known:
        raise ValueError(
            f"{path}: unknown format {path.suffix or '(no suffix)'!r}; give one of "
            f"{', '.join(known)}."
        )


def _suffix(path: Path) -> str:
    """Return the suffix that says the format, with that of compression left out."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _read(path: Path, request: Request, memory: float) -> Table:
    """Read a file into memory, or leave it on disk where it may and has to."""
    _check_kind(path)
    suffix = _suffix(path)
    _check_asked(request, suffix)
    if suffix in READERS:
        return READERS[suffix](path, request, memory)
    with plain_path(path) as plain:
        if suffix in STREAMED and _size(plain) > memory:
            for option in ("--text-column", "--transpose"):
                if getattr(request, option[2:].replace("-", "_")):
                    raise ValueError(
                        f"{option} takes a table that is in memory, and {path} is too "
                        f"large for {memory / 1e9:.3g} GB; raise --memory."
                    )
            return _by_blocks(plain, request)
        raw = LOADERS[suffix](plain, request.sheet)
        if request.transpose or is_turned(raw, request):
            raw, request = raw.transposed(), replace(request, transpose=True)
        return choose_columns(raw, request)


def _check_asked(request: Request, suffix: str) -> None:
    """Raise if something is asked for that files of a kind do not have."""
    tables = (*LOADERS,)
    for name, kinds, things in (
        ("layer", (".h5ad",), "layers"),
        ("sheet", (".xlsx", ".xlsm"), "sheets"),
        ("text_column", tables, "columns of text"),
        ("transpose", (*tables, ".npy", ".npz"), "features in its rows"),
    ):
        value = getattr(request, name)
        if value not in (None, False) and suffix not in kinds:
            option = f"--{name.replace('_', '-')}"
            shown = "" if value is True else f" {quote(value)}"
            files = listed([kind[1:].upper() for kind in kinds], "and")
            raise ValueError(
                f"{option}{shown}: {request.source} has no {things}; that option is "
                f"for {files} files."
            )
    if request.text_column is None:
        return
    for option in ("transpose", "columns", "drop_columns"):
        if getattr(request, option):
            raise ValueError(
                f"--text-column {quote(request.text_column)} and "
                f"--{option.replace('_', '-')}: with texts, words are the columns. "
                "Leave one of the two out."
            )


def _size(path: Path) -> int:
    """Return about how many bytes a table takes in memory."""
    if _suffix(path) != ".parquet":
        return path.stat().st_size
    import pyarrow as pa
    from pyarrow import parquet

    with explain_damage(path, pa.ArrowException):
        stored = parquet.read_metadata(path)
    return 8 * int(stored.num_rows) * int(stored.num_columns)


# Tables with named columns


def _load_text(path: Path, sheet: str | None, *, only_head: bool = False) -> RawTable:
    """Read a CSV or TSV file in UTF-8, UTF-16, or as old spreadsheets encode it."""
    import pyarrow as pa

    text, arrow = read_text(path, lambda text: (text, text.read(only_head=only_head)))
    phrases = []
    if text.encoding != "utf-8":
        cp1252 = "as Windows-1252, since it is not UTF-8 (look at the names)"
        phrases.append("as UTF-16" if text.encoding == "utf-16" else cp1252)
    if text.n_titles:
        phrases.append(f"names of columns from line {text.n_titles + 1}")
    if text.has_names:
        arrow = arrow.rename_columns(text.header)
    point = decimal_point(arrow.columns, text.delimiter)
    if point == ",":
        phrases.append("commas as decimal points")
    raw = RawTable(arrow, phrases, point)
    if path.stat().st_size > 2**26 or only_head:  # nobody looks for a line
        return raw
    with pa.input_stream(str(path)) as file:
        ends = file.read().rstrip(b"\r\n\0").count(b"\n")
    # Unless a cell has several lines, or lines between rows are empty.
    above = ends - arrow.num_rows
    if above - text.n_titles not in (-1, 0):
        return raw
    places = np.arange(arrow.num_rows) + above + 2
    return replace(raw, places=places, place_words="line {}")


def _load_parquet(path: Path, sheet: str | None) -> RawTable:
    import pyarrow as pa
    from pyarrow import parquet

    with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
        arrow = parquet.ParquetFile(path).read()  # two columns may have one name
        arrow.column_names  # noqa: B018  (they are decoded here)
    return RawTable(arrow, is_typed=True)


def _load_json_lines(path: Path, sheet: str | None) -> RawTable:
    import pyarrow as pa
    from pyarrow import json

    # A record may be longer than the block of a megabyte that is read by default.
    with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
        arrow = json.read_json(path, json.ReadOptions(block_size=2**26))
    return RawTable(arrow)


def _by_blocks(path: Path, request: Request) -> Table:
    """Return a table whose rows are read block by block.

    Columns are chosen by the first rows; ids and labels are read as a whole.
    """
    import pyarrow as pa
    from pyarrow import parquet

    is_text = _suffix(path) != ".parquet"
    if is_text:
        head = _load_text(path, None, only_head=True)
    else:
        with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
            batch = next(parquet.ParquetFile(path).iter_batches(2**13))
            head = RawTable(pa.Table.from_batches([batch]), is_typed=True)
    table = choose_columns(head, request, is_whole=False)
    request, _ = find_ids(head, request)
    id_column, label_column = request.id_column, request.label_column
    beside = [name for name in (id_column, label_column) if name is not None]
    columns: Any = {}
    X: Matrix
    if is_text:
        X = open_text(path, lambda _: table.column_names, drop_option="--drop-columns")
        if beside:
            columns = read_text(path, lambda text: text.read(beside))
    else:
        X = open_data(path, columns=table.column_names)
        columns = parquet.read_table(path, columns=beside)
    cells = {name: np.array(columns[name].to_pylist(), object) for name in beside}
    count = f"{head.arrow.num_rows:,} rows"
    text = (
        f"The data are read block by block; columns were chosen by the first {count}."
    )
    return replace(
        table,
        X=X,
        ids=cells[id_column] if id_column is not None else np.arange(1, X.shape[0] + 1),
        labels=None if label_column is None else cells[label_column],
        notes=[Note(text), *table.notes],
    )


LOADERS: dict[str, Callable[[Path, str | None], RawTable]] = {
    ".csv": _load_text,
    ".tsv": _load_text,
    ".txt": _load_text,
    ".parquet": _load_parquet,
    ".xlsx": load_sheet,
    ".xlsm": load_sheet,
    ".jsonl": _load_json_lines,
    ".ndjson": _load_json_lines,
}
READERS: dict[str, Callable[[Path, Request, float], Table]] = {
    ".h5ad": read_h5ad,
    ".npy": read_npy,
    ".npz": read_npz,
}


# Data sets that are known by their name


def _built_in(request: Request) -> Table:
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
    if name in BUILT_IN:
        bunch = getattr(datasets, f"load_{name}")()
    else:
        bunch = load_dataset(name)
    return request.numbered(
        np.asarray(bunch.data, dtype=np.float64),
        labels=np.asarray(bunch.target_names)[bunch.target],
        names=[str(feature) for feature in bunch.feature_names],
        is_mixed=True,
    )
