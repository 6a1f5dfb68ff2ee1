"""Rules: from rows of an embedding to labels of clusters.

A rule takes rows of any library, and returns scores, memberships or labels for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ihgmm.matrix import Ops, Tall


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Labels by the largest of linear scores: ``rows @ coefficients + intercepts``.

    The nearest of centres is such a rule. So is the most likely of Gaussian clusters of
    one covariance: scores are log-likelihoods, up to a term that all clusters share.
    """

    coefficients: np.ndarray  # (m, k): m components, k clusters
    intercepts: np.ndarray  # (k,)
    signed: bool = False  # opposite rows are of one cluster: the product's size counts

    @classmethod
    def nearest(cls, centers: np.ndarray) -> LinearRule:
        """Return the rule of the nearest of k centres, (k, m).

        Half of ``|row|² - |row - center|²`` is linear in the row.
        """
        return cls(
            coefficients=centers.T,
            intercepts=-np.einsum("ij,ij->i", centers, centers) / 2,
        )

    def scores(self, ops: Ops, rows: Tall) -> Tall:
        """Return the score of each cluster for each row, (n, k)."""
        scores = rows @ ops.cast_like(self.coefficients, rows)
        if self.signed:
            scores = ops.xp.abs(scores)

        scores += ops.cast_like(self.intercepts, rows)
        return scores

    def memberships(self, ops: Ops, rows: Tall, temperature: float = 1.0) -> Tall:
        """Return the share of each Gaussian cluster in each row; they add up to 1.

        Log-odds are divided by the temperature.
        """
        scores = self.scores(ops, rows)
        if self.signed:  # both ends together are a cluster
            sizes = ops.xp.abs(rows @ ops.cast_like(self.coefficients, rows))
            scores += ops.xp.log1p(ops.xp.exp(-2 * sizes))

        return ops.softmax(scores / temperature)

    def signs(self, ops: Ops, rows: Tall, labels: Tall) -> Tall:
        """Return 1 or -1 for each row: which way it points along its cluster."""
        products = rows @ ops.cast_like(self.coefficients, rows)
        return ops.sign_of(ops.pick(products, labels))

    def turned(self, directions: np.ndarray) -> LinearRule:
        """Return the rule with clusters turned around where directions are -1."""
        return replace(self, coefficients=self.coefficients * directions)

    def in_order(self, order: np.ndarray) -> LinearRule:
        """Return the rule with its clusters in another order."""
        return replace(
            self,
            coefficients=self.coefficients[:, order],
            intercepts=self.intercepts[order],
        )

    def __call__(self, ops: Ops, rows: Tall) -> Tall:
        """Return the label of each row."""
        return ops.row_map(self._best_cluster, rows, width=len(self.intercepts))

    def _best_cluster(self, ops: Ops, rows: Tall) -> Tall:
        return ops.xp.argmax(self.scores(ops, rows), axis=1)


@dataclass(frozen=True, eq=False)
class FittedRule:
    """A rule that was learnt, and how."""

    rule: LinearRule
    space: int = 0  # the position of the space that was chosen
    n_iter: int = 0
    # Of tied clusters: log-likelihood a row over one Gaussian, less BIC's penalty;
    # minus infinity where the rule comes from elsewhere.
    bic_gain: float = -np.inf
    shrinkage: float = 1.0  # of their covariance towards a sphere
    # How clear clusters are once neighbours have moved the rows: the same gain there;
    # minus infinity where they have not.
    clearness: float = -np.inf

    @property
    def is_mixture(self) -> bool:
        """Whether the rule is that of tied clusters, which learn from known labels."""
        return bool(self.bic_gain > -np.inf)
