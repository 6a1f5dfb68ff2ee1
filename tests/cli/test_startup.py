"""What the shell waits for before anything happens."""

import subprocess
import sys

import pytest

from ihgmm.cli.commands import COMMANDS, load_command

HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "joblib", "matplotlib")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_and_version_load_nothing_heavy(option):
    code = f"""
import sys
from ihgmm.cli import main
sys.argv = ["ihgmm", {option!r}]
try:
    main()
finally:
    print("loaded:", [name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded: []"
    assert "ihgmm" in done.stdout.splitlines()[0] + done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_of_itself_what_the_help_says_of_it(name):
    command = load_command(name)
    summary = command.help.partition("\n\n")[0].replace("\n", " ")
    assert summary == COMMANDS[name]
