"""How far a fit has come, in lines for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext


class Steps:
    """The steps of a fit, timed, with lines on the standard error.

    There are none at level 0 and one for each step at level 1. At level 2 all that a
    step says on its way has a line of its own.
    """

    def __init__(self, level: int = 0) -> None:
        self._level = int(level)

    def step(self, name: str) -> AbstractContextManager[Callable[[str], None]]:
        """Time a step; what was said last stays on its line."""
        return self._timed(name) if self._level else nullcontext(lambda words: None)

    @contextmanager
    def _timed(self, name: str) -> Iterator[Callable[[str], None]]:
        started = time.monotonic()
        last = ""

        def say(words: str) -> None:
            nonlocal last
            last = words
            self._write(name, started, last, "\n" if self._level > 1 else "\r")

        yield say
        self._write(name, started, last, "\n")

    def _write(self, name: str, started: float, words: str, end: str) -> None:
        # A line that will be overwritten is of no use in a file.
        if end == "\n" or sys.stderr.isatty():
            spent = time.monotonic() - started
            line = f"{name:<12} {spent:7.1f} s  {words}".rstrip()
            # All of a line of 79 columns, so that nothing of the last one stays.
            sys.stderr.write(f"{line:<79}{end}")
            sys.stderr.flush()
