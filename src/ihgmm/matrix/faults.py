"""What is said of a file that cannot be read, and of a name that is not there."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any


@contextmanager
def explain_damage(path: Path, *errors: Any) -> Iterator[None]:
    """Say that a file is damaged where a library raises one of these errors.

    Only the library's work belongs inside, so that a defect of ours is not taken for a
    damaged file. An OSError of a library is one too, unless it is the system's, which
    has a number: then the disk is at fault, or a permission.
    """
    try:
        yield
    except (OSError, *errors) as error:
        number = getattr(error, "errno", None)
        # A lack of memory that pyarrow notices is one of its errors too. An archive may
        # point before its beginning, which is an invalid argument to the system.
        if isinstance(error, MemoryError) or number not in (None, errno.EINVAL):
            raise
        reason = " ".join(str(error).split())[:300]
        if "pickle" in reason:  # NumPy's advice is to allow it
            reason = "it does not hold an array of numbers"
        raise damaged(path, reason) from error


def damaged(path: Path, reason: str) -> ValueError:
    """Return the error that a file is not what its name says."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    return ValueError(f"{path} cannot be read as {suffix[1:] or 'data'}: {reason}")


@contextmanager
def explain_lack(package: str, extra: str, path: Path) -> Iterator[None]:
    """Name the extra of this package that a file needs."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{path} needs the package {package}: pip install 'ihgmm[{extra}]'."
        ) from error


def near(name: str, names: Sequence[str]) -> str:
    """Return what to add to the message that there is no such name: the nearest one."""
    if name in names:  # the message is about something else
        return ""
    lower = {other.lower(): other for other in names}
    # At 0.6, the default, 'cluster' is near 'customer no.', which helps nobody.
    matches = get_close_matches(name.lower(), lower, n=1, cutoff=0.7)
    return f" (did you mean {lower[matches[0]]!r}?)" if matches else ""
