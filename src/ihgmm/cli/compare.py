"""The command ``ihgmm compare``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.files import Labels, check_output, read_labels, real_file
from ihgmm.cli.options import Reading, argument, command_line, option, output_option
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.table import Note, Table, quote
from ihgmm.matrix import as_matrix
from ihgmm.report import write_comparison
from ihgmm.report.comparison import Comparison
from ihgmm.words.comparisons import agreement_words, stability_text
from ihgmm.words.phrases import counted, percent


def compare(
    *,
    first: Path = argument("FIRST", "A labels file, as ihgmm fit -o writes it."),
    second: Path = argument("SECOND", "Another labels file, with the same ids."),
    data: str | None = option(
        "The data that both were made from, to see which one is more stable.",
        None,
        "--data",
    ),
    reading: Reading,
    output: Path | None = output_option(
        "Write an HTML page about it; an existing file is replaced.",
        None,
        "-o --output",
    ),
    title: str | None = output_option("Heading of the page."),
    screen: Screen,
) -> None:
    """Compare two clusterings of the same rows: how far they agree, which rows moved.

    With the data that both were made from, it also says which one is more stable.

    [bold]Examples[/]

      ihgmm compare labels-3.csv labels-5.csv

      ihgmm compare labels-3.csv labels-5.csv --data customers.csv

      ihgmm compare monday.csv friday.csv -o comparison.html
    """
    check_output(output, "-o", (".html", ".htm"), [first, second], streams=True)
    screen = screen.beside(output)
    if first == second:
        raise ValueError(f"{first} is given twice; give two files.")
    rows, notes = _common_rows(read_labels(first), read_labels(second))
    if data is not None:
        rows["X"] = _rows_of(reading.load(data, screen), rows["ids"])
    # Called by what tells them apart.
    rows["called"] = [first.stem, second.stem]
    if first.stem == second.stem:
        rows["called"] = [str(first), str(second)]
    comparison = Comparison(**rows)
    if output is not None:
        with real_file(output, ".html") as page:
            write_comparison(
                **rows,
                path=page,
                title=title,
                notes=notes,
                source=f"{first} and {second}",
                command=command_line(
                    "compare",
                    first,
                    second,
                    reading,
                    data=data,
                    title=title,
                    output=output,
                ),
            )
    n, n_moved = comparison.n_samples, comparison.n_moved
    screen.document(
        "compare",
        {"first": first, "second": second, "n_samples": n},
        moved=n_moved,
        adjusted_rand_index=comparison.rand,
        flows=comparison.flows,
        moves=comparison.moves,
        stability=comparison.stability,
        notes=notes,
        report_file=output,
    )
    screen.say(f"{agreement_words(comparison.rand, n_moved)}.", "bold")
    screen.say(
        f"{counted(n, 'row')} in both: {n_moved:,} ({percent(n_moved / n)}) are "
        f"in another cluster; the adjusted Rand index is {comparison.rand:.2f}"
    )
    quoted = [quote(name) for name in rows["called"]]
    stability, numbers = comparison.stability, comparison.n_clusters
    screen.say(stability_text(quoted, stability, numbers))
    screen.notes(Note(note, in_quiet=True) for note in notes)
    _print_moves(screen, comparison)
    if output is not None:
        screen.say(f"page written to {output}; open it in a browser")


def _print_moves(screen: Screen, comparison: Comparison) -> None:
    """Print where the rows of each cluster went, and the groups that moved."""
    columns = {"cluster": "", "rows": ",", "most went to": "", "of them": ","}
    flows = (
        (flow["name"], flow["rows"], *flow["parts"][0]) for flow in comparison.flows
    )
    screen.table(columns | {"share": ".1%"}, flows)
    moves = [
        (move["from"], move["to"], move["rows"], move["shown"][0][0])
        for move in comparison.moves[:12]
    ]
    if moves:
        # Numbers of one file are not those of the other.
        one, other = comparison.called
        ends = {f"moved from, in {one}": "", f"to, in {other}": ""}
        screen.table(ends | {"rows": ",", "such as": ""}, moves)


def _common_rows(one: Labels, two: Labels) -> tuple[dict[str, Any], list[str]]:
    """Return clusters and ids of the rows that both have, and remarks."""
    pairs = [(i, i) for i in range(len(one.ids))]
    if one.ids != two.ids:
        for labels in (one, two):
            (name, times), *_ = Counter(labels.ids).most_common(1)
            if times > 1:
                raise ValueError(
                    f"{labels.path}: the id {quote(name)} occurs in {times} rows, and "
                    "rows are matched by id; give files in which each id occurs once."
                )
        places = {name: i for i, name in enumerate(two.ids)}
        pairs = [(i, places[name]) for i, name in enumerate(one.ids) if name in places]
    if not pairs:
        raise ValueError(
            f"{one.path} and {two.path} have no id in common, the first ids are "
            f"{quote(one.ids[0])} and {quote(two.ids[0])}; give files about the same "
            "rows."
        )
    mine, others = (list(rows) for rows in zip(*pairs, strict=True))
    rows = {
        "first": [one.called(one.clusters[i]) for i in mine],
        "second": [two.called(two.clusters[i]) for i in others],
        "ids": [one.ids[i] for i in mine],
    }
    notes = [
        f"Left out {counted(len(labels.ids) - len(pairs), 'row')} of {labels.path}: "
        "the other file does not have them."
        for labels in (one, two)
        if len(labels.ids) > len(pairs)
    ]
    return rows, notes


def _rows_of(table: Table, ids: list[str]) -> Any:
    """Return the rows of a table that have these ids, in their order."""
    places = {str(name): i for i, name in enumerate(table.ids)}
    absent = [name for name in ids if name not in places]
    if absent:
        raise ValueError(
            f"{table.source} has no row {quote(absent[0])}; give the data that both "
            "files were made from, and --id-column as in the fit."
        )
    return as_matrix(table.X).take(np.array([places[name] for name in ids]))
