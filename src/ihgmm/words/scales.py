"""The test of individual scales in words."""

from __future__ import annotations

import numpy as np

from ihgmm.statistics.scale_heterogeneity import Evidence, ScaleTest

_EVIDENCE = {
    Evidence.NOTHING_TO_COMPARE: "no recommendation: no cluster has 4 different rows "
    "to compare.",
    Evidence.TOO_WEAK: "no recommendation: there is no sign of individual scales "
    "({p}), but the signal is too weak, or there are too few rows or features, to be "
    "sure.",
    Evidence.ABSENT: "classical mixture: there is no sign of individual scales ({p}), "
    "and their spread is at most {most:.1%}.",
    Evidence.UNKNOWN_SPREAD: "Ih-GMM: rows of a cluster differ in scale ({p}); the "
    "signal is too weak to say by how much.",
    Evidence.SLIGHT: "classical mixture: rows of a cluster differ in scale ({p}), but "
    "only by about {spread:.1%}.",
    Evidence.CLEAR: "Ih-GMM: rows of a cluster differ in scale by about {spread:.0%} "
    "({p}).",
}


def _recommendation(test: ScaleTest) -> str:
    """Return which mixture to use, with the figures behind it."""
    most, p = test.spread_interval[1], _p_value(test.p_value)
    return _EVIDENCE[test.evidence].format(p=p, spread=test.spread, most=most)


def _assumption(test: ScaleTest) -> str:
    """Return what the test took for granted about the noise."""
    tested = np.count_nonzero(~np.isnan(test.p_values))
    if tested == 0:
        return ""
    if tested > 1:
        return "This assumes that noise is correlated alike in all clusters."
    return (
        "This assumes that entries of the noise are independent; one cluster alone "
        "cannot show whether they are."
    )


def _p_value(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def _scale_rows(test: ScaleTest) -> list[tuple[str, int, str, str]]:
    """Return name, rows, spread and p-value of each cluster, and of all together."""
    figures = zip(test.clusters, test.sizes, test.spreads, test.p_values, strict=True)
    total = ("all", test.sizes.sum(), test.spread, test.p_value)
    rows = []
    for name, size, spread, p in (*figures, total):
        shown = "-" if np.isnan(spread) else f"{spread:.1%}"
        # A smaller one says no more: it depends on the last digits of the data.
        p_value = "-" if np.isnan(p) else "<1e-16" if p < 1e-16 else f"{p:.2g}"
        rows.append((str(name), int(size), shown, p_value))
    return rows


def scale_text(test: ScaleTest) -> str:
    """Return the figures of each cluster in a table, and the recommendation."""
    rows = _scale_rows(test)
    width = max(len(name) for name in ("cluster", *(row[0] for row in rows)))
    lines = [f"{'cluster':<{width}}     rows  spread  p-value"]
    for name, size, spread, p_value in rows:
        lines.append(f"{name:<{width}}  {size:>7}  {spread:>6}  {p_value:>7}")
    lines += [_recommendation(test), _assumption(test)]
    return "\n".join(lines).rstrip()
