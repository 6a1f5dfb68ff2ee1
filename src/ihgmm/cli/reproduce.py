"""The command ``ihgmm reproduce``."""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from ihgmm._files import atomic_write
from ihgmm.cli.options import DataHome, one_of
from ihgmm.cli.output import write_csv
from ihgmm.cli.screen import Screen, clean
from ihgmm.experiments import STUDIES, Experiment, Setting, real_data_table
from ihgmm.experiments.figures import draw_experiment
from ihgmm.experiments.heatmaps import draw_map
from ihgmm.experiments.runner import Summary, run_experiment, summarize
from ihgmm.experiments.table import PAPER_COUNTS, to_latex, to_markdown


def reproduce(
    *,
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            autocompletion=one_of([*STUDIES, "table", "all"]),
            help=f"{', '.join(STUDIES)}, table, or all of them: all.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for tables and figures.")
    ] = Path("reproduction"),
    reps: Annotated[
        int | None,
        typer.Option(
            help="Repetitions of each setting (200, phase 5), seeds of the table (10)."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; all cores by default.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="Only what has this in its name: a panel ('p>>n'), a noise "
            "('rademacher'), a setting ('exp4/beta/0.1'), a map ('phase/K='), or a "
            "data set."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A few repetitions, without the largest samples."),
    ] = False,
    data_home: DataHome = None,
    screen: Screen,
) -> None:
    """Run the experiments of the paper, or its table of real data.

    exp1 varies sample size and dimension, exp2 the number of clusters, exp3 the spread
    of the scales, exp4 the balance of the clusters; table counts errors on nine real
    data sets. phase is not in the paper: where errors end as the centres part, beside
    what could be done at best.

    Every repetition is kept as soon as it is finished: interrupt the command when you
    like, and give it again to go on.

    [bold]Examples[/]

      ihgmm reproduce table --json

      ihgmm reproduce exp4 --quick

      ihgmm reproduce exp2 --reps 20 --only 'n=p'

      ihgmm reproduce phase --only 'phase/K='
    """
    _check(what, reps, jobs)
    names = [*STUDIES, "table"] if what == "all" else [what]
    output.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = {}
    try:
        for name in names:
            if name == "table":
                seeds = reps or (3 if quick else 10)
                done[name] = _table(output, seeds, only, data_home, screen)
            else:
                workers = jobs or os.cpu_count() or 1
                done[name] = _experiment(
                    STUDIES[name], output, reps, workers, only, quick, screen
                )
    except KeyboardInterrupt:
        typer.echo(
            f"stopped; what is finished is kept in {clean(str(output))}. Give the same "
            "command again to go on.",
            err=True,
        )
        raise typer.Exit(130) from None
    screen.document({"command": "reproduce", "folder": output, "studies": done})


def _check(what: str, reps: int | None, jobs: int | None) -> None:
    """Say before the work, not after it, what is wrong or not installed."""
    if what not in ("all", "table", *STUDIES):
        raise ValueError(
            f"WHAT={what!r} is not known; give one of {', '.join(STUDIES)}, table, all."
        )
    for option, number in {"--reps": reps, "--jobs": jobs}.items():
        if number is not None and number < 1:
            raise ValueError(f"{option} {number} is too small; give 1 or more.")
    if what != "table" and importlib.util.find_spec("matplotlib") is None:
        raise ImportError("The figures need matplotlib: pip install matplotlib")


def _experiment(
    experiment: Experiment,
    output: Path,
    reps: int | None,
    jobs: int,
    only: str | None,
    quick: bool,
    screen: Screen,
) -> dict[str, Any]:
    """Run a study; write and tell what came out, and return it."""
    name = experiment.name
    # A quick run shows that all works: one repetition in 40, no sample of seconds.
    usual = max(1, experiment.reps // 40) if quick else experiment.reps
    most_entries = 1_500_000 if quick else math.inf

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
            output / f"{name}-runs.csv",
            reps=reps or usual,
            jobs=jobs,
            only=chosen,
            progress=update,
        )
    summary = summarize(results)
    _write_summary(output / f"{name}-summary.csv", summary)
    pictures = _draw(experiment, summary, output)
    written = [*pictures, f"{name}-summary.csv", f"{name}-runs.csv"]
    methods = []
    for method in dict.fromkeys(s.method for s in summary):
        mine = [s for s in summary if s.method == method]
        figures = {
            "method": method,
            "mean_error": sum(s.rate for s in mine) / len(mine),
            "exact_recovery": sum(s.exact_share for s in mine) / len(mine),
            "least_exact_recovery": min(s.exact_share for s in mine),
        }
        methods.append(figures)
        screen.say(
            f"  {method:<19} mean error {figures['mean_error']:.3f}   exact recovery "
            f"{figures['exact_recovery']:.3f} "
            f"(least {figures['least_exact_recovery']:.2f})"
        )
    screen.say(f"  written to {output}: {', '.join(written)}")
    return {"methods": methods, "files": written}


def _draw(experiment: Experiment, summary: list[Summary], output: Path) -> list[str]:
    """Draw every figure to look at and for print; return the names of the files."""
    name, there = experiment.name, {s.panel for s in summary}
    files = []
    for suffix in ("png", "pdf"):
        if not experiment.maps:
            files.append(f"{name}.{suffix}")
            draw_experiment(experiment, summary, output / files[-1])
        for one in experiment.maps:
            if there & {panel.name for panel in one.panels}:
                files.append(f"{name}-{one.name}.{suffix}")
                draw_map(experiment, one, summary, output / files[-1])
    return files


def _table(
    output: Path, seeds: int, only: str | None, data_home: Path | None, screen: Screen
) -> dict[str, Any]:
    """Make the table; write and tell what came out, and return it."""
    names = [n for n in PAPER_COUNTS if only is None or only in n]
    if not names:
        raise ValueError(
            f"--only {only!r} matches no data set; there are {', '.join(PAPER_COUNTS)}."
        )
    with screen.working("Table of real data", len(names)) as update:
        cells = real_data_table(
            output / "table.csv",
            seeds=seeds,
            data_home=data_home,
            only=names,
            progress=update,
        )
    texts = {".md": to_markdown(cells), ".tex": to_latex(cells)}
    for suffix, text in texts.items():
        with atomic_write(output / f"table{suffix}") as file:
            file.write(text)
    screen.say("misclassified rows, median over seeds (range); the paper's beside:")
    screen.say(texts[".md"])
    files = ["table.csv", "table.md", "table.tex"]
    screen.say(f"  written to {output}: {', '.join(files)}")
    return {"cells": [asdict(cell) for cell in cells], "files": files}


def _write_summary(path: Path, summary: list[Summary]) -> None:
    rows = [list(astuple(s)) for s in summary]
    for row, s in zip(rows, summary, strict=True):
        row[2], row[6], row[7] = f"{s.x:g}", f"{s.rate:.6f}", f"{s.exact_share:.4f}"
    names = [f.name for f in fields(Summary)]
    write_csv(path, names, list(zip(*rows, strict=True)))
