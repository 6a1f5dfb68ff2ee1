"""Runs a study: in parallel, kept as it goes, resumed where it stopped."""

import contextlib
import csv
import functools
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from ihgmm._files import regular_target
from ihgmm._warnings import ClusterCountWarning, ignored
from ihgmm.matrix.threads import one_thread
from ihgmm.metrics import misclassification_loss
from ihgmm.paper.methods import Method
from ihgmm.paper.studies import Study


class Run(NamedTuple):
    """How one method did in one repetition of a setting: a line of a table."""

    setting: str  #: its key
    rep: int
    method: str
    n_samples: int
    errors: int


def run_study(
    settings: Sequence[Any],
    methods: Mapping[str, Method],
    path: Path,
    *,
    reps: int,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """Run methods on samples of settings, all or some of those of a study.

    Each repetition is added to a table, the CSV file at ``path``, as soon as it is
    finished: after an interruption the same call goes on where it stopped. All results
    in the table are returned. They do not depend on ``jobs``, the number of processes.
    ``progress`` is called with the numbers of repetitions done and wanted. Another run
    at work on the table is a BlockingIOError.
    """
    # Repetition by repetition, so that an early look sees every setting.
    repetitions = [(setting, rep) for rep in range(reps) for setting in settings]

    with regular_target(path).open("a", encoding="utf-8", newline="") as file:
        _lock(file, path)
        results = read_results(path, methods)
        finished = {(result.setting, result.rep) for result in results}
        pending = [
            (setting, rep)
            for setting, rep in repetitions
            if (setting.key, rep) not in finished
        ]

        writer = csv.writer(file, lineterminator="\n")
        # A process that was killed may have left a part of a line.
        file.truncate(path.read_bytes().rfind(b"\n") + 1)
        if file.seek(0, os.SEEK_END) == 0:
            writer.writerow(Run._fields)

        n_done = len(repetitions) - len(pending)
        if progress is not None:
            progress(n_done, len(repetitions))

        # One at a time: joblib would wait for all of a batch before it hands out any.
        parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1)
        execute = delayed(_execute)
        parent = os.getpid()
        outputs = parallel(
            execute(parent, setting, rep, methods) for setting, rep in pending
        )

        # To close it after an interrupt ends the workers. Tasks that are cancelled or
        # not used, of which joblib warns, are what is wanted then.
        with ignored(UserWarning, r"\d+ tasks "), contextlib.closing(outputs):
            for output in outputs:
                writer.writerows(output)
                file.flush()
                results += output
                n_done += 1
                if progress is not None:
                    progress(n_done, len(repetitions))

    return results


def _lock(file: IO[str], path: Path) -> None:
    """Lock a table until it is closed; raise if another run has done so."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(
            f"{path} is being written by another run; wait for it to end, or give "
            "another folder."
        ) from None
    except (ImportError, OSError):  # Windows, or a file system without locks
        pass


def _execute(
    parent: int, setting: Any, rep: int, methods: Mapping[str, Method]
) -> list[Run]:
    """Draw the sample of one repetition and run every method on it."""
    if os.getpid() != parent:
        _follow(parent)
    sample, seed = setting.draw(rep)

    results = []
    # One thread, since processes share the cores. Where there is next to no signal,
    # nothing converges, and the error shows it.
    with one_thread(), ignored(ConvergenceWarning), ignored(ClusterCountWarning):
        for name, method in methods.items():
            labels = method(sample, seed)
            run = Run(
                setting=setting.key,
                rep=rep,
                method=name,
                n_samples=len(sample.labels),
                errors=misclassification_loss(sample.labels, labels),
            )
            results.append(run)
    return results


@functools.cache
def _follow(parent: int) -> None:
    """Leave Ctrl-C to the parent of this worker, and end when it does, also killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


def read_results(path: Path, methods: Iterable[str]) -> list[Run]:
    """Read the repetitions of a table of runs, if any, that have all methods."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    # What follows the last end of a line was not written whole.
    end = text.rfind("\n") + 1
    header, *lines = text[:end].splitlines() or [text]
    if text and header != ",".join(Run._fields):
        raise ValueError(
            f"{path} is not a table of runs: its first line is {header[:80]!r}. Move "
            "it away, or give another folder."
        )

    repetitions: dict[tuple[str, str], dict[str, Run]] = {}
    for setting, rep, method, n_samples, errors in csv.reader(lines):
        run = Run(
            setting=setting,
            rep=int(rep),
            method=method,
            n_samples=int(n_samples),
            errors=int(errors),
        )
        repetitions.setdefault((setting, rep), {})[method] = run

    results = []
    for runs in repetitions.values():
        if set(runs) >= set(methods):
            results += [runs[method] for method in methods]
    return results


class Summary(NamedTuple):
    """How one method did at one point of a simulation, over all repetitions."""

    experiment: str
    panel: str
    x: float
    noise: str
    method: str
    reps: int
    rate: float
    exact_share: float


def summarize(study: Study, results: Iterable[Run]) -> list[Summary]:
    """Average the repetitions of each method at each setting of a simulation."""
    rates: dict[tuple[str, str], list[float]] = {}
    for run in results:
        of_method = rates.setdefault((run.setting, run.method), [])
        of_method.append(run.errors / run.n_samples)

    summary = []
    for setting, method in itertools.product(study.settings, study.methods):
        values = rates.get((setting.key, method))
        if values is None:
            continue

        average = Summary(
            experiment=setting.study,
            panel=setting.panel,
            x=setting.x,
            noise=setting.noise,
            method=method,
            reps=len(values),
            rate=float(np.mean(values)),
            exact_share=values.count(0) / len(values),
        )
        summary.append(average)
    return summary
