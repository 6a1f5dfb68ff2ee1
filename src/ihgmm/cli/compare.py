"""The command ``ihgmm compare``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ihgmm.cli.files import Labels, check_output, read_labels, real_file
from ihgmm.cli.options import argument, command_line, output_option
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.table import quote
from ihgmm.report import write_comparison
from ihgmm.report.comparison import Comparison
from ihgmm.words.comparisons import agreement_words, preference_text
from ihgmm.words.phrases import counted, percent


def compare(
    *,
    first: Path = argument("FIRST", "A labels file, as ihgmm fit -o writes it."),
    second: Path = argument("SECOND", "Another one, with rows of the same ids."),
    output: Path | None = output_option(
        "Write a page of HTML about it; an old one is replaced.", None, "-o --output"
    ),
    title: str | None = output_option("Heading of the page."),
    screen: Screen,
) -> None:
    """Compare two clusterings of the same rows: how far they agree, what moved where.

    If both files have the certainty of rows, it also says which one the data speak for.

    [bold]Examples[/]

      ihgmm compare labels-3.csv labels-5.csv

      ihgmm compare monday.csv friday.csv -o comparison.html
    """
    check_output(output, "-o", (".html", ".htm"), [first, second])
    screen = screen.beside(output)
    if first == second:
        raise ValueError(f"{first} is given twice; give two files.")
    rows, notes = _common_rows(read_labels(first), read_labels(second))
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
                    "compare", first, second, title=title, output=output
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
        expected_errors=comparison.expected_errors,
        preference=comparison.preference,
        notes=notes,
        report_file=output,
    )
    screen.say(f"{agreement_words(comparison.rand, n_moved)}.", "bold")
    screen.say(
        f"{counted(n, 'row')} in both: {n_moved:,} ({percent(n_moved / n)}) are "
        f"in another cluster; agreement beyond chance {comparison.rand:.2f}"
    )
    quoted = [quote(name) for name in rows["called"]]
    errors = comparison.expected_errors
    screen.say(preference_text(comparison.preference, quoted, errors, comparison.surer))
    for note in notes:
        screen.say(note, "yellow")
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
        screen.table({"moved from": "", "to": "", "rows": ",", "such as": ""}, moves)


def _common_rows(one: Labels, two: Labels) -> tuple[dict[str, Any], list[str]]:
    """Return clusters, ids and certainty of the rows that both have, and remarks."""
    pairs = [(i, i) for i in range(len(one.ids))]
    if one.ids != two.ids:
        for labels in (one, two):
            (name, times), *_ = Counter(labels.ids).most_common(1)
            if times > 1:
                raise ValueError(
                    f"{labels.path}: the id {quote(name)} stands in {times} rows, and "
                    "rows are matched by their ids; give files with a column of ids "
                    "that differ."
                )
        places = {name: i for i, name in enumerate(two.ids)}
        pairs = [(i, places[name]) for i, name in enumerate(one.ids) if name in places]
    if not pairs:
        raise ValueError(
            f"{one.path} and {two.path} have no id in common, the first being "
            f"{quote(one.ids[0])} and {quote(two.ids[0])}; give files on the same rows."
        )
    mine, others = (list(rows) for rows in zip(*pairs, strict=True))
    rows = {
        "first": [one.called(one.clusters[i]) for i in mine],
        "second": [two.called(two.clusters[i]) for i in others],
        "ids": [one.ids[i] for i in mine],
        "certainty": [one.certainty()[mine], two.certainty()[others]],
    }
    notes = [
        f"Left out {counted(len(labels.ids) - len(pairs), 'row')} of {labels.path}: "
        "the other file does not have them."
        for labels in (one, two)
        if len(labels.ids) > len(pairs)
    ]
    return rows, notes
