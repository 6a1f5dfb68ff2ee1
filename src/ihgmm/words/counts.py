"""A number of clusters in words, with what speaks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ihgmm.statistics.evidence import Confidence, CountEvidence
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.phrases import (
    counted,
    listed,
    page,
    paragraph,
    sentence,
    table,
    three_digits,
)


def count_headline(count: ClusterCount) -> str:
    """Return the finding in a few words."""
    if count.n_clusters == 0:
        return "cannot tell" if count.is_dominated else "no structure"
    if not count.is_doubtful:
        return counted(count.n_clusters, "cluster")
    if len(count.plausible) < 2:
        return f"{counted(count.n_clusters, 'cluster')}, not confirmed"
    if count.confidence is Confidence.NONE:
        return f"not known: {_either(count.plausible)} clusters"
    first, *others = count.plausible
    return f"perhaps {counted(first.n_clusters, 'cluster')}, else {_either(others)}"


def count_text(count: ClusterCount) -> str:
    """Return the finding and the evidence in a sentence or two."""
    if count.n_clusters == 0 and count.is_dominated:
        return _dominated(count)
    if count.method == "stability":
        text = _by_stability(count)
    elif count.evidence:
        text = _by_all_sides(count)
    else:
        text = _by_directions(count)
    if count.is_capped:
        text += f" It stopped at max_clusters={count.max_clusters}; there may be more."
    shown_there = count.method != "combined" or count.n_clusters == count.rank
    if count.gram == "cosine" and count.n_clusters > 1 and shown_there:
        text += " The cosines of rows show this; inner products show fewer clusters."
    return text


def count_html(count: ClusterCount) -> str:
    """Return the finding, and what speaks for each plausible number."""
    parts = [paragraph(count_text(count))]
    if count.plausible:
        head = ("clusters", "support", "best by", "gap to noise", "halves")
        rows = [
            (
                number.n_clusters,
                three_digits(number.support),
                ", ".join(side.value for side in number.sides) or "-",
                three_digits(max(number.gaps)),
                three_digits(number.strength),
            )
            for number in count.plausible
        ]
        parts.append(table(head, rows, words=(2,)))
    return page(sentence(count_headline(count)), *parts)


def count_doubts(count: ClusterCount, hidden_from: str | None) -> Iterator[str]:
    """Yield what a user of ``n_clusters="auto"`` has to know.

    ``hidden_from`` is the Gram matrix of the fit, if it shows fewer clusters.
    """
    if count.n_clusters <= 1:
        yield (
            f"{count_text(count)} All rows are put in one cluster; give n_clusters if "
            "you know better."
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
            f"{count_text(count)} Look at select_n_clusters(X).plot(), compare fits, "
            "and give n_clusters."
        )
    if hidden_from is not None:
        yield (
            f"The cosines of rows show {counted(count.n_clusters, 'cluster')}; "
            f"gram={hidden_from!r} shows fewer and can mix them up. Fit with "
            "Recipe(gram='cosine') or refine=True."
        )


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


def _either(evidence: Sequence[CountEvidence]) -> str:
    """Return numbers of which one is meant."""
    return listed([f"{number.n_clusters:,}" for number in evidence], "or")


def _supporters(number: CountEvidence) -> str:
    """Return the sides, one or more, that name a number first."""
    return listed([_SIDES[side.value] for side in number.sides], "and")


def _weighed(number: CountEvidence) -> str:
    """Return a number with its support, and the sides that name it first."""
    best = f", best by {_supporters(number)}" if number.sides else ""
    return f"{number.n_clusters} (support {number.support:.2f}{best})"


def _dominated(count: ClusterCount) -> str:
    remedy = "Divide the columns by their deviation first."
    if count.is_offset:
        remedy = (
            "It is mostly an offset: its mean is far from zero, compared with its "
            "deviation. Subtract its mean, or leave it out."
        )
    name = count.largest_name
    column = count.largest_index if name is None else repr(name)
    return (
        f"Cannot tell: column {column} holds {count.largest_column:.0%} of the squared "
        f"length of X, and random signs on a single column show nothing. {remedy}"
    )


def _standing_out(count: ClusterCount) -> str:
    if count.rank == 0:
        return "no eigenvalue stands out from noise"
    stand = f"stand{'s' * (count.rank == 1)} out from noise"
    return f"{counted(count.rank, 'eigenvalue')} {stand} (edge {count.edge:.3g})"


def _by_all_sides(count: ClusterCount) -> str:
    start = _standing_out(count)
    others = count.plausible[1:]
    likeliest = ""
    if others:
        likeliest = f" If there are clusters, {_either(others)} are likeliest."
    if count.n_clusters <= 1 and count.rank <= 1:
        text = "No structure" if count.rank == 0 else "All rows share one direction"
        if count.is_known:
            return f"{text}: {start}, and rows form no groups beyond those of noise."
        return f"{text}, it seems: {start}, and rows hardly form groups.{likeliest}"
    if count.n_clusters == 1:
        return (
            f"Not known: {start}, but rows form no groups along them beyond those of "
            "noise. Noise that features share looks like this, and so do clusters that "
            f"overlap.{likeliest}"
        )
    first = count.plausible[0]
    named = counted(first.n_clusters, "cluster")
    if count.is_known:
        return f"{named}, supported by {_supporters(first)}; {start}."
    text = f"Perhaps {named}: {_weighed(first)}."
    if others:
        also = listed([_weighed(number) for number in others], "and")
        text = f"Most support has {_weighed(first)}; also plausible: {also}."
    if count.confidence is Confidence.NONE:
        text = f"Not known: the evidence points to numbers far apart. {text}"
    return f"{text} {sentence(start)}."


def _by_directions(count: ClusterCount) -> str:
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


def _by_stability(count: ClusterCount) -> str:
    start, strengths = _standing_out(count), count.strengths
    if count.is_stable:
        return (
            f"Halves of the data agree on {counted(count.n_clusters, 'cluster')} "
            f"(prediction strength {strengths[count.n_clusters]:.2f}); {start}."
        )
    if strengths:
        text = (
            f"No number of clusters from {min(strengths)} to {max(strengths)} is "
            f"stable: the prediction strength is at most {max(strengths.values()):.2f},"
            f" below {count.required_strength}."
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
