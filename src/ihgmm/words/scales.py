"""Whether the rows of a cluster differ in scale, in words."""

import numpy as np

from ihgmm._display import describe
from ihgmm.policy import Scales
from ihgmm.statistics.scale_heterogeneity import ScaleTest


@describe.register
def scale_text(test: ScaleTest) -> str:
    """Return the figures of each cluster in a table, and the recommendation."""
    lines = [*_table_lines(test), recommendation(test)]

    n_tested = np.count_nonzero(~np.isnan(test.p_values))
    if n_tested == 1:
        lines.append(
            "This assumes that entries of the noise are independent; one cluster alone "
            "cannot show whether they are."
        )
    elif n_tested > 1:
        lines.append("This assumes that noise is correlated alike in all clusters.")

    return "\n".join(lines)


def _table_lines(test: ScaleTest) -> list[str]:
    """Return a table with a line for each cluster, and one for all together."""
    clusters = [
        *zip(test.clusters, test.sizes, test.spreads, test.p_values, strict=True)
    ]
    all_together = ("all", test.sizes.sum(), test.spread, test.p_value)

    width = max(len(str(name)) for name in (*test.clusters, "cluster"))
    lines = [f"{'cluster':<{width}}     rows  spread  p-value"]
    for name, size, spread, p_value in [*clusters, all_together]:
        spread_text = "-" if np.isnan(spread) else f"{spread:.1%}"
        p_text = _p_value_text(p_value)
        lines.append(
            f"{name!s:<{width}}  {int(size):>7}  {spread_text:>6}  {p_text:>7}"
        )

    return lines


def _p_value_text(p_value: float) -> str:
    """Return a p-value with two digits."""
    if np.isnan(p_value):
        return "-"
    # A smaller one says no more: it depends on the last digits of the data.
    if p_value < 1e-16:
        return "<1e-16"
    return f"{p_value:.2g}"


def recommendation(test: ScaleTest) -> str:
    """Return which mixture to use, with the figures behind it."""
    if np.isnan(test.p_value):
        return "no recommendation: no cluster has 4 different rows to compare."

    p_text = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.2g}"
    if test.p_value >= Scales.LEVEL:
        return _without_sign_of_scales(test, p_text)

    finding = "rows of a cluster differ in scale"
    if np.isnan(test.spread):
        return (
            f"Ih-GMM: {finding} ({p_text}); the signal is too weak to say by how much."
        )
    if test.spread < Scales.SLIGHT_SPREAD:
        return (
            f"classical mixture: {finding} ({p_text}), but only by about "
            f"{test.spread:.1%}."
        )

    widest = int(np.nan_to_num(test.spreads).argmax())
    if test.spreads[widest] > Scales.UNLIKE * test.spread:
        finding += f" ({test.spreads[widest]:.0%} in cluster {test.clusters[widest]})"

    return f"Ih-GMM: {finding} by about {test.spread:.0%} ({p_text})."


def _without_sign_of_scales(test: ScaleTest, p_text: str) -> str:
    """Return which mixture to use where the test finds no individual scales."""
    finding = f"there is no sign of individual scales ({p_text})"
    largest_spread = test.spread_interval[1]
    if np.isnan(test.spread) or largest_spread >= Scales.WEAK_SPREAD:
        return (
            f"no recommendation: {finding}, but the signal is too weak, or there are "
            "too few rows or features, to be sure."
        )

    return (
        f"classical mixture: {finding}, and their spread is at most "
        f"{largest_spread:.1%}."
    )
