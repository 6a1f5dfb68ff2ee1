"""What is asked of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ihgmm._tables.table import TableError, listed, quoted

__all__ = ["Wanted"]


@dataclass(frozen=True)
class Wanted:
    """What is asked of the columns of a table; see :func:`ihgmm._tables.read_table`."""

    label: str | None
    ids: str | None
    columns: Sequence[str]
    dropped: Sequence[str]
    features: Sequence[str] | None
    usual_label: str | None = None
    usual_ids: str | None = None

    def usual(self) -> tuple[str | None, str | None]:
        """Return the usual columns of labels and ids that are not features."""
        usual = (self.usual_label, self.usual_ids)
        label, ids = (None if n in (self.features or ()) else n for n in usual)
        return label, ids

    def settled(self, names: Sequence[str]) -> Wanted:
        """Return what is asked of data with these names: the usual, where it is."""
        label, ids = (name if name in names else None for name in self.usual())
        return replace(
            self,
            label=label if self.label is None else self.label,
            ids=ids if self.ids is None else self.ids,
        )

    def notes(self, found: Wanted) -> list[str]:
        """Say which usual columns were taken, and if there are no ids."""
        told = []
        if self.ids is None and found.ids is not None:
            told.append(f"Took ids from column {quoted(found.ids)}, as the fit did.")
        elif self.usual_ids is not None and found.ids is None:
            told.append(
                f"There is no column {quoted(self.usual_ids)}, from which the fit took "
                "ids; rows go by their number."
            )
        if self.label is None and found.label is not None:
            told.append(
                f"Took known labels from {quoted(found.label)}, as the fit did."
            )
        return told

    def refuse_names(self, source: str, *, also_label: bool) -> None:
        """Raise if a column is named of data whose columns have no names."""
        given = {
            "--label-column": self.label if also_label else None,
            "--id-column": self.ids,
            "--columns": ",".join(self.columns) or None,
            "--drop-columns": ",".join(self.dropped) or None,
        }
        for option, name in given.items():
            if name is not None:
                raise TableError(
                    f"{option} {quoted(name)}: {source} has no named columns; that "
                    "option is for CSV, TSV and Parquet files."
                )

    def check(self, source: str, names: list[str]) -> None:
        """Raise if the table has not the columns that are named."""
        given = {
            "--label-column": [] if self.label is None else [self.label],
            "--id-column": [] if self.ids is None else [self.ids],
            "--columns": self.columns,
            "--drop-columns": self.dropped,
        }
        for option, chosen in given.items():
            for name in chosen:
                if name not in names:
                    raise TableError(
                        f"{option} {quoted(name)}: {source} has no such column; it has "
                        f"{listed(names)}."
                    )
        used, why = self.columns, "is in --columns"
        if self.features is not None:
            used, why = self.features, "is one that the model was fitted on"
        for option in ("--label-column", "--id-column"):
            for name in given[option]:
                if name in used:
                    raise TableError(
                        f"{option} {quoted(name)}: that column {why}; name another, or "
                        "leave the option out."
                    )
        missing = [name for name in self.features or () if name not in names]
        if missing:
            raise TableError(
                f"{source} lacks {len(missing)} of the {len(self.features or ())} "
                f"columns that the model was fitted on: {listed(missing)}. It has "
                f"{listed(names)}."
            )
