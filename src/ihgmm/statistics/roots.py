"""Where falling functions cross zero, one for each cluster at once."""

from collections.abc import Callable

import numpy as np

from ihgmm.matrix import HOST

Functions = Callable[[np.ndarray], np.ndarray]
"""Takes an argument for each of some functions, and returns their values."""


def falling_root(
    functions: Functions, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Return where each of some falling functions is zero, between two ends.

    A function that is still positive at its upper end has its root there.

    Notes
    -----
    Secants meet the root in a few steps. Where they would move one end only, the value
    at the end that stays counts half (the Illinois rule).

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.statistics.roots import falling_root
    >>> squares = np.array([2.0, 9.0])
    >>> falling_root(lambda x: squares - x * x, np.zeros(2), np.full(2, 10.0)).round(4)
    array([1.4142, 3.    ])
    """
    value_at_lower = functions(lower)
    value_at_upper = functions(upper)
    last_move = np.zeros(len(upper))  # 1 where the lower end moved, -1 the upper one
    root = upper

    for _ in range(60):  # more than a float64 has bits
        previous_root = root
        share = HOST.ratio(value_at_lower, value_at_lower - value_at_upper, 1.0)
        share = np.clip(share, 0.0, 1.0)
        root = lower + (upper - lower) * share
        value = functions(root)

        moves_lower = value > 0
        halved = np.where(last_move > 0, value_at_upper / 2, value_at_upper)
        value_at_upper = np.where(moves_lower, halved, value)
        halved = np.where(last_move < 0, value_at_lower / 2, value_at_lower)
        value_at_lower = np.where(moves_lower, value, halved)

        lower = np.where(moves_lower, root, lower)
        upper = np.where(moves_lower, upper, root)
        last_move = np.where(moves_lower, 1.0, -1.0)

        step = np.abs(root - previous_root)
        if (step <= 1e-15 * np.abs(root)).all():
            break

    return root
