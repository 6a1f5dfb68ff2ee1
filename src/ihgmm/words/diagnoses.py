"""A diagnosis in words: the verdict, what figures mean, and what to look at."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np

from ihgmm._parameters import option
from ihgmm.metrics import ClassAgreement
from ihgmm.policy import Cautions, Contrasts
from ihgmm.statistics.diagnosis import Caution, CautionKind, Diagnosis, Verdict
from ihgmm.words.phrases import counted, figure, percent, sentence


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Return the verdict, each figure with its meaning, and the cautions."""
    figures = figure_table(diagnosis)
    wide = max(len(name) for name, _, _ in figures)
    deep = max(len(figure) for _, figure, _ in figures)
    lines = [f"{sentence(diagnosis.verdict)}."]
    lines += [f"  {name:<{wide}}  {fig:>{deep}}  {says}" for name, fig, says in figures]
    if wrong_labels(diagnosis):
        lines.append("Stable clusters need not be the classes that you have in mind.")
    for text in map(caution_text, diagnosis.cautions):
        lines.append(fill(text, 80, initial_indent="! ", subsequent_indent="  "))
    return "\n".join(lines)


def trust_sentence(diagnosis: Diagnosis) -> str:
    """Return how far labels can be trusted, in two sentences at most."""
    verdict = f"{sentence(diagnosis.verdict)}."
    if not _is_judged(diagnosis):
        aside = f", the {diagnosis.n_given:,} given aside" * (diagnosis.n_given > 0)
        return f"{verdict[:-1]}{aside}."
    share = percent(diagnosis.stability)
    if diagnosis.verdict is Verdict.GIVEN:
        return f"{verdict} Fits to other rows, without them, find {share} of them."
    if wrong := wrong_labels(diagnosis):
        rest = f"{percent(diagnosis.expected_error)} are expected to be wrong, and on "
        rest += f"real data with as much doubt ({percent(diagnosis.doubt)}"
        rest += f"{', and more for missing cells' * diagnosis.incomplete}) usually "
        rest += f"{wrong} were"
    else:
        largest = percent(diagnosis.largest_share)
        rest = f"{largest} would if every row went to the largest cluster, and trust "
        rest += "begins beyond halfway from there to 100%"
    given = f", without the {diagnosis.n_given:,} given," * (diagnosis.n_given > 0)
    stays = f"{share} of the labels{given} would stay the same with other rows"
    return f"{verdict} {stays}; {rest}."


def _is_judged(diagnosis: Diagnosis) -> bool:
    return diagnosis.n_clusters > 1 and not np.isnan(diagnosis.stability)


def wrong_labels(diagnosis: Diagnosis) -> str:
    """Return the share of labels that may be wrong, where real data say it, or ""."""
    silent = Verdict.NO_SEPARATION, Verdict.GIVEN
    if not _is_judged(diagnosis) or diagnosis.verdict in silent:
        return ""
    low, high = diagnosis.error_range
    return "less than 1%" if high < 0.01 else f"{100 * low:.0f}% to {100 * high:.0f}%"


def figure_table(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Return a name, a figure and its meaning for each line of the summary."""
    d, judged = diagnosis, _is_judged(diagnosis)
    small, large = int(d.sizes.min()), int(d.sizes.max())
    sizes = counted(large, "row") if small == large else f"{small:,} to {large:,} rows"
    data = f"rows x features; {counted(d.n_clusters, 'cluster')} of {sizes}"
    outliers = f"{d.n_outliers:,}", "are outliers and were left out"
    stays = "of labels stay the same in fits to other rows"
    usual = f"expected; on real data with as much doubt usually {wrong_labels(d)}"
    usual += "; missing cells add to it" * d.incomplete
    given = f"{d.n_given:,}", "labels were given; the lines below are about the others"
    few = [str(name) for name in d.classes[np.isnan(d.cluster_stability)]]
    names = ", ".join([*few[:5], *["..."] * (len(few) > 5)])
    unjudged = f"of the clusters have too few rows to judge: {names}"
    other = "is the mean probability of another label in these fits"
    sure = f"have a label that is less than {d.certain_from:.0%} certain"
    if CautionKind.ZERO_ROWS in [caution.kind for caution in d.cautions]:
        sure += ", empty rows aside"
    sure_of_some = judged and d.verdict is not Verdict.NO_SEPARATION
    lines = [
        (True, "data", f"{d.n_samples:,} x {d.n_features:,}", data),
        (d.n_outliers > 0, "outliers", *outliers),
        (0 < d.n_given < d.n_samples, "given", *given),
        (judged, "stability", percent(d.stability), stays),
        (judged, "doubt", percent(d.doubt), other),
        (judged and len(few) > 0, "not judged", f"{len(few):,}", unjudged),
        (wrong_labels(d) != "", "wrong labels", percent(d.expected_error), usual),
        (sure_of_some, "uncertain rows", percent(d.uncertain_share), sure),
    ]
    return [line[1:] for line in lines if line[0]]


def caution_text(
    caution: Caution, names: Sequence[str] | None = None, *, prepared: bool = False
) -> str:
    """Return a caution in a sentence or two, with what to do about it."""
    f = caution.figures
    column, *others = (
        names[one] if names is not None and isinstance(one, int) else one
        for one in (f.get("column"), *f.get("others", ()))
    )
    if caution.kind is CautionKind.OTHER_CLUSTERS:
        order = "Are rows and labels in the same order? " * f["by_chance"]
        other = f"the data show other clusters. {order}IhSC finds them by default."
        if f["fitted"]:  # by IhSC itself
            other = "halves show other clusters than all rows. Ask for another number."
        return (
            "Fits to halves of the rows agree with each other on "
            f"{f['agreement']:.0%} of the rows, but with these labels on "
            f"{f['share']:.0%} only: {other}"
        )
    if caution.kind is CautionKind.RULING_COLUMN:
        scaler = option("ColumnScaler")
        remedy = f"If columns are in different units, {scaler} makes them comparable."
        if prepared:
            remedy = "Leave it out to see what the others show."
            remedy *= names is None or len(names) > 2  # one alone is no table
        return (
            f"Column {column!r} holds about {f['share']:.0%} of the variance of "
            f"ordinary rows, more than all others together. {remedy}"
        ).rstrip()
    if caution.kind is CautionKind.ONE_VALUE:
        more = f", and of {', '.join(map(repr, others))}" * bool(others)
        if len(others) > Cautions.NAMED:
            more = f", and of {len(others):,} others"
        own = [str(cluster) for cluster in f["clusters"]]  # with a value of their own
        names = f"cluster {own[0]}" if len(own) == 1 else counted(len(own), "cluster")
        part = f"which rows are in {names}" if own and not others else "some clusters"
        it, they = ("each", "these") if others else ("it", "it")
        return (
            f"Each cluster has one value, or almost, of column {column!r}{more}: {it} "
            f"may decide {part} alone. A fit without {they} shows what else there is."
        )
    n, unobserved = f["rows"], f.get("unobserved", 0)
    what = "without an observed cell" if unobserved else "of zeros"
    what += " but zeros" * (0 < unobserved < n)
    return f"The labels of {counted(n, 'row')} {what} mean nothing."


def class_words(
    agreement: ClassAgreement, n: int, rival: ClassAgreement | None = None
) -> str:
    """Return how many of n rows are in another class than their cluster stands for."""
    rows, share = f"{agreement.misplaced:,} of {n:,} rows", percent(agreement.rate)
    words = f"{rows} differ ({share})"
    if agreement.by_majority:
        words = f"{rows} ({share}) are not of the largest class in their cluster"
    words += f", adjusted Rand index {agreement.adjusted_rand_index:z.2f}"
    if rival is None:
        return words
    share, index = percent(rival.rate), rival.adjusted_rand_index
    return f"{words}; with k-means {rival.misplaced:,} ({share}), {index:z.2f}"


# What the figures of the sentence on trust mean, a line each.
TRUST_WORDS = (
    "stay the same: labels that fits to other rows repeat, also by a hair's breadth",
    "doubt: how probable other labels are in these fits, on average",
    "wrong: what as much doubt in as many clusters means, by a curve fitted to real",
    "    data, and what missing cells add; certainty is 100% minus this on average,",
    "    rows aside that are zero or were given a label, and the verdict goes by it,",
    "    unless too few labels stay the same",
)

# What the headings of tables of clusters and of features mean, a line each.
CLUSTER_WORDS = (
    "size: how much a row has of the pattern of its cluster: the root of a sum of",
    "    squares, not the sum of its columns; the median is shown",
    "scales: sizes over their mean in the fit, by cluster, for the middle 90% of rows",
    "certainty: how probable it is that a label is right; the mean is shown;",
    "    a fit that separates nothing shows none",
    "typical: of rows of ordinary size in which no cell was filled in, that whose",
    "    pattern is nearest to the cluster's",
)


def feature_words(same_size: bool) -> tuple[str, ...]:
    """Return what the words of a table of features mean."""
    mean = "mean: the mean of the feature in the cluster, in the units of the data"
    others: tuple[str, ...] = ("others: the mean of the rows of all other clusters",)
    if same_size:
        rest = "others, same size: the mean in the other clusters, if their rows were"
        others = rest, "    as large as those of this cluster"
    contrast = "contrast: how far the one is above (+) or below (-) the other, in noise"
    levels = "    levels: how far cells stray by chance; what is above comes first;"
    most = f"    over {Contrasts.MOST:g} noise is next to nothing: such columns decide"
    return mean, *others, contrast, levels, most


def contrast_text(contrast: float) -> str:
    """Return a contrast; beyond 20 noise is next to nothing, such as in constants."""
    sign = "+" if contrast >= 0 else "-"
    if abs(contrast) > Contrasts.MOST:
        return f"{'over' if contrast > 0 else 'below'} {sign}{Contrasts.MOST:g}"
    return sign + figure(abs(contrast), 2)
