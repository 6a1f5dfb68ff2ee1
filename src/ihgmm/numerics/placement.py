"""Placements: how rows, those of the fit or new ones, get their labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Matrix, Tall
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.rules import LinearRule
from ihgmm.numerics.zero_rows import label_zero_rows


@dataclass(frozen=True, eq=False)
class Placement:
    """Labels by an embedding and a rule."""

    embedding: Embedding
    rule: LinearRule
    # (n, m): of the rows that are to be placed, by their batches; None: they have none.
    shifts: np.ndarray | None = None

    def embedded(self, X: Matrix) -> Tall:
        """Return rows of the embedding, (n, m), less the shifts of their batches."""
        return self._less_shifts(self.embedding(X))

    def _less_shifts(self, rows: Tall) -> Tall:
        if self.shifts is None:
            return rows
        return rows - np.asarray(self.shifts, dtype=rows.dtype)

    def __call__(self, X: Matrix, embedded: Tall | None = None) -> Tall:
        """Return the labels of rows, of which ``embedded`` may be known already.

        What is known of them is less the shifts of their batches.
        """
        prepared = self.embedding.prepared(X)
        if embedded is None:
            coordinates = self.embedding.coordinates_of_prepared(prepared)
            embedded = self._less_shifts(self.embedding.rows(X.ops, coordinates))
        labels = self.rule(X.ops, embedded)

        # Unless coordinates have unit norm, the origin is a point like others.
        return label_zero_rows(prepared, labels) if self.embedding.unit_norm else labels


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
