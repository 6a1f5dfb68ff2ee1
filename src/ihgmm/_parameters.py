"""Checks of parameters: the error names the value and says what to give instead."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any

import numpy as np


@contextmanager
def usual_errors() -> Iterator[None]:
    """Decorate what users call: overflow and the like are handled as by default."""
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        yield


@contextmanager
def making_array(
    name: str, wanted: str = "a list or an array, with lines of one length"
) -> Iterator[None]:
    """Say which argument is bad, and what to give; NumPy or scikit-learn says why."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} cannot be used ({error}); give {wanted}.") from None


Words = Sequence[str | None]  # that may stand in the place of a number
# What the command calls parameters and functions; None while Python is spoken.
_shell_names: ContextVar[Mapping[str, str] | None] = ContextVar("shell", default=None)


@contextmanager
def spelled_for_shell(names: Mapping[str, str]) -> Iterator[None]:
    """Have messages name options and commands, in the place of what Python has."""
    token = _shell_names.set(names)
    try:
        yield
    finally:
        _shell_names.reset(token)


def option(name: str, *value: Any) -> str:
    """Return ``name='value'``, or ``--name value`` for the reader of a command.

    Without a value, or where it is True, the command has the name alone.
    """
    shell_names = _shell_names.get()
    if shell_names is None or name not in shell_names:
        return f"{name}={value[0]!r}" if value else name

    is_flag = not value or value[0] is True
    return shell_names[name] if is_flag else f"{shell_names[name]} {value[0]}"


def call(name: str, **options: Any) -> str:
    """Return a call of a function of the data, or the command that does it."""
    shell_names = _shell_names.get()
    arguments = [option(*item) for item in options.items()]

    if shell_names is None:
        return f"{name}({', '.join(['X', *arguments])})"
    return " ".join([shell_names[name], *arguments])


def check_count(name: str, value: Any, *, least: int = 1, words: Words = ()) -> Any:
    """Return ``value`` as an int, or one of some words, or say what it should be."""
    number = check_number(name, value, least=least, words=words, is_whole=True)
    return number if isinstance(number, str | None) else int(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float = -np.inf,
    most: float = np.inf,
    above: float = -np.inf,
    words: Words = (),
    is_whole: bool = False,
) -> Any:
    """Return ``value`` as a float in a range, or one of some words, or say what.

    Parameters
    ----------
    name, value
        Of the parameter.
    least, most, above : float
        The ends of the range; a number has to be larger than ``above``.
    words : sequence of str or None
        What may stand in the place of a number.
    is_whole : bool, default=False
        Whether the number has to be whole.
    """
    if isinstance(value, str | None) and value in words:
        return value

    kind = Integral if is_whole else Real
    error: type[Exception] = ValueError
    if words and isinstance(value, str):
        fault = "is not known"
    elif isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        error = TypeError
        fault = f"is a {type(value).__name__}"
    elif least <= (number := float(value)) <= most and above < number < np.inf:
        return number
    else:
        fault = "is out of range"

    remedy = f"give {_description(least, most, above, words, is_whole)}"
    raise error(f"{option(name, value)} {fault}; {remedy}.")


def _description(
    least: float, most: float, above: float, words: Words, is_whole: bool
) -> str:
    """Return what a number has to be, and which words may stand in its place."""
    # None is not given on the command line.
    in_shell = _shell_names.get() is not None
    choices = [repr(w) for w in words if w is not None or not in_shell]

    text = f"{', '.join(choices)} or " if choices else ""
    text += "a whole number" if is_whole else "a number"
    text += f" above {above:g}" if above > -np.inf else f" at least {least:g}"
    if most < np.inf:
        text += f" and at most {most:g}"

    return text


def check_choice(name: str, value: Any, choices: Sequence[str | None]) -> None:
    """Raise unless ``value`` is one of the words allowed."""
    if not isinstance(value, str | None) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices if choice is not None)
        raise ValueError(f"{option(name, value)} is not known; give one of {words}.")


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{option(name, value)} is not known; give True or False.")


def check_verbose(name: str, value: Any) -> None:
    """Raise unless ``value`` says how much to tell: True, False, or 0, 1 or 2."""
    if not isinstance(value, (np.bool_, Integral)) or not 0 <= int(value) <= 2:
        raise ValueError(f"{option(name, value)} is not known; give 0, 1 or 2.")


def generator(random_state: Any) -> np.random.Generator:
    """Turn any random state scikit-learn users know into a NumPy generator."""
    if isinstance(random_state, np.random.RandomState):  # each call draws another
        random_state = random_state.randint(0, 2**31 - 1, size=4)
    elif isinstance(random_state, Integral):
        random_state = check_count("random_state", random_state, least=0)
    elif not isinstance(random_state, np.random.Generator | None):
        raise TypeError(
            f"random_state={random_state!r} is a {type(random_state).__name__}; give "
            "None, a whole number, a RandomState or a Generator."
        )
    return np.random.default_rng(random_state)
