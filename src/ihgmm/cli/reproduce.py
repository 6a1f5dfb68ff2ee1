"""The command ``ihgmm reproduce``."""

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from ihgmm._files import atomic_write
from ihgmm._parameters import check_count
from ihgmm.cli.files import write_csv
from ihgmm.cli.options import FLAG, argument, option
from ihgmm.cli.screen import Screen
from ihgmm.paper.figures import draw_study
from ihgmm.paper.runner import Run, Summary, run_study, summarize
from ihgmm.paper.studies import STUDIES, Study
from ihgmm.paper.table import real_data_study, table_cells, to_latex, to_markdown

ALL_STUDIES = [*STUDIES, "table"]
KNOWN = [*ALL_STUDIES, "all"]


@dataclass(frozen=True)
class _Work:
    """Which part of the studies is run, and how."""

    only: str  # what the names of settings have in them
    repeats: int | None  # of each setting; by default as many as the study has
    jobs: int  # processes
    is_quick: bool
    data_home: Path | None
    folder: Path  # for tables and figures


def reproduce(
    *,
    what: Annotated[
        str, argument("WHAT", f"{', '.join(ALL_STUDIES)}, or all: all of them.")
    ],
    output: Annotated[
        Path, option("Folder for tables and figures.", "-o", "--output")
    ] = Path("reproduction"),
    repeats: Annotated[
        int | None,
        option("Repetitions of each setting (200, phase 5), seeds of the table (10)."),
    ] = None,
    jobs: Annotated[
        int | None, option("Number of processes; by default one for each core.")
    ] = None,
    only: Annotated[
        str | None,
        option(
            "Run only what has this in its name: a panel ('p>>n'), a noise "
            "('rademacher'), a setting ('exp4/beta/0.1'), a map ('phase/K='), or a "
            "data set."
        ),
    ] = None,
    quick: Annotated[
        bool,
        option(
            "Run a few repetitions only, without the largest samples.",
            "--quick",
            metavar=FLAG,
        ),
    ] = False,
    data_home: Annotated[
        Path | None, option("Folder with the downloaded data sets.")
    ] = None,
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
    """
    # What is wrong or not installed is said before the work.
    if what not in KNOWN:
        raise ValueError(f"WHAT={what!r} is not known; give one of {', '.join(KNOWN)}.")
    check_count("repeats", repeats, words=(None,))
    check_count("jobs", jobs, words=(None,))
    if what != "table" and importlib.util.find_spec("matplotlib") is None:
        raise ImportError("The figures need matplotlib: pip install matplotlib")
    if str(output) == "-" or (output.exists() and not output.is_dir()):
        raise ValueError(f"-o {output} is no folder; give the name of one.")

    output.mkdir(parents=True, exist_ok=True)
    work = _Work(
        only=only or "",
        repeats=repeats,
        jobs=jobs or os.cpu_count() or 1,
        is_quick=quick,
        data_home=data_home,
        folder=output,
    )

    documents = {}
    try:
        for name in ALL_STUDIES if what == "all" else [what]:
            documents[name] = _run(name, work, screen)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"what is finished is kept in {output}. Run the same command again to "
            "continue."
        ) from None

    screen.document("reproduce", {"folder": output, "studies": documents})


def _run(name: str, work: _Work, screen: Screen) -> dict[str, Any]:
    """Run a study, write and print what came of it, and return that for JSON."""
    is_table = name == "table"
    study = real_data_study(work.data_home) if is_table else STUDIES[name]
    settings = study.choose(work.only, quick=work.is_quick)
    if not settings:
        example = study.settings[0].key
        raise ValueError(
            f"--only {work.only!r} matches nothing in {name}; settings are named like "
            f"{example!r}."
        )

    if is_table:
        for setting in settings:
            setting.draw(0)  # what is missing is better known at once

    runs_file = work.folder / f"{name}-runs.csv"
    with screen.working(study.title) as show_progress:
        results = run_study(
            settings,
            study.methods,
            runs_file,
            reps=work.repeats or (study.quick_reps if work.is_quick else study.reps),
            jobs=work.jobs,
            progress=show_progress,
        )

    write = _write_table if is_table else _write_study
    document = write(study, results, work.folder, screen)
    document["files"].append(runs_file.name)
    screen.say(f"  written to {work.folder}: {', '.join(document['files'])}")
    return document


def _write_table(
    study: Study, results: Sequence[Run], folder: Path, screen: Screen
) -> dict[str, Any]:
    """Write and print the table of real data."""
    cells = table_cells(results)
    texts = {"table.md": to_markdown(cells), "table.tex": to_latex(cells)}
    for name, text in texts.items():
        with atomic_write(folder / name, "w") as file:
            file.write(text)

    screen.say("misclassified rows, median over seeds (range); the paper's beside:")
    screen.say(texts["table.md"])
    return {"cells": [cell._asdict() for cell in cells], "files": list(texts)}


def _write_study(
    study: Study, results: Sequence[Run], folder: Path, screen: Screen
) -> dict[str, Any]:
    """Write and draw an experiment, and print the errors of each method."""
    summary = summarize(study, results)
    summary_file = folder / f"{study.name}-summary.csv"
    write_csv(summary_file, [Summary._fields, *map(_cells, summary)])
    files = [*draw_study(study, summary, folder), summary_file.name]

    methods = []
    for method in dict.fromkeys(line.method for line in summary):
        lines = [line for line in summary if line.method == method]
        error = fmean(line.rate for line in lines)
        exact = fmean(line.exact_share for line in lines)
        least_exact = min(line.exact_share for line in lines)

        methods.append(
            {
                "method": method,
                "mean_error": error,
                "exact_recovery": exact,
                "least_exact_recovery": least_exact,
            }
        )
        shares = f"exact recovery {exact:.3f} (least {least_exact:.2f})"
        screen.say(f"  {method:<19} mean error {error:.3f}   {shares}")

    return {"methods": methods, "files": files}


def _cells(line: Summary) -> list[str]:
    """Return a line of a summary as cells of a file."""
    formats = {"x": "g", "rate": ".6f", "exact_share": ".4f"}
    return [
        format(getattr(line, name), formats.get(name, "")) for name in Summary._fields
    ]
