"""Names of columns, of options and of other things, as messages show them."""

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from ihgmm.words.phrases import shorten

# At 0.6, the default, 'cluster' is near 'customer no.', which helps nobody.
LEAST_LIKENESS = 0.7


def as_option(name: str) -> str:
    """Return how the command line calls an argument."""
    return f"--{name.replace('_', '-')}"


def quote(name: object) -> str:
    """Return a name for a message: in quotes, short, nothing in it invisible."""
    return repr(shorten(str(name)))


def quote_all(names: Sequence[str], most: int = 8) -> str:
    """Return the first few of many names, for a message."""
    text = ", ".join(quote(name) for name in names[:most])

    n_hidden = len(names) - most
    return f"{text} and {n_hidden} more" if n_hidden > 0 else text


def check_there(
    option: str, name: str, names: Sequence[str], where: str, thing: str
) -> None:
    """Raise if an option names a thing that is not there, and say what is."""
    if name not in names:
        raise ValueError(
            f"{option} {quote(name)}: {where} has no such {thing}"
            f"{nearest_hint(name, names)}; it has {quote_all(names) or 'none'}."
        )


def nearest_hint(name: str, names: Sequence[str]) -> str:
    """Return what to add to the message that there is no such name: the nearest one."""
    by_lower_case = {candidate.lower(): candidate for candidate in names}
    matches = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=LEAST_LIKENESS)
    return f" (did you mean {by_lower_case[matches[0]]!r}?)" if matches else ""


def numbered_names(n_columns: int) -> list[str]:
    """Return what columns without names are called."""
    np.empty(n_columns, dtype=object)  # refuses at once what memory cannot hold
    return [f"col{number}" for number in range(1, n_columns + 1)]


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names as pandas does: the second ``a`` is ``a.1``, none ``Unnamed: 0``."""
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    names_of_file = set(names)
    repetitions = Counter[str]()
    unique: dict[str, None] = {}  # in their order

    for name in names:
        candidate = name
        # A name of the file is never given to another column.
        while candidate in unique or (candidate != name and candidate in names_of_file):
            repetitions[name] += 1
            candidate = f"{name}.{repetitions[name]}"
        unique[candidate] = None

    return list(unique)
