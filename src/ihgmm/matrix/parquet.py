"""Rows of Parquet files, converted once to a temporary file of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.matrix.base import float_type
from ihgmm.matrix.faults import explain_damage
from ihgmm.matrix.stored import Stored, in_temporary_file


def open_parquet(X: Any, dtype: Any = None, *, batch_bytes: int = 2**24) -> Stored:
    """Return the rows of a Parquet data set of pyarrow; float32 if all columns are.

    About ``batch_bytes`` are decoded together: many small row groups, or a small part
    of a large one.
    """
    import pyarrow as pa
    from pyarrow import types

    fragments = list(X.get_fragments())
    if not all(hasattr(fragment, "split_by_row_group") for fragment in fragments):
        raise TypeError(
            f"X is of type {type(X).__name__} of pyarrow, not in Parquet files; open "
            "CSV files by ihgmm.open_data(path), and write others to Parquet: "
            "pyarrow.dataset.write_dataset(X, path, format='parquet')."
        )
    if not fragments:
        raise ValueError(
            "X is a Parquet data set without files; check the path it was opened by."
        )
    numbers = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    wrong = [
        field.name
        for field in X.schema
        if not any(is_kind(field.type) for is_kind in numbers)
    ]
    if wrong:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(wrong[:5])}. Leave them "
            f"out: ihgmm.open_data(path, drop_columns={wrong[:5]})."
        )
    for fragment in fragments:
        with explain_damage(Path(fragment.path), pa.ArrowException):
            schema = fragment.physical_schema
        columns = {field.name: field.type for field in schema}
        for field in X.schema:
            if columns.get(field.name) != field.type:
                raise ValueError(
                    f"X is a Parquet data set whose files differ: column {field.name!r}"
                    f" is {field.type} in the first and "
                    f"{columns.get(field.name, 'not there')} in {fragment.path}. Write "
                    "it again with the same columns."
                )
    names = list(X.schema.names)
    if dtype is None:
        is_single = all(types.is_float32(field.type) for field in X.schema)
        dtype = np.float32 if is_single else np.float64
    others = " and others" * (len(fragments) > 1)
    source = f"Parquet data set {fragments[0].path}{others}"
    batches = _batches(fragments, names, max(1, batch_bytes // (8 * len(names))))
    return in_temporary_file(batches, names, float_type(dtype), source)


def _batches(
    fragments: list[Any], names: list[str], n_rows: int
) -> Iterator[np.ndarray]:
    """Yield rows of the files, so many at a time."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    for fragment in fragments:
        with (
            explain_damage(Path(fragment.path), pa.ArrowException),
            fragment.open() as source,
        ):
            # With a small buffer no column of a row group is read whole.
            file = ParquetFile(
                source, metadata=fragment.metadata, buffer_size=2**16, pre_buffer=False
            )
            for batch in file.iter_batches(n_rows, columns=names):
                # Tensors know floats and integers only.
                columns = [
                    column.cast(pa.float64(), safe=False)
                    if pa.types.is_boolean(column.type)
                    or pa.types.is_decimal(column.type)
                    else column
                    for column in batch.select(names).columns
                ]
                table = pa.RecordBatch.from_arrays(columns, names=names)
                # Nothing in a place is NaN, which the checks of the data will name.
                yield table.to_tensor(null_to_nan=True, row_major=True).to_numpy()
