"""Files that are written whole or not at all, and by one process at a time."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

from ihgmm._warnings import warn


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


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Keep other processes from writing to a table, or say which one is at it.

    The system lets go of the lock when a process ends, however it ends. The lock is on
    a file beside the table, since the table itself is replaced when it is repaired.
    """
    place = path.with_name(f".{path.name}.lock")
    while True:
        file = place.open("a+b")
        try:
            _lock(file)
        except BlockingIOError:
            file.seek(0)
            process = file.read().decode() or "unknown"
            file.close()
            raise BlockingIOError(
                f"{path} is being written by another run (process {process}); wait for "
                "it to end, or give another folder."
            ) from None
        except OSError as error:
            warn(
                f"{path} cannot be locked here ({error}); make sure that no other run "
                "writes to it.",
                UserWarning,
            )
            break
        # Whoever had it last may have removed it after it was opened above.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), place.stat()):
                break
        file.close()
    with file:
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows keeps a file that is open
                place.unlink()


def _lock(file: BinaryIO) -> None:
    """Lock a file until it is closed; raise BlockingIOError if another has it."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(2**20)  # beyond what is written there, so that others can read it
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
