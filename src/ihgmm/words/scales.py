"""The test of individual scales in words."""

from __future__ import annotations

import numpy as np

from ihgmm.policy import Scales
from ihgmm.statistics.scale_heterogeneity import ScaleTest


def recommendation(test: ScaleTest) -> str:
    """Return which mixture to use, with the figures behind it."""
    spread, most, unknown = test.spread, test.spread_interval[1], np.isnan(test.spread)
    p = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.2g}"
    if np.isnan(test.p_value):
        return "no recommendation: no cluster has 4 different rows to compare."
    if test.p_value >= Scales.LEVEL:
        none = f"there is no sign of individual scales ({p})"
        if unknown or most >= Scales.WEAK_SPREAD:
            return (
                f"no recommendation: {none}, but the signal is too weak, or there are "
                "too few rows or features, to be sure."
            )
        return f"classical mixture: {none}, and their spread is at most {most:.1%}."
    differ = "rows of a cluster differ in scale"
    if unknown:
        return f"Ih-GMM: {differ} ({p}); the signal is too weak to say by how much."
    if spread < Scales.SLIGHT_SPREAD:
        return f"classical mixture: {differ} ({p}), but only by about {spread:.1%}."
    return f"Ih-GMM: {differ} by about {spread:.0%} ({p})."


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


def scale_text(test: ScaleTest) -> str:
    """Return the figures of each cluster in a table, and the recommendation."""
    names = [*map(str, test.clusters), "all"]
    figures = (
        np.append(test.sizes, test.sizes.sum()),
        np.append(test.spreads, test.spread),
    )
    width = max(map(len, (*names, "cluster")))
    lines = [f"{'cluster':<{width}}     rows  spread  p-value"]
    p_values = np.append(test.p_values, test.p_value)
    for name, size, spread, p in zip(names, *figures, p_values, strict=True):
        shown = "-" if np.isnan(spread) else f"{spread:.1%}"
        # A smaller one says no more: it depends on the last digits of the data.
        p_value = "-" if np.isnan(p) else "<1e-16" if p < 1e-16 else f"{p:.2g}"
        lines.append(f"{name:<{width}}  {int(size):>7}  {shown:>6}  {p_value:>7}")
    lines += [recommendation(test), _assumption(test)]
    return "\n".join(lines).rstrip()
