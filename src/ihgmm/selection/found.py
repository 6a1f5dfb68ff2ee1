"""A number of clusters, with the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ClusterCount"]

DOMINANT = 0.5
"""Share of the squared length in one column beyond which flips tell nothing."""

HIDING_FEATURES = 20
"""Features up to which what signs leave of one pattern may hide another."""


@dataclass(frozen=True, eq=False, repr=False)
class ClusterCount:
    """How many clusters were found, and on what evidence.

    Attributes
    ----------
    n_clusters : int
        The number of clusters; 1 when all rows share one direction, 0 when nothing
        stands out from noise.
    rank : int
        Eigenvalues above the edge: the number of linearly independent directions.
    eigenvalues : ndarray
        Leading eigenvalues of the Gram matrix, decreasing; some lie below the edge.
    edge : float
        What an eigenvalue must exceed to count, once those above it are taken out.
    null : ndarray
        The largest eigenvalue of each sign-flipped copy behind the edge.
    method : str
        "parallel" or "stability".
    gram : str
        The Gram matrix that shows them, "hollow" or "cosine".
    n_rows : int
        Rows that were looked at; fewer than in X when there are very many.
    strengths : dict of int to float
        Prediction strength of each number of clusters tried; empty for "parallel".
    largest_column : float
        Share of the squared length of X in one column. Signs on a column that
        dominates flip whole rows, and leave nothing to compare with.
    max_clusters : int
        The largest number that was looked for.
    n_features : int
        Features of X. Signs on few of them leave much of a pattern.
    """

    n_clusters: int
    rank: int
    eigenvalues: np.ndarray
    edge: float
    null: np.ndarray
    method: str
    gram: str
    n_rows: int
    strengths: dict[int, float]
    largest_column: float
    max_clusters: int
    n_features: int

    def __repr__(self) -> str:
        return (
            f"ClusterCount(n_clusters={self.n_clusters}, rank={self.rank}, "
            f"edge={self.edge:.4g}, method={self.method!r}, gram={self.gram!r})"
        )

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """The finding in words."""
        if self.n_clusters == 0 and self.largest_column > DOMINANT:
            return (
                f"Cannot tell: one column holds {self.largest_column:.0%} of the "
                "squared length of X, and signs on a single column tell nothing. "
                "Divide the columns by their deviation first."
            )
        if self.n_clusters == 0:
            return "No structure: no eigenvalue stands out from sign-flipped data."
        if self.rank == 0:
            return (
                "No eigenvalue stands out from sign-flipped data, but halves of the "
                f"data agree on {_clusters(self.n_clusters)}."
            )
        found = (
            "1 eigenvalue stands out"
            if self.rank == 1
            else f"{self.rank} eigenvalues stand out"
        )
        start = f"{found} from sign-flipped data (edge {self.edge:.3g})"
        if self.method == "stability":
            tried = self.strengths.get(self.n_clusters)
            how = "" if tried is None else f" (prediction strength {tried:.2f})"
            return f"{start}; {_clusters(self.n_clusters)} in these directions{how}."
        if self.n_clusters == 1:
            return f"{start}: all rows share one direction."
        if self.rank == self.max_clusters:
            return (
                f"{start}: stopped at max_clusters={self.max_clusters}, there may be "
                "more."
            )
        if self.n_features <= HIDING_FEATURES:
            return (
                f"{start}: {_clusters(self.n_clusters)} or more. Signs on "
                f"{self.n_features} features leave much of a pattern and can hide "
                "others; compare the method 'stability'."
            )
        return f"{start}: {_clusters(self.n_clusters)}, more if patterns are dependent."

    def plot(self, ax: Any = None) -> Any:
        """Draw the eigenvalues and the band of the null.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "plot needs matplotlib: pip install 'ihgmm[plot]'."
            ) from error
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        shown = self.eigenvalues[: max(self.rank + 5, 10)]
        place = np.arange(1, len(shown) + 1)
        above = place <= self.rank
        low = min(self.null.min(initial=self.edge), self.edge)
        ax.axhspan(
            low,
            self.edge,
            color="#D55E00",
            alpha=0.25,
            lw=0,
            label="sign-flipped copies",
        )
        ax.axhline(self.edge, color="#D55E00", lw=1.2, label="edge of noise")
        size = 7 if len(shown) <= 25 else 4
        ax.plot(
            place[above],
            shown[above],
            "o",
            color="#0072B2",
            ms=size,
            label=f"above: {self.rank}" if self.rank else None,
        )
        ax.plot(
            place[~above],
            shown[~above],
            "o",
            mfc="none",
            color="#666666",
            ms=size,
            label="not above",
        )
        positive = shown[shown > 0]
        if self.edge > 0 and len(positive) and positive[0] > 20 * self.edge:
            if min(shown.min(), low) > 0:
                ax.set_yscale("log")
            else:  # straight around zero, where the noise lies
                ax.set_yscale("symlog", linthresh=self.edge)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("eigenvalue number")
        ax.set_ylabel(f"eigenvalue of the {self.gram} Gram matrix")
        ax.set_title(f"{_clusters(self.n_clusters)}, rank {self.rank}")
        ax.legend(frameon=False)
        return ax


def _clusters(count: int) -> str:
    return "1 cluster" if count == 1 else f"{count} clusters"
