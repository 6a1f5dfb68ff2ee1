"""Warnings at the user's line, and a way to ignore those of other packages."""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import sep
from os.path import dirname
from threading import Lock, RLock

# Where code lies between a user's line and a warning: this package, scikit-learn's
# searches and pipelines, and joblib, which runs the searches. They are not imported,
# which takes long. All of them are installed: the folder of another would be "/".
_INNER = tuple(
    dirname(getattr(find_spec(name), "origin", None) or name) + sep
    for name in ("ihgmm", "sklearn", "joblib")
)
_INNER += (contextmanager.__code__.co_filename,)  # of context managers as decorators
_lock = Lock()  # of _ignored and of the filters that ``ignored`` sets
# scikit-learn's checks and scores set filters of the process for a moment. Two threads
# that do so at a time may leave a filter behind: hold this lock around such calls.
sklearn_filters = RLock()
# How many fits at present ignore a category and message.
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
    """Many labels may change with other rows, or depend on a few that weigh much."""


class DriftWarning(UserWarning):
    """A cluster gets no new rows any more, or new rows seem to make up another one."""


class PreparationWarning(UserWarning):
    """The data look as if they should be prepared, or fitted, in another way."""


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
    """Ignore warnings of a category whose message begins with a regular expression."""
    # Filters belong to the process. Fits in several threads share one: the first sets
    # it, and the last takes it away. Of several ``catch_warnings`` that overlap, one
    # would leave its filter behind.
    # A comment in the pattern tells our filter from one of the user's.
    marked_message = f"(?#ihgmm){message}"
    pattern = re.compile(marked_message, re.IGNORECASE)
    # As ``filterwarnings`` puts it there: of any module, at any line.
    entry = ("ignore", pattern, category, None, 0)
    key = (category, marked_message)

    with _lock:
        _ignored[key] = _ignored.get(key, 0) + 1
        if _ignored[key] == 1:
            warnings.filterwarnings("ignore", marked_message, category)

    try:
        yield
    finally:
        with _lock:
            _ignored[key] -= 1
            # The user's own code may have replaced all filters meanwhile.
            if _ignored[key] == 0 and entry in warnings.filters:
                warnings.filters.remove(entry)  # type: ignore[attr-defined]
                warnings._filters_mutated()  # type: ignore[attr-defined]
