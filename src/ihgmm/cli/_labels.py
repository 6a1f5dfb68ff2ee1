"""The file of labels that several commands write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._tables import Table, like_a_formula, quoted, write_csv

__all__ = ["write_labels"]


def write_labels(
    path: Path, table: Table, labels: np.ndarray, scales: Any | None
) -> list[str]:
    """Write a line for each row; return what is to be said about the file.

    Ids stay as they are, so that the file can be joined with the data by them.
    """
    columns: dict[str, Any] = {"cluster": labels}
    if scales is not None:
        columns["scale"] = [f"{scale:.6g}" for scale in scales]
    # A name stands for one column only.
    heading = f"id_{table.id_name}" if table.id_name in columns else table.id_name
    write_csv(path, [heading, *columns], [table.ids, *columns.values()])
    risky = [cell for cell in (heading, *table.ids) if like_a_formula(cell)]
    if not risky:
        return []
    one = len(risky) == 1
    return [
        f"{len(risky):,} cell{'s' * (not one)} of column {quoted(heading)} in {path} "
        f"begin{'s' * one} like a formula, the first is {quoted(risky[0])}. Ids are "
        "written as they are: in a spreadsheet, import that column as text."
    ]
