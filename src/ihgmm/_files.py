"""Files that are written whole or not at all."""

import os
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

AnyPath = str | os.PathLike[str]


@contextmanager
def atomic_write(path: AnyPath, mode: Literal["wb", "w"] = "wb") -> Iterator[IO[Any]]:
    """Open a file that takes its name once all of it is written; else nothing changes.

    Links are followed; mode and, where possible, owner stay. Text is UTF-8. An OSError
    of the body is taken for a failure to write this file.
    """
    target = regular_target(path)

    # In the same folder, because a file can only be renamed within one file system; 32
    # characters of the name stay under the 255 bytes that names may have.
    temporary = target.with_name(f".{target.name[:32]}.{secrets.token_hex(8)}.tmp")
    # Nobody else may read what replaces a private file while it is written. (To ask
    # for the umask of a new one would mean to set it, for all threads.)
    permissions = 0o600 if target.exists() else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)

    is_text = mode == "w"
    encoding = "utf-8" if is_text else None
    newline = "" if is_text else None

    try:
        number = os.open(temporary, flags, permissions)
        with os.fdopen(number, mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

        if target.exists():
            _copy_owner_and_mode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(
            f"{path} could not be written ({reason}); what was there before is "
            "unchanged."
        ) from error
    finally:
        with suppress(OSError):  # there is none after success
            temporary.unlink()


def _copy_owner_and_mode(source: Path, file: Path) -> None:
    """Give a file the mode of another one and, where possible, its owner."""
    status = source.stat()
    if hasattr(os, "chown"):
        with suppress(OSError):  # only some users may give files away
            os.chown(file, status.st_uid, status.st_gid)
    file.chmod(stat.S_IMODE(status.st_mode))


def regular_target(path: AnyPath, suffixes: Collection[str] = ()) -> Path:
    """Return the file to read or write, past links and ``~``; raise if it is none."""
    path = os.path.expanduser(check_path(path))
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise ValueError(f"{path}: give a name that ends in {' or '.join(suffixes)}.")

    # Where there is none, or it cannot be reached, writing will say why.
    if os.path.exists(path) and not os.path.isfile(path):
        name = "folder" if os.path.isdir(path) else "device, a FIFO or a socket"
        raise ValueError(f"{path} is a {name}; give a file name.")
    return Path(os.path.realpath(path))


def check_path(path: Any) -> str:
    """Return the name of a file; raise if it is none."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str) or not name or "\0" in name:
        kind = ValueError if isinstance(name, str | bytes) else TypeError
        raise kind(f"{name!r:.60} is not the name of a file; give a text or a path.")
    return name
