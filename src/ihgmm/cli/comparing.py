"""How labels compare with those known, and with those of k-means."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ihgmm._checks import complete_matrix
from ihgmm.cli.tables.table import Table
from ihgmm.metrics import ClassAgreement
from ihgmm.report.facts import compare_known
from ihgmm.words.clusters import class_words
from ihgmm.words.phrases import counted


@dataclass(frozen=True)
class LabelComparison:
    """How labels go with those known, and with those of k-means, in words too."""

    text: str
    agreement: ClassAgreement
    rival: ClassAgreement | None
    n_classes: int
    n_rows: int

    def document(self) -> dict[str, object]:
        """Return the comparison for JSON."""
        return {
            **asdict(self.agreement),
            "classes": self.n_classes,
            "rows": self.n_rows,
            "k_means_misplaced": getattr(self.rival, "misplaced", None),
            "k_means_adjusted_rand_index": getattr(
                self.rival, "adjusted_rand_index", None
            ),
        }


def compare_labels(
    table: Table, labels: np.ndarray, model: Any = None
) -> LabelComparison | None:
    """Return how labels go with those known; with a model of a fit, also k-means'."""
    if table.rows.labels is None:
        return None

    if model is None:
        compared = compare_known(table.rows.labels, labels)
    else:
        data = complete_matrix(table.X, model)
        n_clusters = len(model.cluster_centers_)
        compared = compare_known(table.rows.labels, labels, data, n_clusters)

    is_compared = compared.classes.codes >= 0
    if compared.agreement is None or len(np.unique(labels[is_compared])) < 2:
        return None  # nothing to say of one cluster

    n_rows = int(is_compared.sum())
    n_classes = len(compared.classes.names)
    classes = "1 class" if n_classes == 1 else f"{n_classes} classes"
    aside = "".join(_rows_aside(labels, n_rows, model))
    words = class_words(compared.agreement, n_rows, compared.rival)

    return LabelComparison(
        text=f"against the known labels ({classes}{aside}): {words}",
        agreement=compared.agreement,
        rival=compared.rival,
        n_classes=n_classes,
        n_rows=n_rows,
    )


def _rows_aside(labels: np.ndarray, n_rows: int, model: Any) -> Iterator[str]:
    """Yield which rows are not compared, or compared with what the fit was given."""
    n_outliers = int((labels < 0).sum())
    n_without = len(labels) - n_outliers - n_rows
    n_given = len(getattr(model, "known_rows_", ()))

    if n_outliers > 0:
        yield f"; {counted(n_outliers, 'outlier')} aside"
    if n_without > 0:
        yield f"; {counted(n_without, 'row')} without one"
    if n_given > 0:
        yield f"; the fit was given {counted(n_given, 'label')}, which count here"
