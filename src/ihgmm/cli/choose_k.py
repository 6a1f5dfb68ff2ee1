"""The command ``ihgmm choose-k``."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from ihgmm import IhSC, select_n_clusters
from ihgmm._files import atomic_write
from ihgmm._warnings import UnstableLabelsWarning, ignored
from ihgmm.cli.comparing import moved_share
from ihgmm.cli.files import check_output
from ihgmm.cli.options import (
    ColumnsAs,
    Data,
    Reading,
    Seed,
    option,
    output_option,
)
from ihgmm.cli.screen import ExplainingScreen, print_message
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.request import PreparationRequest
from ihgmm.cli.tables.table import Table
from ihgmm.matrix import to_host
from ihgmm.plotting.tree import plot_result
from ihgmm.policy import Counting
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.words.counts import (
    count_headline,
    edge_words,
    split_rows,
    split_words,
    tree_lines,
)
from ihgmm.words.phrases import counted, percent


def choose_k(
    *,
    data: Data,
    max_clusters: Annotated[
        int, option("The largest number of clusters to look for.")
    ] = 50,
    columns_as: ColumnsAs = "auto",
    random_state: Seed = 0,
    plot: Annotated[
        Path | None,
        output_option(
            "Draw the tree of clusters, and eigenvalues, in a PNG, PDF or SVG file."
        ),
    ] = None,
    reading: Reading,
    screen: ExplainingScreen,
) -> None:
    """Find the number of clusters in DATA, and show the evidence.

    [bold]Examples[/]

      ihgmm choose-k wine --plot tree.png
    """
    check_output(plot, "--plot", (".png", ".pdf", ".svg"), [data])
    if reading.batch_column is not None:
        raise ValueError("--batch-column: fit -k auto takes batches out, choose-k not.")

    preparation = PreparationRequest(
        missing=reading.missing,
        prepare=reading.prepare,
        columns=columns_as,
    )
    with screen.working(f"reading {data}"):
        table = read_table(reading.request(data), preparation)

    with screen.working("counting"), table.without_advice_to_prepare:
        result = _count(table, max_clusters, columns_as, random_state)

    if plot is not None:
        _draw(result.count, plot)
    _show(result, table, plot, screen)


@dataclass(frozen=True)
class _Result:
    """How many clusters there are, and how far a fit agrees with the evidence."""

    count: ClusterCount
    moved: float  # the share of rows that a fit places elsewhere than the tree


def _count(
    table: Table, max_clusters: int, columns_as: str, random_state: int
) -> _Result:
    """Count the clusters of a table, and compare them with those of a fit."""
    X = table.named_data
    missing: Literal["fit", "error"] = "fit" if table.has_missing else "error"

    count = select_n_clusters(
        X,
        max_clusters=max_clusters,
        columns=columns_as,  # type: ignore[arg-type]
        missing=missing,
        random_state=random_state,
    )
    if count.n_clusters <= 1:
        return _Result(count=count, moved=0.0)

    model = IhSC(
        count.n_clusters,
        columns=columns_as,  # type: ignore[arg-type]
        missing=missing,
        random_state=random_state,
    )
    with ignored(UnstableLabelsWarning):  # fit says so
        labels = to_host(model.fit(X).labels_)

    return _Result(count=count, moved=moved_share(count, labels))


def _draw(count: ClusterCount, path: Path) -> None:
    """Draw the tree of clusters, and eigenvalues, in a file."""
    figure = plot_result(count).figure
    with atomic_write(path) as file:
        figure.savefig(  # type: ignore[union-attr]
            file, format=path.suffix[1:].lower(), dpi=150
        )


def _show(
    result: _Result, table: Table, plot: Path | None, screen: ExplainingScreen
) -> None:
    """Print the number of clusters, and the evidence for it."""
    count = result.count
    tree = count.tree

    headline = count_headline(count)
    facts = {
        "n_clusters": count.n_clusters,
        "levels": count.levels,
        "plausible": count.plausible,
        "confidence": count.confidence,
        "rank": count.rank,
        "eigenvalues": count.eigenvalues,
        "edge": count.edge,
        "splits": () if tree is None else tree.splits,
        "summary": str(count),
        "moved": result.moved,
        "plot_file": plot,
    }

    screen.begin("choose-k", table, f"{table.heading}: {headline}", facts)

    screen.say(str(count))

    if tree is not None and tree.splits:
        _print_tree(tree, result, screen)
    _print_eigenvalues(count, screen)

    screen.name_explain()
    if plot is not None:
        screen.say(f"picture written to {plot}")

    if screen.quiet and not screen.as_json:
        if count.is_doubtful:
            print_message("warning", f"{headline}. {count}")
        typer.echo(count.n_clusters)  # for scripts


def _print_tree(tree: ClusterTree, result: _Result, screen: ExplainingScreen) -> None:
    """Print the tree of clusters, and a line of evidence for each number."""
    count = result.count
    branches = tree_lines(tree, count.n_clusters)
    if branches:
        fit = f"A fit with {counted(count.n_clusters, 'cluster')} places "
        fit += f"{percent(result.moved)} of the rows elsewhere than this tree"
        if result.moved >= Counting.MOVED:
            fit += ": what the tree shows does not hold for it. Look at its own "
            fit += "figures, those of ihgmm fit, and at other numbers"
        screen.say(f"{fit}.")
        screen.say("The tree of clusters:", "bold")

    for line in branches:
        screen.say(f"    {line}")

    largest = 2 + max(count.plausible)
    splits = [split for split in tree.splits if split.n_clusters <= largest]

    meanings = split_words(tree)
    formats = {"clusters": "", **dict.fromkeys(meanings, ".2f"), "level": ""}
    screen.table(formats, split_rows(tree, splits))
    screen.explain(f"{name}: {meaning}" for name, meaning in meanings.items())


def _print_eigenvalues(count: ClusterCount, screen: ExplainingScreen) -> None:
    """Print the leading eigenvalues, and which of them stand out from noise."""
    formats = {
        "number": "",
        "eigenvalue": ".4g",
        "over the edge": ".2f",
        "stands out": "",
    }

    screen.table(formats, _eigenvalue_rows(count))
    screen.explain(edge_words(count))


def _eigenvalue_rows(
    count: ClusterCount,
) -> Iterator[tuple[int, float, float | None, str]]:
    """Yield an eigenvalue in each line, with its number and how far it stands out."""
    # Five more than stand out; no more than there are features can be of signal.
    n_shown = min(count.rank + 5, count.n_features)
    for place, value in enumerate(count.eigenvalues[:n_shown]):
        ratio = value / count.edge if count.edge > 0 else None
        stands_out = "yes" if place < count.rank else "no"
        yield place + 1, value, ratio, stands_out
