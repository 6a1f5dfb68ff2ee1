"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb", "w"] = "wb"
) -> Iterator[IO[Any]]:
    """Open a file that takes its name only once all of it is written.

    No reader ever sees a part of it, and where the body or the disk fails, what was
    there before stays. Links are followed. An existing file keeps its mode; a new one
    gets that of the user's umask. Text is UTF-8, and line ends are written as given.

    The body should write to nothing else: an OSError of the body is taken for a failure
    to write this file, and is raised again with its name.
    """
    target = regular_target(path)
    # In the same folder, because a file can only be renamed within one file system.
    # 32 characters of the name stay under the 255 bytes that names may have.
    temporary = target.with_name(f".{target.name[:32]}.{secrets.token_hex(8)}.tmp")
    text = {} if mode == "wb" else {"encoding": "utf-8", "newline": ""}
    try:
        # "x" creates the file with the mode that the umask gives. (To ask for the
        # umask one would have to set it, for all threads.)
        with open(temporary, mode.replace("w", "x"), **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except OSError as error:
        why = error.strerror or str(error)
        raise type(error)(
            f"{path} could not be written ({why}); what was there before is unchanged."
        ) from error
    finally:
        with suppress(OSError):  # there is none after success, or without a folder
            temporary.unlink()


def regular_target(path: str | os.PathLike[str]) -> Path:
    """Return the file to write, past symbolic links; raise if it can be no file."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        kind = "folder" if target.is_dir() else "device, a FIFO or a socket"
        raise ValueError(f"{path} is a {kind}; give a file name.")
    return target
