"""How far a fit has come, in lines for people and in tasks for callbacks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

passes_shown: ContextVar[bool] = ContextVar("passes_shown", default=False)


@contextmanager
def showing_passes(shown: bool) -> Iterator[None]:
    """Say for a while, in this thread, whether passes over data on disk are shown.

    This belongs to the work, not to the data, which several fits may share.
    """
    before = passes_shown.set(shown)
    try:
        yield
    finally:
        passes_shown.reset(before)


class Steps:
    """The steps of a fit, timed, with lines on the standard error.

    There are none at level 0 and one for each step at level 1. At level 2 all that a
    step says on its way has a line of its own. With an estimator and its ``task``, a
    CallbackContext of scikit-learn, each step becomes a part of that task.
    """

    def __init__(self, level: int = 0, task: Any = None, estimator: Any = None) -> None:
        self._level, self._task, self._estimator = int(level), task, estimator

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[str], None]]:
        """Time a step; what was said last stays on its line."""
        started = time.monotonic()
        last = ""

        def say(words: str) -> None:
            nonlocal last
            last = words
            self._write(name, started, last, "\n" if self._level > 1 else "\r")

        part = None
        if self._task is not None:
            part = self._task.subcontext(task_name=name)
            part.call_on_fit_task_begin(estimator=self._estimator)
        yield say
        if part is not None:
            part.call_on_fit_task_end(estimator=self._estimator)
        self._write(name, started, last, "\n")

    def _write(self, name: str, started: float, words: str, end: str) -> None:
        # A line that will be overwritten is of no use in a file.
        if self._level and (end == "\n" or sys.stderr.isatty()):
            spent = time.monotonic() - started
            line = f"{name:<12} {spent:7.1f} s  {words}".rstrip()
            # All of a line of 79 columns, so that nothing of the last one stays.
            sys.stderr.write(f"{line:<79}{end}")
            sys.stderr.flush()
