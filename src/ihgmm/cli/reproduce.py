"""The command ``ihgmm reproduce``."""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import typer

from ihgmm._files import atomic_write
from ihgmm.cli.files import write_csv
from ihgmm.cli.options import argument, option
from ihgmm.cli.screen import Screen, clean
from ihgmm.paper.figures import draw_experiment, draw_map
from ihgmm.paper.runner import Summary, run_experiment, summarize
from ihgmm.paper.studies import STUDIES, Experiment, Setting
from ihgmm.paper.table import PAPER_COUNTS, real_data_table, to_latex, to_markdown


@dataclass(frozen=True)
class Extent:
    """How much of a study is run, and where its results go."""

    output: Path = option(
        "Folder for tables and figures.", Path("reproduction"), "-o --output"
    )
    repeats: int | None = option(
        "Repetitions of each setting (200, phase 5), seeds of the table (10)."
    )
    jobs: int | None = option("Processes; all cores by default.")
    only: str | None = option(
        "Only what has this in its name: a panel ('p>>n'), a noise ('rademacher'), a "
        "setting ('exp4/beta/0.1'), a map ('phase/K='), or a data set."
    )
    quick: bool = option(
        "A few repetitions, without the largest samples.", False, "--quick"
    )
    data_home: Path | None = option("Folder with the downloaded data sets.")


def reproduce(
    *,
    what: str = argument(
        "WHAT",
        f"{', '.join(STUDIES)}, table, or all of them: all.",
        [*STUDIES, "table", "all"],
    ),
    extent: Extent,
    screen: Screen,
) -> None:
    """Run the experiments of the paper, or its table of real data.

    exp1 varies sample size and dimension, exp2 the number of clusters, exp3 the spread
    of the scales, exp4 the balance of the clusters; table counts errors on nine real
    data sets. phase is not in the paper: it shows where errors end as centres move
    apart, and what is possible at best.

    Every repetition is saved as soon as it ends. You can interrupt the command and
    run it again to continue.

    [bold]Examples[/]

      ihgmm reproduce table --json

      ihgmm reproduce exp4 --quick

      ihgmm reproduce exp2 --repeats 20 --only 'n=p'

      ihgmm reproduce phase --only 'phase/K='
    """
    # What is wrong or not installed is said before the work, not after it.
    if what not in ("all", "table", *STUDIES):
        raise ValueError(
            f"WHAT={what!r} is not known; give one of {', '.join(STUDIES)}, table, all."
        )
    for name, number in {"--repeats": extent.repeats, "--jobs": extent.jobs}.items():
        if number is not None and number < 1:
            raise ValueError(f"{name} {number} is too small; give 1 or more.")
    if what != "table" and importlib.util.find_spec("matplotlib") is None:
        raise ImportError("The figures need matplotlib: pip install matplotlib")
    extent.output.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = {}
    try:
        for name in [*STUDIES, "table"] if what == "all" else [what]:
            if name == "table":
                done[name] = _table(extent, screen)
            else:
                done[name] = _experiment(STUDIES[name], extent, screen)
            files = ", ".join(done[name]["files"])
            screen.say(f"  written to {extent.output}: {files}")
    except KeyboardInterrupt:
        typer.echo(
            f"stopped; what is finished is kept in {clean(str(extent.output))}. Give "
            "the same command again to go on.",
            err=True,
        )
        raise typer.Exit(130) from None
    screen.document("reproduce", {"folder": extent.output, "studies": done})


def _experiment(
    experiment: Experiment, extent: Extent, screen: Screen
) -> dict[str, Any]:
    """Run a study; write and print what came out, and return it."""
    name, only = experiment.name, extent.only
    # A quick run shows that all works: one repetition in 40, no sample of seconds.
    reps = max(1, experiment.reps // 40) if extent.quick else experiment.reps
    most_entries = 1_500_000 if extent.quick else math.inf

    def chosen(setting: Setting) -> bool:
        entries = setting.options["n_samples"] * setting.options["n_features"]
        return (only is None or only in setting.key) and entries <= most_entries

    settings = [s for s in experiment.settings() if chosen(s)]
    if not settings:
        raise ValueError(
            f"--only {only!r} matches nothing in {name}; settings are named like "
            f"{experiment.settings()[0].key!r}."
        )
    with screen.working(experiment.title, len(settings)) as update:
        results = run_experiment(
            experiment,
            extent.output / f"{name}-runs.csv",
            reps=extent.repeats or reps,
            jobs=extent.jobs or os.cpu_count() or 1,
            only=chosen,
            progress=update,
        )
    summary = summarize(results)
    columns = [field.name for field in fields(Summary)]
    forms = {"x": "g", "rate": ".6f", "exact_share": ".4f"}
    rows = [[format(getattr(s, c), forms.get(c, "")) for c in columns] for s in summary]
    write_csv(extent.output / f"{name}-summary.csv", columns, rows)
    pictures = _draw(experiment, summary, extent.output)
    methods = []
    for method in dict.fromkeys(s.method for s in summary):
        rates = [s.rate for s in summary if s.method == method]
        shares = [s.exact_share for s in summary if s.method == method]
        error, exact = sum(rates) / len(rates), sum(shares) / len(shares)
        figures = {"method": method, "mean_error": error, "exact_recovery": exact}
        methods.append(figures | {"least_exact_recovery": min(shares)})
        screen.say(
            f"  {method:<19} mean error {error:.3f}   "
            f"exact recovery {exact:.3f} (least {min(shares):.2f})"
        )
    written = [*pictures, f"{name}-summary.csv", f"{name}-runs.csv"]
    return {"methods": methods, "files": written}


def _draw(experiment: Experiment, summary: list[Summary], output: Path) -> list[str]:
    """Draw every figure to look at and for print; return the names of the files."""
    name, drawn = experiment.name, {s.panel for s in summary}
    files = []
    for suffix in ("png", "pdf"):
        if not experiment.maps:
            files.append(f"{name}.{suffix}")
            draw_experiment(experiment, summary, output / files[-1])
        for one in experiment.maps:
            if drawn & {panel.name for panel in one.panels}:
                files.append(f"{name}-{one.name}.{suffix}")
                draw_map(experiment, one, summary, output / files[-1])
    return files


def _table(extent: Extent, screen: Screen) -> dict[str, Any]:
    """Make the table; write and print what came out, and return it."""
    only = extent.only
    names = [name for name in PAPER_COUNTS if only is None or only in name]
    if not names:
        raise ValueError(
            f"--only {only!r} matches no data set; there are {', '.join(PAPER_COUNTS)}."
        )
    with screen.working("Table of real data", len(names)) as update:
        cells = real_data_table(
            extent.output / "table.csv",
            seeds=extent.repeats or (3 if extent.quick else 10),
            data_home=extent.data_home,
            only=names,
            progress=update,
        )
    texts = {"table.md": to_markdown(cells), "table.tex": to_latex(cells)}
    for name, text in texts.items():
        with atomic_write(extent.output / name, "w") as file:
            file.write(text)
    screen.say("misclassified rows, median over seeds (range); the paper's beside:")
    screen.say(texts["table.md"])
    return {"cells": [asdict(cell) for cell in cells], "files": ["table.csv", *texts]}
