"""Reading data: what is built in, and files in every format.

A reader takes the path of a file, what is asked of its columns and how many bytes the
data may take in memory, and returns a table. It reads with a library, inside
:func:`explain_damage`, and hands the result on: :func:`choose_columns` makes a table of
named columns, :func:`_from_matrix` one of a matrix. Where the data would take more
memory and their format allows it, they stay on disk, see :func:`_by_blocks`. To read
one more format, write such a function and enter it in ``READERS``. Formats with named
columns have a loader too, in ``LOADERS``, for files that are no data: labels and names.
"""

from __future__ import annotations

import errno
import gzip
import io
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.cells import examine, leave_out_constants, refuse_infinity
from ihgmm.cli.tables.columns import Origin, choose_columns, describe_columns
from ihgmm.cli.tables.h5ad import read_h5ad
from ihgmm.cli.tables.matrix_market import read_matrix_market
from ihgmm.cli.tables.memory import free_memory
from ihgmm.cli.tables.missing import handle_missing
from ihgmm.cli.tables.sheets import SHEET_ERRORS, load_sheet
from ihgmm.cli.tables.table import Note, Request, Table, numbered_table, quote_all
from ihgmm.cli.tables.totals import choose_observations, leave_out_total_columns
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.matrix.delimited import (
    LARGEST_BLOCK,
    MISSING,
    UTF16,
    Header,
    find_header,
    first_rows,
    is_number,
    layout_of,
    open_text,
    place_names,
)
from ihgmm.matrix.files import open_data

Reader = Callable[[Path, Request, float], Table]
# Takes a path and what is asked of the columns, of which some stay as they are written,
# all of them if it is None; returns a table of pyarrow.
Loader = Callable[[Path, Request | None], tuple[Any, Origin]]
STANDARD_INPUT = "-"  # what stands for it where a file is named
# How files begin that are told by it. Archives are told by what is in them.
STARTS = {
    b"PAR1": ".parquet",
    b"\x93NUMPY": ".npy",
    b"\x89HDF": ".h5ad",
    b"%%MatrixMarket": ".mtx",
    b"\x1f\x8b": ".csv.gz",
    b"{": ".jsonl",
}
BUILT_IN = ("iris", "wine", "digits", "demo")


def read_table(
    request: Request, *, missing: str, memory: float | None = None, fills: bool = True
) -> Table:
    """Read a file in one of the formats of ``READERS``, or a data set by its name.

    Missing cells are handled as one of ``HANDLING`` says; ``"auto"`` leaves them for
    the model to fill in if it ``fills`` cells, and leaves out their rows if it does
    not. Columns that are constant are left out. Data that would take more bytes than
    ``memory`` stay on disk. By default that is a quarter of what is free, since a fit
    and what it makes of the data take up to three times as much again. A ValueError
    says what is missing, empty or damaged.
    """
    table = open_table(request, memory)
    has_choice = table.is_mixed and table.source not in BUILT_IN
    if has_choice:
        table = leave_out_total_columns(table, request)
    if missing == "auto":
        missing = "fit" if fills else "drop"
    cells = examine(table)
    refuse_infinity(table, cells)
    complete = handle_missing(table, request, missing, cells, fills=fills)
    if complete.X is not table.X and not table.on_disk:
        cells = examine(complete)
    table = leave_out_constants(complete, request, cells)
    return describe_columns(table) if has_choice or table.left_out else table


def open_table(request: Request, memory: float | None = None) -> Table:
    """Read a table, or open it where it stays on disk, whatever cells are missing."""
    path = Path(request.source)
    memory = free_memory() / 4 if memory is None else memory
    if request.source == STANDARD_INPUT:
        return _read_standard_input(request)
    if path.exists():
        return _read(path, request, memory)
    request.refuse_names()
    request.refuse_layer()
    request.refuse_sheet()
    return request.order(_built_in(request.source))


def load_text(path: Path) -> dict[str, list[str]]:
    """Return the columns of a table as text, as they are written in the file."""
    _reader(path)  # which says why a file cannot be read
    suffix = _suffix(path)
    if suffix not in LOADERS:
        raise ValueError(
            f"{path} has no named columns; give one of {', '.join(LOADERS)}."
        )
    arrow, _ = LOADERS[suffix](path, None)
    return {
        name: [_as_text(cell) for cell in column.to_pylist()]
        for name, column in zip(arrow.column_names, arrow.columns, strict=True)
    }


def _as_text(cell: Any) -> str:
    """Return what people see in a cell; spreadsheets write whole numbers as 3.0."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell)


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
            table = _read(path, request, float("inf"))
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "Standard input")) from error
    lines = [line.replace(repr(str(path)), '"FILE"') for line in table.python]
    return replace(table, python=tuple(lines))


def _read(path: Path, request: Request, memory: float) -> Table:
    reader = _reader(path)
    if reader is not read_h5ad:
        request.refuse_layer()
    if LOADERS.get(_suffix(path)) is not _load_sheet:
        request.refuse_sheet()
    return reader(path, request, memory)


def _reader(path: Path) -> Reader:
    """Return the reader of a file by its name."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give one file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    suffix = _suffix(path)
    if suffix in (".xls", ".xlsb", ".ods", ".numbers"):
        raise ValueError(
            f"{path} is a spreadsheet of a kind that is not read; save it as .xlsx, or "
            "the sheet with the data as CSV (UTF-8)."
        )
    if suffix not in READERS:
        raise ValueError(
            f"{path}: unknown format {path.suffix or '(no suffix)'!r}; give one of "
            f"{', '.join(READERS)}."
        )
    return READERS[suffix]


def _built_in(name: str) -> Table:
    """Return a data set that is known by its name."""
    from sklearn import datasets

    from ihgmm.datasets import list_datasets, load_dataset
    from ihgmm.statistics.model import make_ihgmm

    if name == "demo":
        X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
        call = "X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)"
        made = ("from ihgmm import make_ihgmm", "", call)
        return numbered_table(name, X, labels=labels, python=made)
    lines: tuple[str, ...] = (
        "import pandas as pd",
        "from ihgmm.datasets import load_dataset",
        "",
        f"X = pd.DataFrame(load_dataset({name!r}).data)",
    )
    if name in BUILT_IN:
        bunch = getattr(datasets, f"load_{name}")()
        lines = (
            "from sklearn import datasets",
            "",
            f"X = datasets.load_{name}(as_frame=True).data",
        )
    elif name in list_datasets():
        bunch = load_dataset(name)
    else:
        known = ", ".join(dict.fromkeys([*BUILT_IN, *list_datasets()]))
        raise ValueError(f"{name}: no such file, nor a built-in data set ({known}).")
    return numbered_table(
        name,
        np.asarray(bunch.data, dtype=np.float64),
        labels=np.asarray(bunch.target_names)[bunch.target],
        names=[str(feature) for feature in bunch.feature_names],
        is_mixed=True,
        python=lines,
    )


def _suffix(path: Path) -> str:
    """Return the suffix that says the format, with that of compression left out."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def explain_damage(path: Path, *errors: Any) -> Iterator[None]:
    """Say that a file is damaged where a library raises one of these errors.

    Only the library's work belongs inside, so that a defect of ours is not taken for a
    damaged file. An OSError of a library is one too, unless it is the system's, which
    has a number: then the disk is at fault, or a permission.
    """
    try:
        yield
    except (OSError, *errors) as error:
        number = getattr(error, "errno", None)
        # A lack of memory that pyarrow notices is one of its errors too. An archive may
        # point before its beginning, which is an invalid argument to the system.
        if isinstance(error, MemoryError) or number not in (None, errno.EINVAL):
            raise
        reason = " ".join(str(error).split())[:300]
        if "pickle" in reason:  # NumPy's advice is to allow it
            reason = "it does not hold an array of numbers"
        raise _damaged(path, reason) from error


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"{path} cannot be read as {_suffix(path)[1:]}: {reason}")


def _by_blocks(
    head: Any,
    request: Request,
    origin: Origin,
    open_columns: Callable[[list[str]], Matrix],
    read_columns: Callable[[list[str]], Any],
) -> Table:
    """Return a table whose rows are read block by block.

    Columns are chosen by the first rows, ``head``; ids and labels are read as a whole.
    """
    table = choose_columns(head, request, origin)
    request = request.resolve(head.column_names)
    X = open_columns(table.names or [])
    ids, labels = np.arange(1, X.shape[0] + 1), None
    beside = [name for name in (request.ids, request.label) if name is not None]
    if beside:
        arrow = read_columns(beside)
        cells = {n: np.array(arrow.column(n).to_pylist(), object) for n in beside}
        ids = ids if request.ids is None else cells[request.ids]
        labels = None if request.label is None else cells[request.label]
    text = "The data are read block by block"
    notes = [Note(f"{text}; columns were chosen by the first {head.num_rows:,} rows.")]
    # What pandas would read does not fit in memory.
    kept: dict[str, Any] = {"X": X, "ids": ids, "labels": labels, "python": ()}
    return replace(table, **kept, notes=[*notes, *table.notes])


def _read_parquet(path: Path, request: Request, memory: float) -> Table:
    import pyarrow as pa
    import pyarrow.parquet

    with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
        stored = pa.parquet.ParquetFile(path)
        size = 8 * stored.metadata.num_rows * stored.metadata.num_columns
        if size > memory:
            head = pa.Table.from_batches([next(stored.iter_batches(2**13))])
    if size <= memory:
        return _read_whole(path, request, memory)
    return _by_blocks(
        head,
        request,
        Origin("", is_typed=True),
        lambda names: open_data(path, columns=names),
        lambda names: pa.parquet.read_table(path, columns=names),
    )


def _load_parquet(path: Path, request: Request | None) -> tuple[Any, Origin]:
    import pyarrow as pa
    import pyarrow.parquet

    with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
        arrow = pa.parquet.read_table(path)
        arrow.column_names  # noqa: B018  (they are decoded here)
    return arrow, Origin(f"pd.read_parquet({str(path)!r})", is_typed=True)


def _read_whole(path: Path, request: Request, memory: float) -> Table:
    """Read a table with named columns into memory."""
    arrow, origin = LOADERS[_suffix(path)](path, request)
    names = request.fitted_names(arrow.column_names)
    changed = {a: b for a, b in zip(arrow.column_names, names, strict=True) if a != b}
    if changed:
        taken = f"{quote_all(list(changed))} as {quote_all(list(changed.values()))}"
        origin = replace(origin, phrases=[*origin.phrases, f"{taken}, as in the fit"])
        arrow = arrow.rename_columns(names)
    return choose_observations(arrow, request, origin)


def _load_json_lines(path: Path, request: Request | None) -> tuple[Any, Origin]:
    import pyarrow as pa
    import pyarrow.json

    # A record may be longer than the block of a megabyte that is read by default.
    block = pa.json.ReadOptions(block_size=min(2**26, LARGEST_BLOCK))
    with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
        arrow = pa.json.read_json(path, block)
    return arrow, Origin(f"pd.read_json({str(path)!r}, lines=True)")


def _load_sheet(path: Path, request: Request | None) -> tuple[Any, Origin]:
    with explain_damage(path, *SHEET_ERRORS):
        return load_sheet(path, None if request is None else request.sheet)


def _read_text(path: Path, request: Request, memory: float) -> Table:
    if path.stat().st_size > memory and path.suffix.lower() != ".gz":
        return _text_by_blocks(path, request)
    return _read_whole(path, request, memory)


def _load_text(path: Path, request: Request | None) -> tuple[Any, Origin]:
    """Read a CSV or TSV file in UTF-8, UTF-16, or as old spreadsheets encode it."""
    import pyarrow as pa

    kept = None if request is None else request.beside()
    start = _content(path, 2**16)  # a file without line ends is not read whole
    is_utf16 = start.startswith(UTF16)
    source: Any = path
    if is_utf16:
        with explain_damage(path, UnicodeDecodeError):
            source = io.BytesIO(_content(path).decode("utf-16").encode())
        start = source.getvalue()[: 2**16]
    header = find_header(start, _suffix(path))
    is_wide = b"\n" not in start
    with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
        arrow, origin = _parse_text(source, kept, header, is_wide=is_wide)
    encoding, phrases = ', encoding="utf-16"' * is_utf16, ["as UTF-16"] * is_utf16
    python = f"pd.read_csv({str(path)!r}{encoding}{origin.python})"
    if path.stat().st_size < 2**26:  # else nobody looks for a line
        content = source.getvalue() if is_utf16 else _content(path)
        ends = content.rstrip(b"\r\n").count(b"\n")
        # Unless a cell has several lines, or lines between rows are empty.
        above = ends - arrow.num_rows
        if above - header.n_titles in (-1, 0):
            places = np.arange(arrow.num_rows) + above + 2
            origin = replace(origin, places=places, place_words="line {}")
        if kept is not None:
            words = _gap_words(arrow, source, header, is_wide=is_wide)
            origin = replace(origin, gap_words=words)
    phrases += origin.phrases
    return arrow, replace(origin, python=python, phrases=phrases)


def _gap_words(
    arrow: Any, source: Any, header: Header, *, is_wide: bool
) -> dict[int, Counter[str]]:
    """Return what is written in cells of numbers that were read as missing."""
    import pyarrow as pa

    places = [
        place
        for place, column in enumerate(arrow.columns)
        if column.null_count and not pa.types.is_string(column.type)
    ]
    if not places:
        return {}
    written, _ = _parse_text(source, None, header, is_wide=is_wide)
    missing = {place: arrow.column(place).is_null() for place in places}
    cells = {p: written.column(p).filter(missing[p]).to_pylist() for p in places}
    return {p: Counter(c.strip() for c in cells[p] if c.strip()) for p in places}


def _content(path: Path, most: int = -1) -> bytes:
    """Return what is in a file, unpacked, or the beginning of it."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with explain_damage(path, EOFError, zlib.error), opened(path, "rb") as file:
        return bytes(file.read(most))


def _text_by_blocks(path: Path, request: Request) -> Table:
    import pyarrow as pa
    import pyarrow.csv

    layout = layout_of(path)
    with explain_damage(path, pa.ArrowException, UnicodeDecodeError):
        first = io.BytesIO(first_rows(path, layout))
        kept = request.beside()
        header = Header(layout.delimiter, layout.n_titles)
        head, origin = _parse_text(first, kept, header, is_wide=True)

    def read_columns(names: list[str]) -> Any:
        size = max(2**20, 4 * layout.row_bytes)
        options = pa.csv.ReadOptions(column_names=layout.names, block_size=size)
        convert = pa.csv.ConvertOptions(
            include_columns=names, column_types=dict.fromkeys(names, pa.string())
        )
        parse = _parse_options(layout.delimiter)
        with (
            explain_damage(path, pa.ArrowException, UnicodeDecodeError),
            open(path, "rb") as file,
        ):
            file.seek(layout.begin)
            return pa.csv.read_csv(file, options, parse, convert)

    def open_columns(names: list[str]) -> Matrix:
        return open_text(path, columns=names, drop_option="--drop-columns")

    return _by_blocks(head, request, origin, open_columns, read_columns)


def _parse_options(delimiter: str) -> Any:
    from pyarrow.csv import ParseOptions

    return ParseOptions(delimiter=delimiter, newlines_in_values=True)


def _parse_text(
    source: Any, kept: Collection[str] | None, header: Header, *, is_wide: bool
) -> tuple[Any, Origin]:
    """Return a table of pyarrow; columns of a file without a header are col1, ...

    Cells of the columns ``kept``, or of all if it is None, stay as they are written. Of
    its origin the options are told that ``pandas.read_csv`` needs beside the path.
    """
    import pyarrow as pa
    import pyarrow.csv

    delimiter = header.delimiter
    parse = _parse_options(delimiter)
    nulls = [*pa.csv.ConvertOptions().null_values, *MISSING]
    # A first column without a name is asked for by the name that it gets.
    as_text = [*(kept or ()), *[""] * ("Unnamed: 0" in (kept or ()))]
    cells = {"null_values": nulls, "column_types": dict.fromkeys(as_text, pa.string())}
    # A megabyte is parsed together; but a column has a cost of its own, so that wide
    # rows go by the many, and a cell may be longer.
    reading = {"encoding": "utf8", "block_size": LARGEST_BLOCK if is_wide else 2**20}
    reading["skip_rows"] = header.n_titles

    def read(names: list[str] | None = None, point: str = ".") -> Any:
        options = pa.csv.ReadOptions(column_names=names, **reading)
        convert = pa.csv.ConvertOptions(**cells, decimal_point=point)
        if hasattr(source, "seek"):
            source.seek(0)
        return pa.csv.read_csv(source, options, parse, convert)

    def read_first() -> Any:
        arrow = read()
        # Bytes that are not UTF-8 may be in names, which are decoded here, in text that
        # is asked for, or in other columns.
        arrow.column_names  # noqa: B018
        if any(map(pa.types.is_binary, arrow.schema.types)):
            raise pa.ArrowInvalid("invalid UTF8")
        return arrow

    def count_text(table: Any) -> int:
        return sum(map(pa.types.is_string, table.schema.types))

    arrow, phrases, python = None, [], f", sep={delimiter!r}" * (delimiter != ",")
    if header.n_titles:
        phrases.append(f"names of columns from line {header.n_titles + 1}")
        python += f", skiprows={header.n_titles}"
    while arrow is None:
        try:
            arrow = read_first()
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "straddling" in str(error) and reading["block_size"] != LARGEST_BLOCK:
                reading["block_size"] = LARGEST_BLOCK
            elif "utf" in str(error).lower() and reading["encoding"] == "utf8":
                reading["encoding"] = "cp1252"
                named = "as Windows-1252, since it is not UTF-8 (look at the names)"
                phrases.insert(0, named)
                python += ', encoding="cp1252"'
            else:
                raise
    names = None
    if all(is_number(name) for name in arrow.column_names):
        names = place_names(arrow.num_columns)
        arrow = read(names)
        python += f', header=None, names=[f"col{{i + 1}}" for i in range({len(names)})]'
    if kept is None:
        cells["column_types"] = dict.fromkeys(arrow.column_names, pa.string())
        return read(names), Origin(python, phrases)
    point = "."
    if delimiter == ";" and count_text(arrow) > 0:
        # Semicolons stand between cells where commas are decimal.
        other = read(names, ",")
        if count_text(other) < count_text(arrow):
            arrow, point = other, ","
            phrases.append("commas as decimal points")
            python += ', decimal=","'
    return arrow, Origin(python, phrases, point)


# A header that is cut or altered fails in the ways of Python's own parser, an archive
# that is damaged or encrypted in those of zipfile.
_HEADER_ERRORS = (ValueError, EOFError, SyntaxError, tokenize.TokenError)
_ZIP_ERRORS = (NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
_ARCHIVE_ERRORS = (*_HEADER_ERRORS, *_ZIP_ERRORS)


def _read_npy(path: Path, request: Request, memory: float) -> Table:
    request.refuse_names()
    with open(path, "rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise _damaged(path, "it is an archive of arrays; name it .npz.")
    with explain_damage(path, *_HEADER_ERRORS):
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    if X.nbytes > memory and X.ndim == 2 and X.flags.c_contiguous and X.size:
        notes = [Note("The data are read block by block."), *request.notes(None, None)]
        return request.order(numbered_table(request.source, as_matrix(X), notes=notes))
    with explain_damage(path, *_HEADER_ERRORS):
        X = np.load(path, allow_pickle=False)
    lines = ("import numpy as np", "", f"X = np.load({str(path)!r})")
    return _from_matrix(X, request, python=lines)


def _read_npz(path: Path, request: Request, memory: float) -> Table:
    """Read an archive of one array, of X and labels, or of a scipy.sparse matrix."""
    request.refuse_names(allow_label=True)
    if not zipfile.is_zipfile(path):
        raise _damaged(path, "it is no archive of arrays, or only a part of one")
    names = _from_archive(path)
    label = request.resolve(names if len(names) > 1 else ()).label
    if label is not None and label not in names:
        raise ValueError(
            f"--label-column {label!r}: {path} has no such array; it has "
            f"{quote_all(names)}."
        )
    labels = None if label is None else _from_archive(path, label)
    if "format" in names:
        with explain_damage(path, *_ARCHIVE_ERRORS, KeyError, TypeError, IndexError):
            stored = sp.load_npz(path)
            # Places beyond X would crash later.
            if hasattr(stored, "check_format"):
                stored.check_format(full_check=True)
            X = sp.csr_array(stored)
        call = f"X = scipy.sparse.load_npz({str(path)!r}).tocsr()"
        lines = ("import scipy.sparse", "", call)
        return _from_matrix(X, request, labels, label, is_sparse=True, python=lines)
    others = [name for name in names if name != label]
    if not others:
        raise ValueError(f"{path} holds no array beside {label!r}.")
    if len(others) > 1 and "X" not in others:
        raise ValueError(
            f"{path} holds several arrays ({quote_all(others)}); name the data X, or "
            "save it alone."
        )
    name = "X" if "X" in others else others[0]
    lines = ("import numpy as np", "", f"X = np.load({str(path)!r})[{name!r}]")
    return _from_matrix(_from_archive(path, name), request, labels, label, python=lines)


def _from_archive(path: Path, name: str | None = None) -> Any:
    """Return an array of an archive, of which no more is read, or all names."""
    # NumPy leaves a file that it opened itself open where it is cut off.
    with (
        explain_damage(path, *_ARCHIVE_ERRORS),
        open(path, "rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        # A member that is no array comes as bytes.
        return list(archive) if name is None else np.asarray(archive[name])


def _read_mtx(path: Path, request: Request, memory: float) -> Table:
    request.refuse_names()
    with explain_damage(path, ValueError, EOFError, zlib.error):
        X, is_sparse = read_matrix_market(path)
    read = f"X = scipy.io.mmread({str(path)!r}){'.tocsr()' * is_sparse}"
    lines = ("import scipy.io", "", read)
    return _from_matrix(X, request, is_sparse=is_sparse, python=lines)


def _from_matrix(
    X: Any,
    request: Request,
    labels: np.ndarray | None = None,
    label: str | None = None,
    *,
    is_sparse: bool = False,
    python: tuple[str, ...] = (),
) -> Table:
    """Return a table of a matrix whose columns have no names, with its labels."""
    source = request.source
    if X.ndim != 2:
        raise ValueError(f"{source} has shape {X.shape}; give rows by columns.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{source} holds {X.dtype} entries; give real numbers.")
    if labels is not None and labels.shape != X.shape[:1]:
        if request.label is not None:
            raise ValueError(
                f"--label-column {label!r}: {source} holds {labels.shape} labels for "
                f"{X.shape[0]} rows; give one for each row."
            )
        label = labels = None  # those of the fit, which nobody asked for
    table = numbered_table(
        source,
        X if X.dtype in (np.float32, np.float64) else X.astype(np.float64),
        labels=labels,
        notes=request.notes(label, None),
        is_sparse=is_sparse,
        python=python,
    )
    return request.order(table)


READERS: dict[str, Reader] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".parquet": _read_parquet,
    **dict.fromkeys((".xlsx", ".xlsm", ".jsonl", ".ndjson"), _read_whole),
    ".h5ad": read_h5ad,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mtx": _read_mtx,
}
LOADERS: dict[str, Loader] = {
    ".csv": _load_text,
    ".tsv": _load_text,
    ".parquet": _load_parquet,
    ".xlsx": _load_sheet,
    ".xlsm": _load_sheet,
    ".jsonl": _load_json_lines,
    ".ndjson": _load_json_lines,
}
