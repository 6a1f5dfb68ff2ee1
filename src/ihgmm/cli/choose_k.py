"""The command ``ihgmm choose-k``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ihgmm import select_n_clusters
from ihgmm._files import atomic_write
from ihgmm.cli.files import check_output
from ihgmm.cli.options import DATA, SEED, WHITEN, Reading, option, output_option
from ihgmm.cli.screen import ExplainingScreen, Screen, print_message
from ihgmm.plotting.tree import plot_result
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.counts import (
    count_headline,
    edge_words,
    split_head,
    split_rows,
    split_words,
    tree_lines,
)


def choose_k(
    *,
    data: str = DATA,
    max_clusters: int = option("The largest number of clusters to look for.", 50),
    whiten: str | None = WHITEN,
    random_state: int = SEED,
    plot: Path | None = output_option(
        "Draw the tree of clusters, and the eigenvalues with the edge of noise, in a "
        "PNG, PDF or SVG file."
    ),
    reading: Reading,
    screen: ExplainingScreen,
) -> None:
    """Find the number of clusters in DATA, and show the evidence.

    [bold]Examples[/]

      ihgmm choose-k demo

      ihgmm choose-k wine --plot tree.png

      ihgmm choose-k cells.csv --id-column barcode --json
    """
    check_output(plot, "--plot", (".png", ".pdf", ".svg"), [data])
    table = reading.load(data, screen, whiten=whiten)
    options: dict[str, Any] = {
        "max_clusters": max_clusters,
        "whiten": whiten,
        "missing": "fit" if table.has_missing else "error",
        "random_state": random_state,
    }
    with screen.working("counting"), table.quiet:
        count = select_n_clusters(table.named_data, **options)
    if plot is not None:
        picture: Any = plot_result(count).figure
        with atomic_write(plot) as file:
            picture.savefig(file, format=plot.suffix[1:].lower(), dpi=150)
    summary = str(count)
    names = "n_clusters levels plausible confidence rank eigenvalues edge gram"
    facts = {name: getattr(count, name) for name in names.split()}
    splits = () if count.tree is None else count.tree.splits
    screen.document(
        "choose-k", table.facts, **facts, splits=splits, summary=summary, plot_file=plot
    )
    screen.say(f"{table.heading}: {count_headline(count)}", "bold")
    screen.notes(table.notes)
    screen.say(summary)
    if count.tree is not None and splits:
        _show_tree(count, screen)
    _show_eigenvalues(count, screen)
    if plot is not None:
        screen.say(f"picture written to {plot}")
    if screen.quiet and not screen.as_json:
        if count.is_doubtful:
            print_message("warning", f"{count_headline(count)}. {summary}")
        typer.echo(count.n_clusters)  # for scripts


def _show_tree(count: ClusterCount, screen: Screen) -> None:
    """Show the branches, and the evidence for numbers up to the plausible ones."""
    tree: Any = count.tree
    lines = tree_lines(tree, count.n_clusters)
    if lines:
        screen.say("The tree of clusters:", "bold")
        for line in lines:
            screen.say(f"    {line}")
    last = 2 + max(count.plausible)
    shown = [split for split in tree.splits if split.n_clusters <= last]
    formats = dict.fromkeys(split_head(tree), ".2f") | {"clusters": "", "level": ""}
    screen.table(formats, split_rows(tree, shown))
    screen.explain(split_words(tree))
    if lines:
        screen.say("A fit places rows anew: its clusters may differ from the tree's.")


def _show_eigenvalues(count: ClusterCount, screen: Screen) -> None:
    """Show the eigenvalues that stand out from noise, and how they go on."""
    beyond, most = 5, 15
    rows: list[tuple[Any, ...]] = []
    shown = min(count.rank + beyond, count.n_features)  # no more can be of signal
    for i, value in enumerate(count.eigenvalues[:shown], 1):
        if beyond < i <= shown - most + beyond:  # of many, the first and the last
            rows += [("...", None, None, "")] * (i == beyond + 1)
            continue
        ratio = value / count.edge if count.edge > 0 else None
        rows.append((i, value, ratio, "yes" if i <= count.rank else "no"))
    formats = {"number": "", "eigenvalue": ".4g", "over the edge": ".2f"}
    screen.table(formats | {"stands out": ""}, rows)
    screen.explain(edge_words(count))
