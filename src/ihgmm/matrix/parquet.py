"""Rows of Parquet files, decoded one batch after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from ihgmm.matrix.stored import Stored, unchanged


def open_parquet(X: Any, *, batch_bytes: int = 2**24) -> Stored:
    """Return the rows of a Parquet data set of pyarrow.

    About ``batch_bytes`` are decoded together. Calls for fewer rows cost more than the
    decoding: 200,000 rows of 10 columns in groups of 10 rows take 1.6 s so, 18 s group
    by group, and 8.6 s with pyarrow.parquet.read_table.
    """
    import pyarrow as pa

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
    names = list(X.schema.names)
    kinds = pa.types
    numbers = (kinds.is_floating, kinds.is_integer, kinds.is_boolean, kinds.is_decimal)
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
    narrow = all(pa.types.is_float32(field.type) for field in X.schema)
    kind = np.dtype(np.float32 if narrow else np.float64)
    for fragment in fragments:
        _check_fragment(fragment, X.schema)
    rows = _Rows(fragments, names, kind, batch_bytes)
    others = " and others" * (len(fragments) > 1)
    return Stored(
        rows.read,
        (rows.n_rows, len(names)),
        kind,
        step=rows.step,
        names=names,
        source=f"Parquet data set {fragments[0].path}{others}",
    )


class _Rows:
    """The rows of Parquet files, in a stream that goes on where it was left.

    A batch may hold many small row groups, or a small part of a large one: pages of a
    row group are decoded in order, and only the necessary ones are in memory.
    Rows before those of the stream, and rows far behind, start it anew at their row
    group.
    """

    def __init__(
        self, fragments: list[Any], names: list[str], kind: np.dtype, batch_bytes: int
    ) -> None:
        self.fragments, self.names, self.kind = fragments, names, kind
        # The file, the number in it and the rows of each row group that has rows.
        groups = [
            (i, group, count)
            for i, metadata in enumerate(fragment.metadata for fragment in fragments)
            for group in range(metadata.num_row_groups)
            if (count := metadata.row_group(group).num_rows) > 0
        ]
        columns = np.array(groups, dtype=np.int64).reshape(-1, 3).T
        self.file_of, self.number_of, counts = columns
        self.edges = np.concatenate([[0], np.cumsum(counts)])
        self.n_rows = int(self.edges[-1])
        row = max(1, len(names) * kind.itemsize)
        self.batch = max(1, batch_bytes // row)
        # To start the stream costs about as much as an eighth of a batch.
        largest = int(counts.max(initial=1))
        self.step = max(largest, min(self.batch // 8, self.n_rows))
        self.checks = [_check_file(fragment) for fragment in fragments]
        self.lock = Lock()  # two threads may share the matrix
        self._stop()

    def _stop(self) -> None:
        self.stream: Iterator[np.ndarray] = iter(())
        self.at, self.ready = 0, np.empty((0, len(self.names)), dtype=self.kind)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return some rows as a new array."""
        found = np.empty((stop - start, len(self.names)), dtype=self.kind)
        if len(found) == 0:
            return found
        with self.lock:
            try:
                self._move_to(start)
                done = 0
                while done < len(found):
                    part = self._next(len(found) - done)
                    found[done : done + len(part)] = part
                    done += len(part)
            except BaseException:
                self._stop()
                raise
            if self.at == self.n_rows:
                self._stop()  # nor is the last file kept open
        return found

    def _move_to(self, row: int) -> None:
        group = int(np.searchsorted(self.edges, row, side="right")) - 1
        behind = int(self.edges[group]) - self.at > self.batch
        if self.at == 0 or row < self.at or behind:
            self._stop()
            self.at, self.stream = int(self.edges[group]), self._batches(group)
        while self.at < row:
            self._next(row - self.at)

    def _next(self, most: int) -> np.ndarray:
        """Return the next rows of the stream, as many as are ready."""
        while len(self.ready) == 0:
            try:
                self.ready = next(self.stream)
            except StopIteration:
                raise EOFError(f"rows end at {self.at}, not {self.n_rows}") from None
        part, self.ready = self.ready[:most], self.ready[most:]
        self.at += len(part)
        return part

    def _batches(self, group: int) -> Iterator[np.ndarray]:
        """Yield all rows from a row group on, in batches that do not cross files."""
        from pyarrow.parquet import ParquetFile

        files = self.file_of[group:]
        cuts = [0, *(np.flatnonzero(np.diff(files)) + 1).tolist(), len(files)]
        for first, last in pairwise(cuts):
            file, fragment = files[first], self.fragments[files[first]]
            groups = self.number_of[group + first : group + last].tolist()
            with fragment.open() as source:
                # With a small buffer no column of a row group is read whole.
                parquet = ParquetFile(
                    source,
                    metadata=fragment.metadata,
                    buffer_size=2**16,
                    pre_buffer=False,
                )
                for batch in parquet.iter_batches(
                    self.batch, row_groups=groups, columns=self.names
                ):
                    self.checks[file]()
                    yield self._numbers(batch.select(self.names))

    def _numbers(self, batch: Any) -> np.ndarray:
        import pyarrow as pa

        # Tensors know floats and integers only.
        columns = [
            column.cast(pa.float64(), safe=False)
            if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type)
            else column
            for column in batch.columns
        ]
        batch = pa.RecordBatch.from_arrays(columns, names=self.names)
        # Nothing in a place is NaN, which the checks of the data will name.
        tensor = batch.to_tensor(null_to_nan=True, row_major=True)
        return np.asarray(tensor.to_numpy().astype(self.kind, copy=False))


def _check_file(fragment: Any) -> Any:
    """Return a check that a file of this machine is not written to."""
    from pyarrow.fs import LocalFileSystem

    local = isinstance(fragment.filesystem, LocalFileSystem)
    return unchanged(fragment.path if local else None, settled=True)


def _check_fragment(fragment: Any, schema: Any) -> None:
    """Raise if a file of a data set has other columns than the first one."""
    found = {field.name: field.type for field in fragment.physical_schema}
    for field in schema:
        if found.get(field.name) != field.type:
            kind = found.get(field.name, "not there")
            raise ValueError(
                f"X is a Parquet data set whose files differ: column {field.name!r} is "
                f"{field.type} in the first and {kind} in {fragment.path}. Write it "
                "again with the same columns."
            )
