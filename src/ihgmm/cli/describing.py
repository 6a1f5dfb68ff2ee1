"""What is known about rows that were clustered, and about each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks import complete_matrix
from ihgmm.cli.screen import Screen, print_warning
from ihgmm.cli.spelling import in_shell
from ihgmm.cli.tables.table import Table
from ihgmm.matrix import Matrix, to_host
from ihgmm.matrix.tall import row_lengths
from ihgmm.statistics.contrasts import SetApart, set_apart
from ihgmm.statistics.diagnosis import Diagnosis, Verdict, diagnose_fit
from ihgmm.statistics.estimation import estimate_parameters
from ihgmm.statistics.observed import filled_cells
from ihgmm.statistics.typical import typical_ranks
from ihgmm.words.diagnoses import (
    CLUSTER_WORDS,
    FEATURE_WORDS,
    caution_text,
    trust_sentence,
)


@dataclass(frozen=True)
class Figures:
    """Figures of each row, which are columns of the labels file; NaN if not known."""

    scale: np.ndarray
    size: np.ndarray
    certainty: np.ndarray
    typical: np.ndarray  # 1 for the most typical row of a cluster, 2 and 3
    outlier_score: np.ndarray | None  # None if nobody looked for outliers
    filled: np.ndarray  # how many cells were missing, and filled in

    def of_cluster(self, mine: np.ndarray) -> dict[str, Any]:
        """Return what these rows are like: median, quantiles and mean."""
        scales, sizes, certainty = (
            values[mine] if mine.any() else np.array([np.nan])
            for values in (self.scale, self.size, self.certainty)
        )
        low, high = np.quantile(scales, [0.05, 0.95])
        return {
            "size_median": np.median(sizes),
            "scale_median": np.median(scales),
            "scale_5%": low,
            "scale_95%": high,
            "certainty": certainty.mean(),
        }


@dataclass(frozen=True)
class Description:
    """What a fit has found."""

    figures: Figures
    clusters: list[dict[str, Any]]  # a line for each, the features among it
    diagnosis: Diagnosis
    cautions: list[str]


def describe_fit(
    model: Any, table: Table, names: list[str] | None = None
) -> Description:
    """Describe the clusters of a model that was fitted to a table.

    ``names`` are those of the clusters, "" for one without.
    """
    labels = to_host(model.labels_).astype(np.intp)
    data, k = complete_matrix(table.X, model), len(model.cluster_centers_)
    if hasattr(model, "scales_"):
        known = model.scales_, model.cluster_centers_, model.noise_levels_
    else:  # a method that knows nothing of scales
        estimates = estimate_parameters(data, labels, k)
        known = estimates.scales, estimates.centers, estimates.noise_levels
    scales, centers, levels = (to_host(each).astype(float) for each in known)
    diagnosis = diagnose_fit(model, table.X, labels)
    sizes = scales * np.minimum(row_lengths(centers), np.finfo(float).max)[labels]
    filled = filled_cells(data)
    figures = Figures(
        scales,
        sizes,
        certainties(diagnosis),
        typical_ranks(data, labels, centers, sizes, complete=filled == 0),
        outlier_scores(model),
        filled,
    )
    clusters = cluster_lines(labels, names or [""] * k, figures, table.ids)
    units = {"original": table.original, "n_features": 3}
    features = _features(set_apart(model, data, labels, levels, **units), table)
    for cluster in clusters:
        cluster["features"] = features[cluster["cluster"]] if k > 1 else []
    columns = table.column_names
    cautions = [in_shell(caution_text(each, columns)) for each in diagnosis.cautions]
    return Description(figures, clusters, diagnosis, cautions)


def certainties(diagnosis: Diagnosis) -> np.ndarray:
    """Return the certainty of each row; NaN where too few rows could be asked."""
    certainty = to_host(diagnosis.certainty).astype(float)
    asked = diagnosis.n_clusters == 1 or not np.isnan(diagnosis.refit_error)
    return certainty if asked else np.full_like(certainty, np.nan)


def outlier_scores(model: Any, data: Matrix | None = None) -> np.ndarray | None:
    """Return how strange rows are, those of the fit or others, if it was asked for."""
    if getattr(model, "outliers", None) is None:
        return None
    if data is None:
        return to_host(model.outlier_scores_).astype(float)
    return to_host(model.outlier_rule_.scores(data)).astype(float)


def cluster_lines(
    labels: np.ndarray, names: list[str], figures: Figures, ids: np.ndarray
) -> list[dict[str, Any]]:
    """Return a line about each cluster, and one about outliers if there are any.

    There is a name for each cluster, which may be empty, and an id for each row.
    """
    lines = []
    for number in [*range(len(names)), *[-1] * int((labels < 0).any())]:
        mine = labels == number
        count = int(mine.sum())
        line = {
            "cluster": number,
            "name": names[number] if number >= 0 else "",
            "rows": count,
            "share": count / len(labels),
        }
        ranked = np.flatnonzero(mine & (figures.typical >= 1))
        ranked = ranked[np.argsort(figures.typical[ranked])]
        typical = {"typical": [ids[row] for row in ranked]}
        lines.append(line | figures.of_cluster(mine) | typical)
    return lines


def _called(line: dict[str, Any]) -> str:
    """Return the number of a cluster, and its name where it has one."""
    return f"{line['cluster']} {line['name']}".strip()


def _features(apart: SetApart, table: Table) -> list[list[dict[str, Any]]]:
    """Return the features that set each cluster apart; a last list is for outliers."""
    ranked, p = apart.ranked, apart.means.shape[1]
    names = table.names or [f"feature {j}" for j in range(1, p + 1)]
    lists: list[list[dict[str, Any]]] = [
        [
            {
                "feature": str(names[j]),
                "mean": apart.means[cluster, j],
                "others_same_size": apart.others[cluster, j],
                "contrast": ranked.contrasts[cluster, j],
            }
            for j in features
            if ranked.contrasts[cluster, j] != 0
        ]
        for cluster, features in enumerate(ranked.features)
    ]
    return [*lists, []]


SIZE_FORMATS = {"cluster": "", "rows": ",", "share": ".1%"}
KIND_FORMATS = {"size": ".4g", "scales": "", "certainty": ".0%", "typical": ""}


def print_clusters(screen: Screen, clusters: list[dict[str, Any]]) -> None:
    """Print a table of the clusters, and what its words mean."""
    rows = []
    for line in clusters:
        low, high = line["scale_5%"], line["scale_95%"]
        scales = None if np.isnan(low) else f"{low:.2f} to {high:.2f}"
        typical = str(line["typical"][0]) if line["typical"] else None
        kinds = line["size_median"], scales, line["certainty"], typical
        rows.append((_called(line), line["rows"], line["share"], *kinds))
    screen.table(SIZE_FORMATS | KIND_FORMATS, rows)
    screen.explain(CLUSTER_WORDS)


def print_features(
    screen: Screen, clusters: list[dict[str, Any]], most: int = 12
) -> None:
    """Print which features set each of the largest clusters apart."""
    rows = [
        (_called(line) if i == 0 else "", *list(feature.values())[:3])
        for line in clusters[:most]
        for i, feature in enumerate(line["features"])
    ]
    if rows:
        formats = {"cluster": "", "set apart by": "", "mean": ".4g"}
        screen.table(formats | {"others, same size": ".4g"}, rows)
        screen.explain(FEATURE_WORDS)
        if len(clusters) > most:
            screen.say(f"These are the {most} largest clusters; --json has all.", "dim")


def print_trust(screen: Screen, found: Description) -> None:
    """Print how far to trust the labels; where not at all, also if little is said."""
    text = trust_sentence(found.diagnosis)
    if screen.silent and found.diagnosis.verdict is Verdict.NO_SEPARATION:
        print_warning(text)
    screen.say(text)
    for caution in found.cautions:
        screen.say(caution, "yellow")
