"""The one loop of all methods that improve a state step by step, such as EM."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State")


@dataclass(frozen=True)
class Iterated(Generic[State]):
    """The last state of a loop, and how it ended."""

    state: State
    n_iter: int  # steps that were taken
    converged: bool  # whether the state had settled


def iterate(
    step: Callable[[State], State],
    start: State,
    *,
    max_iter: int,
    has_settled: Callable[[State, State], bool],
) -> Iterated[State]:
    """Take steps until a state hardly differs from the one before.

    ``has_settled`` compares the state before a step with the one after it.

    Examples
    --------
    >>> from ihgmm.numerics.iteration import iterate
    >>> def newton_step(x):
    ...     return (x + 2 / x) / 2
    >>> root = iterate(
    ...     newton_step, 1.0, max_iter=50, has_settled=lambda x, y: abs(x - y) < 1e-9
    ... )
    >>> round(root.state, 6), root.n_iter, root.converged
    (1.414214, 5, True)
    """
    state = start
    for n_iter in range(1, max_iter + 1):
        previous = state
        state = step(previous)
        if has_settled(previous, state):
            return Iterated(state=state, n_iter=n_iter, converged=True)

    return Iterated(state=state, n_iter=max_iter, converged=False)
