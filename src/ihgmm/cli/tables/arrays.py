"""Arrays and sparse matrices in files, whose columns have no names."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.loading import explain_damage
from ihgmm.cli.tables.table import Note, Request, Table, quote_all
from ihgmm.matrix import as_matrix


def read_array(path: Path, request: Request, memory: float) -> Table:
    """Read an array, a scipy.sparse matrix, or the only array of an archive, or its X.

    A single array stays on disk if it would take more bytes than ``memory``.
    """
    names, name, is_sparse = [], None, False
    with explain_damage(path), path.open("rb") as file:
        is_archive = file.read(2) == b"PK"
        file.seek(0)
        # NumPy leaves an archive that it opened itself open where it is cut off.
        whence = file if is_archive else path
        X: Any = np.load(whence, mmap_mode="r", allow_pickle=False)
        if is_archive:
            with X as archive:
                names = archive.files
                name = "X" if "X" in names else names[0] if len(names) == 1 else None
                is_sparse = name is None and "format" in names
                # A member that is no array comes as bytes.
                X = None if name is None else np.asarray(archive[name])
        if is_sparse:
            X = sp.load_npz(path)
            if hasattr(X, "check_format"):
                X.check_format(full_check=True)  # places beyond X crash later
            X = sp.csr_array(X)
    source = request.source
    if X is None:
        raise ValueError(
            f"{source} holds several arrays ({quote_all(names)}); name the data X, or "
            "save it alone."
        )
    if X.ndim != 2:
        raise ValueError(f"{source} has shape {X.shape}; give rows by columns.")
    if 0 in X.shape:
        raise ValueError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{source} holds {X.dtype} entries; give real numbers.")
    may_stay = not (names or request.transpose) and X.flags.c_contiguous
    if may_stay and X.nbytes > memory:
        note = Note("The data are read block by block.")
        return request.numbered(as_matrix(X), [note])
    if request.transpose:
        X = sp.csr_array(X.T) if is_sparse else X.T
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = X.astype(kind) if is_sparse else np.array(X, kind)
    return request.numbered(X, is_sparse=is_sparse)


def free_memory() -> float:
    """Return the bytes of memory that this process could have, as far as is known."""
    free = [8e9]  # of a small machine
    with suppress(OSError, ValueError, IndexError):  # as Linux tells it
        info = Path("/proc/meminfo").read_text()
        free = [1024 * int(info.partition("MemAvailable:")[2].split()[0])]
    with suppress(OSError, ValueError):  # what a container may have
        names = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
        most, used = (int(Path(name).read_text()) for name in names)
        free.append(most - used)
    return max(0.0, min(free))
