"""A few cases of each kind, always the same; ``run.py`` and ``kills.py`` try more."""

import subprocess
import sys
from pathlib import Path

import cases
import damage
from hypothesis import HealthCheck, given, settings

few = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@few
@given(cases.cases())
def test_estimators_and_functions_answer_or_say_why_not(case):
    assert cases.run(case) is None


@few
@given(damage.cases())
def test_damaged_files_are_read_or_refused(case):
    assert damage.run(case) is None


def test_killed_commands_leave_whole_files():
    script = Path(__file__).with_name("kills.py")
    command = [sys.executable, script, "2"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
