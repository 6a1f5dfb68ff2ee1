"""How results and models show themselves, though words and pictures lie above them.

These are the only imports that point up the layers, and they wait until something is
shown; ``tests/test_layers.py`` knows them by name.
"""

from html import escape
from typing import Any


class Result:
    """A frozen dataclass of figures: it shows itself as sentences, wherever it is."""

    def __repr__(self) -> str:
        from ihgmm.words.results import SENTENCES

        return SENTENCES[type(self)](self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def doubts_of_count(count: Any) -> list[str]:
    """Return sentences on why a number of clusters is in doubt; none if it is not."""
    from ihgmm.words.counts import count_doubts

    return [*count_doubts(count)]


def draw(result: Any, ax: Any) -> Any:
    """Draw a count of clusters or a tree; return the axes."""
    from ihgmm.plotting.tree import plot_result

    return plot_result(result, ax=ax)


def write_page(X: Any, model: Any, path: Any, **options: Any) -> Any:
    """Write the page of a model."""
    from ihgmm.report import write_report

    return write_report(X, model, path, **options)
