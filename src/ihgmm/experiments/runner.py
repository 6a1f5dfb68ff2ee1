"""Runs an experiment: in parallel, kept as it goes, resumed where it stopped."""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ihgmm._files import atomic_write
from ihgmm.experiments.methods import METHODS
from ihgmm.experiments.studies import Experiment, Setting
from ihgmm.metrics import misclassification_loss


@dataclass(frozen=True)
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
    place = (setting.experiment, setting.panel, float(setting.x), setting.noise)
    results = []
    # One thread: processes share the cores, and results do not depend on how many.
    with threadpool_limits(1), warnings.catch_warnings():
        # Where there is next to no signal, nothing converges, and the error shows it.
        warnings.simplefilter("ignore", ConvergenceWarning)
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

    Raises
    ------
    BlockingIOError
        If another run is at work on the same table.
    """
    settings = [s for s in experiment.settings() if only is None or only(s)]
    # Repetition by repetition, so that an early look sees every setting.
    wanted = [Run(setting, rep) for rep in range(reps) for setting in settings]
    with sole_writer(path):
        done = _by_run(read_results(path, experiment.methods, repair=True))
        missing = [run for run in wanted if run.key not in done]
        count = len(wanted) - len(missing)
        if progress:
            progress(count, len(wanted))
        with path.open("a", newline="", encoding="utf-8") as file:
            if file.tell() == 0:
                file.write(",".join(COLUMNS) + "\n")
            with contextlib.closing(_execute_all(missing, jobs)) as outputs:
                for results in outputs:
                    done |= _by_run(results)
                    file.write(_lines(results))
                    file.flush()
                    os.fsync(file.fileno())
                    count += 1
                    if progress:
                        progress(count, len(wanted))
    return sorted(result for results in done.values() for result in results)


def _execute_all(runs: list[Run], jobs: int) -> Generator[list[Result], None, None]:
    """Yield the results of each run as soon as they are there, in any order."""
    # One run at a time: joblib would wait for all of a batch before it hands out any.
    parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1)
    with _uninterrupted():  # workers start here, and leave Ctrl-C to this process
        outputs = parallel(delayed(_execute_for)(os.getpid(), run) for run in runs)
    # To close it after an interrupt ends the workers. Tasks that are cancelled or not
    # used, of which joblib warns, are what is wanted then.
    with warnings.catch_warnings(), contextlib.closing(outputs):
        warnings.filterwarnings("ignore", r"\d+ tasks ", UserWarning)
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


@contextlib.contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Keep other processes from writing to a table, or say which one is at it.

    The system lets go of the lock when a process ends, however it ends. The lock is on
    a file beside the table, since the table itself is replaced when it is repaired.
    """
    place = path.with_name(f".{path.name}.lock")
    while True:
        file = place.open("a+b")
        try:
            _lock(file)
        except BlockingIOError:
            file.seek(0)
            process = file.read().decode() or "unknown"
            file.close()
            raise BlockingIOError(
                f"{path} is being written by another run (process {process}); wait for "
                "it to end, or give another folder."
            ) from None
        except OSError as error:
            warnings.warn(
                f"{path} cannot be locked here ({error}); make sure that no other run "
                "writes to it.",
                stacklevel=4,
            )
            break
        # Whoever had it last may have removed it after it was opened above.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), place.stat()):
                break
        file.close()
    with file:
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows keeps a file that is open
                place.unlink()


def _lock(file: BinaryIO) -> None:
    """Lock a file until it is closed; raise BlockingIOError if another has it."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(2**20)  # beyond what is written there, so that others can read it
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
    results = [
        Result(
            experiment, panel, float(x), noise, int(rep), method, int(n), int(errors)
        )
        for experiment, panel, x, noise, rep, method, n, errors in lines
    ]
    complete = [
        result
        for group in _by_run(results).values()
        if {result.method for result in group} == set(methods)
        for result in group
    ]
    if repair and (len(complete) < len(results) or len(whole) < len(text)):
        with atomic_write(path) as file:
            file.write((",".join(COLUMNS) + "\n" + _lines(complete)).encode())
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


def _by_run(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return the results of each run by its key."""
    groups: dict[str, list[Result]] = {}
    for r in results:
        key = f"{r.experiment}/{r.panel}/{r.x:g}/{r.noise}/{r.rep}"
        groups.setdefault(key, []).append(r)
    return groups


def _lines(results: Iterable[Result]) -> str:
    out = io.StringIO()
    rows = ({**vars(r), "x": f"{r.x:g}"}.values() for r in results)
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
