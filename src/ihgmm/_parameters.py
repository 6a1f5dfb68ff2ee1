"""Checks of parameters: the error names the value and says what to give instead."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


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


def check_choice(name: str, value: Any, choices: Sequence[str | None]) -> None:
    """Raise unless ``value`` is one of the words allowed."""
    if not isinstance(value, str | None) or value not in choices:
        words = ", ".join(repr(c) for c in choices if c is not None)
        raise ValueError(f"{name}={value!r} is not known; give one of {words}.")


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}={value!r} is not known; give True or False.")


def check_verbose(name: str, value: Any) -> None:
    """Raise unless ``value`` says how much to tell: True, False, or 0, 1 or 2."""
    if not isinstance(value, (bool, np.bool_, Integral)):
        raise TypeError(f"{name}={value!r} is not known; give 0, 1 or 2.")
    if not 0 <= int(value) <= 2:
        raise ValueError(f"{name}={value!r} is out of range; give 0, 1 or 2.")


def check_n_clusters(name: str, value: Any) -> None:
    """Raise unless ``value`` is "auto" or a positive whole number."""
    if not isinstance(value, str):
        check_count(name, value)
    elif value != "auto":
        raise TypeError(f"{name}={value!r} is a str; give 'auto' or a whole number.")


def check_clip(name: str, value: Any) -> None:
    """Raise unless ``value`` is None or a positive number."""
    if value is not None:
        check_number(name, value, above=0)


def check_outliers(name: str, value: Any) -> None:
    """Raise unless ``value`` is None, "auto" or a share of at most one half."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return
    if isinstance(value, str):
        raise ValueError(
            f"{name}={value!r} is not known; give None, 'auto' or a share of the rows "
            "such as 0.05."
        )
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not number or not 0 < float(value) <= 0.5:
        raise ValueError(
            f"{name}={value!r} is not a share of rows that may be outliers; give a "
            "number above 0 and at most 0.5, 'auto' or None."
        )


def check_n_components(name: str, value: Any) -> None:
    """Raise unless ``value`` is None, "auto" or a positive whole number."""
    if value is not None:
        check_n_init(name, value)


def check_n_init(name: str, value: Any) -> None:
    """Raise unless ``value`` is "auto" or a positive whole number."""
    if not isinstance(value, str):
        check_count(name, value)
    elif value != "auto":
        raise ValueError(
            f"{name}={value!r} is not known; give 'auto' or a whole number."
        )


def generator(random_state: Any) -> np.random.Generator:
    """Turn any random state scikit-learn users know into a NumPy generator.

    None draws fresh entropy; a RandomState is asked for a seed, so that calls with the
    same one differ; a Generator is used as it is.
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
