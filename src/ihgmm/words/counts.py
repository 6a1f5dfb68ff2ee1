"""A number of clusters, and a tree of clusters, in words."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

import numpy as np

from ihgmm._display import describe
from ihgmm._parameters import call, option
from ihgmm.policy import Counting
from ihgmm.statistics.selection import (
    AllInOneCluster,
    ClusterCount,
    Confidence,
    CountDoubt,
    DoubtfulNumber,
    SearchStopped,
)
from ihgmm.statistics.tree import ClusterTree, Split
from ihgmm.words.phrases import counted, listed, sentence

NOISE_OR_OVERLAP = (
    "noise that features share looks like this, and so do clusters that overlap"
)


def count_headline(count: ClusterCount) -> str:
    """Return the finding in a few words."""
    if count.n_clusters == 0:
        return "no structure"

    clusters = counted(count.n_clusters, "cluster")
    alternatives = count.plausible[1:]
    if count.is_doubtful and alternatives:
        return f"perhaps {clusters}, or {listed(alternatives, 'or')}"
    return clusters


@describe.register
def count_text(count: ClusterCount) -> str:
    """Return the finding and the evidence in a few sentences."""
    text = _one_or_none(count) if count.n_clusters <= 1 else _several(count)
    if count.is_capped:
        limit = option("max_clusters", count.max_clusters)
        text += f" It stopped at {limit}; there may be more."

    return text


@describe.register
def doubt_text(doubt: CountDoubt) -> str:
    """Return what a user of ``n_clusters="auto"`` has to know."""
    count = doubt.count
    match doubt:
        case AllInOneCluster():
            return (
                f"{count_text(count)} All rows are put in one cluster; give "
                f"{option('n_clusters')} if you know the number."
            )
        case SearchStopped():
            return (
                f"{option('n_clusters', 'auto')} looks for at most "
                f"{counted(count.max_clusters, 'cluster')} and found that many; there "
                "may be more. Count them with "
                f"{call('select_n_clusters', max_clusters=10 * count.max_clusters)} "
                "and give the number."
            )
        case DoubtfulNumber():
            return (
                f"{option('n_clusters', 'auto')} chose {count.n_clusters}, which is "
                f"doubtful. {count_text(count)} Look at {call('select_n_clusters')}, "
                f"compare fits with different numbers, and give {option('n_clusters')}."
            )
        case _:
            assert_never(doubt)


def tree_headline(tree: ClusterTree) -> str:
    """Return at which numbers of clusters a tree is stable, in a few words."""
    levels = listed(tree.levels, "and") if tree.levels else ""

    # Halves of the rows are judged along the directions of a model.
    if tree.of_model and levels:
        return f"within this fit, {levels} clusters stand out"
    if tree.of_model:
        return "within this fit, no smaller number stands out"

    if levels:
        return f"the tree is stable at {levels} clusters"
    return "the tree is not stable at any number of clusters"


@describe.register
def tree_text(tree: ClusterTree) -> str:
    """Return the levels of a tree in a sentence or two, and its branches below."""
    headline = f"{sentence(tree_headline(tree))}."
    n_clusters_of_model = tree.n_leaves if tree.of_model else None
    return "\n".join([headline, *tree_lines(tree, n_clusters_of_model)])


def tree_lines(tree: ClusterTree, n_clusters: int | None = None) -> list[str]:
    """Return the branches of a tree, a line each, down to its last level.

    ``n_clusters`` is a number that is shown as well, whether or not it is a level.
    """
    levels = sorted({*tree.levels, n_clusters or 0} - {0, 1})
    return [*_branch_lines(tree, levels, depth=0, is_inside=tree.leaves >= 0)]


def _branch_lines(
    tree: ClusterTree, levels: Sequence[int], depth: int, is_inside: np.ndarray
) -> Iterator[str]:
    """Yield a line for each cluster of a level, and below it those within it."""
    if depth == len(levels):
        return

    n_clusters = levels[depth]
    labels = tree.labels(n_clusters)
    for cluster in range(n_clusters):
        is_member = is_inside & (labels == cluster)
        if is_member.any():
            rows = counted(int(is_member.sum()), "row")
            yield f"{'    ' * depth}cluster {cluster} of {n_clusters}: {rows}"
            yield from _branch_lines(tree, levels, depth + 1, is_member)


def _shows_gaps(tree: ClusterTree) -> bool:
    """Tell whether gaps between clusters were looked for in a tree."""
    return any(split.gap for split in tree.splits)


def split_words(tree: ClusterTree) -> dict[str, str]:
    """Return what the columns of the evidence mean: gaps too, where they decide."""
    meanings = {
        "rise": "how much more the next merger would cost than the last one, as a\n"
        "      difference of logarithms.",
        "agreement": "how well trees of separate halves of the rows agree, at most 1.",
        "stability": "how well such trees recover the least stable cluster, 0 to 1.",
        "drop": "how much stability falls with one more cluster.",
    }
    if _shows_gaps(tree):
        meanings["gap"] = (
            "how far rows stay away from the cuts between clusters, in standard\n"
            f"      errors; below {Counting.GAP:g} they may be one cloud: one cluster."
        )

    meanings["level"] = (
        f"yes where agreement and stability are {Counting.AGREEMENT:g} or "
        f"more, and\n      rise, drop and agreement {Counting.LEVEL:g} in sum, or "
        "more beyond what stands\n      out; none where there may be no clusters."
    )
    return meanings


def split_rows(tree: ClusterTree, splits: Iterable[Split]) -> Iterator[tuple[Any, ...]]:
    """Yield the number of clusters of splits, and the columns of the evidence."""
    shows_gaps = _shows_gaps(tree)
    for split in splits:
        evidence = [split.rise, split.agreement, split.stability, split.drop]
        if shows_gaps:
            evidence.append(split.gap)

        is_level = split.n_clusters in tree.levels
        yield split.n_clusters, *evidence, "yes" if is_level else ""


def edge_words(count: ClusterCount) -> list[str]:
    """Return what the table of eigenvalues means, a line each."""
    lines = [
        "edge: the largest eigenvalue that noise gives, measured on copies with random",
        "    signs of what the directions that stand out leave of the data",
    ]
    if 0 < count.rank < count.n_clusters:
        reason = "one pattern may be a mixture of others"
        if count.has_few_features:
            features = counted(count.n_features, "feature")
            reason = f"with {features}, random signs hide some"
        lines.append(f"There can be fewer such eigenvalues than clusters: {reason}")
    return lines


def _standing_out(count: ClusterCount) -> str:
    """Return how many eigenvalues stand out from noise."""
    if count.rank == 0:
        return "no eigenvalue stands out from noise"

    verb = "stands" if count.rank == 1 else "stand"
    eigenvalues = counted(count.rank, "eigenvalue")
    return f"{eigenvalues} {verb} out from noise (edge {count.edge:.3g})"


def _one_or_none(count: ClusterCount) -> str:
    """Return the sentences on one cluster, or on no structure."""
    standing_out = _standing_out(count)
    if count.is_capped:
        return f"{sentence(standing_out)}."

    finding = "no structure" if count.n_clusters == 0 else "one cluster"
    if count.tree is None:
        reason = "there are too few rows to look for groups"
        return f"{sentence(finding)}: {standing_out}, and {reason}."

    if count.confidence is Confidence.HIGH:
        reason = "halves of the rows do not agree on any groups"
        return f"{sentence(finding)}: {standing_out}, and {reason}."

    text = (
        f"Probably {finding}: {standing_out}, but halves of the rows do not agree on "
        "any number of groups with gaps between them. "
        f"{sentence(NOISE_OR_OVERLAP)}."
    )
    alternatives = count.plausible[1:]
    if alternatives:
        numbers = listed(alternatives, "or")
        text += f" If there are clusters, their number is most likely {numbers}."

    return text


def _several(count: ClusterCount) -> str:
    """Return the sentences on two clusters or more."""
    split = None if count.tree is None else count.tree.split(count.n_clusters)
    if split is None:
        clusters = counted(count.n_clusters, "cluster")
        standing_out = _standing_out(count)
        return f"{clusters}: {standing_out}, and there are too few rows to say more."

    may_be_none = f"There may be no clusters at all: {NOISE_OR_OVERLAP}."
    sentences = [
        _number_and_confidence(count, split),
        _levels_sentence(count),
        _why_best_guess(count, split),
        _alternatives_sentence(count),
        may_be_none if count.may_be_one else "",
        _eigenvalues_sentence(count),
    ]
    return " ".join(text for text in sentences if text)


def _number_and_confidence(count: ClusterCount, split: Split) -> str:
    """Return the number of clusters, and how far halves of the rows agree on it."""
    clusters = counted(count.n_clusters, "cluster")
    if count.is_doubtful:
        clusters = f"Perhaps {clusters}"

    text = (
        f"{clusters}, with {count.confidence.value} confidence: trees of halves of the "
        f"rows have an agreement of {split.agreement:.2f}"
    )
    if split.drop >= 0:
        text += f", and one more cluster would lower stability by {split.drop:.2f}"

    return f"{text}."


def _levels_sentence(count: ClusterCount) -> str:
    """Return at which other numbers the tree is stable; "" where at none."""
    if not set(count.levels) - {count.n_clusters}:
        return ""
    levels = listed(count.levels, "and")
    subject = "Clusters are nested: the" if len(count.levels) > 1 else "The"
    return f"{subject} tree is stable at {levels} clusters."


def _why_best_guess(count: ClusterCount, split: Split) -> str:
    """Return why the number was chosen though the tree is not stable there, or ""."""
    if count.n_clusters in count.levels:
        return ""
    if count.is_capped or split.agreement < Counting.AGREEMENT:
        return ""

    if count.rank == count.n_clusters and not count.has_few_features:
        reason = "as many eigenvalues stand out from noise"
    else:
        reason = (
            f"rise + {Counting.DROP_WEIGHT:g} x drop is largest there, of numbers with "
            f"an agreement of {Counting.AGREEMENT:g} or more before rounding"
        )
    return f"{count.n_clusters} is the best guess, since {reason}."


def _alternatives_sentence(count: ClusterCount) -> str:
    """Return the plausible numbers that no other sentence names, or ""."""
    numbers = [k for k in count.plausible[1:] if k not in count.levels and k > 1]
    return f"Also plausible: {listed(numbers, 'or')}." if numbers else ""


def _eigenvalues_sentence(count: ClusterCount) -> str:
    """Return how many eigenvalues stand out, and why they may be too few."""
    standing_out = _standing_out(count)
    if count.rank == 0:
        text = f"These trees are the evidence: {standing_out}"
        if count.has_few_features:
            text += ", as random signs hide some with so few features"
        return f"{text}."

    text = sentence(standing_out)
    if count.rank < count.n_clusters:
        text += ", and there can be more clusters than that"
    return f"{text}."
