"""Warnings that point at the user's line, and those of others that stay unheard."""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import sep
from os.path import dirname
from threading import Lock, RLock

# What lies between a user's line and a warning: this package, scikit-learn's searches
# and pipelines, and joblib, which runs the searches. They take long to import.
_INNER = tuple(
    dirname(getattr(find_spec(name), "origin", None) or name) + sep
    for name in ("ihgmm", "sklearn", "joblib")
)
_INNER += (contextmanager.__code__.co_filename,)  # which decorators go through
_lock = Lock()
# scikit-learn's checks and scores set filters of the process for a moment. Two at a
# time, in threads, may leave one behind: whoever calls them holds this.
sklearn_filters = RLock()
# How many fits ignore warnings of a category that begin with a message.
_ignored: dict[tuple[type[Warning], str], int] = {}


class ClusterCountWarning(UserWarning):
    """The number of clusters is in doubt, or some clusters ended without rows.

    Examples
    --------
    >>> import warnings
    >>> from ihgmm import ClusterCountWarning, IhSC
    >>> with warnings.catch_warnings(action="ignore", category=ClusterCountWarning):
    ...     labels = IhSC(2).fit_predict([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    """


class UnstableLabelsWarning(UserWarning):
    """Many labels may change with other rows, or depend on a few of large weight."""


class DriftWarning(UserWarning):
    """New rows no longer come to a cluster, or seem to make up another one."""


class PreparationWarning(UserWarning):
    """The data look as if another preparation or option suited them better."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn of something, at the first line outside this package and scikit-learn."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        level += 1
        frame = frame.f_back

    warnings.warn(message, category, stacklevel=level)


@contextmanager
def ignored(category: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore warnings of a category, or those of them that begin with a message."""
    # Filters belong to the process. Fits that run at the same time share one: the first
    # sets it, and the last takes it away. ``catch_warnings`` would leave it behind.
    # A comment in the pattern tells our filter from one of the user's.
    message = f"(?#ihgmm){message}"
    pattern = re.compile(message, re.IGNORECASE)
    entry = ("ignore", pattern, category, None, 0)
    key = (category, message)

    with _lock:
        _ignored[key] = _ignored.get(key, 0) + 1
        if _ignored[key] == 1:
            warnings.filterwarnings("ignore", message, category)

    try:
        yield
    finally:
        with _lock:
            _ignored[key] -= 1
            # The user's own code may have put other filters in their place meanwhile.
            if _ignored[key] == 0 and entry in warnings.filters:
                warnings.filters.remove(entry)  # type: ignore[attr-defined]
                warnings._filters_mutated()  # type: ignore[attr-defined]
