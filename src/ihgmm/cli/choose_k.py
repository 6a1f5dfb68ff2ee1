"""The command ``ihgmm choose-k``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from ihgmm import select_n_clusters
from ihgmm._files import atomic_write
from ihgmm.cli.files import check_output
from ihgmm.cli.options import DATA, SEED, WHITEN, Reading, option, output_option
from ihgmm.cli.screen import Screen, in_shell, print_warning
from ihgmm.plotting.eigenvalues import plot_count
from ihgmm.statistics.selection import METHODS, ClusterCount
from ihgmm.words.counts import count_headline, edge_words, evidence_words


def choose_k(
    *,
    data: str = DATA,
    method: str = option(
        "auto: weigh several criteria and name the plausible numbers; parallel: count "
        "directions that stand out from noise; stability: the largest number of "
        "clusters that halves of the data agree on.",
        "auto",
        words=METHODS,
    ),
    max_clusters: int = option("The largest number to look for.", 50),
    whiten: str | None = WHITEN,
    random_state: int = SEED,
    plot: Path | None = output_option(
        "Draw the eigenvalues and the edge of noise, and what speaks for each number: "
        "a PNG, PDF or SVG file."
    ),
    reading: Reading,
    screen: Screen,
) -> None:
    """Find the number of clusters in DATA, and show the evidence.

    [bold]Examples[/]

      ihgmm choose-k demo

      ihgmm choose-k wine --method stability --plot eigenvalues.png

      ihgmm choose-k cells.csv --id-column barcode --json
    """
    check_output(plot, "--plot", (".png", ".pdf", ".svg"), [data])
    table = reading.load(data, screen)
    options: dict[str, Any] = {
        "method": method,
        "max_clusters": max_clusters,
        "whiten": whiten,
        "missing": "fit" if table.has_missing else "error",
        "random_state": random_state,
    }
    with screen.working("counting"):
        count = select_n_clusters(table.named_data, **options)
    if plot is not None:
        picture, form = plot_count(count).figure, plot.suffix[1:].lower()
        with atomic_write(plot) as file:
            picture.savefig(file, format=form, dpi=150)
    summary = in_shell(str(count))
    names = "n_clusters rank eigenvalues edge strengths method gram"
    facts = {name: getattr(count, name) for name in names.split()}
    facts |= {"summary": summary, "confidence": count.confidence}
    facts |= {"plausible": count.plausible, "plot_file": plot}
    screen.document("choose-k", table.facts, **facts)
    screen.say(f"{table.heading}: {count_headline(count)}", "bold")
    screen.notes(table.notes)
    screen.say(summary)
    # If one column dominates, the evidence is about it and would contradict the rest.
    is_known = count.n_clusters > 0 or not count.is_dominated
    if count.evidence and is_known:
        _show_evidence(count, screen)
    elif count.strengths and not count.evidence:
        formats = {"clusters": "", "prediction strength": ".2f"}
        screen.table(formats, count.strengths.items())
    _show_eigenvalues(count, screen)
    if plot is not None:
        screen.say(f"drawn in {plot}")
    if screen.quiet and not screen.as_json:
        if count.is_doubtful:
            print_warning(f"{count_headline(count)}. {summary}")
        typer.echo(count.n_clusters)  # for scripts


def _show_evidence(count: ClusterCount, screen: Screen) -> None:
    """Show the figures of the plausible numbers and of their neighbours."""
    places = {number.n_clusters: i for i, number in enumerate(count.plausible, 1)}
    last = 2 + max((number.n_clusters for number in count.plausible), default=10)
    # Eight columns would not fit in a terminal: of two gaps the larger is shown.
    formats = {"clusters": "", "gap": ".2f", "halves": ".2f", "likelihood": ".2f"}
    formats |= {"support": ".2f", "best by": "", "plausible": ""}
    rows = [
        (
            number.n_clusters,
            max(number.gaps),
            number.strength,
            number.gain if np.isfinite(number.gain) else None,
            number.support,
            ", ".join(side.value for side in number.sides),
            places.get(number.n_clusters, ""),
        )
        for number in count.evidence
        if number.n_clusters <= last
    ]
    screen.table(formats, rows)
    screen.explain(evidence_words(count))


def _show_eigenvalues(count: ClusterCount, screen: Screen) -> None:
    """Show the eigenvalues that stand out from noise, and how they go on."""
    beyond = 5
    rows = []
    shown = min(count.rank + beyond, count.n_features)  # no more can be of signal
    for i, value in enumerate(count.eigenvalues[:shown], 1):
        ratio = value / count.edge if count.edge > 0 else None
        rows.append((i, value, ratio, "yes" if i <= count.rank else "no"))
    formats = {"number": "", "eigenvalue": ".4g", "over the edge": ".2f"}
    screen.table(formats | {"stands out": ""}, rows)
    screen.explain(edge_words(count))
