"""The parts of what people read: numbers and lists."""

from collections.abc import Iterable


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is due."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def listed(numbers: Iterable[int], conjunction: str) -> str:
    """Return numbers with commas, and a conjunction before the last."""
    texts = [f"{number:,}" for number in numbers]
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} {conjunction} {texts[-1]}"


def percent(share: float) -> str:
    """Return a share as people read it: none and all are nothing but that."""
    if share in (0, 1):
        return f"{share:.0%}"
    if share < 0.001:
        return "< 0.1%"
    if share > 0.999:
        return "> 99.9%"
    return f"{share:.1%}"


def figure(value: float, digits: int = 3) -> str:
    """Return so many digits of a number, or all that stand before the point."""
    if value != value:
        return "-"

    # People do not read 1.02e+04, nor 1e+03 for 999.9.
    is_long = 10**digits - 0.5 <= abs(value) < 1e9
    return f"{value:,.0f}" if is_long else f"{value:.{digits}g}"


def sentence(text: str) -> str:
    """Return a text that begins with a capital, whatever follows it."""
    return f"{text[0].upper()}{text[1:]}"


def shorten(text: str, longest: int = 40) -> str:
    """Return a text that fits into a cell or a message."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
