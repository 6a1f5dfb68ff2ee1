"""Runs an experiment: in parallel, kept as it goes, resumed where it stopped."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import itertools
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import astuple, dataclass, fields
from multiprocessing import connection
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ihgmm._files import atomic_write
from ihgmm.experiments.grids import Experiment, Setting
from ihgmm.experiments.methods import METHODS
from ihgmm.metrics import misclassification_loss

__all__ = ["Result", "Run", "Summary", "read_results", "run_experiment", "summarize"]


@dataclass(frozen=True, order=True)
class Run:
    """One repetition of one setting."""

    setting: Setting
    rep: int

    @property
    def key(self) -> str:
        """A name that is the same in every run and on every machine."""
        return f"{self.setting.key}/{self.rep}"

    @property
    def seed(self) -> int:
        """The seed of this repetition; it depends on nothing but its name."""
        return (
            int.from_bytes(hashlib.sha256(self.key.encode()).digest()[:4], "big") >> 1
        )


@dataclass(frozen=True, order=True)
class Result:
    """How one method did in one repetition: a row of the table of all runs."""

    experiment: str
    panel: str
    x: float
    noise: str
    rep: int
    method: str
    n_samples: int
    errors: int


@dataclass(frozen=True)
class Summary:
    """How one method did at one setting, over all repetitions."""

    experiment: str
    panel: str
    x: float
    noise: str
    method: str
    reps: int
    rate: float
    exact_share: float


COLUMNS = [f.name for f in fields(Result)]


def execute(run: Run) -> list[Result]:
    """Draw the sample of one repetition and run every method on it."""
    setting = run.setting
    sample = setting.sampler(
        **setting.options,
        noise=setting.noise,
        random_state=run.seed,
        return_params=True,
    )
    # One thread: processes share the cores, and results do not depend on how many.
    with threadpool_limits(1), warnings.catch_warnings():
        # Where there is next to no signal, nothing converges, and the error shows it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            Result(
                setting.experiment,
                setting.panel,
                float(setting.x),
                setting.noise,
                run.rep,
                name,
                len(sample.labels),
                misclassification_loss(sample.labels, METHODS[name](sample, run.seed)),
            )
            for name in setting.methods
        ]


def run_experiment(
    experiment: Experiment,
    path: Path,
    *,
    reps: int = 200,
    jobs: int = 1,
    only: Callable[[Setting], bool] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Run an experiment, or what is missing of it.

    Parameters
    ----------
    experiment : Experiment
        One of :data:`~ihgmm.experiments.STUDIES`.
    path : Path
        The table of all runs, a CSV file. Every repetition is added as soon as it is
        finished; those already there are not run again. After an interruption or a
        crash the same call goes on where it stopped.
    reps : int
        Repetitions of each setting.
    jobs : int
        Processes. The results do not depend on their number.
    only : callable, optional
        Which settings to run.
    progress : callable, optional
        Called with the numbers of repetitions done and wanted.

    Returns
    -------
    list of Result
        All results in the table, sorted: what the call asked for and what was there.
    """
    settings = [s for s in experiment.settings() if only is None or only(s)]
    # Repetition by repetition, so that an early look sees every setting.
    wanted = [Run(setting, rep) for rep in range(reps) for setting in settings]
    done = _group(read_results(path, experiment.methods, repair=True))
    missing = [run for run in wanted if run.key not in done]
    count = len(wanted) - len(missing)
    if progress:
        progress(count, len(wanted))
    with path.open("a", newline="", encoding="utf-8") as file:
        if file.tell() == 0:
            file.write(",".join(COLUMNS) + "\n")
        for run, results in _execute_all(missing, jobs):
            done[run.key] = results
            file.write(_lines(results))
            file.flush()
            os.fsync(file.fileno())
            count += 1
            if progress:
                progress(count, len(wanted))
    return sorted(result for results in done.values() for result in results)


def _execute_all(runs: list[Run], jobs: int) -> Iterator[tuple[Run, list[Result]]]:
    if jobs == 1:
        for run in runs:
            yield run, execute(run)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_follow_parent)
    waiting: dict[Future[list[Result]], Run] = {}
    queue = iter(runs)
    try:
        while True:
            with _uninterrupted():  # workers start here, and leave Ctrl-C to us
                for run in itertools.islice(queue, 2 * jobs - len(waiting)):
                    waiting[pool.submit(execute, run)] = run
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _follow_parent() -> None:
    """End when the parent process is gone."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def read_results(
    path: Path, methods: tuple[str, ...], *, repair: bool = False
) -> list[Result]:
    """Read the table of all runs; repetitions count once all methods are there.

    A process that was killed may leave an unfinished line or repetition at the end of
    the table; with ``repair`` they are cut off the file, and always left out here.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    head, *lines = list(csv.reader(io.StringIO(whole))) or [[]]
    if lines and head != COLUMNS:
        raise ValueError(
            f"{path} is not a table of runs: its columns are {', '.join(head)}. Move "
            "it away, or give another folder."
        )
    results = [_parse(line) for line in lines]
    groups = _group(results)
    complete = [
        r for g in groups.values() if {r.method for r in g} == set(methods) for r in g
    ]
    if repair and (len(complete) < len(results) or len(whole) < len(text)):
        with atomic_write(path, "w") as file:
            file.write(",".join(COLUMNS) + "\n" + _lines(complete))
    return complete


def summarize(results: Iterable[Result]) -> list[Summary]:
    """Average the repetitions of each method at each setting."""
    groups: dict[tuple[str, str, float, str, str], list[Result]] = {}
    for r in results:
        key = (r.experiment, r.panel, r.x, r.noise, r.method)
        groups.setdefault(key, []).append(r)
    return [
        Summary(
            *key,
            len(group),
            float(np.mean([r.errors / r.n_samples for r in group])),
            float(np.mean([r.errors == 0 for r in group])),
        )
        for key, group in groups.items()
    ]


def _group(results: Iterable[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for r in results:
        key = f"{r.experiment}/{r.panel}/{r.x:g}/{r.noise}/{r.rep}"
        groups.setdefault(key, []).append(r)
    return groups


def _parse(line: list[str]) -> Result:
    experiment, panel, x, noise, rep, method, n, errors = line
    return Result(
        experiment, panel, float(x), noise, int(rep), method, int(n), int(errors)
    )


def _lines(results: Iterable[Result]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for r in results:
        row = list(astuple(r))
        row[2] = f"{r.x:g}"
        writer.writerow(row)
    return out.getvalue()
