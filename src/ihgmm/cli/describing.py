"""What is known about rows in clusters, and what is said about each cluster."""

from dataclasses import asdict, dataclass, replace
from typing import Any, assert_never

import numpy as np

from ihgmm import IhSC
from ihgmm.cli.tables.names import quote
from ihgmm.cli.tables.table import Table
from ihgmm.estimators.batch_factors import as_without_batches
from ihgmm.matrix import row_lengths, to_host
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.whitening import Whitener
from ihgmm.policy import Cautions, Doubt, Trust
from ihgmm.report.facts import known_certainty
from ihgmm.statistics.calibration import membership_temperature
from ihgmm.statistics.cautions import (
    Caution,
    Column,
    OneValueColumn,
    OtherClusters,
    RulingColumn,
    ZeroRows,
)
from ihgmm.statistics.contrasts import TopFeatures, rank_features
from ihgmm.statistics.described_fit import DescribedFit, described_fit
from ihgmm.statistics.diagnosis import Diagnosis, Verdict, diagnose
from ihgmm.statistics.missing_cells import filled_cells
from ihgmm.statistics.typical_rows import nearest_rows
from ihgmm.words.diagnoses import caution_text


@dataclass(frozen=True)
class RowFigures:
    """Figures of all rows, each (n_samples,), NaN where they are not known."""

    scales: np.ndarray
    sizes: np.ndarray
    certainty: np.ndarray
    typical: np.ndarray  # 1 for the most typical row of a cluster, then 2 and 3
    n_filled: np.ndarray  # cells that were filled in
    outlier_scores: np.ndarray | None = None

    def columns(self) -> dict[str, np.ndarray]:
        """Return the figures as columns of the labels file."""
        columns = {
            "scale": self.scales,
            "size": self.sizes,
            "certainty": self.certainty,
            "typical": self.typical,
        }
        if self.outlier_scores is not None:
            columns["outlier_score"] = self.outlier_scores
        columns["filled"] = self.n_filled
        return columns


def row_figures(
    fit: DescribedFit, certainty: np.ndarray, outlier_scores: Any = None
) -> RowFigures:
    """Return figures of complete rows for the labels file."""
    lengths = np.minimum(row_lengths(fit.centers), np.finfo(float).max)
    sizes = fit.scales * lengths[fit.labels]

    typical = np.full(len(fit.labels), np.nan)
    for rows in nearest_rows(fit.data, fit.labels, fit.centers, sizes):
        typical[rows] = np.arange(1, len(rows) + 1)

    if outlier_scores is not None:
        outlier_scores = to_host(outlier_scores).astype(float)

    return RowFigures(
        scales=fit.scales,
        sizes=sizes,
        certainty=certainty.astype(float),
        typical=typical,
        n_filled=filled_cells(fit.data),
        outlier_scores=outlier_scores,
    )


@dataclass(frozen=True)
class FeatureLine:
    """A feature that sets a cluster apart."""

    feature: str
    mean: float
    others: float
    contrast: float
    error: float


@dataclass(frozen=True)
class ClusterLine:
    """What is said of a cluster, or of the outliers."""

    cluster: int  # -1 for outliers
    n_rows: int
    share: float  # of all rows
    median_size: float
    median_scale: float
    scale_range: tuple[float, float]  # from 5% to 95% of the rows
    certainty: float  # mean; NaN where none is known
    typical_ids: list[object]
    typical_texts: list[str] | None = None  # if rows are texts
    features: list[FeatureLine] | None = None  # if they were looked for

    def document(self) -> dict[str, object]:
        """Return the line for JSON."""
        lower_scale, upper_scale = self.scale_range
        document: dict[str, object] = {
            "cluster": self.cluster,
            "rows": self.n_rows,
            "share": self.share,
            "size_median": self.median_size,
            "scale_median": self.median_scale,
            "scale_5%": lower_scale,
            "scale_95%": upper_scale,
            "certainty": self.certainty,
            "typical": self.typical_ids,
        }
        if self.typical_texts is not None:
            document["texts"] = self.typical_texts
        if self.features is not None:
            document["features"] = [asdict(feature) for feature in self.features]
        return document


def cluster_lines(
    labels: np.ndarray, n_clusters: int, figures: RowFigures, table: Table
) -> list[ClusterLine]:
    """Return a line about each of the clusters, and one about outliers if any."""
    numbers = list(range(n_clusters))
    if (labels < 0).any():
        numbers.append(-1)

    is_one = n_clusters == 1  # the one label that there is cannot be wrong
    return [
        _cluster_line(number, np.flatnonzero(labels == number), figures, table, is_one)
        for number in numbers
    ]


def _cluster_line(
    cluster: int,
    rows: np.ndarray,
    figures: RowFigures,
    table: Table,
    is_only_cluster: bool,
) -> ClusterLine:
    """Return a line about a cluster with these rows."""
    nothing = np.array([np.nan])
    scales = figures.scales[rows] if len(rows) else nothing
    sizes = figures.sizes[rows] if len(rows) else nothing
    lower_scale, upper_scale = np.quantile(scales, [0.05, 0.95])

    certainty = figures.certainty[rows]
    certainty = certainty[np.isfinite(certainty)]
    is_certainty_known = len(certainty) > 0 and not is_only_cluster

    typical = figures.typical[rows]
    most_typical = [row for row in np.argsort(typical) if typical[row] >= 1]
    typical_rows = rows[most_typical]
    texts = table.rows.texts

    return ClusterLine(
        cluster=cluster,
        n_rows=len(rows),
        share=len(rows) / len(figures.scales),
        median_size=np.median(sizes),
        median_scale=np.median(scales),
        scale_range=(lower_scale, upper_scale),
        certainty=certainty.mean() if is_certainty_known else np.nan,
        typical_ids=table.rows.ids[typical_rows].tolist(),
        typical_texts=None if texts is None else texts[typical_rows].tolist(),
    )


@dataclass(frozen=True)
class FitDescription:
    """What a fit says of its rows and its clusters."""

    figures: RowFigures
    clusters: list[ClusterLine]
    diagnosis: Diagnosis
    same_size: bool  # whether features compare clusters at one size


def describe_fit(model: Any, table: Table, labels: np.ndarray) -> FitDescription:
    """Return what a fitted model says of the rows of a table, and of its clusters."""
    fit = described_fit(table.X, model)
    diagnosis = diagnose(table.X, model)
    certainty = known_certainty(diagnosis, fit.data)
    scores = getattr(model, "outlier_scores_", None)
    figures = row_figures(fit, certainty, scores)

    n_clusters = len(model.cluster_centers_)
    lines = cluster_lines(labels, n_clusters, figures, table)
    # A screen has room for some 30 features in all.
    n_features = max(2, min(5, 30 // len(lines), table.X.shape[1] // 2))
    names = table.column_names
    top = rank_features(fit, model, names, n_features, table.original)

    return FitDescription(
        figures=figures,
        clusters=[_with_features(line, top, table.has_texts) for line in lines],
        diagnosis=diagnosis,
        same_size=top.same_size,
    )


def _with_features(line: ClusterLine, top: TopFeatures, are_words: bool) -> ClusterLine:
    """Return a line with the features that set its cluster apart, if there are others.

    Nothing sets outliers apart.
    """
    cluster = line.cluster
    if len(top.clusters) == 1 or cluster < 0:
        return replace(line, features=[])

    columns = top.features[cluster]
    if are_words:  # a text is known by the words that it has more of
        columns = top.more[cluster]
        columns = columns[np.argsort(-top.contrasts[cluster][columns])]

    features = [
        FeatureLine(
            feature=top.names[column],
            mean=top.means[cluster, column],
            others=top.others[cluster, column],
            contrast=top.contrasts[cluster, column],
            error=top.errors[cluster, column],
        )
        for column in columns
    ]
    return replace(line, features=features)


def temper(model: Any, diagnosis: Diagnosis) -> None:
    """Let later rows be as sure of their labels as those of the fit, on average."""
    if type(model) is not IhSC or not hasattr(model, "predict_proba"):
        return

    error = diagnosis.expected_error
    if diagnosis.verdict is Verdict.NO_SEPARATION:
        model.temperature_ = Trust.UNKNOWN
    elif error > 0:
        rows = to_host(model.embedding_[: Doubt.ROWS]).astype(np.float64)
        placement = model.placement_
        assert isinstance(placement, Placement)  # others have no memberships
        model.temperature_ = membership_temperature(rows, placement.rule, error)


def caution_texts(diagnosis: Diagnosis, table: Table, model: Any) -> list[str]:
    """Return cautions in words, with the option that drops a column where one helps."""
    is_whitened = any(isinstance(step, Whitener) for step in model.preparation_)
    is_prepared = table.scaler is not None or is_whitened

    names = table.column_names
    return [
        caution_text(caution, names, prepared=is_prepared)
        + _option_that_drops(caution, table, is_prepared)
        for caution in diagnosis.cautions
    ]


def _option_that_drops(caution: Caution, table: Table, is_prepared: bool) -> str:
    """Return the option that leaves out the columns that a caution names, or ""."""
    named = _columns_to_drop(caution, is_prepared)
    if not named:
        return ""

    names = table.column_names
    columns = [names[name] if isinstance(name, int) else name for name in named]

    # Of a category all columns go.
    to_drop = list(dict.fromkeys(_column_in_file(name, table) for name in columns))
    in_file = {_column_in_file(name, table) for name in [*names, *table.flags]}
    if len(in_file) <= len(to_drop) + 1:  # one column alone is no table
        return ""
    return f" Add --drop-columns {','.join(map(quote, to_drop))}."


def _columns_to_drop(caution: Caution, is_prepared: bool) -> list[Column]:
    """Return the columns without which others would show what they have."""
    match caution:
        case OneValueColumn():
            columns = [caution.column]
            if len(caution.other_columns) <= Cautions.NAMED:
                columns += caution.other_columns
            return columns
        case RulingColumn():
            return [caution.column] if is_prepared else []
        case OtherClusters() | ZeroRows():
            return []
        case _:
            assert_never(caution)


def _column_in_file(name: str, table: Table) -> str:
    """Return the column of the file that a feature comes from."""
    return name.partition("=")[0] if name in table.flags else name


def without_batches(model: Any, table: Table) -> tuple[Any, Table]:
    """Return a model and its table as if there were no batches, to describe them."""
    if not hasattr(model, "batches_"):
        return model, table
    model, data = as_without_batches(model, table.X, table.rows.batches)
    return model, replace(table, X=data, rows=replace(table.rows, batches=None))
