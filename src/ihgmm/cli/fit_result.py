"""What ``ihgmm fit`` found, for people on the screen and for machines as JSON."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.comparing import LabelComparison
from ihgmm.cli.describing import FitDescription
from ihgmm.cli.screen import Screen, print_message
from ihgmm.cli.showing import print_clusters, print_features, print_labels
from ihgmm.cli.tables.table import Table
from ihgmm.statistics.diagnosis import Verdict
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.diagnoses import TRUST_WORDS, trust_sentence
from ihgmm.words.phrases import counted


@dataclass(frozen=True)
class FitResult:
    """A fitted model, its data, and all that is said of them."""

    model: Any
    table: Table
    labels: np.ndarray
    description: FitDescription
    comparison: LabelComparison | None  # None where no label is known
    cautions: list[str]
    remarks: list[str]  # on the labels file
    labels_file: Path | None
    model_file: Path | None
    evidence_command: str | None  # that shows the evidence for numbers of clusters

    @property
    def n_clusters(self) -> int:
        """The number of clusters, also of those without rows."""
        return len(self.model.cluster_centers_)

    @property
    def method(self) -> str:
        """The name of the estimator."""
        return type(self.model).__name__

    @property
    def count(self) -> ClusterCount | None:
        """How clusters were counted, if the data decided on their number."""
        return getattr(self.model, "selection_", None)

    def document(self) -> dict[str, object]:
        """Return the result for JSON."""
        diagnosis = self.description.diagnosis
        comparison = self.comparison
        wild_cells = getattr(self.model, "outlier_cells_", ())
        ids = self.table.rows.ids
        names = self.table.column_names

        return {
            "method": self.method,
            "n_clusters": self.n_clusters,
            "clusters": [line.document() for line in self.description.clusters],
            "count": None if self.count is None else str(self.count),
            "outlier_cells": [[ids[row], names[column]] for row, column in wild_cells],
            "verdict": diagnosis.verdict,
            "stability": diagnosis.stability,
            "doubt": diagnosis.doubt,
            "expected_error": diagnosis.expected_error,
            "error_range": diagnosis.error_range,
            "eigenvalues": getattr(self.model, "eigenvalues_", None),
            "known_labels": None if comparison is None else comparison.document(),
            "labels_file": self.labels_file,
            "model_file": self.model_file,
        }


def print_fit(result: FitResult, screen: Screen) -> None:
    """Print what a fit found, the most important first."""
    clusters = counted(result.n_clusters, "cluster")
    heading = f"{result.table.heading}, {clusters} ({result.method})"

    remarks = [*result.cautions, *result.remarks]
    screen.begin("fit", result.table, heading, result.document(), remarks)

    if result.count is not None:
        _print_count(result.count, result, screen)

    description = result.description
    print_clusters(screen, description.clusters, result.table.rows.id_name)
    print_features(screen, description.clusters, description.same_size)

    trust = trust_sentence(description.diagnosis)
    if screen.silent and description.diagnosis.verdict is Verdict.NO_SEPARATION:
        print_message("warning", trust)
    screen.say(trust)
    screen.explain(TRUST_WORDS)

    for text in result.cautions:
        screen.say(text, "yellow")

    print_labels(screen, result.comparison, result.labels_file, result.remarks)
    if result.model_file is not None:
        use = f"ihgmm predict {result.model_file} DATA"
        screen.say(f"model written to {result.model_file}; use it with: {use}")
    screen.name_explain()


def _print_count(count: ClusterCount, result: FitResult, screen: Screen) -> None:
    """Print how sure the number of clusters is, or how to see the evidence."""
    if count.is_doubtful:  # a warning has said so
        if result.evidence_command is not None:
            command = result.evidence_command
            screen.say(f"To see the evidence for each number: {command}")
    elif count.n_clusters > 1:  # of one cluster, a warning has said it
        screen.say(str(count))
