"""A fit that fails leaves the estimator as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["WholeFits"]


class WholeFits:
    """An estimator that is fitted whole or not at all.

    The checks of the data record its features before anything is read. If the fit then
    fails, or is interrupted, what was recorded must not pass for a model, nor mix with
    one that was there before.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = _whole(cls.fit)  # type: ignore[attr-defined]


def _whole(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def whole(self: Any, *arguments: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *arguments, **named)
        except BaseException:
            self.__dict__ = before
            raise

    return whole
