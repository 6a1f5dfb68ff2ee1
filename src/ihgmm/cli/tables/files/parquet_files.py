"""Parquet files, read whole or a few rows at a time."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ihgmm.cli.tables.files.raw_table import RawTable, explain_damage, name_columns
from ihgmm.cli.tables.request import Request

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

# A sample of a large file: four stretches, each elsewhere in its group of rows, because
# rows may be sorted by month.
STRETCH_ROWS = 2**11
STRETCHES = (0.125, 0.375, 0.625, 0.875)


def load_parquet(path: Path, request: Request) -> RawTable:
    """Read a Parquet file."""
    from pyarrow import parquet

    with explain_damage(path), path.open("rb") as file:
        return from_arrow(parquet.ParquetFile(file).read())


def load_parquet_columns(path: Path, names: Sequence[str]) -> RawTable:
    """Read some columns of a Parquet file."""
    from pyarrow import parquet

    return from_arrow(parquet.read_table(path, columns=names))


def sample_of(stored: "ParquetFile") -> RawTable:
    """Return some rows of a Parquet file, to choose columns by."""
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    for share in STRETCHES:
        group = int(share * stored.metadata.num_row_groups)
        n_rows = stored.metadata.row_group(group).num_rows
        first = int(share * n_rows) // STRETCH_ROWS
        batches += islice(stored.iter_batches(STRETCH_ROWS, [group]), first, first + 1)
    return from_arrow(pa.Table.from_batches(batches))


def from_arrow(arrow: "pa.Table") -> RawTable:
    """Return a table of pyarrow, whose text is text; two columns may have one name."""
    frame = arrow.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    return RawTable(name_columns(frame, arrow.column_names), is_typed=True)
