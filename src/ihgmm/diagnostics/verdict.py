"""The result of a diagnosis: figures, a verdict, and both of them in words."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Literal

import numpy as np

from ihgmm.theory.conditions import CorollaryConditions

__all__ = [
    "EASY",
    "GAP",
    "NO_GAP",
    "SURE",
    "Diagnosis",
    "Verdict",
    "counted",
    "eigenvalue_gap",
    "eigenvalue_ratio",
    "figure_table",
    "percent",
]

Verdict = Literal[
    "one cluster: nothing to separate",
    "well separated",
    "separated, a few rows uncertain",
    "at the threshold: expect errors",
    "no separation: do not trust these labels",
]

SURE = 0.9
"""Probability from which the label of a row counts as certain."""

EASY, FAIR, HARD = 0.01, 0.06, 0.25
"""Expected errors at which the verdict changes."""

CHANCE, CHANCE_NO_GAP = 0.38, 0.33
"""Shares of the error of a guess from which there is no separation, with and without a
gap in the eigenvalues. Labels that were found in noise fit it better than chance: on
simulated noise the share is 0.34 to 0.75, mostly 0.45 to 0.5, and without a gap."""

NO_GAP, GAP = 1.15, 2.0
"""Ratios of consecutive eigenvalues: noise is below the first, clear signal above the
second."""


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What the data say about labels. ``print`` it for a summary in words.

    Attributes
    ----------
    n_samples, n_features, n_clusters : int
        Size of the data and number of clusters.
    classes : ndarray of shape (n_clusters,)
        The label of each cluster, sorted.
    sizes : ndarray of shape (n_clusters,)
        Rows in each cluster.
    expected_error : float
        Share of labels that are expected to be wrong: the mean of ``1 - certainty``.
    uncertain_share : float
        Share of rows with a certainty below 0.9.
    disputed_share : float
        Share of rows that fit another cluster better than their own.
    certainty : ndarray of shape (n_samples,)
        Probability of each row's own label, given all other rows and their labels.
    gram : str
        The Gram matrix whose eigenvalues are given.
    eigenvalues : ndarray
        The ``n_clusters`` leading ones and the next one, if there is one.
    eigenvalue_gap : float
        The last of the leading eigenvalues over the next one; ``inf`` if only the
        next one is not positive, 0 if neither is, NaN if there is no next one.
    separation : float
        Smallest distance between two centres as they appear in small rows, over the
        noise level; ``inf`` for one cluster or without noise.
    separation_ratio : float
        The separation over the threshold of the paper's Corollary 1, the constant C
        of :func:`ihgmm.make_ihgmm`.
    balance : float
        The smallest cluster over an even share of the rows, at most 1.
    scale_ratio : float
        Large scales (95% quantile) over small ones (5%) within clusters, less what
        noise adds to their spread.
    cosines : ndarray of shape (n_clusters, n_clusters)
        Cosines of the centres, less what noise takes off them.
    conditions : CorollaryConditions or None
        All conditions of the corollary, as ratios; None for a single number.
    warnings : tuple of str
        What to look at, in words.
    """

    n_samples: int
    n_features: int
    n_clusters: int
    classes: np.ndarray
    sizes: np.ndarray
    expected_error: float
    uncertain_share: float
    disputed_share: float
    certainty: np.ndarray
    gram: str
    eigenvalues: np.ndarray
    eigenvalue_gap: float
    separation: float
    separation_ratio: float
    balance: float
    scale_ratio: float
    cosines: np.ndarray
    conditions: CorollaryConditions | None
    warnings: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The finding in a few words."""
        if self.n_clusters == 1:
            return "one cluster: nothing to separate"
        guess = 1 - self.sizes.max() / self.sizes.sum()
        share = CHANCE_NO_GAP if self.eigenvalue_gap < NO_GAP else CHANCE
        if self.expected_error >= min(HARD, share * guess):
            return "no separation: do not trust these labels"
        if self.expected_error < EASY:
            return "well separated"
        if self.expected_error < FAIR:
            return "separated, a few rows uncertain"
        return "at the threshold: expect errors"

    def __repr__(self) -> str:
        return (
            f"Diagnosis({self.verdict!r}, n_clusters={self.n_clusters}, "
            f"expected_error={self.expected_error:.3g}, "
            f"eigenvalue_gap={self.eigenvalue_gap:.3g}, "
            f"separation_ratio={self.separation_ratio:.3g})"
        )

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """The verdict, each figure with its meaning, and the warnings."""
        lines = [f"{self.verdict[0].upper()}{self.verdict[1:]}."]
        table = figure_table(self)
        wide = max(len(name) for name, _, _ in table)
        deep = max(len(figure) for _, figure, _ in table)
        for name, figure, meaning in table:
            lines.append(f"  {name:<{wide}}  {figure:>{deep}}  {meaning}")
        lines += [
            fill(text, 80, initial_indent="! ", subsequent_indent="  ")
            for text in self.warnings
        ]
        return "\n".join(lines)


def figure_table(found: Diagnosis) -> list[tuple[str, str, str]]:
    """Return a name, a figure and its meaning for each line of the summary."""
    k = found.n_clusters
    # Labels found in noise fit that noise: the figure is too small then.
    more = "or more " if found.verdict.startswith("no separation") else ""
    small, large = found.sizes.min(), found.sizes.max()
    size = counted(large, "row") if small == large else f"{small:,} to {large:,} rows"
    lines = [
        (
            "data",
            f"{found.n_samples:,} x {found.n_features:,}",
            f"rows x features; {counted(k, 'cluster')} of {size}",
        )
    ]
    if k > 1:
        lines += [
            (
                "expected error",
                # A probability: not none, however near to it.
                percent(max(found.expected_error, 1e-9)),
                f"{more}of the labels are wrong, going by all other rows",
            ),
            (
                "uncertain rows",
                percent(found.uncertain_share),
                f"have a label that is less than {SURE:.0%} certain",
            ),
        ]
    if not np.isnan(found.eigenvalue_gap):
        lines.append(
            ("eigenvalue gap", _figure(found.eigenvalue_gap), _gap_words(found))
        )
    if k > 1:
        lines += [
            (
                "separation",
                _figure(found.separation),
                "noise levels between the closest centres, in small rows",
            ),
            (
                "over theory",
                _figure(found.separation_ratio),
                _threshold_words(found),
            ),
            (
                "balance",
                f"{found.balance:.2f}",
                "smallest cluster over an even share; 1 is best",
            ),
        ]
    lines.append(
        (
            "scale ratio",
            _figure(found.scale_ratio),
            "large rows over small rows of a cluster (95% over 5%)",
        )
    )
    return lines


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


def _gap_words(found: Diagnosis) -> str:
    k, gap = found.n_clusters, found.eigenvalue_gap
    what = f"eigenvalue {k} over {k + 1}"
    # Noise is on both sides of 0: an eigenvalue no larger than a negative one is noise.
    last, after = np.abs(found.eigenvalues[k - 1 : k + 1])
    if gap < NO_GAP or last < NO_GAP * after:
        return f"{what}: no edge between signal and noise"
    if gap < GAP:
        return f"{what}: signal rises a little above noise"
    return f"{what}: signal stands clear of noise"


def _threshold_words(found: Diagnosis) -> str:
    c = found.conditions
    if c is None or c.separation < 1:
        return "separation over what theory asks for; below 1 data decide"
    if c.features < 1:
        return "separation over what theory asks for; it wants more features"
    return "separation over what theory asks for: met, up to constants"


def eigenvalue_gap(values: np.ndarray, k: int) -> float:
    """Return the k-th eigenvalue over the next; NaN if there is no next one."""
    if len(values) <= k:
        return float("nan")
    return eigenvalue_ratio(values[k - 1], values[k])


def eigenvalue_ratio(first: float, second: float) -> float:
    """Return how far an eigenvalue drops to the next; ``inf`` for all the way."""
    if first <= 0:
        return 0.0
    return float(first / second) if second > 0 else float("inf")
