"""Frames and arrays as libraries read them, and what all readers of files need."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm.cli.tables.names import unique_names
from ihgmm.cli.tables.table import Note

if TYPE_CHECKING:
    import pandas as pd

# What stands between cells of text, by the suffix of a file.
DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class RawTable:
    """A table as a library reads it, and how it was read."""

    frame: "pd.DataFrame"  # whose index says where rows are; names are unique
    phrases: Sequence[str] = ()  # such as "names of columns from line 3", to be told
    point: str = "."  # of decimals
    is_typed: bool = False  # text is text, even if it looks like numbers
    place_words: str = "row {}"  # with the place of a row in the braces


@dataclass(frozen=True)
class RawArray:
    """An array as a library reads it: all of its columns are features."""

    X: Any  # an array, sparse, or a Matrix that is on disk
    obs: "pd.DataFrame | None" = None  # what is known of its rows
    names: list[str] | None = None  # of its columns
    labels: np.ndarray | None = None  # known ones of its rows
    notes: Sequence[Note] = ()  # on how it was read
    is_sparse: bool = False  # entries that are not stored are 0
    is_mixed: bool = False  # columns may be in different units


def name_columns(
    frame: "pd.DataFrame", names: Sequence[object], first_place: int = 1
) -> "pd.DataFrame":
    """Return a frame with unique names, and rows that count from the first place."""
    frame.index = np.arange(first_place, first_place + len(frame))
    texts = ["" if name is None else str(name) for name in names]
    return frame.set_axis(unique_names(texts), axis=1)


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format, with that of compression left out."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def check_size(path: Path, memory: int, n_bytes: int) -> None:
    """Raise if there is no room for so many bytes, which a file holds or claims to."""
    if n_bytes <= memory:
        return

    remedy = "raise --memory"
    if suffix_of(path) in DELIMITERS:
        remedy += (
            ", or convert it once to Parquet, and give parquet/part-0.parquet: "
            'python -c "import pyarrow.dataset as d; d.write_dataset(d.dataset('
            f"{str(path)!r}, format='csv'), 'parquet', format='parquet')\""
        )

    raise ValueError(
        f"{path} is too large for {memory / 1e9:.3g} GB of memory; {remedy}."
    )


@contextmanager
def explain_damage(path: Path, where: str = "") -> Iterator[None]:
    """Say that a file is damaged, whatever a library raises; our work is not inside."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) not in (None, errno.EINVAL):
            raise  # the system's: a disk is at fault, or a permission

        reason = " ".join(str(error).split())[:300]
        if "pickle" in reason:  # NumPy's advice is to allow it
            reason = "it does not hold an array of numbers"
        raise damaged(path, where + reason) from error


def damaged(path: Path, reason: str) -> ValueError:
    """Return the error that a file is not what its name says."""
    suffix = suffix_of(path)
    hint = ""
    if suffix == ".txt":
        hint = (
            "; texts need a CSV with a column of them, whose name --text-column takes"
        )
    return ValueError(f"{path} cannot be read as {suffix[1:]}: {reason}{hint}")
