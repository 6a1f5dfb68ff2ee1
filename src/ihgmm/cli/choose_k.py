"""The command ``ihgmm choose-k``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ihgmm import select_n_clusters
from ihgmm._files import atomic_write
from ihgmm._text import count_headline
from ihgmm.cli.data import Reading
from ihgmm.cli.options import DATA, OUTPUT, option, seed_option
from ihgmm.cli.output import check_output
from ihgmm.cli.screen import AnswerScreen
from ihgmm.statistics.selection import COUNT_GRAMS, METHODS, ClusterCount


@dataclass(frozen=True)
class Counting:
    """The options of the count."""

    method: str = option(
        "auto",
        "parallel: count directions that stand out from noise; stability: the largest "
        "number of clusters that halves of the data agree on; auto: stability in "
        "20 features or fewer, parallel in more.",
        words=METHODS,
    )
    gram: str = option(
        "auto", f"Similarity of rows: {', '.join(COUNT_GRAMS)}.", words=COUNT_GRAMS
    )
    max_clusters: int = option(50, "The largest number to look for.")
    random_state: int = seed_option()


def choose_k(
    *,
    data: str = DATA,
    counting: Counting,
    plot: Path | None = option(
        None,
        "Draw the eigenvalues and the edge of noise, and the prediction strengths of "
        "stability: a PNG, PDF or SVG file.",
        panel=OUTPUT,
    ),
    reading: Reading,
    screen: AnswerScreen,
) -> None:
    """Find the number of clusters in DATA, and show on what evidence.

    [bold]Examples[/]

      ihgmm choose-k demo

      ihgmm choose-k wine --standardize --method stability --plot eigenvalues.png

      ihgmm choose-k cells.csv --id-column barcode --json
    """
    check_output(plot, "--plot", (".png", ".pdf", ".svg"), [data])
    table, _ = reading.load(data, screen)
    options: dict[str, Any] = asdict(counting)
    with screen.working("counting"):
        count = select_n_clusters(table.X, **options)
    if plot is not None:
        _draw(count, plot)
    names = ("n_clusters", "rank", "summary", "eigenvalues", "edge", "strengths")
    evidence = {name: getattr(count, name) for name in (*names, "method", "gram")}
    screen.document(
        {"command": "choose-k", **table.facts, **evidence, "plot_file": plot}
    )
    screen.say(f"{table.heading}: {count_headline(count)}", "bold")
    screen.notes(table.notes)
    screen.say(count.summary)
    beyond = 5  # eigenvalues after those that count, to show how they go on
    screen.table(
        {"number": "", "eigenvalue": ".4g", "over the edge": ".2f", "counts": ""},
        [
            (
                i,
                value,
                value / count.edge if count.edge > 0 else None,
                "yes" if i <= count.rank else "no",
            )
            for i, value in enumerate(count.eigenvalues[: count.rank + beyond], 1)
        ],
    )
    if count.strengths:
        screen.table(
            {"clusters": "", "prediction strength": ".2f"}, count.strengths.items()
        )
    if plot is not None:
        screen.say(f"drawn in {plot}")
    screen.answer(str(count.n_clusters))


def _draw(count: ClusterCount, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install matplotlib") from error
    panels = 2 if count.strengths else 1
    figure = Figure(figsize=(6 if panels == 1 else 10, 4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    count.plot(axes[0])
    if count.strengths:
        count.plot_strengths(axes[1])
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
