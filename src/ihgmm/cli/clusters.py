"""What is known about rows in clusters, and what is said about each cluster."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm import IhSC
from ihgmm._checks import complete_matrix
from ihgmm.cli.screen import Screen, print_message
from ihgmm.cli.tables.table import Table, quote
from ihgmm.estimators.batch_factors import as_without_batches
from ihgmm.matrix import to_host
from ihgmm.matrix.ops import row_lengths
from ihgmm.metrics import class_agreement
from ihgmm.numerics.whitening import Whitener
from ihgmm.policy import Cautions, Doubt, Trust
from ihgmm.report.facts import compare_known, known_certainty
from ihgmm.statistics import contrasts as ct
from ihgmm.statistics import diagnosis as dg
from ihgmm.statistics.missing_cells import filled_cells
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words import diagnoses as words
from ihgmm.words.phrases import counted, shorten

Figures = dict[str, np.ndarray]  # of rows, by the columns of the labels file
Lines = list[dict[str, Any]]  # one for each cluster


def figures_of(fit: ct.DescribedFit, certainty: np.ndarray, scores: Any) -> Figures:
    """Return figures of complete rows, NaN where not known, for the labels file."""
    lengths = np.minimum(row_lengths(fit.centers), np.finfo(float).max)
    sizes = fit.scales * lengths[fit.labels]
    typical = np.full(len(fit.labels), np.nan)
    # 1 for the most typical row of a cluster, then 2 and 3.
    for rows in ct.nearest_rows(fit.data, fit.labels, fit.centers, sizes):
        typical[rows] = np.arange(1, len(rows) + 1)
    figures = {"scale": fit.scales, "size": sizes}
    figures |= {"certainty": certainty.astype(float), "typical": typical}
    if scores is not None:
        figures["outlier_score"] = to_host(scores).astype(float)
    return figures | {"filled": filled_cells(fit.data)}


def cluster_lines(labels: np.ndarray, k: int, figures: Figures, table: Table) -> Lines:
    """Return a line about each of k clusters, and one about outliers if any."""
    lines = []
    for number in [*range(k), *[-1] * int((labels < 0).any())]:
        rows = np.flatnonzero(labels == number)
        scales, sizes, certainty = (
            figures[name][rows] if len(rows) else np.array([np.nan])
            for name in ("scale", "size", "certainty")
        )
        low, high = np.quantile(scales, [0.05, 0.95])
        typical = figures["typical"][rows]
        line = {"cluster": number, "rows": len(rows), "share": len(rows) / len(labels)}
        line |= {"size_median": np.median(sizes), "scale_median": np.median(scales)}
        line |= {"scale_5%": low, "scale_95%": high}
        # The one label that there is cannot be wrong, which says nothing.
        known = certainty[np.isfinite(certainty)]
        line["certainty"] = known.mean() if k > 1 and len(known) else np.nan
        nearest = [rows[i] for i in np.argsort(typical) if typical[i] >= 1]
        line["typical"] = table.ids[nearest].tolist()
        if table.texts is not None:
            line["texts"] = table.texts[nearest].tolist()
        lines.append(line)
    return lines


def describe_fit(
    model: Any, table: Table, labels: np.ndarray
) -> tuple[Figures, Lines, dg.Diagnosis, bool]:
    """Return figures, lines, a diagnosis, and if clusters are compared at one size."""
    fit, k = ct.described_fit(table.X, model), len(model.cluster_centers_)
    diagnosis = dg.diagnose(table.X, model)
    scores = getattr(model, "outlier_scores_", None)
    figures = figures_of(fit, known_certainty(diagnosis, fit.data), scores)
    lines = cluster_lines(labels, k, figures, table)
    shown = max(2, min(5, 30 // len(lines), table.X.shape[1] // 2))
    apart = ct.rank_features(fit, model, [*table.column_names], shown, table.original)
    # A text is known by the words that it has more of.
    listed = apart.features
    if table.texts is not None:
        rows = zip(apart.more, apart.contrasts, strict=True)
        listed = [more[np.argsort(-of[more])] for more, of in rows]
    told = {"mean": apart.means, "others": apart.others}
    told |= {"contrast": apart.contrasts, "error": apart.errors}
    for line in lines:
        i = line["cluster"]
        line["features"] = [
            {"feature": apart.names[j], **{name: told[name][i, j] for name in told}}
            for j in (listed[i] if k > 1 and i >= 0 else ())
        ]
    return figures, lines, diagnosis, apart.same_size


def temper(model: Any, diagnosis: dg.Diagnosis) -> None:
    """Let later rows be as sure of their labels as those of the fit, on average."""
    error = diagnosis.expected_error
    if type(model) is not IhSC or not hasattr(model, "predict_proba"):
        return
    if diagnosis.verdict is dg.Verdict.NO_SEPARATION:
        model.temperature_ = Trust.UNKNOWN
    elif error > 0:
        rows = to_host(model.embedding_[: Doubt.ROWS]).astype(np.float64)
        placement: Any = model.placement_
        model.temperature_ = dg.membership_temperature(rows, placement.rule, error)


def caution_texts(diagnosis: dg.Diagnosis, table: Table, model: Any) -> list[str]:
    """Return cautions in words, with the option that drops a column where one helps."""
    whitened = any(isinstance(one, Whitener) for one in model.preparation_)
    texts, prepared = [], table.scaler is not None or whitened
    columns = {name.partition("=")[0] for name in table.flags}
    columns |= {*table.column_names} - {*table.flags}
    for caution in diagnosis.cautions:
        text = words.caution_text(caution, table.column_names, prepared=prepared)
        if caution.kind is dg.CautionKind.ONE_VALUE or (
            prepared and caution.kind is dg.CautionKind.RULING_COLUMN
        ):
            alike = caution.figures.get("others", [])
            named = [caution.figures["column"], *alike * (len(alike) <= Cautions.NAMED)]
            names = (table.column_names[c] if isinstance(c, int) else c for c in named)
            # Of a category all columns go.
            whole = (n.partition("=")[0] if n in table.flags else n for n in names)
            drop = [*dict.fromkeys(whole)]
            if len(columns) > len(drop) + 1:  # one column alone is no table
                text += f" Add --drop-columns {','.join(map(quote, drop))}."
        texts.append(text)
    return texts


def without_batches(model: Any, table: Table) -> tuple[Any, Table]:
    """Return a model and its table as if there were no batches, to describe them."""
    if not hasattr(model, "batches_"):
        return model, table
    model, data = as_without_batches(model, table.X, table.batch)
    return model, replace(table, X=data, batch=None)


def compare_labels(
    table: Table, labels: np.ndarray, model: Any = None
) -> tuple[dict[str, Any] | None, str]:
    """Return how labels go with those known; with a model of a fit, also k-means'."""
    if table.labels is None:
        return None, ""
    of_fit: tuple[Any, ...] = ()
    if model is not None:
        of_fit = complete_matrix(table.X, model), len(model.cluster_centers_)
    compared = compare_known(table.labels, labels, *of_fit)
    known, agreement, rival = compared.classes, compared.agreement, compared.rival
    own, classes = labels[known.codes >= 0], len(known.names)
    if len(np.unique(own)) < 2:
        return None, ""  # nothing to say of one cluster
    assert agreement is not None
    n, outliers = len(own), int((labels < 0).sum())
    without = len(labels) - outliers - n
    unknown = f"; {counted(outliers, 'outlier')} aside" * (outliers > 0)
    unknown += f"; {counted(without, 'row')} without one" * (without > 0)
    if n_given := len(getattr(model, "known_rows_", ())):
        unknown += f"; the fit was given {counted(n_given, 'label')}, which count here"
    text = f"against the known labels ({classes} class{'es' * (classes != 1)}{unknown})"
    figures = {**asdict(agreement), "classes": classes, "rows": n}
    for name in ("misplaced", "adjusted_rand_index"):
        figures[f"k_means_{name}"] = getattr(rival, name, None)
    return figures, f"{text}: {words.class_words(agreement, n, rival)}"


def moved_share(count: ClusterCount, labels: np.ndarray) -> float:
    """Return the share of rows that a fit places elsewhere than the tree of a count."""
    if count.tree is None or len(count.tree.leaves) != len(labels):
        return 0.0
    return class_agreement(count.tree.labels(count.n_clusters), labels).rate


def print_clusters(screen: Screen, clusters: Lines, id_name: str) -> None:
    """Print a table of the clusters, and what its words mean."""
    rows = []
    for line in clusters:
        low, high = line["scale_5%"], line["scale_95%"]
        scales = None if np.isnan(low) else f"{low:.2f} to {high:.2f}"
        typical = str(line["typical"][0]) if line["typical"] else None
        kinds = line["size_median"], scales, line["certainty"], typical
        rows.append((str(line["cluster"]), line["rows"], line["share"], *kinds))
    formats = {"cluster": "", "rows": ",", "share": ".1%", "size": ".4g"}
    formats |= {"scales": "", "certainty": ".0%", f"typical {id_name}": ""}
    screen.table(formats, rows)
    screen.explain(words.CLUSTER_WORDS)
    for line in clusters:
        for text in line.get("texts", ())[:1]:  # how the most typical one begins
            text = shorten(" ".join(text.split()), 70)
            screen.say(f"typical of {line['cluster']}: {text}", "dim")


def print_features(screen: Screen, clusters: Lines, same_size: bool) -> None:
    """Print the features that set each of the 12 largest clusters apart."""
    described = [line for line in clusters if line["features"]]
    rows = []
    for line in described[:12]:
        called = str(line["cluster"])
        for one in line["features"]:
            name, mean, rest, contrast, *_ = one.values()
            rows.append((called, name, mean, rest, words.contrast_text(contrast)))
            called = ""
    if rows:
        others = "others, same size" if same_size else "others"
        formats = {"cluster": "", "set apart by": "", "mean": ".4g", others: ".4g"}
        screen.table(formats | {"contrast": ""}, rows)
        screen.explain(words.feature_words(same_size))
    if len(described) > 12:
        screen.say("Features are shown of the 12 largest clusters; --json has all.")


def print_labels(
    screen: Screen, comparison: str, path: Path | None, remarks: list[str]
) -> None:
    """Print how labels compare with those known, and where they are."""
    if comparison:
        screen.say(comparison)
    where = f"labels written to {'standard output' if str(path) == '-' else path}"
    screen.say(where if path else "labels were not saved; add -o labels.csv")
    for text in remarks if not screen.as_json else ():
        print_message("note", text)
