"""The command ``ihgmm compare``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ihgmm.cli.commands import command_line
from ihgmm.cli.files import Labels, check_output, read_labels, real_file
from ihgmm.cli.options import argument, output_option
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
    files = {path: read_labels(path) for path in (first, second)}
    ids, (one, two), certainty, notes = _common_rows(files)
    # Called by what tells them apart.
    called = (first.stem, second.stem)
    if first.stem == second.stem:
        called = (str(first), str(second))
    found = Comparison(one, two, ids, called, certainty)
    if output is not None:
        with real_file(output) as page:
            write_comparison(
                one,
                two,
                page,
                ids=ids,
                called=called,
                certainty=certainty,
                title=title,
                notes=notes,
                source=f"{first} and {second}",
                command=command_line(
                    "compare", first, second, title=title, output=output
                ),
            )
    screen.document(
        "compare",
        {"first": first, "second": second, "n_samples": found.n_samples},
        moved=found.n_moved,
        adjusted_rand_index=found.rand,
        flows=found.flows,
        moves=found.moves,
        expected_errors=found.expected_errors,
        preference=found.preference,
        notes=notes,
        report_file=output,
    )
    share = percent(found.n_moved / found.n_samples)
    screen.say(f"{agreement_words(found.rand, found.n_moved)}.", "bold")
    screen.say(
        f"{counted(found.n_samples, 'row')} in both: {found.n_moved:,} ({share}) are "
        f"in another cluster; agreement beyond chance {found.rand:.2f}"
    )
    quoted = [quote(name) for name in called]
    errors = found.expected_errors
    screen.say(preference_text(found.preference, quoted, errors, found.surer))
    for note in notes:
        screen.say(note, "yellow")
    columns = {"cluster": "", "rows": ",", "most went to": "", "of them": ","}
    rows = ((flow["name"], flow["rows"], *flow["parts"][0]) for flow in found.flows)
    screen.table(columns | {"share": ".1%"}, rows)
    if found.moves:
        groups = [
            (move["from"], move["to"], move["rows"], move["shown"][0][0])
            for move in found.moves[:12]
        ]
        screen.table({"moved from": "", "to": "", "rows": ",", "such as": ""}, groups)
    if output is not None:
        screen.say(f"page written to {output}; open it in a browser")


def _common_rows(
    files: dict[Path, Labels],
) -> tuple[list[str], list[list[str]], list[list[float]], list[str]]:
    """Return the ids that both files have, their clusters in each, and remarks.

    Between them comes the certainty of these rows in each file.
    """
    if len(files) == 1:
        raise ValueError(f"{next(iter(files))} is given twice; give two files.")
    one, two = files.values()
    if one.ids == two.ids:
        names = [[f.called(k) for k in f.clusters] for f in (one, two)]
        return one.ids, names, [one.certainty, two.certainty], []
    for path, labels in files.items():
        (name, times), *_ = Counter(labels.ids).most_common(1)
        if times > 1:
            raise ValueError(
                f"{path}: the id {quote(name)} stands in {times} rows, and rows are "
                "matched by their ids; give files with a column of ids that differ."
            )
    places = [{name: i for i, name in enumerate(each.ids)} for each in (one, two)]
    ids = [name for name in one.ids if name in places[1]]
    if not ids:
        raise ValueError(
            f"{' and '.join(map(str, files))} have no id in common, the first being "
            f"{quote(one.ids[0])} and {quote(two.ids[0])}; give files on the same rows."
        )
    pairs, certainty = [], []
    for labels, place in zip((one, two), places, strict=True):
        rows = [place[name] for name in ids]
        pairs.append([labels.called(labels.clusters[i]) for i in rows])
        certainty.append([labels.certainty[i] for i in rows])
    notes = [
        f"Left out {counted(len(labels.ids) - len(ids), 'row')} of {path}: the other "
        "file does not have them."
        for path, labels in files.items()
        if len(labels.ids) > len(ids)
    ]
    return ids, pairs, certainty, notes
