"""Checks of parameters: counts, numbers, words, seeds."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = [
    "check_choice",
    "check_count",
    "check_flag",
    "check_n_clusters",
    "check_n_init",
    "check_number",
    "generator",
]


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Return ``value`` as an int, or say what it should have been."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(
            f"{name}={value!r} is a {type(value).__name__}; give a whole number, "
            f"{least} or more."
        )
    if value < least:
        raise ValueError(f"{name}={value} is too small; give {least} or more.")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float = -np.inf,
    most: float = np.inf,
    above: float = -np.inf,
) -> float:
    """Return ``value`` as a float within bounds, or say what it should have been."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; give a number.")
    number = float(value)
    if not (least <= number <= most and number > above and np.isfinite(number)):
        lower = f"above {above:g}" if above > -np.inf else f"at least {least:g}"
        upper = f" and at most {most:g}" if most < np.inf else ""
        raise ValueError(f"{name}={value!r} is out of range; give {lower}{upper}.")
    return number


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of the words allowed."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name}={value!r} is not known; give one of {words}.")


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}={value!r} is not known; give True or False.")


def check_n_clusters(n_clusters: Any) -> None:
    """Raise unless ``n_clusters`` is "auto" or a positive whole number."""
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            raise TypeError(
                f"n_clusters={n_clusters!r} is a str; give 'auto' or a whole number."
            )
    else:
        check_count("n_clusters", n_clusters)


def check_n_init(n_init: Any) -> None:
    """Raise unless ``n_init`` is "auto" or a positive whole number."""
    if isinstance(n_init, str):
        if n_init != "auto":
            raise ValueError(
                f"n_init={n_init!r} is not known; give 'auto' or a whole number."
            )
    else:
        check_count("n_init", n_init)


def generator(random_state: Any) -> np.random.Generator:
    """Turn any random state scikit-learn users know into a NumPy generator.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        None draws fresh entropy; a RandomState is asked for a seed, so that calls
        with the same one differ; a Generator is used as it is.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    if not isinstance(random_state, Integral):
        raise TypeError(
            f"random_state={random_state!r} is a {type(random_state).__name__}; give "
            "None, a whole number, a RandomState or a Generator."
        )
    return np.random.default_rng(check_count("random_state", random_state, least=0))
