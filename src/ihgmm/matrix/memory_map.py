"""Memory maps of NumPy, whose rows are read from their file."""

from __future__ import annotations

import mmap
import os

import numpy as np

from ihgmm.matrix.stored import Stored, check_unchanged, rows_of_file


def open_memory_map(X: np.memmap) -> Stored | None:
    """Return the rows of a map as its file has them; None for what is in memory.

    The pages of the map are not touched: where its file is cut short, that would end
    the process.
    """
    pages: mmap.mmap | None = getattr(X, "_mmap", None)
    if pages is None:
        return None

    # The map begins at a page, which may be before the array.
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    end = begin + len(pages)
    if pages.size() < end:
        raise OSError(
            f"The file of the memory map {X.filename} now ends at byte {pages.size()}, "
            f"not {end}; write it and open it again."
        )

    is_by_rows = X.ndim == 2 and X.size > 0 and X.flags.c_contiguous
    if X.mode not in ("r", "r+") or not is_by_rows:
        return None

    try:
        file = open(X.filename or "", "rb", buffering=0)  # noqa: SIM115
    except OSError:  # it was deleted, or has no name
        return None

    if os.fstat(file.fileno()).st_size != pages.size():  # another has its name
        file.close()
        return None

    offset_in_map = X.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    source = f"memory map {X.filename}"
    return Stored(
        rows_of_file(file, begin + offset_in_map, X.shape[1], X.dtype),
        X.shape,
        X.dtype,
        check=check_unchanged(file.fileno(), source, settled=X.mode == "r"),
        source=source,
    )
