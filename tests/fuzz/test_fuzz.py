"""A few cases of each kind, always the same; scripts beside this one try more."""

import subprocess
import sys
from pathlib import Path

import cases
import damage
import pytest
from hypothesis import HealthCheck, given, settings

few_examples = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@few_examples
@given(cases.cases())
def test_estimators_and_functions_answer_or_say_why_not(case):
    assert cases.run(case) is None


@few_examples
@given(damage.cases())
def test_damaged_files_are_read_or_refused(case):
    assert damage.run(case) is None


def script(name, *options):
    command = [sys.executable, Path(__file__).with_name(name), *options]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600)

    assert process.returncode == 0, process.stderr


def test_killed_commands_leave_whole_files():
    script("kills.py", "2")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="not Linux")
def test_a_short_form_of_the_long_run():
    script("long.py", "--minutes", "0")
