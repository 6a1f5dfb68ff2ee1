"""What happens before a command is at work: what is loaded, and Ctrl-C."""

import os
import signal
import subprocess
import sys

import pytest

from ihgmm.cli import main

HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "joblib", "matplotlib")
# What takes longest to load; the help of a command does without it.
HEAVIEST = ("scipy.stats", "sklearn", "pyarrow", "joblib", "matplotlib", "pandas")


def test_help_and_version_load_nothing_heavy():
    code = f"""
import sys
from ihgmm.cli import main
for words, heavy in (
    ("--version", {HEAVY}), ("--help", {HEAVY}),
    ("fit --help", {HEAVIEST}), ("report --help", {HEAVIEST}),
):
    sys.argv = ["ihgmm", *words.split()]
    try:
        main()
    except SystemExit:
        print("loaded:", [name for name in heavy if name in sys.modules])
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert process.stdout.count("loaded: []\n") == 4
    assert "Usage: ihgmm report" in process.stdout


# An interrupt comes at the moment when a package is looked for.
SCRIPT = """
import signal, sys
import ihgmm.cli

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["ihgmm", "fit", "iris", "-k", "3"]
ihgmm.cli.main()
"""


@pytest.mark.parametrize("name", ["typer", "sklearn"])
def test_an_interrupt_while_packages_load(name):
    command = [sys.executable, "-c", SCRIPT.format(name=name)]
    process = subprocess.run(command, capture_output=True, text=True)

    assert process.returncode == 130
    assert "Traceback" not in process.stderr
    assert len(process.stderr.splitlines()) <= 1


def test_sizes_of_a_terminal_that_make_no_sense(monkeypatch, capsys):
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        monkeypatch.setenv(name, "abc")
    monkeypatch.setattr(sys, "argv", ["ihgmm", "fit", "--help"])
    handler = signal.getsignal(signal.SIGINT)

    with pytest.raises(SystemExit, match="0"):
        main()

    assert "Usage: ihgmm" in capsys.readouterr().out
    # typer reads it when it is loaded, before anything could catch an error.
    assert "TERMINAL_WIDTH" not in os.environ
    assert signal.getsignal(signal.SIGINT) is handler
