"""How far a fit has come, in lines for people."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Steps:
    """The steps of a fit, timed, on the standard error.

    There are no lines at level 0, one a step at 1, and at 2 all that a step says.
    """

    def __init__(self, level: int = 0) -> None:
        self._level = int(level)

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[str], None]]:
        """Time a step; what was said last stays on its line."""
        start = time.monotonic()
        last_words = ""

        def say(words: str, least_level: int = 2) -> None:
            nonlocal last_words
            last_words = words
            if self._level >= least_level:
                seconds = time.monotonic() - start
                line = f"{name:<12} {seconds:7.1f} s  {words}"
                print(line.rstrip(), file=sys.stderr, flush=True)

        yield say
        say(last_words, least_level=1)
