"""Arrays and sparse matrices in files, whose columns have no names."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.loading import damaged, explain_damage
from ihgmm.cli.tables.table import Note, Request, Table, quote_all
from ihgmm.matrix import as_matrix


def read_npy(path: Path, request: Request, memory: float) -> Table:
    """Read an array, or leave it on disk if it would take more bytes than memory."""
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise damaged(path, "it is an archive of arrays; name it .npz.")
    with explain_damage(path):
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    may_stay = X.ndim == 2 and X.flags.c_contiguous and not request.transpose
    if X.nbytes > memory and may_stay and X.size:
        note = Note("The data are read block by block.")
        return request.numbered(as_matrix(X), [note])
    return _from_matrix(np.array(X), request)


def read_npz(path: Path, request: Request, memory: float) -> Table:
    """Read an archive of one array, or of X among others, or a scipy.sparse matrix."""
    if not zipfile.is_zipfile(path):
        raise damaged(path, "it is no archive of arrays, or only a part of one")
    # NumPy leaves a file that it opened itself open where it is cut off.
    with explain_damage(path), path.open("rb") as file:
        with np.load(file, allow_pickle=False) as archive:
            names = list(archive)
            name = "X" if "X" in names else names[0] if len(names) == 1 else None
            # A member that is no array comes as bytes.
            X: Any = None if name is None else np.asarray(archive[name])
        if is_sparse := X is None and "format" in names:
            X = sp.load_npz(path)
            if hasattr(X, "check_format"):
                X.check_format(full_check=True)  # places beyond X crash later
            X = sp.csr_array(X)
    if X is None:
        raise ValueError(
            f"{path} holds several arrays ({quote_all(names)}); name the data X, or "
            "save it alone."
        )
    return _from_matrix(X, request, is_sparse)


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


def _from_matrix(X: Any, request: Request, is_sparse: bool = False) -> Table:
    """Return a table of a matrix whose columns have no names."""
    source = request.source
    if X.ndim != 2:
        raise ValueError(f"{source} has shape {X.shape}; give rows by columns.")
    if 0 in X.shape:
        raise ValueError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{source} holds {X.dtype} entries; give real numbers.")
    if request.transpose:
        X = sp.csr_array(X.T) if is_sparse else X.T
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return request.numbered(X, is_sparse=is_sparse)
