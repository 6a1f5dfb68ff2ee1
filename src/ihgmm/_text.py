"""What results say to people who use Python: counts, tests and diagnoses in words.

Functions here take a result and return text. No other code reads that text back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ihgmm.statistics.diagnosis import Caution, Diagnosis
    from ihgmm.statistics.evidence import CountEvidence
    from ihgmm.statistics.scale_heterogeneity import ScaleTest
    from ihgmm.statistics.selection import ClusterCount


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is due."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def percent(share: float) -> str:
    """Return a share as people read it: none and all are nothing but that.

    Examples
    --------
    >>> [percent(share) for share in (0, 0.0004, 0.125, 0.9996, 1)]
    ['0%', '< 0.1%', '12.5%', '> 99.9%', '100%']
    """
    if share in (0, 1):
        return f"{share:.0%}"
    if share < 0.001 or share > 0.999:
        return "< 0.1%" if share < 0.5 else "> 99.9%"
    return f"{share:.1%}"


def _figure(value: float) -> str:
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


# The number of clusters


def count_headline(count: ClusterCount) -> str:
    """Return the finding in a few words."""
    if count.n_clusters == 0:
        return "cannot tell" if count.is_dominated else "no structure"
    if not count.is_doubtful:
        return counted(count.n_clusters, "cluster")
    numbers = [number.n_clusters for number in count.plausible]
    if len(numbers) < 2:
        return f"{counted(count.n_clusters, 'cluster')}, not confirmed"
    if count.confidence.value == "none":
        return f"not known: {_either(numbers)} clusters"
    first, *others = numbers
    return f"perhaps {counted(first, 'cluster')}, else {_either(others)}"


def listed(words: Sequence[str], last: str) -> str:
    """Return words with commas, and a word before the last."""
    *others, final = words
    return f"{', '.join(others)} {last} {final}" if others else final


def _either(numbers: Sequence[int]) -> str:
    """Return numbers of which one is meant."""
    return listed([f"{number:,}" for number in numbers], "or")


def edge_words(count: ClusterCount) -> list[str]:
    """Return what the table of eigenvalues means, a line each."""
    lines = [
        "edge: the largest eigenvalue of noise, found in copies of the data in which",
        "    each cell got a random sign; an eigenvalue has to exceed it to stand out",
    ]
    if 0 < count.rank < count.n_clusters:
        lines.append("Clusters can be more than eigenvalues that stand out:")
        lines.append(
            f"    in {counted(count.n_features, 'feature')}, random signs hide some"
            if count.has_few_features
            else "    the pattern of one may be a mixture of others"
        )
    return lines


def evidence_words(count: ClusterCount) -> list[str]:
    """Return what the table of numbers of clusters means, a line each."""
    lines = [
        "gap: how much better k-means fits rows than noise of the same spread, among",
        "    eigenvectors or among projected rows",
        "halves: how far two halves of the rows agree, from 0 to 1",
        "likelihood: what a mixture gains on one cluster, for each row, less a price",
        "support: all of these together, less a price for many clusters",
        "best by: the figures that are best for this number",
    ]
    if any(side.value == "directions" for n in count.evidence for side in n.sides):
        lines.append("    directions: as many eigenvalues stand out from noise")
    lines.append("plausible: those with most support, the best first; a number close")
    lines.append("    to a better one is left out")
    return lines


_SIDES = {
    "directions": "the number of directions",
    "gap": "the gap to noise",
    "halves": "the agreement of halves",
    "likelihood": "the likelihood",
}


def _supporters(number: CountEvidence) -> str:
    """Return the sides, one or more, that name a number first."""
    return listed([_SIDES[side.value] for side in number.sides], "and")


def _weighed(number: CountEvidence) -> str:
    """Return a number with its support, and the sides that name it first."""
    best = f", best by {_supporters(number)}" if number.sides else ""
    return f"{number.n_clusters} (support {number.support:.2f}{best})"


def count_summary(count: ClusterCount) -> str:
    """Return the finding and the evidence in a sentence or two."""
    if count.n_clusters == 0 and count.is_dominated:
        return _dominated(count)
    texts = {"combined": _combined, "stability": _stability, "parallel": _parallel}
    text = texts[count.method](count)
    if count.is_capped:
        text += f" It stopped at max_clusters={count.max_clusters}; there may be more."
    counted_there = count.method != "combined" or count.n_clusters == count.rank
    if count.gram == "cosine" and count.n_clusters > 1 and counted_there:
        text += " The cosines of rows show this; inner products show fewer clusters."
    return text


def automatic_count_warnings(
    count: ClusterCount, hidden_from: str | None
) -> Iterator[str]:
    """Yield what a user of ``n_clusters="auto"`` has to know.

    ``hidden_from`` is the Gram matrix of the fit, if it shows fewer clusters.
    """
    if count.n_clusters <= 1:
        yield (
            f"{count.summary} All rows are put in one cluster; give n_clusters if you "
            "know better."
        )
        return
    if count.is_capped:
        yield (
            "n_clusters='auto' looks for at most "
            f"{counted(count.max_clusters, 'cluster')} and found as many; there may be "
            "more. Count them with "
            f"select_n_clusters(X, max_clusters={10 * count.max_clusters}) and give "
            "the number."
        )
    elif not count.is_known:
        yield (
            f"n_clusters='auto' chose {count.n_clusters}, which is doubtful. "
            f"{count.summary} Look at select_n_clusters(X).plot(), compare fits, and "
            "give n_clusters."
        )
    if hidden_from is not None and count.n_clusters > 1:
        yield (
            f"The cosines of rows show {counted(count.n_clusters, 'cluster')}; "
            f"gram={hidden_from!r} shows fewer and can mix them up. Fit with "
            "gram='cosine' or refine=True."
        )


def _dominated(count: ClusterCount) -> str:
    remedy = "Divide the columns by their deviation first."
    if count.is_offset:
        remedy = (
            "It is mostly an offset: its mean is far from zero, compared with its "
            "deviation. Subtract its mean, or leave it out."
        )
    named = count.largest_name is not None
    column = repr(count.largest_name) if named else count.largest_index
    return (
        f"Cannot tell: column {column} holds {count.largest_column:.0%} of the squared "
        "length of X, and random signs on a single column show nothing. "
        f"{remedy}"
    )


def _standing_out(count: ClusterCount) -> str:
    if count.rank == 0:
        return "no eigenvalue stands out from noise"
    stand = "stands" if count.rank == 1 else "stand"
    return (
        f"{counted(count.rank, 'eigenvalue')} {stand} out from noise "
        f"(edge {count.edge:.3g})"
    )


def _combined(count: ClusterCount) -> str:
    start = _standing_out(count)
    if not count.evidence:
        return _parallel(count)
    if count.n_clusters <= 1 and count.rank <= 1:
        found = "No structure" if count.rank == 0 else "All rows share one direction"
        if count.is_known:
            return f"{found}: {start}, and rows form no groups beyond those of noise."
        text = f"{found}, it seems: {start}, and rows hardly form groups."
        others = [number.n_clusters for number in count.plausible[1:]]
        if others:
            text += f" If there are clusters, {_either(others)} are likeliest."
        return text
    if count.n_clusters == 1:
        others = [number.n_clusters for number in count.plausible[1:]]
        return (
            f"Not known: {start}, but rows form no groups along them beyond those of "
            "noise. Noise that features share looks like this, and so do clusters that "
            f"overlap. If there are clusters, {_either(others)} are likeliest."
        )
    first, *more = count.plausible
    named = counted(first.n_clusters, "cluster")
    if count.is_known:
        return f"{named}, supported by {_supporters(first)}; {start}."
    text = f"Perhaps {named}: {_weighed(first)}."
    if more:
        also = listed([_weighed(number) for number in more], "and")
        text = f"Most support has {_weighed(first)}; also plausible: {also}."
    if count.confidence.value == "none":
        text = f"Not known: the evidence points to numbers far apart. {text}"
    return f"{text} {start[0].upper()}{start[1:]}."


def _parallel(count: ClusterCount) -> str:
    start, clusters = _standing_out(count), counted(count.n_clusters, "cluster")
    if count.n_clusters == 0:
        text = f"No structure: {start}."
    elif count.is_capped:
        return f"{start}."
    elif count.n_clusters == 1:
        text = f"{start}: all rows share one direction."
    elif count.has_few_features:
        text = f"{start}: {clusters} or more."
    else:
        text = f"{start}: {clusters}, or more if patterns are dependent."
    if not count.has_few_features:
        return text
    return (
        f"{text} Random signs on {counted(count.n_features, 'feature')} leave much of "
        "a pattern and can hide others; compare with method='stability'."
    )


def _stability(count: ClusterCount) -> str:
    start, tried = _standing_out(count), count.strengths
    if count.is_stable:
        return (
            f"Halves of the data agree on {counted(count.n_clusters, 'cluster')} "
            f"(prediction strength {tried[count.n_clusters]:.2f}); {start}."
        )
    if tried:
        text = (
            f"No number of clusters from {min(tried)} to {max(tried)} is stable: the "
            f"prediction strength is at most {max(tried.values()):.2f}, below "
            f"{count.required_strength}."
        )
    elif count.rank == 1 and count.n_clusters == 2:
        return f"{start}; rows lie on both sides of zero along it: 2 clusters."
    elif count.rank == 1:
        return f"{start}{'' if count.is_capped else ': all rows share one direction'}."
    else:
        text = "No number of clusters was tried in halves of the data."
    if count.rank:
        return f"{text} The number given is the rank: {start}."
    text = f"No structure: {start}. {text}"
    if count.has_few_features:
        text += (
            f" Random signs on {counted(count.n_features, 'feature')} may not show "
            "that all rows share one direction."
        )
    return text


# The test of scales


_SCALE_EVIDENCE = {
    "NOTHING_TO_COMPARE": "no cluster has 4 different rows to compare.",
    "ONE_CLUSTER": "rows of cluster {cluster} differ in scale ({cluster_p}, corrected "
    "for {tested} clusters), though all clusters together do not show it ({p}).",
    "TOO_WEAK": "there is no sign of individual scales ({p}), but the signal is too "
    "weak, or rows or features are too few, to be sure.",
    "ABSENT": "there is no sign of individual scales ({p}), and a spread of "
    "{detectable:.1%} would have shown.",
    "UNKNOWN_SPREAD": "rows of a cluster differ in scale ({p}); the signal is too weak "
    "to say by how much.",
    "SLIGHT": "rows of a cluster differ in scale ({p}), but only by about "
    "{spread:.1%}.",
    "CLEAR": "rows of a cluster differ in scale by about {spread:.0%} ({p}).",
}


SCALE_ASSUMPTIONS = {
    "ALIKE": "Assumed: noise is correlated alike in all clusters.",
    "SOME_ALIKE": "Assumed: noise is correlated alike in all clusters, and is not "
    "correlated along centres for which no other cluster shows it.",
    "INDEPENDENT": "Assumed: entries of the noise are independent; one cluster alone "
    "cannot show whether they are.",
}


def scale_recommendation(test: ScaleTest) -> str:
    """Return which mixture to use, with the figures that speak for it."""
    cluster, cluster_p = test.strongest
    reason = _SCALE_EVIDENCE[test.evidence.name].format(
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


def scale_rows(test: ScaleTest) -> list[tuple[str, int, str, str]]:
    """Return name, rows, spread and p-value of each cluster, and of all together."""
    each = zip(test.clusters, test.sizes, test.spreads, test.p_values, strict=True)
    total = ("all", test.sizes.sum(), test.spread, test.p_value)
    rows = []
    for name, size, spread, p in (*each, total):
        shown = "-" if np.isnan(spread) else f"{spread:.1%}"
        # A smaller one says no more: it depends on the last digits of the data.
        p_value = "-" if np.isnan(p) else "<1e-16" if p < 1e-16 else f"{p:.2g}"
        rows.append((str(name), int(size), shown, p_value))
    return rows


def scale_table(test: ScaleTest) -> str:
    """Return the figures of each cluster in a table, and the recommendation."""
    rows = scale_rows(test)
    width = max(len(name) for name in ("cluster", *(row[0] for row in rows)))
    lines = [f"{'cluster':<{width}}     rows  spread  p-value"]
    for name, size, spread, p_value in rows:
        lines.append(f"{name:<{width}}  {size:>7}  {spread:>6}  {p_value:>7}")
    lines.append(test.recommendation)
    if test.n_tested:
        lines.append(test.assumption.sentence)
    return "\n".join(lines)


# A diagnosis


def diagnosis_summary(diagnosis: Diagnosis) -> str:
    """Return the verdict, each figure with its meaning, and the warnings."""
    table = figure_table(diagnosis)
    wide = max(len(name) for name, _, _ in table)
    deep = max(len(figure) for _, figure, _ in table)
    lines = [
        f"{diagnosis.verdict[0].upper()}{diagnosis.verdict[1:]}.",
        *(f"  {name:<{wide}}  {fig:>{deep}}  {means}" for name, fig, means in table),
        *(
            fill(text, 80, initial_indent="! ", subsequent_indent="  ")
            for text in diagnosis.warnings
        ),
    ]
    return "\n".join(lines)


def figure_table(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Return a name, a figure and its meaning for each line of the summary."""
    d = diagnosis
    small, large = int(d.sizes.min()), int(d.sizes.max())
    sizes = counted(large, "row") if small == large else f"{small:,} to {large:,} rows"
    shape = f"{d.n_samples:,} x {d.n_features:,}"
    data = f"rows x features; {counted(d.n_clusters, 'cluster')} of {sizes}"
    apart_from_these = "are outliers and were left out"
    # A probability: not none, however near to it.
    error = percent(max(d.expected_error, 1e-9))
    wrong = "of the labels are wrong, judged by the other rows"
    agreed = 0.0 if np.isnan(d.agreement) else d.agreement
    alike = "of the rows are labelled alike by fits to separate halves"
    sure = f"have a label that is less than {d.certain_from:.0%} certain"
    apart = "noise levels between the closest centres, in small rows"
    balance = "smallest cluster over an equal share; 1 is best"
    scales = "large rows over small rows of a cluster (95% over 5%)"
    gap, theory = d.eigenvalue_gap, _threshold_text(d)
    several = d.n_clusters > 1
    lines = [
        (True, "data", shape, data),
        (d.n_outliers > 0, "outliers", f"{d.n_outliers:,}", apart_from_these),
        (several, "expected error", error, wrong),
        (not np.isnan(d.agreement), "agreement", percent(agreed), alike),
        (several, "uncertain rows", percent(d.uncertain_share), sure),
        (not np.isnan(gap), "eigenvalue gap", _figure(gap), _gap_text(d)),
        (several, "separation", _figure(d.separation), apart),
        (several, "over theory", _figure(d.separation_ratio), theory),
        (several, "balance", f"{d.balance:.2f}", balance),
        (True, "scale ratio", _figure(d.scale_ratio), scales),
    ]
    return [line[1:] for line in lines if line[0]]


def _gap_text(diagnosis: Diagnosis) -> str:
    edges = {
        "NONE": "no edge between signal and noise",
        "SLIGHT": "signal rises a little above noise",
        "CLEAR": "signal stands clear of noise",
    }
    if diagnosis.edge is None:
        return ""
    k = diagnosis.n_clusters
    return f"eigenvalue {k} over {k + 1}: {edges[diagnosis.edge.name]}"


def _threshold_text(diagnosis: Diagnosis) -> str:
    conditions, text = diagnosis.conditions, "separation over what theory asks for"
    if conditions is None or conditions.separation < 1:
        return f"{text}; below 1 no promise"
    if conditions.features < 1:
        return f"{text}; too few features"
    return f"{text}: met, up to constants"


_CAUTIONS = {
    "ZERO_ROWS": "{rows} {are} zero: {labels}.",
    "HUGE_ROWS": "Only {rows_have} {percent} of the squared length of all rows. IhSC "
    "shortens them (clip=1.5), so that they do no harm. Methods that do not, such as "
    "k-means, PSC and IhSC.paper, follow these rows.",
    "RULING_COLUMN": "Column {column} holds {percent} of the sum of squares and "
    "decides the clusters. Divide the columns by their deviation, or leave it out.",
    "SHIFTED_COLUMN": "Column {column} holds {percent} of the sum of squares. Nearly "
    "all of it is an offset that rows share, which says little about clusters. "
    "Subtract its mean, or leave it out.",
    "FEW_ROWS": "There are {rows} for {clusters} clusters: too few to fit one part and "
    "to judge the other. Nothing is known about these labels.",
    "FEWER_DIRECTIONS": "Eigenvalues drop after number {directions} and are level "
    "after that: there are fewer directions than clusters. {advice}",
    "OTHER_ORDER": "The data show clear directions, but these labels do not follow "
    "them: are rows and labels in the same order?",
    "OTHER_CLUSTERS": "Fits to halves of the rows agree with each other on "
    "{agreement:.0%} of the rows, and with these labels on {share:.0%}: the data show "
    "other clusters. The default settings of IhSC find them.",
    "LARGE_CLUSTER": "One cluster has {percent} of the rows, and few rows are left for "
    "the others. Methods that expect clusters with similar numbers of rows, such as "
    "k-means, split the large one instead.",
    "SHARED_NOISE": "Rows of a cluster differ in ways that columns share: as if there "
    "were {directions:.1f} independent columns, not {features:,}. "
    "Clusters may have structure of their own. The default of IhSC allows for that; "
    "k-means, IhGMM and refine=True assume independent columns.",
    "PURE_NOISE": "Labels of pure noise look like this, and then separation and scales "
    "mean nothing. Try other features, another scaling or fewer clusters. "
    "select_n_clusters shows whether there is any structure.",
    "SMALL_CLUSTER": "Cluster {cluster} has only {rows}: its centre is uncertain, and "
    "its rows may be outliers.",
    "VAGUE_CLUSTER": "Cluster {cluster} is hardly a cluster: {percent} of its rows are "
    "expected to belong elsewhere.",
    "PARALLEL_CLUSTERS": "Clusters {clusters[0]} and {clusters[1]} have nearly the "
    "same pattern (cosine {cosine:.3f}) and may be one.",
    "DISPUTED_ROWS": "{percent} of the rows fit another cluster better, judged by fits "
    "to other rows.",
    "NOT_POSITIVE": "Eigenvalue {number} is not positive: there are fewer directions "
    "than clusters. Some clusters may be one, or their centres are dependent.",
    "MORE_CLUSTERS": "Eigenvalue {next} is {share:.0%} of eigenvalue {number}: there "
    "may be more clusters. select_n_clusters counts them.",
    "EQUAL_SCALES": "Scales hardly differ (ratio {ratio:.2f}): rows of a cluster are "
    "of one size.",
}


def caution_text(caution: Caution, names: Sequence[str] | None = None) -> str:
    """Return a caution in a sentence or two, with what to do about it.

    ``names`` are those of the columns, which otherwise go by their number.
    """
    f = caution.figures
    column = f.get("column")
    if names is not None and isinstance(column, int):
        column = names[column]
    if isinstance(column, str):
        f = f | {"column": repr(column)}
    rows, directions = f.get("rows", 0), f.get("directions", 0)
    several = f"Ask for about {directions} clusters, unless some patterns are mixtures "
    one = "All rows may be one cluster; if not, try other features or another scaling."
    words = {
        "rows": counted(rows, "row"),
        "are": "is" if rows == 1 else "are",
        "labels": "its label means nothing"
        if rows == 1
        else "their labels mean nothing",
        "rows_have": "one row has" if rows == 1 else f"{rows:,} rows have",
        "percent": percent(f.get("share", 0)),
        "next": f.get("number", 0) + 1,
        "advice": f"{several}of others." if directions > 1 else one,
    }
    return _CAUTIONS[caution.kind.name].format(**{**f, **words})


# A fit


# What the headings of tables mean, a line each.
CLUSTER_WORDS = (
    "size: how much a row has of the pattern of its cluster, the root of a sum of",
    "    squares and not the sum of its columns; here the median",
    "scales: sizes over their mean in the cluster, from 5% to 95% of its rows",
    "certainty: how probable it is that a row belongs there, judged by other rows",
    "typical: the row of ordinary size whose pattern is nearest to the cluster's",
)
FEATURE_WORDS = (
    "mean: of the feature in the cluster, in the units of the data",
    "others, same size: what rows of the other clusters would have of it on average,",
    "    if they were as large as the rows of the cluster",
)


def trust_sentence(diagnosis: Diagnosis) -> str:
    """Return how far labels can be trusted, in one sentence."""
    verdict = f"{diagnosis.verdict[0].upper()}{diagnosis.verdict[1:]}"
    if diagnosis.n_clusters == 1 or np.isnan(diagnosis.refit_error):
        return f"{verdict}."
    error = percent(max(diagnosis.expected_error, 1e-9))
    return f"{verdict} ({error} of the labels are expected to be wrong)."


# Two clusterings


def agreement_words(rand: float, n_moved: int) -> str:
    """Return how far two clusterings agree, by their adjusted Rand index.

    The steps are those of Steinley (2004), Psychological Methods 9: 0.9, 0.8 and 0.65
    stand for excellent, good and moderate recovery.
    """
    if n_moved == 0:
        return "They are the same clusters"
    steps = {
        0.9: "They are nearly the same clusters",
        0.8: "They agree on most rows",
        0.65: "They agree in part",
        0.1: "They are different clusterings",
    }
    return next(
        (words for least, words in steps.items() if rand >= least),
        "They have nothing to do with each other",
    )


def preference_text(
    preference: str, names: Sequence[str], errors: Sequence[float], surer: int
) -> str:
    """Return which of two clusterings the data speak for, with the reason.

    ``names`` and ``errors``, the shares of labels expected to be wrong, are those of
    both; ``surer`` is the place of the one with fewer.
    """
    if preference == "not_known":
        return (
            "Nothing here says which of them is better: the certainty of rows is not "
            "known for both."
        )
    better, other = names[surer], names[1 - surer]
    few, more = (percent(max(errors[i], 1e-9)) for i in (surer, 1 - surer))
    if preference == "surer":
        return (
            f"The data speak for {better}: {few} of its labels are expected to be "
            f"wrong, and {more} of those of {other}."
        )
    figures = (
        f"{few} of the labels of {better} are expected to be wrong, and {more} of "
        f"those of {other}"
    )
    if preference == "none":
        return f"The data prefer neither: {figures}. That is no clear difference."
    return (
        f"The data do not say which is better: {figures}. But {better} has fewer "
        "clusters, in which it is easier to place rows. To choose between numbers of "
        "clusters, ask ihgmm choose-k, or select_n_clusters in Python."
    )


def outlier_note(n_outliers: int, n_samples: int) -> str:
    """Return how many rows are in no cluster, beside those that are."""
    share = percent(n_outliers / (n_outliers + n_samples))
    return (
        f"Left out {counted(n_outliers, 'row')} ({share}) that "
        f"{'fit' if n_outliers > 1 else 'fits'} no cluster: label -1."
    )
