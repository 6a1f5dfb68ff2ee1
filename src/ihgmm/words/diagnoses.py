"""A diagnosis in words: the verdict, what figures mean, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np

from ihgmm.statistics.diagnosis import Caution, Diagnosis, Edge
from ihgmm.words.phrases import bullets, chance, counted, page, percent, sentence, table


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Return the verdict, each figure with its meaning, and the cautions."""
    figures = figure_table(diagnosis)
    wide = max(len(name) for name, _, _ in figures)
    deep = max(len(figure) for _, figure, _ in figures)
    lines = [
        f"{sentence(diagnosis.verdict)}.",
        *(f"  {name:<{wide}}  {fig:>{deep}}  {means}" for name, fig, means in figures),
        *(
            fill(caution_text(caution), 80, initial_indent="! ", subsequent_indent="  ")
            for caution in diagnosis.cautions
        ),
    ]
    return "\n".join(lines)


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """Return the same for a notebook."""
    figures = table(("", "", ""), figure_table(diagnosis), words=(2,))
    cautions = bullets(map(caution_text, diagnosis.cautions))
    return page(f"{sentence(diagnosis.verdict)}.", figures, cautions)


def trust_sentence(diagnosis: Diagnosis) -> str:
    """Return how far labels can be trusted, in one sentence."""
    verdict = sentence(diagnosis.verdict)
    if diagnosis.n_clusters == 1 or np.isnan(diagnosis.refit_error):
        return f"{verdict}."
    error = chance(diagnosis.expected_error)
    return f"{verdict} ({error} of the labels are expected to be wrong)."


def figure_table(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Return a name, a figure and its meaning for each line of the summary."""
    d = diagnosis
    small, large = int(d.sizes.min()), int(d.sizes.max())
    sizes = counted(large, "row") if small == large else f"{small:,} to {large:,} rows"
    shape = f"{d.n_samples:,} x {d.n_features:,}"
    data = f"rows x features; {counted(d.n_clusters, 'cluster')} of {sizes}"
    apart_from_these = "are outliers and were left out"
    error = chance(d.expected_error)
    wrong = "of the labels are wrong, judged by the other rows"
    agreed = 0.0 if np.isnan(d.agreement) else d.agreement
    alike = "of the rows are labelled alike by fits to separate halves"
    sure = f"have a label that is less than {d.certain_from:.0%} certain"
    apart = "noise levels between the closest centres, in small rows"
    balance = "smallest cluster over an equal share; 1 is best"
    scales = "large rows over small rows of a cluster (95% over 5%)"
    gap, theory = d.eigenvalue_gap, _threshold_words(d)
    several = d.n_clusters > 1
    lines = [
        (True, "data", shape, data),
        (d.n_outliers > 0, "outliers", f"{d.n_outliers:,}", apart_from_these),
        (several, "expected error", error, wrong),
        (not np.isnan(d.agreement), "agreement", percent(agreed), alike),
        (several, "uncertain rows", percent(d.uncertain_share), sure),
        (not np.isnan(gap), "eigenvalue gap", _figure(gap), _gap_words(d)),
        (several, "separation", _figure(d.separation), apart),
        (several, "over theory", _figure(d.separation_ratio), theory),
        (several, "balance", f"{d.balance:.2f}", balance),
        (True, "scale ratio", _figure(d.scale_ratio), scales),
    ]
    return [line[1:] for line in lines if line[0]]


def _figure(value: float) -> str:
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def _gap_words(diagnosis: Diagnosis) -> str:
    edges = {
        Edge.NONE: "no edge between signal and noise",
        Edge.SLIGHT: "signal rises a little above noise",
        Edge.CLEAR: "signal stands clear of noise",
    }
    if diagnosis.edge is None:
        return ""
    k = diagnosis.n_clusters
    return f"eigenvalue {k} over {k + 1}: {edges[diagnosis.edge]}"


def _threshold_words(diagnosis: Diagnosis) -> str:
    text = "separation over what theory asks for"
    if diagnosis.separation_ratio < 1:
        return f"{text}; below 1 no promise"
    if diagnosis.has_few_features:
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
    "OTHER_SEEDS": "Two other seeds disagree on {percent} of the rows: there is more "
    "than one way to split these data into {clusters} clusters. Ask for another number "
    "of clusters, or compare fits with several seeds.",
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


# What the headings of tables of clusters and of features mean, a line each.
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


def outlier_note(n_outliers: int, n_samples: int) -> str:
    """Return how many rows are in no cluster, beside those that are."""
    share = percent(n_outliers / (n_outliers + n_samples))
    return (
        f"Left out {counted(n_outliers, 'row')} ({share}) that "
        f"{'fit' if n_outliers > 1 else 'fits'} no cluster: label -1."
    )
