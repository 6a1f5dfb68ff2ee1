"""scikit-learn's callbacks, where the installed version has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from ihgmm._progress import Steps

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as managed
except ImportError:  # scikit-learn before 1.9
    managed = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""


__all__ = ["InSteps", "with_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])


def with_callbacks(method: F) -> F:
    """Make a fit let its callbacks go, however it ends."""
    return method if managed is None else cast(F, managed(method))


class InSteps(CallbackSupportMixin):
    """An estimator that is fitted in steps, of which it tells."""

    @contextmanager
    def _steps(
        self, count: int, X: Any, y: Any, shown: bool = False
    ) -> Iterator[Steps]:
        """Begin a fit of at most so many steps; for a fit ``with_callbacks``."""
        if managed is None:
            yield Steps(shown)
            return
        task = self._init_callback_context(max_subtasks=count)
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        yield Steps(shown, task, self)
        # The estimator has all its attributes by now: nothing to add for a copy of it.
        task.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes={}
        )
