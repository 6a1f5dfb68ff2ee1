"""Arrays and sparse matrices in files, whose columns have no names."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.table import Note, Request, Table, quote_all
from ihgmm.matrix import as_matrix
from ihgmm.matrix.faults import damaged, explain_damage
from ihgmm.matrix.files import HEADER_ERRORS


def read_npy(path: Path, request: Request, memory: float) -> Table:
    """Read an array, or leave it on disk if it would take more bytes than memory."""
    with open(path, "rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise damaged(path, "it is an archive of arrays; name it .npz.")
    with explain_damage(path, *HEADER_ERRORS):
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
    # An archive that is damaged or encrypted fails in the ways of zipfile.
    zip_errors = (NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
    errors = (*HEADER_ERRORS, *zip_errors, KeyError, IndexError)
    # NumPy leaves a file that it opened itself open where it is cut off.
    with explain_damage(path, *errors), open(path, "rb") as file:
        _check_sizes(file)
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
    free = []
    try:
        info = Path("/proc/meminfo").read_text()
        free.append(int(info.partition("MemAvailable:")[2].split()[0]) * 1024)
    except (OSError, ValueError, IndexError):  # not on Linux
        if hasattr(os, "sysconf"):
            free.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:  # what a container may have
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        free.append(most - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # no container, or no limit
        pass
    return float(max(0, min(free, default=8e9)))  # of a small machine, if all is silent


def _check_sizes(file: BinaryIO) -> None:
    """Raise if arrays claim more than their entries hold, or than fits in memory."""
    with zipfile.ZipFile(file) as archive:
        entries = [e for e in archive.infolist() if e.filename.endswith(".npy")]
        total, free = sum(entry.file_size for entry in entries), free_memory()
        if total > free:
            raise ValueError(
                f"its arrays claim {total / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB of "
                "memory are free; save large data as .npy, which is read by blocks."
            )
        for entry in entries:
            with archive.open(entry) as part:
                if part.read(6) != np.lib.format.MAGIC_PREFIX:
                    continue  # bytes that are no array
                part.seek(0)
                major, _ = np.lib.format.read_magic(part)
                read = (
                    "read_array_header_1_0" if major == 1 else "read_array_header_2_0"
                )
                shape, _, dtype = getattr(np.lib.format, read)(part)
            if math.prod(shape) * dtype.itemsize > entry.file_size:
                raise ValueError(f"{entry.filename} claims shape {shape}, and has less")
    file.seek(0)


def _from_matrix(X: Any, request: Request, is_sparse: bool = False) -> Table:
    """Return a table of a matrix whose columns have no names."""
    source = request.source
    if X.ndim != 2:
        raise ValueError(f"{source} has shape {X.shape}; give rows by columns.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{source} holds {X.dtype} entries; give real numbers.")
    if request.transpose:
        X = sp.csr_array(X.T) if is_sparse else X.T
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return request.numbered(X, is_sparse=is_sparse)
