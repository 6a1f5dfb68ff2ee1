"""The parts of what a notebook shows: headings, tables, lists. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def page(heading: str, *parts: str) -> str:
    """Return a heading with parts below it."""
    return f"<div><p><strong>{escape(heading)}</strong></p>{''.join(parts)}</div>"


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, words: Iterable[int] = ()
) -> str:
    """Return a table whose first column, and those of words, are aligned left."""
    left = {0, *words}

    def line(tag: str, cells: Sequence[object]) -> str:
        sides = ("left" if j in left else "right" for j in range(len(cells)))
        aligned = (
            f'<{tag} style="text-align:{side}">{escape(str(cell))}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(aligned)}</tr>"

    top = f"<thead>{line('th', head)}</thead>" if any(head) else ""
    body = "".join(line("td", row) for row in rows)
    return f"<table>{top}<tbody>{body}</tbody></table>"


def bullets(texts: Iterable[str]) -> str:
    """Return a list, or nothing for no texts."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def paragraph(text: str) -> str:
    """Return a text by itself."""
    return f"<p>{escape(text)}</p>"
