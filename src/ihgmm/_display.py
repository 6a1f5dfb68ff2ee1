"""How results show themselves, though sentences, pictures and pages lie above them.

No module below names one above. The door of the package, ``ihgmm/__init__.py``, runs
before any other module, also where a fresh process reads a pickle. It tells here where
sentences, pictures and pages are made; these modules are imported when something is
first shown.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch
from html import escape
from importlib import import_module
from typing import Any

_sentence_modules: list[str] = []
_functions: dict[str, str] = {}  # "module:function" that makes a picture, or a page


def shown_by(*, sentences: Sequence[str], pictures: str, pages: str) -> None:
    """Tell where what people see is made, without an import of it.

    Parameters
    ----------
    sentences : sequence of str
        Modules that register a function with :func:`describe` for each type of result.
    pictures, pages : str
        ``"module:function"`` that draws a result, and that writes the page of a model.
    """
    _sentence_modules[:] = sentences
    _functions.update(pictures=pictures, pages=pages)


@singledispatch
def describe(result: object) -> str:
    """Return a result in sentences, by the function registered for its type."""
    # Dispatch ends here until the modules that register functions are imported.
    for module in _sentence_modules:
        import_module(module)
    sentences_of = describe.dispatch(type(result))
    if sentences_of is describe.dispatch(object):
        raise TypeError(f"There are no sentences for a {type(result).__name__}.")
    return sentences_of(result)


class Result:
    """A frozen dataclass of figures: it shows itself as sentences, wherever it is."""

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def draw(result: Result, ax: Any) -> Any:
    """Draw a count of clusters or a tree; return the axes."""
    return _load("pictures")(result, ax=ax)


def write_page(X: Any, model: Any, path: Any, **options: Any) -> Any:
    """Write the page of a model."""
    return _load("pages")(X, model, path, **options)


def _load(what: str) -> Callable[..., Any]:
    """Return the function that makes pictures, or pages."""
    module, _, function = _functions[what].partition(":")
    return getattr(import_module(module), function)
