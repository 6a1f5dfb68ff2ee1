"""A header and arrays in one file that is safe to read.

The file is a zip archive of ``header.json`` and one ``.npy`` for each array. Nothing in
it is compressed, so that no file unpacks to more than its own size; nothing in it is
pickled, so that nothing can run.
"""

from __future__ import annotations

import io
import json
import math
import os
import tokenize
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["StorageError", "pack", "unpack"]

HEADER = "header.json"
TYPES = ("<f4", "<f8", "<i8", "|b1")
"""What an array may hold."""
MOST_MEMBERS = 64
"""A model has a dozen arrays; files with more than this are not looked at."""
UNREADABLE = (ValueError, TypeError, SyntaxError, RecursionError, tokenize.TokenError)
"""What NumPy raises at the header of an array that makes no sense."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member: the same model gives the same bytes."""


class StorageError(ValueError):
    """A file or a model that cannot be used; the message says why and what to do."""


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the content of a file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, EPOCH), json.dumps(header, indent=1))
        for name, array in arrays.items():
            stream = io.BytesIO()
            kind = "<i8" if array.dtype.kind in "iu" else array.dtype.newbyteorder("<")
            plain = array.astype(kind, order="K", copy=False)
            np.lib.format.write_array(stream, plain, (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", EPOCH), stream.getvalue())
    return content.getvalue()


def unpack(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file, or say why not.

    Raises
    ------
    StorageError
        If the file is cut off, damaged or something else, or holds anything but
        numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_members(path, members, os.path.getsize(path))
            raw = {member.filename: archive.read(member) for member in members}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise StorageError(
            f"{path} is no model, or only a part of one ({error}); save it again."
        ) from error
    if HEADER not in raw:
        raise StorageError(f"{path} is no model: it has no {HEADER}.")
    try:
        header = json.loads(raw.pop(HEADER))
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path}: its {HEADER} cannot be read ({error}).") from error
    if not isinstance(header, dict):
        raise StorageError(f"{path}: its {HEADER} is not an object.")
    arrays = {
        name.removesuffix(".npy"): _array(path, name, content)
        for name, content in raw.items()
    }
    return header, arrays


def _check_members(path: Path, members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive that would unpack to more than it is."""
    if len(members) > MOST_MEMBERS:
        raise StorageError(f"{path} is no model: it has {len(members)} members.")
    if len({member.filename for member in members}) < len(members):
        raise StorageError(f"{path} is no model: two of its members share a name.")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            raise StorageError(
                f"{path}: {member.filename!r} is compressed, which models never are."
            )
    if sum(member.file_size for member in members) > size:
        raise StorageError(f"{path} claims to hold more than its {size:,} bytes.")


def _array(path: Path, name: str, raw: bytes) -> np.ndarray:
    stream = io.BytesIO(raw)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("its version is not 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except UNREADABLE as error:
        raise StorageError(f"{path}: {name!r} is not an array ({error}).") from error
    if dtype.str not in TYPES:
        raise StorageError(
            f"{path}: {name!r} holds {dtype} entries; models hold numbers only."
        )
    start = stream.tell()
    if min(shape, default=0) < 0 or (
        math.prod(shape) * dtype.itemsize != len(raw) - start
    ):
        raise StorageError(
            f"{path}: {name!r} says that its shape is {shape}, and has "
            f"{len(raw) - start:,} bytes."
        )
    flat = np.frombuffer(raw, dtype, offset=start)
    return flat.reshape(shape, order="F" if fortran else "C").copy(order="K")
