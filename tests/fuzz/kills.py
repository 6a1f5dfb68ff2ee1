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
        with open(os.devnull, "w") as devnull:
            os.dup2(devnull.fileno(), 1)
            os.dup2(devnull.fileno(), 2)
        app([str(argument) for argument in arguments])
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        os._exit(status)


def end(child, after, folder=None, changes=1):
    """Kill a child after some seconds, or changes of a folder; return its status.

    It is None for one that was killed.
    """
    files = folder and visible(folder)
    deadline = time.monotonic() + after

    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if folder and visible(folder) != files:
            files = visible(folder)
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
        endings = {".html": b"</html>", ".pdf": b"%%EOF", ".png": b"IEND\xaeB`\x82"}
        assert content.rstrip(b"\n").endswith(endings[path.suffix]), path


def kill(count, rng, name):
    """Kill a command again and again; return how often."""
    with TemporaryDirectory() as root:
        folder = Path(root, "out")
        folder.mkdir()

        data = Path(root, "data.csv")
        X, _ = make_ihgmm(60, 8, 3, random_state=0)
        header = ",".join(f"x{j}" for j in range(8))
        np.savetxt(data, X, "%.4f", ",", header=header, comments="")

        model = folder / "model.npz"
        labels = folder / "labels.csv"
        base_model = Path(root, "old.npz")
        one_setting = ("--repeats", 1, "--jobs", 1, "--only", "exp4/beta/0.1/gaussian")
        command = {
            "fit": ("fit", data, "-k", 3, "--save", model, "-o", labels),
            "update": ("update", base_model, data, "--save", model),
            "report": ("report", data, "-k", 3, "-o", folder / "page.html"),
            "reproduce": ("reproduce", "exp4", *one_setting, "-o", folder),
        }[name]
        finish("fit", data, "-k", 3, "--save", base_model)

        begin = time.monotonic()
        finish(*command)
        seconds = time.monotonic() - begin
        expected_files = visible(folder)

        n_killed = 0
        while n_killed < count:
            if rng.random() < 0.5:  # the files are new
                for path in folder.iterdir():
                    path.unlink()
            watched_folder = folder if rng.random() < 0.7 else None
            timeout = 60 if watched_folder else rng.uniform(0, seconds)
            child = start(*command)
            status = end(child, timeout, watched_folder, changes=rng.randint(1, 6))
            n_killed += status is None

            leftovers = set(visible(folder)) - set(expected_files)
            for file in set(visible(folder)) - leftovers:
                check(folder / file)
            assert all(n[0] == "." and n.endswith(".tmp") for n in leftovers)

        finish(*command)
        files = [file for file in visible(folder) if not file.endswith(".tmp")]
        assert files == expected_files, files

    return n_killed


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        # These load all that is needed.
        for command in (f"report iris -k 3 -o {folder}/x.html", "reproduce --help"):
            with contextlib.suppress(SystemExit):
                app(command.split())

    for name in ("fit", "update", "report", "reproduce"):
        begin = time.monotonic()
        n_killed = kill(count, random.Random(0), name)
        seconds = time.monotonic() - begin
        print(f"{name}: {n_killed} killed, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
