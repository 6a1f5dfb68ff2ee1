"""Numbers and lists as people read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is due."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def listed(words: Sequence[str], last: str) -> str:
    """Return words with commas, and a word before the last."""
    *others, final = words
    return f"{', '.join(others)} {last} {final}" if others else final


def percent(share: float) -> str:
    """Return a share as people read it: none and all are nothing but that.

    Examples
    --------
    >>> [percent(share) for share in (0, 0.0004, 0.125, 0.9996, 1)]
    ['0%', '< 0.1%', '12.5%', '> 99.9%', '100%']
    """
    if share in (0, 1):
        return f"{share:.0%}"
    if share < 0.001 or share > 0.999:
        return "< 0.1%" if share < 0.5 else "> 99.9%"
    return f"{share:.1%}"


def chance(probability: float) -> str:
    """Return a probability: never none, however near to it."""
    return percent(max(probability, 1e-9))


def three_digits(value: float) -> str:
    """Return a figure of three digits, or a dash for NaN."""
    return "-" if np.isnan(value) else f"{value:.3g}"


def sentence(text: str) -> str:
    """Return a text that begins with a capital, whatever follows it."""
    return f"{text[0].upper()}{text[1:]}"
