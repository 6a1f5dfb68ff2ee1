"""The command ``ihgmm reproduce``."""

import importlib.util
import os
from pathlib import Path
from statistics import fmean
from typing import Any

from ihgmm._files import atomic_write
from ihgmm._parameters import check_count
from ihgmm.cli.files import write_csv
from ihgmm.cli.options import argument, option
from ihgmm.cli.screen import Screen
from ihgmm.paper.figures import draw_study
from ihgmm.paper.runner import Run, Summary, run_study, summarize
from ihgmm.paper.studies import STUDIES, Study
from ihgmm.paper.table import real_data_study, table_cells, to_latex, to_markdown

KNOWN = [*STUDIES, "table", "all"]


def reproduce(
    *,
    what: str = argument("WHAT", f"{', '.join(KNOWN[:-1])}, or all: all of them."),
    output: Path = option(
        "Folder for tables and figures.", Path("reproduction"), "-o --output"
    ),
    repeats: int | None = option(
        "Repetitions of each setting (200, phase 5), seeds of the table (10)."
    ),
    jobs: int | None = option("Number of processes; by default one for each core."),
    only: str | None = option(
        "Run only what has this in its name: a panel ('p>>n'), a noise ('rademacher'), "
        "a setting ('exp4/beta/0.1'), a map ('phase/K='), or a data set."
    ),
    quick: bool = option(
        "Run a few repetitions only, without the largest samples.", False, "--quick"
    ),
    data_home: Path | None = option("Folder with the downloaded data sets."),
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
    done: dict[str, Any] = {}
    try:
        for name in KNOWN[:-1] if what == "all" else [what]:
            is_table = name == "table"
            study = real_data_study(data_home) if is_table else STUDIES[name]
            settings = study.choose(only or "", quick=quick)
            if not settings:
                known = f"settings are named like {study.settings[0].key!r}"
                raise ValueError(f"--only {only!r} matches nothing in {name}; {known}.")
            for setting in settings if is_table else ():
                setting.draw(0)  # what is missing is better known at once
            runs = output / f"{name}-runs.csv"
            reps = repeats or (study.quick_reps if quick else study.reps)
            work: Any = {"reps": reps, "jobs": jobs or os.cpu_count() or 1}
            with screen.working(study.title) as update:
                work["progress"] = update
                results = run_study(settings, study.methods, runs, **work)
            facts = done[name] = _tell(study, results, output, screen)
            facts["files"].append(runs.name)
            screen.say(f"  written to {output}: {', '.join(facts['files'])}")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"what is finished is kept in {output}. Run the same command again to "
            "continue."
        ) from None
    screen.document("reproduce", folder=output, studies=done)


def _tell(
    study: Study, results: list[Run], output: Path, screen: Screen
) -> dict[str, Any]:
    """Write and print what came of a study, and return it."""
    if study.name == "table":
        cells = table_cells(results)
        texts = {"table.md": to_markdown(cells), "table.tex": to_latex(cells)}
        for name, text in texts.items():
            with atomic_write(output / name, "w") as file:
                file.write(text)
        screen.say("misclassified rows, median over seeds (range); the paper's beside:")
        screen.say(texts["table.md"])
        return {"cells": [cell._asdict() for cell in cells], "files": [*texts]}
    summary = summarize(study, results)
    columns = Summary._fields
    forms = {"x": "g", "rate": ".6f", "exact_share": ".4f"}
    rows = [[format(getattr(s, c), forms.get(c, "")) for c in columns] for s in summary]
    write_csv(output / f"{study.name}-summary.csv", [columns, *rows])
    files = [*draw_study(study, summary, output), f"{study.name}-summary.csv"]
    methods = []
    for method in dict.fromkeys(s.method for s in summary):
        own = [s for s in summary if s.method == method]
        error, exact = fmean(s.rate for s in own), fmean(s.exact_share for s in own)
        least = min(s.exact_share for s in own)
        figures = {"method": method, "mean_error": error, "exact_recovery": exact}
        methods.append(figures | {"least_exact_recovery": least})
        shares = f"exact recovery {exact:.3f} (least {least:.2f})"
        screen.say(f"  {method:<19} mean error {error:.3f}   {shares}")
    return {"methods": methods, "files": files}
