"""A diagnosis in words: the verdict, what figures mean, and what to look at."""

from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple, assert_never

import numpy as np

from ihgmm._display import describe
from ihgmm._parameters import option
from ihgmm.policy import Cautions
from ihgmm.statistics.cautions import (
    Caution,
    Column,
    OneValueColumn,
    OtherClusters,
    RulingColumn,
    ZeroRows,
)
from ihgmm.statistics.diagnosis import Diagnosis, Verdict
from ihgmm.words.phrases import counted, percent, sentence

# What the figures of trust_sentence mean: the command line explains them below it.
TRUST_WORDS = (
    "keeps: labels that fits to other rows repeat, also by a hair's breadth",
    "as clear: real data with known classes, of as many clusters, that such fits were",
    "    as sure of; in four of five such sets the share of wrong labels was in the",
    "    range, also where classes are not what the clusters are; certainty has the",
    "    mean of the share expected to be right, rows aside that are zero or were",
    "    given a label, and the verdict goes by it, unless fits keep too few labels",
)
MOST_NAMED_CLUSTERS = 5


class FigureLine(NamedTuple):
    """A line of the summary of a diagnosis."""

    name: str
    figure: str
    meaning: str


@describe.register
def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Return the verdict, each figure with its meaning, and the cautions."""
    table = figure_table(diagnosis)
    name_width = max(len(line.name) for line in table)
    figure_width = max(len(line.figure) for line in table)

    lines = [fill(trust_sentence(diagnosis), 80, break_long_words=False)]
    for name, figure, meaning in table:
        lines.append(f"  {name:<{name_width}}  {figure:>{figure_width}}  {meaning}")
    if wrong_labels(diagnosis):
        lines.append("Stable clusters need not be the classes that you have in mind.")

    for caution in diagnosis.cautions:
        text = caution_text(caution)
        lines.append(fill(text, 80, initial_indent="! ", subsequent_indent="  "))

    return "\n".join(lines)


def trust_sentence(diagnosis: Diagnosis) -> str:
    """Return how far labels can be trusted, in two sentences at most."""
    finding = f"{sentence(diagnosis.verdict)}{_given_aside(diagnosis)}."
    return f"{finding} {trust_reason(diagnosis)}".rstrip()


def trust_reason(diagnosis: Diagnosis) -> str:
    """Return the sentence behind a verdict, or "" where fits to other rows say nothing.

    It has how many labels such fits keep, and the share of wrong labels to reckon with.
    """
    verdict = diagnosis.verdict
    share = percent(diagnosis.stability)
    match verdict:
        case Verdict.ONE_CLUSTER | Verdict.NOT_KNOWN:
            return ""

        case Verdict.GIVEN:
            if np.isnan(diagnosis.stability):
                return ""
            return f"Refitting on other rows, without these labels, finds {share}."

        case Verdict.NO_SEPARATION:
            return (
                f"Refitting on other rows keeps {share} of the labels; "
                f"{percent(diagnosis.largest_share)} would stay if every row went to "
                "the largest cluster."
            )

        case Verdict.WELL_SEPARATED | Verdict.SEPARATED | Verdict.OVERLAPPING:
            return (
                f"Refitting on other rows keeps {share} of the labels; on real data "
                f"that looked as clear, {wrong_labels(diagnosis)} were wrong."
            )

        case _:
            assert_never(verdict)


def _given_aside(diagnosis: Diagnosis) -> str:
    """Return a clause to put after a verdict that is not on labels that were given."""
    if diagnosis.n_given == 0 or diagnosis.verdict is Verdict.GIVEN:
        return ""
    return f" (the {diagnosis.n_given:,} labels given aside)"


def _is_judged(diagnosis: Diagnosis) -> bool:
    """Tell whether fits to other rows have judged the labels."""
    return diagnosis.n_clusters > 1 and not np.isnan(diagnosis.stability)


def wrong_labels(diagnosis: Diagnosis) -> str:
    """Return the share of labels that is usually wrong on real data that look alike.

    It is a range in words, or "" where nothing can be said.
    """
    is_silent = diagnosis.verdict in (Verdict.NO_SEPARATION, Verdict.GIVEN)
    if is_silent or not _is_judged(diagnosis):
        return ""

    smallest, largest = diagnosis.error_range
    return f"{100 * smallest:.0f}% to {100 * largest:.0f}%"


def figure_table(diagnosis: Diagnosis) -> list[FigureLine]:
    """Return a name, a figure and its meaning for each line of the summary."""
    shape = f"{diagnosis.n_samples:,} x {diagnosis.n_features:,}"
    lines = [FigureLine("data", shape, _data_meaning(diagnosis))]

    if diagnosis.n_outliers > 0:
        number = f"{diagnosis.n_outliers:,}"
        meaning = "are outliers and were left out"
        lines.append(FigureLine("outliers", number, meaning))

    if 0 < diagnosis.n_given < diagnosis.n_samples:
        number = f"{diagnosis.n_given:,}"
        meaning = "labels were given; the lines below are about the others"
        lines.append(FigureLine("given", number, meaning))

    if _is_judged(diagnosis):
        lines += _judgement_lines(diagnosis)
    return lines


def _data_meaning(diagnosis: Diagnosis) -> str:
    """Return what the size of the data means, and how large clusters are."""
    smallest = int(diagnosis.sizes.min())
    largest = int(diagnosis.sizes.max())
    if smallest == largest:
        sizes = counted(largest, "row")
    else:
        sizes = f"{smallest:,} to {largest:,} rows"

    return f"rows x features; {counted(diagnosis.n_clusters, 'cluster')} of {sizes}"


def _judgement_lines(diagnosis: Diagnosis) -> list[FigureLine]:
    """Return the lines on what fits to other rows say of the labels."""
    lines = [
        FigureLine(
            "stability",
            percent(diagnosis.stability),
            "of labels stay the same in fits to other rows",
        ),
        FigureLine(
            "doubt",
            percent(diagnosis.doubt),
            "is the mean probability of another label in these fits",
        ),
    ]

    unjudged = [str(name) for name in diagnosis.classes[_is_unjudged(diagnosis)]]
    if unjudged:
        names = ", ".join(unjudged[:MOST_NAMED_CLUSTERS])
        if len(unjudged) > MOST_NAMED_CLUSTERS:
            names += ", ..."
        meaning = f"of the clusters have too few rows to judge: {names}"
        lines.append(FigureLine("not judged", f"{len(unjudged):,}", meaning))

    if wrong_labels(diagnosis):
        expected_error = percent(diagnosis.expected_error)
        meaning = "expected, judged by real data with known classes"
        if diagnosis.incomplete:
            meaning += "; missing cells add to it"
        lines.append(FigureLine("wrong labels", expected_error, meaning))

    if diagnosis.verdict is not Verdict.NO_SEPARATION:
        meaning = f"have a label that is less than {diagnosis.certain_from:.0%} certain"
        if any(isinstance(caution, ZeroRows) for caution in diagnosis.cautions):
            meaning += ", empty rows aside"
        share = percent(diagnosis.uncertain_share)
        lines.append(FigureLine("uncertain rows", share, meaning))

    return lines


def _is_unjudged(diagnosis: Diagnosis) -> np.ndarray:
    """Tell which clusters have too few rows to judge."""
    return np.isnan(diagnosis.cluster_stability)


@describe.register
def caution_text(
    caution: Caution, names: Sequence[str] | None = None, *, prepared: bool = False
) -> str:
    """Return a caution in a sentence or two, with what to do about it.

    Parameters
    ----------
    caution : Caution
        What to look at.
    names : sequence of str, optional
        Names of columns, where the caution has their positions.
    prepared : bool
        Whether columns were brought to comparable units before the fit.
    """
    match caution:
        case OtherClusters():
            return _other_clusters_text(caution)
        case RulingColumn():
            return _ruling_column_text(caution, names, prepared)
        case OneValueColumn():
            return _one_value_text(caution, names)
        case ZeroRows():
            return _zero_rows_text(caution)
        case _:
            assert_never(caution)


def _other_clusters_text(caution: OtherClusters) -> str:
    if caution.is_of_ihsc:
        advice = "halves show other clusters than all rows. Ask for another number."
    else:
        question = ""
        if caution.is_by_chance:
            question = "Are rows and labels in the same order? "
        advice = f"the data show other clusters. {question}IhSC finds them by default."

    return (
        "Fits to halves of the rows agree with each other on "
        f"{caution.agreement:.0%} of the rows, but with these labels on "
        f"{caution.stability:.0%} only: {advice}"
    )


def _ruling_column_text(
    caution: RulingColumn, names: Sequence[str] | None, prepared: bool
) -> str:
    text = (
        f"Column {_name_of(caution.column, names)!r} holds about {caution.share:.0%} "
        "of the variance of ordinary rows, more than all others together."
    )
    if not prepared:
        scaler = option("ColumnScaler")
        return (
            f"{text} If columns are in different units, {scaler} makes them comparable."
        )

    if names is None or len(names) > 2:  # of two columns, one would remain
        return f"{text} Leave it out to see what the others show."
    return text


def _one_value_text(caution: OneValueColumn, names: Sequence[str] | None) -> str:
    other_names = [repr(_name_of(column, names)) for column in caution.other_columns]
    columns = f"column {_name_of(caution.column, names)!r}"
    if len(other_names) > Cautions.NAMED:
        columns += f", and of {len(other_names):,} others"
    elif other_names:
        columns += f", and of {', '.join(other_names)}"

    rows_decided = "some clusters"
    if caution.clusters and not other_names:
        clusters = counted(len(caution.clusters), "cluster")
        if len(caution.clusters) == 1:
            clusters = f"cluster {caution.clusters[0]}"
        rows_decided = f"which rows are in {clusters}"

    subject = "each" if other_names else "it"
    pronoun = "these" if other_names else "it"
    return (
        f"Each cluster has one value, or almost, of {columns}: {subject} may decide "
        f"{rows_decided} alone. A fit without {pronoun} shows what else there is."
    )


def _zero_rows_text(caution: ZeroRows) -> str:
    rows = counted(caution.n_rows, "row")
    if caution.n_unobserved >= caution.n_rows:
        rows += " without an observed cell"
    elif caution.n_unobserved > 0:
        rows += " without an observed cell but zeros"
    else:
        rows += " of zeros"
    return f"The labels of {rows} mean nothing."


def _name_of(column: Column, names: Sequence[str] | None) -> Column:
    """Return the name of a column that is known by its position, where there is one."""
    if names is not None and isinstance(column, int):
        return names[column]
    return column
