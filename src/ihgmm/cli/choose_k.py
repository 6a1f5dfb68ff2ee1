"""The command ``ihgmm choose-k``."""

from pathlib import Path
from typing import Any

import typer

from ihgmm import IhSC, select_n_clusters
from ihgmm._files import atomic_write
from ihgmm._warnings import UnstableLabelsWarning, ignored
from ihgmm.cli.clusters import moved_share
from ihgmm.cli.files import check_output
from ihgmm.cli.options import DATA, SEED, WHITEN, Reading, option, output_option
from ihgmm.cli.screen import ExplainingScreen, print_message
from ihgmm.matrix import to_host
from ihgmm.plotting.tree import plot_result
from ihgmm.policy import Counting
from ihgmm.words import counts as words
from ihgmm.words.phrases import counted, percent


def choose_k(
    *,
    data: str = DATA,
    max_clusters: int = option("The largest number of clusters to look for.", 50),
    whiten: str | None = WHITEN,
    random_state: int = SEED,
    plot: Path | None = output_option(
        "Draw the tree of clusters, and eigenvalues, in a PNG, PDF or SVG file."
    ),
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
    with screen.working(f"reading {data}"):
        table = reading.load(data, whiten=whiten)
    X, moved = table.named_data, 0.0
    options: Any = {"whiten": whiten, "random_state": random_state}
    options |= {"missing": "fit" if table.has_missing else "error"}
    with screen.working("counting"), table.quiet:
        count = select_n_clusters(X, max_clusters=max_clusters, **options)
        if count.n_clusters > 1:
            with ignored(UnstableLabelsWarning):  # fit says so
                model = IhSC(count.n_clusters, **options).fit(X)
            moved = moved_share(count, to_host(model.labels_))
    if plot is not None:
        picture: Any = plot_result(count).figure
        with atomic_write(plot) as file:
            picture.savefig(file, format=plot.suffix[1:].lower(), dpi=150)
    tree, headline, summary = count.tree, words.count_headline(count), str(count)
    names = "n_clusters levels plausible confidence rank eigenvalues edge"
    facts = {name: getattr(count, name) for name in names.split()}
    facts |= {"splits": tree.splits if tree else (), "summary": summary, "moved": moved}
    heading = f"{table.heading}: {headline}"
    screen.begin("choose-k", table, heading, **facts, plot_file=plot)
    screen.say(summary)
    if tree is not None and tree.splits:
        if branches := words.tree_lines(tree, count.n_clusters):
            fit = f"A fit with {counted(count.n_clusters, 'cluster')} places "
            fit += f"{percent(moved)} of the rows elsewhere than this tree"
            if moved >= Counting.MOVED:
                fit += ": what the tree shows does not hold for it. Look at its own "
                fit += "figures, those of ihgmm fit, and at other numbers"
            screen.say(f"{fit}.")
            screen.say("The tree of clusters:", "bold")
        for line in branches:
            screen.say(f"    {line}")
        last, meanings = 2 + max(count.plausible), words.split_words(tree)
        shown = [split for split in tree.splits if split.n_clusters <= last]
        formats = {"clusters": ""} | dict.fromkeys(meanings, ".2f") | {"level": ""}
        screen.table(formats, words.split_rows(tree, shown))
        screen.explain(f"{name}: {meaning}" for name, meaning in meanings.items())
    formats = {"number": "", "eigenvalue": ".4g", "over the edge": ".2f"}
    rows = []
    # Five more than stand out; no more than there are features can be of signal.
    for i, value in enumerate(count.eigenvalues[: count.rank + 5][: count.n_features]):
        ratio = value / count.edge if count.edge > 0 else None
        rows.append((i + 1, value, ratio, "yes" if i < count.rank else "no"))
    screen.table(formats | {"stands out": ""}, rows)
    screen.explain(words.edge_words(count))
    if not screen.explains:
        screen.say("what the words mean: --explain", "dim")
    if plot is not None:
        screen.say(f"picture written to {plot}")
    if screen.quiet and not screen.as_json:
        if count.is_doubtful:
            print_message("warning", f"{headline}. {summary}")
        typer.echo(count.n_clusters)  # for scripts
