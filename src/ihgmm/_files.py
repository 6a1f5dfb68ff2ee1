"""Files that are written whole or not at all, and by one process at a time."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from ihgmm._warnings import warn

# Follow no link, wait for no reader of a FIFO; bytes as they are, on Windows too.
FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
NO_DETOURS = sum(getattr(os, name, 0) for name in FLAGS)


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb", "w"] = "wb"
) -> Iterator[IO[Any]]:
    """Open a file that takes its name only once all of it is written.

    No reader ever sees a part of it, and where the body or the disk fails, what was
    there before stays. Links are followed. An existing file keeps its mode and, where
    the system allows it, its owner; a new one gets the mode of the user's umask. Text
    is UTF-8, and line ends are written as given.

    The body should write to nothing else: an OSError of the body is taken for a failure
    to write this file, and is raised again with its name.
    """
    target = regular_target(path)
    temporary = None
    try:
        # Nobody else may read what replaces a private file while it is written. (To ask
        # for the umask of a new one would mean to set it, for all threads.)
        permissions = 0o600 if target.exists() else 0o666
        temporary, file = _new_beside(target, mode, permissions)
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                old = target.stat()
                if hasattr(os, "chown"):
                    with suppress(OSError):  # only some users may give files away
                        os.chown(temporary, old.st_uid, old.st_gid)
                temporary.chmod(stat.S_IMODE(old.st_mode))
            if sys.platform == "win32":  # which renames no file that is open
                file.close()
            os.replace(temporary, target)
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        if temporary is not None:
            with suppress(OSError):  # there is none after success
                temporary.unlink()


def regular_target(
    path: str | os.PathLike[str], suffixes: Collection[str] = ()
) -> Path:
    """Return the file to write, past symbolic links; raise if it can be no file.

    ``~`` is the home folder, as in a shell. The name may end in one of the suffixes, or
    in anything if there are none.
    """
    path = os.path.expanduser(path)
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise ValueError(f"{path}: give a name that ends in {' or '.join(suffixes)}.")
    try:
        kind = os.stat(path).st_mode
    except OSError:  # there is none, or it cannot be reached: writing will say why
        kind = stat.S_IFREG
    if not stat.S_ISREG(kind):
        name = "folder" if stat.S_ISDIR(kind) else "device, a FIFO or a socket"
        raise ValueError(f"{path} is a {name}; give a file name.")
    return Path(os.path.realpath(path))


@contextmanager
def plain_path(path: Path) -> Iterator[Path]:
    """Yield a path that pyarrow can open: a link, if the name of a file is not UTF-8.

    A ValueError of the body names the file itself.
    """
    if str(path).encode(errors="replace").decode() == str(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder, re.sub(r"[^\w.]", "_", path.name, flags=re.ASCII))
        link.symlink_to(path.absolute())
        try:
            yield link
        except ValueError as error:
            raise ValueError(str(error).replace(str(link), str(path))) from error


def _new_beside(target: Path, mode: str, permissions: int) -> tuple[Path, IO[Any]]:
    """Return a new file beside the target: files are renamed within a file system."""
    text = {} if mode == "wb" else {"encoding": "utf-8", "newline": ""}
    # 32 characters of the name stay under the 255 bytes that names may have.
    name = f".{target.name[:32]}.{secrets.token_hex(8)}.tmp"
    temporary = target.with_name(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_DETOURS
    number = os.open(temporary, flags, permissions)
    return temporary, os.fdopen(number, mode, **text)  # type: ignore[call-overload]


def _open_plain(path: Path, flags: int) -> IO[bytes]:
    """Open a file beside one of ours; raise OSError if it is a link, FIFO or device."""
    number = os.open(path, flags | NO_DETOURS, 0o666)
    file = os.fdopen(number, "rb" if flags == os.O_RDONLY else "r+b")
    about = os.fstat(file.fileno())
    if stat.S_ISREG(about.st_mode) and about.st_nlink < 2:
        return file
    file.close()
    raise OSError(errno.ELOOP, "it is a link, a FIFO or a device")


def append_text(path: Path, text: str) -> None:
    """Add text to the end of a file, all of it or, where the disk fails, nothing."""
    rest = text.encode()
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            while rest:  # a disk that fills up takes a part
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):
                file.truncate(before)
            raise _not_written(path, error) from error


def _not_written(path: str | os.PathLike[str], error: OSError) -> OSError:
    """Return an error of the same class that says what it means for a file."""
    why = error.strerror or str(error)
    return type(error)(
        f"{path} could not be written ({why}); what was there before is unchanged."
    )


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Keep other processes from writing to a table, or say which one is at it.

    The system lets go of the lock when a process ends, however it ends. The lock is on
    a file beside the table, since the table itself is replaced when it is repaired.
    """
    path = regular_target(path)
    place = path.with_name(f".{path.name}.lock")
    while True:
        try:
            file = _open_plain(place, os.O_RDWR | os.O_CREAT)
            process = file.read(20)
            if process.strip(b"0123456789"):
                file.close()
                raise OSError("it holds something else")
        except OSError as error:
            raise type(error)(
                f"{place} cannot be the lock of {path.name} "
                f"({error.strerror or error}); move it away, or give another folder."
            ) from error
        try:
            _lock(file)
        except BlockingIOError:
            file.close()
            raise BlockingIOError(
                f"{path} is being written by another run (process "
                f"{process.decode() or 'unknown'}); wait for it to end, or give "
                "another folder."
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
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()).encode())
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows keeps a file that is open
                place.unlink()


def _lock(file: IO[Any]) -> None:
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
