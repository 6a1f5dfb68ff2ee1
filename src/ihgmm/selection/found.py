"""A number of clusters, with the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm.selection.words import summary

__all__ = ["ClusterCount"]


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
        Leading eigenvalues of the Gram matrix, decreasing. Those below the edge are
        noise, and known roughly only.
    edge : float
        What an eigenvalue must exceed to count, once those above it are taken out.
        Like the eigenvalues it is in squared units of X, or without units for cosines.
        Where X was divided by a power of two because squares of its entries would
        overflow or vanish, ``edge``, ``eigenvalues`` and ``null`` are those of X as
        divided, in ``selection_`` of an estimator always, and elsewhere if no float
        can hold them.
    null : ndarray
        The largest eigenvalue of each sign-flipped copy behind the edge.
    method : str
        The one used, "parallel" or "stability".
    gram : str
        The Gram matrix that shows them, "hollow" or "cosine".
    n_rows : int
        Rows that were looked at; fewer than in X when there are very many.
    strengths : dict of int to float
        Prediction strength of each number of clusters tried; empty for "parallel",
        and where there is one direction only or no number could be tried.
    largest_column : float
        Share of the squared length of X in one column. Signs on a column that
        dominates flip whole rows, and leave nothing to compare with.
    largest_index : int
        Which column that is, counted from 0.
    largest_mean : float
        Share of that column's squared length that is its mean; near 1 for an offset.
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
    largest_index: int
    largest_mean: float
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
        return summary(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the eigenvalues and the band of the null.

        A new figure shows beside them, for "stability", the prediction strengths; in
        axes of your own draw those with :meth:`plot_strengths`.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw the eigenvalues; a new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the eigenvalues.
        """
        from ihgmm.plotting.eigenvalues import plot_count  # when it is asked for

        return plot_count(self, ax)

    def plot_strengths(self, ax: Any = None) -> Any:
        """Draw the prediction strength of each number of clusters tried.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
        """
        if not self.strengths:
            raise ValueError(
                f"This count (method={self.method!r}, rank={self.rank}) has no "
                "prediction strengths; plot() draws its eigenvalues. They come from "
                "select_n_clusters(X, method='stability') where rows allow halves."
            )
        from ihgmm.plotting.eigenvalues import plot_strengths

        return plot_strengths(self, ax)
