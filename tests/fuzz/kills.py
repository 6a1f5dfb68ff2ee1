"""Commands that are killed: python tests/fuzz/kills.py [COUNT]

A fit that writes a model and labels, and a report, are killed COUNT times (50), at any
moment or when a file appears. Nothing may be half written afterwards, and the next run
removes what was left. Commands run in forks of this process, which saves their imports.
"""

import contextlib
import io
import os
import random
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from ihgmm import make_ihgmm
from ihgmm.cli.commands import app
from ihgmm.storage import load_model


def start(*arguments):
    """Run a command in a child process; return its number."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setsid()
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        app([str(argument) for argument in arguments])
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        os._exit(status)


def end(child, after, folder=None):
    """Kill a child after some seconds, or when a folder changes; return its status.

    It is None for one that was killed.
    """
    before = folder and sorted(folder.iterdir())
    deadline = time.monotonic() + after
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if folder and sorted(folder.iterdir()) != before:
            break
        time.sleep(0.0005)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return None if os.waitpid(child, 0)[1] == signal.SIGKILL else 0


def finish(*arguments):
    """Run a command to its end."""
    status = os.waitstatus_to_exitcode(os.waitpid(start(*arguments), 0)[1])
    assert status == 0, (arguments, status)


def visible(folder):
    return sorted(path.name for path in folder.iterdir())


def kill_fit(count, draw, report):
    """Kill fits that write a model and labels, or reports."""
    with TemporaryDirectory() as place:
        folder = Path(place, "out")
        folder.mkdir()
        data = Path(place, "data.csv")
        X, _ = make_ihgmm(60, 8, 3, random_state=0)
        names = ",".join(f"x{j}" for j in range(8))
        rows = "\n".join(",".join(f"{cell:.4f}" for cell in row) for row in X)
        data.write_text(f"{names}\n{rows}\n")
        model, labels = folder / "model.npz", folder / "labels.csv"
        page = folder / "page.html"
        if report:
            command = ("report", data, "-k", 3, "-o", page)
        else:
            command = ("fit", data, "-k", 3, "--save", model, "-o", labels)
        begun = time.monotonic()
        finish(*command)
        takes = time.monotonic() - begun
        expected = visible(folder)
        killed = 0
        while killed < count:
            if draw.random() < 0.5:  # the files are new
                for path in folder.iterdir():
                    path.unlink()
            watched = folder if draw.random() < 0.7 else None
            after = 60 if watched else draw.uniform(0, takes)
            killed += end(start(*command), after, watched) is None
            if model.exists():
                load_model(model)
            if labels.exists():
                assert labels.read_text().count("\n") == 61
            if page.exists():
                assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
            others = set(visible(folder)) - set(expected)
            assert all(n.startswith(".") and n.endswith(".tmp") for n in others), others
        finish(*command)
        assert visible(folder) == expected, visible(folder)
    return killed


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with (
        TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        app(["report", "iris", "-k", "3", "-o", f"{folder}/x.html"])  # loads it all
    for report in (False, True):
        begun = time.monotonic()
        killed = kill_fit(count, random.Random(0), report)
        name, seconds = "report" if report else "fit --save", time.monotonic() - begun
        print(f"{name}: {killed} killed, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
