"""How results show themselves, though their words and pictures are made above them."""

from pkgutil import resolve_name
from typing import Any

# Who makes a form of a result, as "module:function". The door of the package names
# them, in ihgmm/__init__.py, so that what lies below words and plots imports neither.
MAKERS: dict[str, str] = {}


def made(form: str, result: Any, *args: Any, **options: Any) -> Any:
    """Return a result, or a model, in another form: as text, as a picture, ..."""
    return resolve_name(MAKERS[form])(result, *args, **options)


class Result:
    """A frozen dataclass of figures: it prints as sentences, and shows as tables."""

    def __str__(self) -> str:
        return str(made("text", self))

    def _repr_html_(self) -> str | None:
        html: str | None = made("html", self)
        return html
