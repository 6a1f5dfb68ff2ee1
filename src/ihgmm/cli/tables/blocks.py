"""Tables that are too large for memory, read block by block."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.columns.beside import find_ids, row_facts
from ihgmm.cli.tables.columns.choosing import choose_columns
from ihgmm.cli.tables.files.parquet_files import load_parquet_columns, sample_of
from ihgmm.cli.tables.files.raw_table import RawTable, explain_damage
from ihgmm.cli.tables.request import BESIDE, Request
from ihgmm.cli.tables.table import RowFacts, Table
from ihgmm.matrix import Matrix, as_matrix


def table_by_blocks(path: Path, request: Request) -> Table | None:
    """Return a Parquet table that is read block by block; None if it is small."""
    from pyarrow import parquet

    with explain_damage(path), path.open("rb") as file:
        stored = parquet.ParquetFile(file)
        n_rows = stored.metadata.num_rows
        n_bytes = 8 * n_rows * stored.metadata.num_columns
        if n_bytes <= request.memory or n_rows == 0:
            return None
        names_in_file = stored.schema_arrow.names
        sample = sample_of(stored)

    # Columns are chosen by the sample, and then read for all rows.
    table = choose_columns(sample, request)
    _check_columns(path, names_in_file, table.column_names)

    how_read = notes.BY_BLOCKS
    if not (request.columns or request.features):
        how_read = notes.columns_chosen_by(len(sample.frame))

    return replace(
        table,
        X=_columns_on_disk(path, table.column_names),
        rows=_facts_of_all_rows(path, request, sample, n_rows),
        notes=[how_read, *table.notes],
    )


def _check_columns(path: Path, names_in_file: list[str], names: list[str]) -> None:
    """Raise unless each column is one of the file, by a name of its own."""
    unique = set(names_in_file)
    if len(unique) < len(names_in_file) or not set(names) <= unique:
        raise ValueError(
            f"{path}: categories, or two columns of one name, are read in memory "
            "alone; raise --memory."
        )


def _columns_on_disk(path: Path, names: list[str]) -> Matrix:
    """Return the columns of a file as a matrix that is read block by block."""
    import pyarrow as pa
    from pyarrow import dataset

    rows = dataset.dataset(path, format="parquet")
    schema = pa.schema([rows.schema.field(name) for name in names])
    return as_matrix(rows.replace_schema(schema))


def _facts_of_all_rows(
    path: Path, request: Request, sample: RawTable, n_rows: int
) -> RowFacts:
    """Return what is known of rows beside their features, which is read whole."""
    request, _ = find_ids(sample, request)
    names_beside = [name for _, name in request.named_columns(BESIDE)]
    beside = load_parquet_columns(path, names_beside)
    places = np.arange(1, n_rows + 1)
    return row_facts(beside.frame, request, ids=places, places=places)
