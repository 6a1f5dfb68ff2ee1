"""The test of individual scales in words."""

from __future__ import annotations

import numpy as np

from ihgmm.statistics.scale_heterogeneity import Assumption, Evidence, ScaleTest
from ihgmm.words.phrases import page, paragraph, table

_EVIDENCE = {
    Evidence.NOTHING_TO_COMPARE: "no cluster has 4 different rows to compare.",
    Evidence.ONE_CLUSTER: "rows of cluster {cluster} differ in scale ({cluster_p}, "
    "corrected for {tested} clusters), though all clusters together do not show it "
    "({p}).",
    Evidence.TOO_WEAK: "there is no sign of individual scales ({p}), but the signal is "
    "too weak, or there are too few rows or features, to be sure.",
    Evidence.ABSENT: "there is no sign of individual scales ({p}), and a spread of "
    "{detectable:.1%} would have been noticed.",
    Evidence.UNKNOWN_SPREAD: "rows of a cluster differ in scale ({p}); the signal is "
    "too weak to say by how much.",
    Evidence.SLIGHT: "rows of a cluster differ in scale ({p}), but only by about "
    "{spread:.1%}.",
    Evidence.CLEAR: "rows of a cluster differ in scale by about {spread:.0%} ({p}).",
}

_ASSUMPTIONS = {
    Assumption.ALIKE: "This assumes that noise is correlated alike in all clusters.",
    Assumption.SOME_ALIKE: "This assumes that noise is correlated alike in all "
    "clusters, and not at all along centres for which no other cluster shows it.",
    Assumption.INDEPENDENT: "This assumes that entries of the noise are independent; "
    "one cluster alone cannot show whether they are.",
}


def _recommendation(test: ScaleTest) -> str:
    """Return which mixture to use, with the figures behind it."""
    cluster, cluster_p = test.strongest
    reason = _EVIDENCE[test.evidence].format(
        p=_p_value(test.p_value),
        spread=test.spread,
        detectable=test.detectable,
        cluster=cluster,
        cluster_p=_p_value(cluster_p),
        tested=test.n_tested,
    )
    return f"{test.advice}: {reason}"


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
    lines.append(_recommendation(test))
    if test.n_tested:
        lines.append(_ASSUMPTIONS[test.assumption])
    return "\n".join(lines)


def scale_html(test: ScaleTest) -> str:
    """Return the same for a notebook, the recommendation first."""
    figures = table(("cluster", "rows", "spread", "p-value"), _scale_rows(test))
    assumed = paragraph(_ASSUMPTIONS[test.assumption]) if test.n_tested else ""
    return page(_recommendation(test), figures, assumed)
