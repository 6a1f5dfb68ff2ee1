"""A number of clusters, and a tree of clusters, in words."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ihgmm._parameters import call, option
from ihgmm.policy import Counting
from ihgmm.statistics.selection import ClusterCount, Confidence
from ihgmm.statistics.tree import ClusterTree, Split
from ihgmm.words.phrases import counted, listed, sentence

OTHERWISE = "noise that features share looks like this, and so do clusters that overlap"


def count_headline(count: ClusterCount) -> str:
    """Return the finding in a few words."""
    clusters, others = counted(count.n_clusters, "cluster"), count.plausible[1:]
    if count.n_clusters == 0:
        return "no structure"
    if count.is_doubtful and others:
        return f"perhaps {clusters}, or {listed(others, 'or')}"
    return clusters


def count_text(count: ClusterCount) -> str:
    """Return the finding and the evidence in a few sentences."""
    text = _few_clusters(count) if count.n_clusters <= 1 else _clusters(count)
    if count.is_capped:
        most = option("max_clusters", count.max_clusters)
        text += f" It stopped at {most}; there may be more."
    return text


def tree_headline(tree: ClusterTree) -> str:
    """Return at which numbers of clusters a tree is stable, in a few words."""
    levels = listed(tree.levels, "and") if tree.levels else ""
    if tree.of_model:  # halves of the rows are judged along its directions
        stand = f"{levels} clusters stand" if levels else "no smaller number stands"
        return f"within this fit, {stand} out"
    stable = f"stable at {levels}" if levels else "not stable at any number of"
    return f"the tree is {stable} clusters"


def tree_text(tree: ClusterTree) -> str:
    """Return the levels of a tree in a sentence or two, and its branches below."""
    own = tree.n_leaves if tree.of_model else None
    return "\n".join([f"{sentence(tree_headline(tree))}.", *tree_lines(tree, own)])


def tree_lines(tree: ClusterTree, n_clusters: int | None = None) -> list[str]:
    """Return the branches of a tree, a line each, down to its last level."""
    levels = sorted({*tree.levels, n_clusters or 0} - {0, 1})

    def below(at: int, inside: np.ndarray) -> Iterator[str]:
        if at == len(levels):
            return
        labels = tree.labels(levels[at])
        for cluster in range(levels[at]):
            own = inside & (labels == cluster)
            if own.any():
                rows = counted(int(own.sum()), "row")
                yield f"{'    ' * at}cluster {cluster} of {levels[at]}: {rows}"
                yield from below(at + 1, own)

    return [*below(0, tree.leaves >= 0)]


def split_words(tree: ClusterTree) -> dict[str, str]:
    """Return what the columns of the evidence mean: gaps too, where they decide."""
    words = {
        "rise": "how much more the next merger would cost than the last one, as a\n"
        "      difference of logarithms.",
        "agreement": "how well trees of separate halves of the rows agree, at most 1.",
        "stability": "how well such trees recover the least stable cluster, 0 to 1.",
        "drop": "how much stability falls with one more cluster.",
        "gap": "how far rows stay away from the cuts between clusters, in standard\n"
        f"      errors; below {Counting.GAP:g} they may be one cloud: one cluster.",
        "level": f"yes where agreement and stability are {Counting.AGREEMENT:g} or "
        f"more, and\n      rise, drop and agreement {Counting.LEVEL:g} in sum, or "
        "more beyond what stands\n      out; none where there may be no clusters.",
    }
    if not any(split.gap for split in tree.splits):
        del words["gap"]
    return words


def split_rows(tree: ClusterTree, splits: Iterable[Split]) -> Iterator[tuple[Any, ...]]:
    """Yield the number of clusters of splits, and the columns of the evidence."""
    for split in splits:
        figures = (getattr(split, name) for name in [*split_words(tree)][:-1])
        yield split.n_clusters, *figures, "yes" * (split.n_clusters in tree.levels)


def count_doubts(count: ClusterCount) -> Iterator[str]:
    """Yield what a user of ``n_clusters="auto"`` has to know."""
    if count.n_clusters <= 1:
        yield (
            f"{count_text(count)} All rows are put in one cluster; give "
            f"{option('n_clusters')} if you know the number."
        )
    elif count.is_capped:
        yield (
            f"{option('n_clusters', 'auto')} looks for at most "
            f"{counted(count.max_clusters, 'cluster')} and found that many; there may "
            "be more. Count them with "
            f"{call('select_n_clusters', max_clusters=10 * count.max_clusters)} and "
            "give the number."
        )
    elif count.is_doubtful:
        yield (
            f"{option('n_clusters', 'auto')} chose {count.n_clusters}, which is "
            f"doubtful. {count_text(count)} Look at {call('select_n_clusters')}, "
            f"compare fits with different numbers, and give {option('n_clusters')}."
        )


def edge_words(count: ClusterCount) -> list[str]:
    """Return what the table of eigenvalues means, a line each."""
    why = "one pattern may be a mixture of others"
    if count.has_few_features:
        why = f"with {counted(count.n_features, 'feature')}, random signs hide some"
    fewer = [f"There can be fewer such eigenvalues than clusters: {why}"]
    return [
        "edge: the largest eigenvalue that noise gives, measured on copies with random",
        "    signs of what the directions that stand out leave of the data",
        *(fewer if 0 < count.rank < count.n_clusters else ()),
    ]


def _standing_out(count: ClusterCount) -> str:
    if count.rank == 0:
        return "no eigenvalue stands out from noise"
    stand = f"stand{'s' * (count.rank == 1)} out from noise"
    return f"{counted(count.rank, 'eigenvalue')} {stand} (edge {count.edge:.3g})"


def _few_clusters(count: ClusterCount) -> str:
    start, others = _standing_out(count), count.plausible[1:]
    if count.is_capped:
        return f"{sentence(start)}."
    number = "no structure" if count.n_clusters == 0 else "one cluster"
    if count.tree is None or count.confidence is Confidence.HIGH:
        why = "halves of the rows do not agree on any groups"
        why = "there are too few rows to look for groups" if count.tree is None else why
        return f"{sentence(number)}: {start}, and {why}."
    text = f"Probably {number}: {start}, but halves of the rows do not agree on any "
    text += f"number of groups with gaps between them. {sentence(OTHERWISE)}."
    if others:
        likely = listed(others, "or")
        text += f" If there are clusters, their number is most likely {likely}."
    return text


def _clusters(count: ClusterCount) -> str:
    clusters, start = counted(count.n_clusters, "cluster"), _standing_out(count)
    split = None if count.tree is None else count.tree.split(count.n_clusters)
    if split is None:
        return f"{clusters}: {start}, and there are too few rows to say more."
    first = f"{'Perhaps ' * count.is_doubtful}{clusters}, with {count.confidence.value}"
    more = f", and one more cluster would lower stability by {split.drop:.2f}"
    text = f"{first} confidence: trees of halves of the rows have an agreement of "
    text += f"{split.agreement:.2f}{more if split.drop >= 0 else ''}."
    why = f"rise + {Counting.DROP_WEIGHT:g} x drop is largest there, of numbers with "
    why += f"an agreement of {Counting.AGREEMENT:g} or more before rounding"
    if count.rank == count.n_clusters and not count.has_few_features:
        why = "as many eigenvalues stand out from noise"
    if count.is_capped or split.agreement < Counting.AGREEMENT:
        why = ""
    if set(count.levels) - {count.n_clusters}:
        tree = "Clusters are nested: the" if len(count.levels) > 1 else "The"
        text += f" {tree} tree is stable at {listed(count.levels, 'and')} clusters"
        text += "."
    if count.n_clusters not in count.levels and why:
        text += f" {count.n_clusters} is the best guess, since {why}."
    others = [k for k in count.plausible[1:] if k not in count.levels and k > 1]
    if others:
        text += f" Also plausible: {listed(others, 'or')}."
    if count.may_be_one:
        text += f" There may be no clusters at all: {OTHERWISE}."
    if count.rank:
        more = ", and there can be more clusters than that"
        return f"{text} {sentence(start)}{more * (count.rank < count.n_clusters)}."
    why = ", as random signs hide some with so few features"
    text += f" These trees are the evidence: {start}"
    return f"{text}{why * count.has_few_features}."
