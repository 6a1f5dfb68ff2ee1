"""A number of clusters, and a tree of clusters, in words."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

import numpy as np

from ihgmm._display import describe
from ihgmm._parameters import call, option
from ihgmm.policy import Counting, Levels
from ihgmm.statistics.selection import (
    AllInOneCluster,
    ClusterCount,
    CountDoubt,
    DoubtfulNumber,
    SearchStopped,
)
from ihgmm.statistics.tree import ClusterTree, Split
from ihgmm.words.phrases import counted, listed, sentence


def count_headline(count: ClusterCount) -> str:
    """Return the finding in a few words."""
    clusters = counted(count.n_clusters, "cluster")
    alternatives = count.plausible[1:]
    if count.is_doubtful and alternatives:
        return f"perhaps {clusters}, or {listed(alternatives, 'or')}"
    return clusters


@describe.register
def count_text(count: ClusterCount) -> str:
    """Return the finding and the evidence in a few sentences."""
    text = _one(count) if count.n_clusters <= 1 else _several(count)
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


def evidence_words() -> dict[str, str]:
    """Return what the columns of the evidence for numbers of clusters mean."""
    return {
        "inside": "share of the links between neighbours that stay in a cluster.",
        "by chance": "share that would, if links did not look at neighbours.",
        "silhouette": "how much nearer rows are to their cluster than to the next,\n"
        "      from -1 to 1.",
        "score": f"inside - {Counting.RESOLUTION:g} x by chance + silhouette / "
        f"{1 / Counting.GAPS:.0f}; the largest decides.",
        "lead": "by how much more links stay inside, beyond chance, than in clouds\n"
        "      without clusters. There are several clusters where the largest lead\n"
        f"      is {Counting.LEAD:g} or more.",
    }


def evidence_rows(count: ClusterCount) -> Iterator[tuple[Any, ...]]:
    """Yield each number of clusters that was tried, and what speaks for it."""
    leads = count.clouds.leads
    for evidence in count.evidence:
        k = evidence.n_clusters
        is_plausible = "yes" if k in count.plausible else ""
        yield (
            k,
            evidence.links_inside,
            evidence.links_by_chance,
            evidence.silhouette,
            evidence.score,
            leads.get(k),
            "best" if k == count.n_clusters else is_plausible,
        )


def _one(count: ClusterCount) -> str:
    """Return the sentences on one cluster, or on none."""
    if count.is_capped:
        return "One cluster: no other number was looked at."
    if not count.evidence:
        return "One cluster: there are too few rows to look for several."

    text = (
        "One cluster, or none: neighbours hold together in parts of the data hardly "
        f"more than in a cloud without clusters (lead {count.lead:.2f}; several "
        f"clusters have {Counting.LEAD:g} or more)."
    )
    alternatives = count.plausible[1:]
    if alternatives:
        numbers = listed(alternatives, "or")
        text += f" If there are clusters, their number is most likely {numbers}."
    return text


def _several(count: ClusterCount) -> str:
    """Return the sentences on two clusters or more."""
    evidence = count.evidence_for(count.n_clusters)
    assert evidence is not None

    clusters = counted(count.n_clusters, "cluster")
    if count.is_doubtful:
        clusters = f"Perhaps {clusters}"
    text = (
        f"{clusters}, with {count.confidence.value} confidence: "
        f"{evidence.links_inside:.0%} of the links between neighbours stay inside "
        f"clusters, where chance would leave {evidence.links_by_chance:.0%}."
    )

    others = [k for k in count.plausible[1:] if k > 1]
    if others:
        text += f" Also plausible: {listed(others, 'or')}."
    if count.may_be_one:
        text += (
            " There may be no clusters at all: a cloud without clusters falls into "
            "parts nearly as well."
        )
    return text


def split_words() -> dict[str, str]:
    """Return what the columns of the evidence for levels of a tree mean."""
    return {
        "rise": "how much more the next merger would cost than the last one, as a\n"
        "      difference of logarithms.",
        "agreement": "how well trees of separate halves of the rows agree, at most 1.",
        "stability": "how well such trees recover the least stable cluster, 0 to 1.",
        "drop": "how much stability falls with one more cluster.",
        "level": (
            f"yes where agreement and stability are {Levels.AGREEMENT:g} or more, and\n"
            f"      rise, drop and agreement {Levels.LEVEL:g} in sum, or more beyond\n"
            "      the number that was counted."
        ),
    }


def split_rows(tree: ClusterTree, splits: Iterable[Split]) -> Iterator[tuple[Any, ...]]:
    """Yield the number of clusters of splits, and the columns of the evidence."""
    for split in splits:
        is_level = split.n_clusters in tree.levels
        yield (
            split.n_clusters,
            split.rise,
            split.agreement,
            split.stability,
            split.drop,
            "yes" if is_level else "",
        )
