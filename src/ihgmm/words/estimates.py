"""What is known of scales and centres: the test of scales, estimates, features."""

from __future__ import annotations

import numpy as np

from ihgmm.matrix import to_host
from ihgmm.statistics.contrasts import TellingFeatures
from ihgmm.statistics.estimation import Estimates
from ihgmm.statistics.scale_heterogeneity import Assumption, Evidence, ScaleTest
from ihgmm.words.phrases import counted, page, paragraph, table, three_digits

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


def estimates_html(estimates: Estimates) -> str:
    """Return what is known about each centre, and the middle of what rows have."""
    (k, p), n = estimates.centers.shape, estimates.scales.shape[0]
    centers, errors = to_host(estimates.centers), to_host(estimates.center_errors)
    lengths = np.linalg.norm(centers.astype(np.float64), axis=1)
    rows = [
        (name, three_digits(length), three_digits(float(np.sqrt(np.mean(error**2)))))
        for name, length, error in zip(estimates.classes, lengths, errors, strict=True)
    ]
    lines = table(("cluster", "length of centre", "error of an entry"), rows)
    scales = to_host(estimates.scales).astype(np.float64)
    low, high = np.nanquantile(scales, [0.05, 0.95])
    error, noise = (
        float(np.nanmedian(to_host(values)))
        for values in (estimates.scale_errors, estimates.noise_levels)
    )
    words = (
        f"Scales go from {three_digits(low)} (5%) to {three_digits(high)} (95%); their "
        "mean in each cluster is 1. The median standard error of a scale is "
        f"{three_digits(error)}, and the median noise level {three_digits(noise)}."
    )
    size = f"{counted(n, 'row')}, {counted(p, 'feature')}, {counted(k, 'cluster')}"
    return page(f"Estimates from {size}", lines, paragraph(words))


def features_html(ranked: TellingFeatures) -> str:
    """Return the columns that set each cluster apart, with their contrasts."""
    shown = min(ranked.features.shape[1], 8)
    rows = [
        (k, *(f"{j} ({score:+.2g})" for j, score in zip(which, scores, strict=True)))
        for k, (which, scores) in enumerate(
            zip(ranked.features[:, :shown], ranked.scores[:, :shown], strict=True)
        )
    ]
    head = ("cluster", *(f"feature {i}" for i in range(1, shown + 1)))
    title = "Features that set clusters apart (contrast)"
    return page(title, table(head, rows))
