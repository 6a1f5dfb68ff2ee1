"""What is known about rows in clusters, and what is said about each cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.screen import Screen, print_message
from ihgmm.cli.tables.table import Table
from ihgmm.matrix import Matrix, to_host
from ihgmm.matrix.ops import row_lengths
from ihgmm.metrics import ClassAgreement, class_agreement
from ihgmm.statistics.contrasts import typical_ranks
from ihgmm.statistics.diagnosis import Diagnosis
from ihgmm.statistics.observed import filled_cells
from ihgmm.words.diagnoses import CLUSTER_WORDS, class_words
from ihgmm.words.phrases import percent


def figures_of(
    data: Matrix,
    labels: np.ndarray,
    scales: np.ndarray,
    centers: np.ndarray,
    diagnosis: Diagnosis | None,
    outlier_scores: Any = None,
) -> dict[str, np.ndarray]:
    """Return figures of each row, which are columns of the labels file.

    What is not known is NaN: so is certainty without a diagnosis, or where that had too
    few rows to ask. ``data`` has its missing cells filled in, and ``filled`` says how
    many a row had. There are no outlier scores if nobody looked for outliers.
    """
    lengths = np.minimum(row_lengths(centers), np.finfo(float).max)
    sizes = scales * lengths[labels]
    certainty = np.full(len(labels), np.nan)
    if diagnosis is not None:
        certainty = to_host(diagnosis.certainty).astype(float)
    filled = filled_cells(data)
    typical = typical_ranks(data, labels, centers, sizes, complete=filled == 0)
    figures = {"scale": scales, "size": sizes, "certainty": certainty}
    figures["typical"] = typical  # 1 for the most typical row of a cluster, 2 and 3
    if outlier_scores is not None:
        figures["outlier_score"] = to_host(outlier_scores).astype(float)
    return figures | {"filled": filled}


def cluster_lines(
    labels: np.ndarray,
    names: list[str],
    figures: dict[str, np.ndarray],
    ids: np.ndarray,
) -> list[dict[str, Any]]:
    """Return a line about each cluster, and one about outliers if there are any.

    There is a name for each cluster, which may be empty, and an id for each row.
    """
    lines = []
    for number in [*range(len(names)), *[-1] * int((labels < 0).any())]:
        mine = labels == number
        count = int(mine.sum())
        scales, sizes, certainty = (
            figures[name][mine] if count else np.array([np.nan])
            for name in ("scale", "size", "certainty")
        )
        low, high = np.quantile(scales, [0.05, 0.95])
        ranked = np.flatnonzero(mine & (figures["typical"] >= 1))
        ranked = ranked[np.argsort(figures["typical"][ranked])]
        line = {
            "cluster": number,
            "name": names[number] if number >= 0 else "",
            "rows": count,
            "share": count / len(labels),
            "size_median": np.median(sizes),
            "scale_median": np.median(scales),
            "scale_5%": low,
            "scale_95%": high,
            # The one label that there is cannot be wrong, which says nothing.
            "certainty": certainty.mean() if len(names) > 1 else np.nan,
            "typical": [ids[row] for row in ranked],
        }
        lines.append(line)
    return lines


def called(line: dict[str, Any]) -> str:
    """Return the number of a cluster, and its name where it has one."""
    return f"{line['cluster']} {line['name']}".strip()


def print_clusters(screen: Screen, clusters: list[dict[str, Any]]) -> None:
    """Print a table of the clusters, and what its words mean."""
    rows = []
    for line in clusters:
        low, high = line["scale_5%"], line["scale_95%"]
        scales = None if np.isnan(low) else f"{low:.2f} to {high:.2f}"
        typical = str(line["typical"][0]) if line["typical"] else None
        kinds = line["size_median"], scales, line["certainty"], typical
        rows.append((called(line), line["rows"], line["share"], *kinds))
    formats = {"cluster": "", "rows": ",", "share": ".1%", "size": ".4g"}
    formats |= {"scales": "", "certainty": ".0%", "typical": ""}
    screen.table(formats, rows)
    screen.explain(CLUSTER_WORDS)


@dataclass(frozen=True)
class KnownLabels(ClassAgreement):
    """How labels go with those known."""

    classes: int = 0
    # Of k-means of the same columns, if it was asked.
    k_means_misplaced: int | None = None
    k_means_adjusted_rand_index: float | None = None


def compare_labels(table: Table, labels: np.ndarray) -> KnownLabels | None:
    """Return how labels go with those known; None where none are, or one cluster."""
    if table.labels is None or len(np.unique(labels[labels >= 0])) < 2:
        return None
    known = table.labels.astype(str)
    agreement = class_agreement(known, labels)
    return KnownLabels(**asdict(agreement), classes=len(set(known)))


def print_labels(
    screen: Screen,
    n: int,
    comparison: KnownLabels | None,
    path: Path | None,
    remarks: Iterable[str],
) -> None:
    """Print how labels compare with those known, and where they are."""
    if comparison is not None:
        classes, others = comparison.classes, comparison.k_means_misplaced
        beside = ""
        if others is not None:
            rand = comparison.k_means_adjusted_rand_index
            beside = f"; with k-means {others:,} ({percent(others / n)}), {rand:.2f}"
        screen.say(
            f"against the known labels ({classes} class{'es' * (classes != 1)}): "
            f"{class_words(comparison, n)}{beside}"
        )
    where = "standard output" if str(path) == "-" else path
    written = f"labels written to {where}"
    screen.say(written if path else "labels were not saved; add -o labels.csv")
    for text in remarks if not screen.as_json else ():
        print_message("note", text)
