"""Placements: how rows, those of the fit or new ones, get their labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Matrix, Tall
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.rules import LinearRule, Rule, as_linear
from ihgmm.numerics.zero_rows import label_zero_rows


@dataclass(frozen=True, eq=False)
class Placement:
    """Labels by an embedding and a rule."""

    embedding: Embedding
    rule: Rule

    @property
    def linear_rule(self) -> LinearRule:
        """The rule, of a placement that comes from a mixture or from k-means."""
        return as_linear(self.rule)

    def __call__(self, X: Matrix, embedded: Tall | None = None) -> Tall:
        """Return the labels of rows, of which ``embedded`` may be known already."""
        if embedded is None:
            embedded = self.embedding(X)
        labels = self.rule(X.ops, embedded)

        # Unless coordinates have unit norm, the origin is a point like others.
        return label_zero_rows(X, labels) if self.embedding.unit_norm else labels


@dataclass(frozen=True, eq=False)
class CosinePlacement:
    """Labels by the largest cosine with some directions; zero ones have no rows."""

    directions: np.ndarray  # (k, p): one for each cluster
    signed: bool = False  # opposite directions are one

    def __call__(self, X: Matrix) -> Tall:
        """Return the labels of rows."""
        ops = X.ops
        cosines = X @ HOST.unit_rows(self.directions).T  # (n, k), times row lengths
        if self.signed:
            cosines = ops.xp.abs(cosines)

        is_empty = ~self.directions.any(axis=1)
        if is_empty.any():  # else they would win where all others are negative
            penalties = np.where(is_empty, np.inf, 0.0)
            cosines = cosines - ops.cast_like(penalties, cosines)

        return label_zero_rows(X, ops.xp.argmax(cosines, axis=1))
