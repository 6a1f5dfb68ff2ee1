"""Numbers that measure nothing: ids, ranks, years, codes, places on a map."""

import re

import numpy as np

# What a first column is called that has no name of its own.
NO_NAMES = ("Unnamed: 0", "row.names", "rownames")

# Names of things that whole numbers stand for, by their last word. Those that are
# numbered need to be of another thing in each row: they may as well be numbers of
# things, or platinum. docs/tables.md tells on which tables they were chosen.
_NUMBERED = r"(?i:(.*[ _.\-])?(no|number)\.?|.*(?<!de|ha|mi|ti)num)"
_THINGS = (
    "id|pid|index|obs|fips?|month|weekday|day.of.week|wave|rank|school|student|subject|"
    "patient|household|firm|store|litter|pair|block|site|center|centre|dept|department|"
    "county|district|state|region|sector|occupation|race|group|status"
)
_WHOSE = r"([ _.\-](husb(and)?|wife))?"
_CODED = (
    rf"(?i:(.*[ _.\-])?({_THINGS}){_WHOSE})|(?i:.*(code|fips?|row\.?names)|unnamed: 0)|"
    r"__index_level_\d+__|"  # the index of pandas
    r"(?i:(county|study|town)_?id)|.*[a-z]I[Dd]"
)
_YEARS = r"(?i).*(year|yr)"
_DAYS = r"(?i)(.*[ _.\-])?m?day"
_DATES = r"(?i)(.*[ _.\-])?date"
_PLACES = r"(?i)(.*[ _.\-])?(lat(itude)?|lon|lng|long(itude)?)"

# Counts and amounts are hardly as large; numbers of 64 bits are at most the second.
_VAST = (2**53, 2**63)
# Few rows may be sorted by an amount, and few measurements may be in a row, such as
# heights from 58 to 72 inches.
_MANY = 100


def no_measurement(name: str, values: np.ndarray, is_first: bool = False) -> str:
    """Return why a column measures nothing, or "".

    ``name`` is "" where names say nothing of this kind; ``is_first`` tells the first
    column of a table from the others. ``values`` has no NaN.
    """
    distinct = np.unique(values)
    is_constant = len(distinct) == 1
    if not is_constant and re.fullmatch(_PLACES, name):
        return "coordinates"

    # A constant, whatever it is; and true and false, by whatever name.
    is_flag = (distinct[0], distinct[-1]) == (0, 1)
    has_fractions = (distinct != np.round(distinct)).any()
    if is_constant or is_flag or has_fractions:
        return ""
    return _whole_numbers_without_measure(name, values, distinct, is_first)


def _whole_numbers_without_measure(
    name: str, values: np.ndarray, distinct: np.ndarray, is_first: bool
) -> str:
    """Return why whole numbers measure nothing, or "": the first reason that holds."""
    lowest = distinct[0]
    highest = distinct[-1]
    is_each_once = len(distinct) == len(values)

    is_numbered = re.fullmatch(_NUMBERED, name)
    is_coded = re.fullmatch(_CODED, name)

    is_vast = _VAST[0] <= highest < _VAST[1]
    if is_each_once and (is_numbered or is_coded or is_vast):
        return "looks like ids; --id-column takes them"

    n_in_a_row = 10 if lowest in (0, 1) else _MANY
    is_in_a_row = highest == lowest + len(distinct) - 1 and len(distinct) >= n_in_a_row
    if is_each_once and is_in_a_row:
        return f"row numbers or ranks: {lowest:.0f} to {highest:.0f}, each once"
    if is_numbered and is_in_a_row and lowest == 1:
        return f"numbers of rows, which start again: 1 to {highest:.0f}"

    if lowest >= 1700 and highest <= 2100:
        return "years"
    if re.fullmatch(_DATES, name) or _are_dates(distinct):
        return "dates"
    if lowest >= 1 and 28 <= highest <= 31 and re.fullmatch(_DAYS, name):
        return "days of the month"

    if (lowest, highest) == (1, 2) and name and not is_each_once:
        return "a code of two values: 1 and 2"
    if is_coded or re.fullmatch(_YEARS, name):
        return "named like a code, id or year; name it among --columns to use it"
    if is_first and len(distinct) >= _MANY and _is_rising(values):
        return "rises from row to row, as ids do; --id-column takes it"
    return ""


def _is_rising(values: np.ndarray) -> bool:
    """Return whether each number is above the one before; the first is from 0 on."""
    return bool((np.diff(values, prepend=-1) > 0).all())


def _are_dates(distinct: np.ndarray) -> bool:
    """Return whether whole numbers are dates such as 20240131."""
    are_of_our_days = distinct[0] >= 19_000_101 and distinct[-1] <= 21_001_231
    return bool(are_of_our_days and (distinct % 10_000).max() < 1300)
