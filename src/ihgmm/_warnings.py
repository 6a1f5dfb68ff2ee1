"""Warnings that point at the user's line, and those of others that stay unheard."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import sklearn

_INSIDE = (str(Path(__file__).parent), str(Path(sklearn.__file__).parent))
_lock = Lock()
_ignored: dict[type[Warning], int] = {}


def warn(message: str, category: type[Warning]) -> None:
    """Warn of something, at the first line outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level - 1)


def _is_inside(path: str) -> bool:
    # Context managers and decorators of the standard library are on the way.
    return path.startswith(_INSIDE) or path.endswith("contextlib.py")


@contextmanager
def ignored(category: type[Warning]) -> Iterator[None]:
    """Ignore warnings of a category.

    Filters belong to the process. Fits that run at the same time share one: the first
    sets it, and the last takes it away. ``catch_warnings`` would leave it behind.
    """
    entry = ("ignore", None, category, None, 0)
    with _lock:
        _ignored[category] = _ignored.get(category, 0) + 1
        if _ignored[category] == 1:
            warnings.simplefilter("ignore", category)
    try:
        yield
    finally:
        with _lock:
            _ignored[category] -= 1
            # The user's own code may have put other filters in their place meanwhile.
            if _ignored[category] == 0 and entry in warnings.filters:
                warnings.filters.remove(entry)  # type: ignore[attr-defined]
                warnings._filters_mutated()  # type: ignore[attr-defined]
