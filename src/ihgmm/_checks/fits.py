"""A fit that fails leaves the estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["whole_fit"]


@contextmanager
def whole_fit(estimator: Any) -> Iterator[None]:
    """Fit an estimator whole or not at all.

    The checks of the data record its features before anything is read. If the fit then
    fails, or is interrupted, what was recorded must not pass for a model, nor mix with
    one that was there before.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise
