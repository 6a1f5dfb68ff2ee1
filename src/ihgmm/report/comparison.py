"""Two clusterings of the same rows side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ihgmm._checks import check_labels
from ihgmm.plotting._clusters import Clusters, clusters_of, names_of
from ihgmm.report.facts import cross_table


class Comparison:
    """How two clusterings agree, in figures."""

    def __init__(self, first: Any, second: Any, ids: Any, called: Any) -> None:
        self.called = names_of("called", called)
        if len(self.called) != 2:
            raise ValueError(
                f"called has {len(self.called)} entries; give two, one for each "
                "clustering."
            )
        self.first, self.second = _clusters(first), _clusters(second)
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
        self.n_moved, self.n_alike = len(moved), n - len(moved)
        # Agreement beyond chance: 1 for the same clusters, about 0 for unrelated ones.
        self.rand = float(adjusted_rand_score(self.first.codes, self.second.codes))
        self.flows = [*self._flows()]
        self.moves = [self._move(i) for i in moved[:100].tolist()]  # all that one reads

    def _move(self, row: int) -> tuple[str, str, str]:
        """Return the id of a row, and its cluster in both clusterings."""
        name = str(row + 1) if self.ids is None else self.ids[row]
        codes = self.first.codes[row], self.second.codes[row]
        return name, self.first.names[codes[0]], self.second.names[codes[1]]

    def _flows(self) -> Any:
        """Yield for each cluster how many of its rows went where, and what became."""
        counts = self.first.table(self.second)
        arrived = counts.sum(axis=0)
        for k, line in enumerate(counts):
            rows = int(line.sum())
            if rows == 0:
                continue
            order = np.argsort(-line, kind="stable")
            parts = [
                (self.second.names[j], int(line[j]), line[j] / rows)
                for j in order[: np.count_nonzero(line)]
            ]
            most = int(order[0])
            # Nine rows in ten are as good as all, two in three most of them.
            kind = "MOSTLY" if line[most] * 3 >= rows * 2 else "SPLIT"
            if line[most] >= 0.9 * rows:
                kind = "KEPT" if line[most] >= 0.9 * arrived[most] else "MERGED"
            yield {"cluster": k, "name": self.first.names[k], "rows": rows} | {
                "parts": parts[:6],
                "n_more": len(parts) - 6,
                "kind": kind,
                "into": parts[0][0],
            }


def _clusters(labels: Any) -> Clusters:
    """Return the clusters of a model or of labels, outliers as one more."""
    if not hasattr(labels, "fit"):
        labels = check_labels("labels", labels)
    clusters = clusters_of(labels, "write_comparison")
    if not len(clusters.outliers):
        return clusters
    codes = np.where(clusters.codes < 0, len(clusters.names), clusters.codes)
    return Clusters(codes, [*clusters.names, "outliers"])
