"""Names of features, rows and clusters, as texts."""

from collections.abc import Iterable
from typing import Any

from ihgmm.matrix import Matrix


def feature_names(
    given: Any, model: Any, X: Any, p: int, what: str = "names"
) -> list[str]:
    """Return names of p features: those given, of the fit or of X, or x0, x1, ..."""
    names: Iterable[Any] | None = given
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is None and isinstance(X, Matrix):  # arrays of torch have other names
        names = X.names
    if names is None:
        names = (f"x{j}" for j in range(p))
    return names_of(what, names, p, "feature")


def names_of(what: str, given: Any, count: int = 0, of: str = "") -> list[str]:
    """Return names as texts: ``count`` of them, one for each row, feature ...

    Parameters
    ----------
    what : str
        The name of the argument, for errors.
    given : iterable
        The names, of any kind.
    count, of : int, str
        How many there have to be, and of what: "row", "feature". Any number will do
        without ``of``.
    """
    if isinstance(given, str | bytes):
        raise TypeError(f"{what}={given!r} is one text; give a list of them.")
    names = [text_of(name) for name in given]
    if of and len(names) != count:
        raise ValueError(
            f"{what} has {len(names)} entries and X has {count} {of}s; give one for "
            f"each {of}."
        )
    return names


def text_of(name: Any) -> str:
    """Return a name of any kind as text."""
    if name is None:
        return ""
    if isinstance(name, tuple):  # of an index of several levels
        return ", ".join(map(text_of, name))
    if isinstance(name, bytes):
        return name.decode("utf-8", "replace")
    return str(name)
