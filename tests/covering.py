"""Options by pairs: few cases in which any two values meet."""

from itertools import combinations


def covering(factors, forbidden=()):
    """Return cases, one value of each factor, in which all pairs of values occur.

    ``factors`` maps names to their values, and ``forbidden`` has pairs of
    ``(name, value)`` that cannot be used together. The first value of a factor must go
    with all others. The same factors always give the same cases.
    """
    excluded = {frozenset(pair) for pair in forbidden}
    options = [[(name, value) for value in values] for name, values in factors.items()]
    uncovered = {
        frozenset((a, b)): None
        for first, second in combinations(options, 2)
        for a in first
        for b in second
        if frozenset((a, b)) not in excluded
    }
    cases = []
    while uncovered:
        case = list(next(iter(uncovered)))
        for values in options:
            if any(value in case for value in values):
                continue
            pairs = {v: {frozenset((v, chosen)) for chosen in case} for v in values}
            allowed = [value for value in values if not pairs[value] & excluded]
            # The value that meets most others for the first time.
            case.append(max(allowed, key=lambda v: len(pairs[v] & uncovered.keys())))
        for pair in combinations(case, 2):
            uncovered.pop(frozenset(pair), None)
        values = dict(case)
        cases.append({name: values[name] for name in factors})
    return cases


def case_name(case):
    """Return the values of a case, for its name among the tests."""
    return "-".join(str(getattr(value, "__name__", value)) for value in case.values())
