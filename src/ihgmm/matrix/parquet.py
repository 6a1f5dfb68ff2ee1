"""Tables in Parquet files, which are converted to rows of numbers on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from ihgmm.matrix.stored import Stored, rows_of_file


def open_parquet(X: Any, *, batch_bytes: int = 2**24) -> Stored:
    """Return the rows of a Parquet data set of pyarrow; float32 if all columns are.

    They are converted once, about ``batch_bytes`` at a time, to a temporary file
    without a name. The system removes it when the matrix goes or the process ends.
    """
    from pyarrow import types

    fragments = list(X.get_fragments())

    if not fragments or not hasattr(fragments[0], "split_by_row_group"):
        raise TypeError(
            f"X is of type {type(X).__name__} of pyarrow, not in Parquet files; check "
            "its path, or write it to some: pyarrow.dataset.write_dataset(X, path, "
            "format='parquet')."
        )

    _check_columns_are_numbers(X.schema)
    _check_files_are_alike(fragments, X.schema)

    names = X.schema.names
    is_single = all(types.is_float32(field.type) for field in X.schema)
    dtype = np.dtype(np.float32 if is_single else np.float64)

    folder = _folder_for_large_files()
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    read = rows_of_file(file, 0, len(names), dtype)  # closes the file, also on errors

    n_bytes = 0
    try:
        batch_size = max(1, batch_bytes // (8 * len(names)))
        for rows in _batches(fragments, names, batch_size):
            n_bytes += file.write(np.ascontiguousarray(rows, dtype).data)
        file.flush()
    except OSError as error:
        raise OSError(
            error.errno,
            f"{folder} has no room for a table of numbers; name another folder in the "
            "environment variable TMPDIR",
        ) from error

    n_rows = n_bytes // (dtype.itemsize * len(names))
    more_files = ", ..." if len(fragments) > 1 else ""
    return Stored(
        read,
        (n_rows, len(names)),
        dtype,
        names=names,
        source=f"Parquet data set {fragments[0].path}{more_files}",
    )


def _check_columns_are_numbers(schema: Any) -> None:
    from pyarrow import types

    def is_number(kind: Any) -> bool:
        return bool(
            types.is_floating(kind)
            or types.is_integer(kind)
            or types.is_boolean(kind)
            or types.is_decimal(kind)
        )

    numbers = [field.name for field in schema if is_number(field.type)]
    not_numbers = [name for name in schema.names if name not in numbers]
    if not not_numbers:
        return

    # Indices of pandas are not shown.
    numbers = [name for name in numbers if not name.startswith("__index_level_")]
    shown = ", ".join(map(repr, numbers[:30])) + ", ..." * (len(numbers) > 30)
    raise ValueError(
        f"X has columns that are not numbers: {', '.join(not_numbers[:5])}. Name those "
        "that measure something, no ids, dates or codes, as in "
        f"ihgmm.open_data(path, columns=[...]). Numbers are in {shown}."
    )


def _check_files_are_alike(fragments: list[Any], schema: Any) -> None:
    """Raise unless all files have the columns of the schema, of the same types."""
    for fragment in fragments:
        types = {field.name: field.type for field in fragment.physical_schema}
        differing = [
            field.name for field in schema if types.get(field.name) != field.type
        ]

        if differing:
            raise ValueError(
                f"X is a Parquet data set whose files differ: column {differing[0]!r} "
                f"of {fragment.path} is not as in the first. Write them again alike."
            )


def _folder_for_large_files() -> str:
    """Return the folder that TMPDIR names, or one that is on a disk."""
    folder = tempfile.gettempdir()
    if folder == "/tmp" and os.path.isdir("/var/tmp"):
        return "/var/tmp"  # where /tmp may be in memory

    return folder


def _batches(fragments: list[Any], names: list[str], size: int) -> Iterator[np.ndarray]:
    """Yield rows of the files, so many at a time; NaN where nothing is in a place."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    for fragment in fragments:
        try:
            with fragment.open() as source:
                # With a small buffer no column of a row group is read whole.
                file = ParquetFile(
                    source,
                    metadata=fragment.metadata,
                    buffer_size=2**16,
                    pre_buffer=False,
                )

                for batch in file.iter_batches(size, columns=names):
                    yield _rows_of_batch(batch, names)
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{fragment.path} cannot be read: {error}") from error


def _rows_of_batch(batch: Any, names: list[str]) -> np.ndarray:
    """Return the columns of a record batch beside each other, as one array."""
    import pyarrow as pa
    from pyarrow.types import is_boolean, is_decimal

    columns = batch.select(names).columns
    for i, column in enumerate(columns):
        # Tensors know floats and integers only.
        if is_boolean(column.type) or is_decimal(column.type):
            columns[i] = column.cast(pa.float64(), safe=False)

    table = pa.RecordBatch.from_arrays(columns, names=names)
    rows: np.ndarray = table.to_tensor(null_to_nan=True, row_major=True).to_numpy()
    return rows
