"""Commands that are killed: python tests/fuzz/kills.py [COUNT]

A fit that writes a model and labels, an update of a model, a report, and a reproduction
are killed COUNT times each (50), at any moment or when files appear or go. Nothing may
be half written afterwards, and the next run ends well and removes what was left.
Commands run in forks of this process, which saves their imports.
"""

import contextlib
import csv
import io
import os
import random
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

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


def end(child, after, folder=None, changes=1):
    """Kill a child after some seconds, or changes of a folder; return its status.

    It is None for one that was killed.
    """
    before = folder and visible(folder)
    deadline = time.monotonic() + after
    while time.monotonic() < deadline:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return os.waitstatus_to_exitcode(status)
        if folder and visible(folder) != before:
            before = visible(folder)
            changes = changes - 1
            if changes == 0:
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


def check(path):
    """Raise unless a file is whole."""
    content = path.read_bytes()
    if path.suffix == ".npz":
        load_model(path)
    elif path.name.endswith("-runs.csv") and not content:
        return  # no run is finished yet
    elif path.suffix == ".csv":
        rows = list(csv.reader(content.decode().splitlines()))
        assert content.endswith(b"\n"), content
        assert len({len(row) for row in rows}) == 1, rows
        assert path.name != "labels.csv" or len(rows) == 61
    else:
        end = {".html": b"</html>", ".pdf": b"%%EOF", ".png": b"IEND\xaeB`\x82"}
        assert content.rstrip(b"\n").endswith(end[path.suffix]), path


def kill(count, draw, name):
    """Kill a command again and again; return how often."""
    with TemporaryDirectory() as place:
        folder = Path(place, "out")
        folder.mkdir()
        data = Path(place, "data.csv")
        X, _ = make_ihgmm(60, 8, 3, random_state=0)
        names = ",".join(f"x{j}" for j in range(8))
        np.savetxt(data, X, "%.4f", ",", header=names, comments="")
        model = folder / "model.npz"
        labels = folder / "labels.csv"
        old_model = Path(place, "old.npz")
        extent = ("--repeats", 1, "--jobs", 1, "--only", "exp4/beta/0.1/gaussian")
        command = {
            "fit": ("fit", data, "-k", 3, "--save", model, "-o", labels),
            "update": ("update", old_model, data, "--save", model),
            "report": ("report", data, "-k", 3, "-o", folder / "page.html"),
            "reproduce": ("reproduce", "exp4", *extent, "-o", folder),
        }[name]
        finish("fit", data, "-k", 3, "--save", old_model)
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
            killed += end(start(*command), after, watched, draw.randint(1, 6)) is None
            other_items = set(visible(folder)) - set(expected)
            for remote in set(visible(folder)) - other_items:
                check(folder / remote)
            assert all(n[0] == "." and n.endswith(".tmp") for n in other_items)
        finish(*command)
        complete = [name for name in visible(folder) if not name.endswith(".tmp")]
        assert complete == expected, complete
    return killed


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        # These load all that is needed.
        for words in (f"report iris -k 3 -o {folder}/x.html", "reproduce --help"):
            with contextlib.suppress(SystemExit):
                app(words.split())
    for name in ("fit", "update", "report", "reproduce"):
        begun = time.monotonic()
        killed = kill(count, random.Random(0), name)
        print(f"{name}: {killed} killed, {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
