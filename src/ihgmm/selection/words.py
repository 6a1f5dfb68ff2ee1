"""What a count of clusters says, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ihgmm.selection.stability import FEW_FEATURES, STRONG

if TYPE_CHECKING:
    from ihgmm.selection.found import ClusterCount

__all__ = ["clusters", "headline", "is_capped", "is_stable", "summary"]

DOMINANT = 0.5
"""Share of the squared length in one of many columns from which flips tell nothing."""

SHARED = "all rows share one direction"


def headline(count: ClusterCount) -> str:
    """Return the finding in two words or three."""
    if count.n_clusters:
        return clusters(count.n_clusters)
    return "cannot tell" if _is_dominated(count) else "no structure"


def summary(count: ClusterCount) -> str:
    """Return the finding and the evidence in a sentence or two."""
    if count.n_clusters == 0 and _is_dominated(count):
        return _cannot_tell(count)
    text = _stability(count) if count.method == "stability" else _eigenvalues(count)
    if is_capped(count):
        text += f" It stopped at max_clusters={count.max_clusters}, there may be more."
    if count.gram == "cosine" and count.n_clusters > 1:
        text += (
            " Counted in the cosines of rows: cluster with gram='cosine' or "
            "refine=True."
        )
    return text


def is_capped(count: ClusterCount) -> bool:
    """Tell whether the search may have ended too early."""
    return count.n_clusters == count.max_clusters


def is_stable(count: ClusterCount) -> bool:
    """Tell whether halves of the data agree on the number."""
    return count.strengths.get(count.n_clusters, 0.0) >= STRONG


def clusters(number: int) -> str:
    """Return a number of clusters in words."""
    return "1 cluster" if number == 1 else f"{number} clusters"


def _is_dominated(count: ClusterCount) -> bool:
    # Of very few columns one holds much in any case.
    return count.largest_column > DOMINANT + (1 - DOMINANT) / count.n_features


def _cannot_tell(count: ClusterCount) -> str:
    text = (
        f"Cannot tell: column {count.largest_index} holds "
        f"{count.largest_column:.0%} of the squared length of X, and signs on a "
        "single column tell nothing. "
    )
    # Divided by its deviation a column has length 1 / (1 - share of its mean) or more;
    # each of the others has 1 at least.
    if (1 - count.largest_mean) * max(count.n_features - 1, 2) >= 1:
        return text + "Divide the columns by their deviation first."
    return (
        f"{text}It is mostly offset, its mean far from zero for its deviation: "
        "subtract its mean, or leave it out."
    )


def _eigenvalues(count: ClusterCount) -> str:
    start = _standing_out(count)
    if count.n_clusters == 0:
        text = f"No structure: {start}."
    elif is_capped(count):
        text = f"{start}."
    elif count.n_clusters == 1:
        text = f"{start}: {SHARED}."
    elif count.n_features <= FEW_FEATURES:
        text = f"{start}: {clusters(count.n_clusters)} or more."
    else:
        more = "more if patterns are dependent"
        text = f"{start}: {clusters(count.n_clusters)}, {more}."
    if count.n_features > FEW_FEATURES or is_capped(count):
        return text
    return (
        f"{text} Signs on {_features(count)} leave much of a pattern and can hide "
        "others; compare the method 'stability'."
    )


def _stability(count: ClusterCount) -> str:
    start = _standing_out(count)
    tried = count.strengths
    if is_stable(count):
        return (
            f"Halves of the data agree on {clusters(count.n_clusters)} (prediction "
            f"strength {tried[count.n_clusters]:.2f}); {start}."
        )
    if tried:
        text = (
            f"No number of clusters from {min(tried)} to {max(tried)} is stable: the "
            f"prediction strength is at most {max(tried.values()):.2f}, below {STRONG}."
        )
    elif count.rank == 1 and count.n_clusters == 2:
        return f"{start}; rows lie on both sides of zero along it: 2 clusters."
    elif count.rank == 1:
        return f"{start}." if is_capped(count) else f"{start}: {SHARED}."
    else:
        text = "No number of clusters was tried in halves of the data."
    if count.rank == 0:
        return f"No structure: {start}. {text}" + _faint(count)
    return f"{text} The number given is the rank: {start}."


def _faint(count: ClusterCount) -> str:
    """Return what flips of few features leave open where they show nothing."""
    if count.n_features > FEW_FEATURES:
        return ""
    return (
        f" Signs on {_features(count)} may not show that all rows share one direction."
    )


def _features(count: ClusterCount) -> str:
    return "1 feature" if count.n_features == 1 else f"{count.n_features} features"


def _standing_out(count: ClusterCount) -> str:
    if count.rank == 0:
        return "no eigenvalue stands out from sign-flipped data"
    many = (
        "1 eigenvalue stands" if count.rank == 1 else f"{count.rank} eigenvalues stand"
    )
    return f"{many} out from sign-flipped data (edge {count.edge:.3g})"
