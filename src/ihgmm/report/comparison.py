"""Two clusterings of the same rows side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ihgmm.matrix import to_host
from ihgmm.plotting._clusters import Clusters, clusters_of, names_of
from ihgmm.report.facts import cross_table
from ihgmm.statistics.diagnosis import diagnose

OUTLIERS = "outliers"


class Comparison:
    """How two clusterings agree, what moved, and how stable both are on some data."""

    def __init__(
        self, first: Any, second: Any, ids: Any, called: Any, X: Any = None
    ) -> None:
        self.called = names_of("called", called)
        if len(self.called) != 2:
            raise ValueError(
                f"called has {len(self.called)} entries; give two, one for each "
                "clustering."
            )
        self.first, self.second = (
            clusters_of(labels, "write_comparison").with_outliers(OUTLIERS)
            for labels in (first, second)
        )
        n, others = len(self.first.codes), len(self.second.codes)
        if n != others:
            raise ValueError(
                f"The {self.called[0]} clustering has {n} rows and the "
                f"{self.called[1]} {others}; give labels of the same rows."
            )
        self.n_samples = n
        self.ids = None if ids is None else names_of("ids", ids, n, "row")
        self.table = cross_table(self.first, self.second)
        partners = np.full(len(self.first.names), -1)
        for one, other in self.table["partners"].items():
            partners[one] = other
        moved = np.flatnonzero(partners[self.first.codes] != self.second.codes)
        self.n_moved = len(moved)
        # Agreement beyond chance: 1 for the same clusters, about 0 for unrelated ones.
        self.rand = float(adjusted_rand_score(self.first.codes, self.second.codes))
        self.flows = [*self._flows()]
        # Clusters with rows in each clustering, outliers not among them.
        self.n_clusters = tuple(
            int(np.count_nonzero(c.sizes)) - (c.names[-1:] == [OUTLIERS])
            for c in (self.first, self.second)
        )
        # Share of rows whose label stays in fits to other rows, where the data are
        # given: one answer for both, since figures of different data do not compare.
        self.stability: tuple[float, float] | None = None
        sure = np.zeros(n)
        if X is not None:
            codes = [_without_outliers(one) for one in (self.first, self.second)]
            both = [diagnose(X, labels, missing="fit") for labels in codes]
            self.stability = both[0].stability, both[1].stability
            certainties = [to_host(found.certainty) for found in both]
            sure = np.nan_to_num(np.minimum(*certainties))
        self.moves = self._moves(moved, sure)

    def _flows(self) -> Iterator[dict[str, Any]]:
        """Yield for each cluster how many of its rows went where, and what became."""
        counts = self.first.table(self.second)
        arrived = counts.sum(axis=0)
        for k in np.flatnonzero(counts.any(axis=1)).tolist():
            line = counts[k]
            rows = int(line.sum())
            order = np.argsort(-line, kind="stable")[: np.count_nonzero(line)]
            names = self.second.names
            parts = [(names[j], int(line[j]), line[j] / rows) for j in order]
            most = int(order[0])
            # Nine rows in ten are as good as all, two in three most of them.
            kind = "MOSTLY" if line[most] * 3 >= rows * 2 else "SPLIT"
            if line[most] >= 0.9 * rows:
                kind = "KEPT" if line[most] >= 0.9 * arrived[most] else "MERGED"
            ends = {"name": self.first.names[k], "into": parts[0][0]}
            yield {"cluster": k, "rows": rows, "kind": kind, "parts": parts, **ends}

    def _moves(
        self, moved: np.ndarray, sure: np.ndarray, n_shown: int = 5
    ) -> list[dict[str, Any]]:
        """Return the rows that changed by where from and where to, most rows first.

        Of each group a few rows are named: the surest in both clusterings, if that is
        known, and otherwise the first.
        """
        ids = self.ids or range(1, self.n_samples + 1)
        pairs = np.stack([self.first.codes[moved], self.second.codes[moved]])
        kinds, group = np.unique(pairs, axis=1, return_inverse=True)
        moves = []
        for j, (one, other) in enumerate(kinds.T):
            rows = moved[group.ravel() == j]
            surest = rows[np.argsort(-sure[rows], kind="stable")[:n_shown]]
            names = {"from": self.first.names[one], "to": self.second.names[other]}
            shown = [(str(ids[i]), float(sure[i])) for i in surest]
            moves.append({**names, "rows": len(rows), "shown": shown})
        return sorted(moves, key=lambda move: -move["rows"])


def _without_outliers(clusters: Clusters) -> np.ndarray:
    """Return the number of each row's cluster, -1 for outliers."""
    names = enumerate(clusters.names)
    numbers = np.array([-1 if name == OUTLIERS else k for k, name in names])
    return np.asarray(numbers[clusters.codes])
