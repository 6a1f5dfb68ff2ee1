"""Pieces of HTML and SVG as trees, so that every text in them is escaped."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, tostring

__all__ = ["Element", "child", "chip", "isolated", "node", "shown", "to_html"]

UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

QUOTED = re.compile(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")
"""A name in a sentence, as Python quotes it; an apostrophe within a word is none."""

LONGEST = 120
"""Characters of a name that are shown."""


def node(tag: str, text: str = "", **attributes: str | float) -> Element:
    """Return an element; ``class_`` and ``aria_label`` are written as in HTML."""
    names = {
        name.rstrip("_").replace("_", "-"): _number(value)
        for name, value in attributes.items()
    }
    element = Element(tag, names)
    element.text = UNFIT.sub("\ufffd", text)
    return element


def child(
    parent: Element, tag: str, text: str = "", **attributes: str | float
) -> Element:
    """Append an element to another one and return it."""
    element = node(tag, text, **attributes)
    parent.append(element)
    return element


def isolated(tag: str, text: str, **attributes: str | float) -> Element:
    """Return an element with a sentence, each name in it with a direction of its own.

    A name that is read from right to left would else turn the words around it.
    """
    first, *rest = QUOTED.split(UNFIT.sub("\ufffd", text))
    element = node(tag, first, **attributes)
    for name, after in zip(rest[::2], rest[1::2], strict=True):
        child(element, "bdi", name).tail = after
    return element


def chip(k: int, text: str = "") -> Element:
    """Return the number of a cluster, or a text, with its colour."""
    return node("span", text or str(k), class_=f"chip c{k}")


def shown(name: str) -> str:
    """Return a name, shortened if it is very long."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def to_html(*elements: Element) -> str:
    """Return elements as HTML text."""
    return "\n".join(
        tostring(element, encoding="unicode", method="html") for element in elements
    )


def _number(value: str | float) -> str:
    if isinstance(value, str):
        return UNFIT.sub("\ufffd", value)
    return f"{value:.2f}".rstrip("0").rstrip(".")
