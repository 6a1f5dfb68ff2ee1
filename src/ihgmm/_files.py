"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yield an open file that takes the place of ``path`` once all is written."""
    # In the same folder, so that the last step is a rename.
    temporary = path.with_name(f".{path.name[:64]}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        raise type(error)(
            f"{path} could not be written ({error.strerror or error}); what was there "
            "before is unchanged."
        ) from error
