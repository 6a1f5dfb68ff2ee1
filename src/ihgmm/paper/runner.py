"""Runs an experiment: in parallel, kept as it goes, resumed where it stopped."""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from ihgmm._files import append_text, atomic_write, sole_writer
from ihgmm._warnings import ignored
from ihgmm.matrix.threads import one_thread
from ihgmm.metrics import misclassification_loss
from ihgmm.paper.methods import METHODS
from ihgmm.paper.studies import Experiment, Setting


@dataclass(frozen=True)
class Run:
    """One repetition of one setting.

    Examples
    --------
    >>> from ihgmm.paper.studies import EXPERIMENTS
    >>> from ihgmm.paper.runner import Run
    >>> run = Run(next(iter(EXPERIMENTS["exp1"].settings())), rep=0)
    >>> run.rep
    0
    """

    setting: Setting
    rep: int

    @property
    def key(self) -> str:
        """A name that is the same in every run and on every machine."""
        return f"{self.setting.key}/{self.rep}"

    @property
    def seed(self) -> int:
        """The seed of this repetition; it depends on nothing but its name."""
        digest = hashlib.sha256(self.key.encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


class Result(NamedTuple):
    """How one method did in one repetition: a row of the table of all runs.

    Examples
    --------
    >>> from ihgmm.paper.runner import Result
    >>> result = Result("exp1", "n>>p", 500, "gaussian", 0, "IhSC", 500, 5)
    >>> result.errors / result.n_samples
    0.01
    """

    experiment: str
    panel: str
    x: float
    noise: str
    rep: int
    method: str
    n_samples: int
    errors: int

    @property
    def run(self) -> str:
        """The key of the run that it belongs to."""
        return f"{self.experiment}/{self.panel}/{self.x:g}/{self.noise}/{self.rep}"


HEAD = ",".join(Result._fields) + "\n"


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


def execute(run: Run) -> list[Result]:
    """Draw the sample of one repetition and run every method on it."""
    setting = run.setting
    options = {**setting.options, "noise": setting.noise, "random_state": run.seed}
    sample = setting.sampler(**options, return_params=True)
    place = (setting.experiment, setting.panel, float(setting.x), setting.noise)
    results = []
    # One thread: processes share the cores, and results do not depend on how many.
    # Where there is next to no signal, nothing converges, and the error shows it.
    with one_thread(), ignored(ConvergenceWarning):
        for name in setting.methods:
            labels = METHODS[name](sample, run.seed)
            errors = misclassification_loss(sample.labels, labels)
            results.append(Result(*place, run.rep, name, len(labels), errors))
    return results


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
        One of :data:`~ihgmm.paper.studies.STUDIES`.
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

    Raises
    ------
    BlockingIOError
        If another run is at work on the same table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ihgmm.paper.runner import run_experiment
    >>> from ihgmm.paper.studies import EXPERIMENTS
    >>> experiment = EXPERIMENTS["exp3"]
    >>> first = next(iter(experiment.settings()))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run_experiment(
    ...         experiment, Path(folder) / "exp3.csv", reps=1, only=lambda s: s == first
    ...     )
    >>> [result.errors for result in results if result.method == "IhSC"]
    [0]
    """
    report = progress or (lambda done, wanted: None)
    settings = [s for s in experiment.settings() if only is None or only(s)]
    # Repetition by repetition, so that an early look sees every setting.
    wanted = [Run(setting, rep) for rep in range(reps) for setting in settings]
    with sole_writer(path):
        done = _grouped(read_results(path, experiment.methods, repair=True), "run")
        missing = [run for run in wanted if run.key not in done]
        count = len(wanted) - len(missing)
        report(count, len(wanted))
        if not path.exists() or path.stat().st_size == 0:
            append_text(path, HEAD)
        with contextlib.closing(_execute_all(missing, jobs)) as outputs:
            for results in outputs:
                done |= _grouped(results, "run")
                append_text(path, _lines(results))
                count += 1
                report(count, len(wanted))
    return sorted(result for results in done.values() for result in results)


def _execute_all(runs: list[Run], jobs: int) -> Generator[list[Result], None, None]:
    """Yield the results of each run as soon as they are there, in any order."""
    # One run at a time: joblib would wait for all of a batch before it hands out any.
    parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1)
    with _uninterrupted():  # workers start here, and leave Ctrl-C to this process
        outputs = parallel(delayed(_execute_for)(os.getpid(), run) for run in runs)
    # To close it after an interrupt ends the workers. Tasks that are cancelled or not
    # used, of which joblib warns, are what is wanted then.
    with ignored(UserWarning, r"\d+ tasks "), contextlib.closing(outputs):
        yield from outputs


def _execute_for(parent: int, run: Run) -> list[Result]:
    if os.getpid() != parent:
        _follow(parent)
    return execute(run)


@functools.cache
def _follow(parent: int) -> None:
    """Let this worker end when its parent does, also when that was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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


def read_results(
    path: Path, methods: tuple[str, ...], *, repair: bool = False
) -> list[Result]:
    """Read the table of all runs; repetitions count once all methods are there.

    A process that was killed may leave an unfinished line or repetition at the end of
    the table; with ``repair`` they are cut off the file, and always left out here.
    """
    kinds = (str, str, float, str, int, str, int, int)
    results = [
        Result(*(kind(word) for kind, word in zip(kinds, row, strict=True)))
        for row in read_rows(path, Result._fields, "runs")
    ]
    complete = [
        result
        for group in _grouped(results, "run").values()
        if {result.method for result in group} == set(methods)
        for result in group
    ]
    text = HEAD + _lines(complete)
    if repair and path.exists() and path.read_text(encoding="utf-8") != text:
        with atomic_write(path, "w") as file:
            file.write(text)
    return complete


def read_rows(path: Path, columns: Sequence[str], what: str) -> list[list[str]]:
    """Return the finished lines of a table that an earlier run has left, if any."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    lines = text[: text.rfind("\n") + 1].splitlines()
    head, *rows = list(csv.reader(lines)) or [list(columns)]
    if head != list(columns):
        raise ValueError(
            f"{path} is not a table of {what}: its columns are {', '.join(head)}. Move "
            "it away, or give another folder."
        )
    return rows


def summarize(results: Iterable[Result]) -> list[Summary]:
    """Average the repetitions of each method at each setting.

    Examples
    --------
    >>> from ihgmm.paper.runner import Result, summarize
    >>> first = Result("exp1", "n>>p", 500, "gaussian", 0, "IhSC", 500, errors=0)
    >>> second = first._replace(rep=1, errors=5)
    >>> (summary,) = summarize([first, second])
    >>> summary.rate, summary.exact_share
    (0.005, 0.5)
    """
    groups = _grouped(results, "experiment", "panel", "x", "noise", "method")
    summary = []
    for place, group in groups.items():
        rate = float(np.mean([r.errors / r.n_samples for r in group]))
        share = float(np.mean([r.errors == 0 for r in group]))
        row = (*place, len(group), rate, share)
        summary.append(Summary(*row))
    return summary


def _grouped(results: Iterable[Result], *names: str) -> dict[Any, list[Result]]:
    """Return results by what they have in common: the attributes of these names."""
    key = attrgetter(*names)
    groups: dict[Any, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def _lines(results: Iterable[Result]) -> str:
    out = io.StringIO()
    rows = ({**r._asdict(), "x": f"{r.x:g}"}.values() for r in results)
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
