"""What to look at in a fit, in words: the warnings of a diagnosis."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ihgmm.diagnostics.verdict import (
    EASY,
    GAP,
    NO_GAP,
    Diagnosis,
    counted,
    eigenvalue_gap,
    eigenvalue_ratio,
    percent,
)
from ihgmm.groups import Groups

__all__ = ["cautions"]

PARALLEL, SMALL_CLUSTER, SAME_SCALE, DOMINANT = 0.95, 0.2, 1.25, 0.5
"""Cosine, balance, scale ratio and share of squared length that earn a warning."""

SLIGHT_GAP, WIDE_GAP = 1.5, 5.0
"""Ratios of consecutive eigenvalues. In noise of a hundred rows or fewer they are below
the first."""

VAGUE = 0.3
"""Expected error within a cluster that earns a warning."""


def cautions(
    found: Diagnosis, codes: np.ndarray, sqnorms: np.ndarray, values: np.ndarray
) -> tuple[str, ...]:
    """Return the warnings that the figures call for.

    Parameters
    ----------
    found : Diagnosis
        The figures.
    codes : ndarray of shape (n_samples,)
        The cluster of each row, from 0.
    sqnorms : ndarray of shape (n_samples,)
        Squared row norms.
    values : ndarray
        Leading eigenvalues: those of the clusters and two more, if there are.
    """
    said = [_zero_rows(sqnorms), _dominant_rows(found, sqnorms)]
    hopeless = found.verdict.startswith("no separation")
    if hopeless and _directions(found, sqnorms, values):
        said.append(_eigenvalue_words(found, sqnorms, values))
    elif hopeless and found.eigenvalue_gap > WIDE_GAP:
        said.append(
            "The data show clear directions, but these labels do not follow them: are "
            "rows and labels in the same order?"
        )
    elif hopeless:
        said.append(
            "Labels of pure noise look like this; then separation and scales are "
            "those of noise. Try other features, another scaling or fewer clusters; "
            "counting the clusters (select_n_clusters) tells whether there is any "
            "structure."
        )
    if found.n_clusters > 1:
        said.append(_small_cluster(found))
    if found.n_clusters > 1 and not hopeless:
        said += [_vague_cluster(found, codes, sqnorms), _parallel_pair(found)]
        if found.disputed_share > EASY:
            said.append(
                f"{percent(found.disputed_share)} of rows fit another cluster "
                "better; refining the fit (refine=True) would move them."
            )
    if not hopeless:
        said.append(_eigenvalue_words(found, sqnorms, values))
        if found.scale_ratio < SAME_SCALE:
            said.append(
                f"Scales hardly differ (ratio {found.scale_ratio:.2f}): a method "
                "without individual scales, such as PSC or k-means, may do as well."
            )
    return tuple(text for text in said if text)


def _zero_rows(sqnorms: np.ndarray) -> str:
    zero = int((sqnorms == 0).sum())
    if not zero:
        return ""
    are = "row is" if zero == 1 else "rows are"
    return f"{zero:,} {are} zero: their labels mean nothing."


def _dominant_rows(found: Diagnosis, sqnorms: np.ndarray) -> str:
    few = max(1, len(sqnorms) // 100)
    if found.gram == "cosine" or len(sqnorms) < 10:
        return ""
    share = np.sort(sqnorms)[-few:].sum() / sqnorms.sum()
    if share < DOMINANT:
        return ""
    rows = "one row has" if few == 1 else f"{few:,} rows have"
    return (
        f"Only {rows} {percent(share)} of the squared length of all rows and may "
        "drown the others; to compare rows by their angles alone, try gram='cosine'."
    )


def _small_cluster(found: Diagnosis) -> str:
    smallest = int(found.sizes.argmin())
    if found.balance >= SMALL_CLUSTER and found.sizes[smallest] > 1:
        return ""
    rows = counted(int(found.sizes[smallest]), "row")
    return (
        f"Cluster {found.classes[smallest]} has only {rows}: its centre is known "
        "badly, and it may be outliers."
    )


def _vague_cluster(found: Diagnosis, codes: np.ndarray, sqnorms: np.ndarray) -> str:
    live = sqnorms > 0
    rows = Groups.of(codes[live], found.n_clusters)
    doubt = rows.total(1 - found.certainty[live]) / np.maximum(rows.size, 1)
    # A cluster of one row has nothing to be compared with; that is said already.
    doubt[rows.size < 2] = 0.0
    worst = int(doubt.argmax())
    if doubt[worst] < VAGUE:
        return ""
    return (
        f"Cluster {found.classes[worst]} is hardly a cluster: "
        f"{percent(doubt[worst])} of its rows are expected to belong elsewhere."
    )


def _parallel_pair(found: Diagnosis) -> str:
    pairs = combinations(range(found.n_clusters), 2)
    cosine, a, b = max((found.cosines[a, b], a, b) for a, b in pairs)
    if cosine < PARALLEL:
        return ""
    return (
        f"Clusters {found.classes[a]} and {found.classes[b]} have nearly the same "
        f"pattern (cosine {cosine:.3f}) and may be one."
    )


def _directions(found: Diagnosis, sqnorms: np.ndarray, values: np.ndarray) -> int:
    """Return how many eigenvalues, fewer than clusters, are above noise, or 0.

    Noise is level: from the drop to the one after the last cluster eigenvalues are
    alike. A zero diagonal moves all of them down, so they are first moved up again;
    else those near 0 would show drops that mean nothing.
    """
    k = found.n_clusters
    if len(values) <= k:
        return 0
    diagonal = {"full": 0.0, "cosine": 1.0}.get(found.gram, float(sqnorms.mean()))
    values = np.maximum(values + diagonal, 0.0)
    noise = values[k]
    if values[k - 1] > SLIGHT_GAP * noise:
        return 0
    # There are no more directions than features, with signal or without.
    for count in range(min(k, found.n_features) - 1, 0, -1):
        if values[count - 1] > WIDE_GAP * values[count]:
            return count if values[count] < GAP * noise else 0
    return 0


def _eigenvalue_words(found: Diagnosis, sqnorms: np.ndarray, values: np.ndarray) -> str:
    k = found.n_clusters
    count = _directions(found, sqnorms, values)
    if count:
        advice = (
            f"Ask for about {count} clusters, unless some patterns are mixtures of "
            "others."
            if count > 1
            else "All rows may be one cluster; if not, try other features or another "
            "scaling."
        )
        return (
            f"Eigenvalues drop after number {count} and are level from there on: there "
            f"are fewer directions than clusters. {advice}"
        )
    if values[k - 1] <= 0:
        return (
            f"Eigenvalue {k} is not positive: there are fewer directions than "
            "clusters. Some clusters may be one, or their centres are dependent."
        )
    gap = eigenvalue_gap(values, k)
    beyond = len(values) > k + 1 and eigenvalue_ratio(*values[k : k + 2]) > GAP
    if gap < NO_GAP or (beyond and gap < WIDE_GAP):
        return (
            f"Eigenvalue {k + 1} is {1 / gap:.0%} of eigenvalue {k}: there may be more "
            "clusters. Counting them (select_n_clusters) tells."
        )
    return ""
