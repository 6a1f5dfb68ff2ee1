"""The table of thresholds: all of it in use, and its commands there to be run."""

import inspect
import re
from pathlib import Path

import pytest

import ihgmm
from ihgmm import policy

ROOT = Path(__file__).parents[1]
GROUPS = [value for value in vars(policy).values() if isinstance(value, type)]
SOURCE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in Path(ihgmm.__file__).parent.rglob("*.py")
    if path.name != "policy.py"
)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_a_threshold_is_in_use_and_says_what_it_decides(group):
    lines = inspect.getsource(group).splitlines()
    for name in filter(str.isupper, vars(group)):
        assert re.search(rf"\b{group.__name__}\.{name}\b", SOURCE), name
        (line,) = [line for line in lines if re.match(rf"    .*\b{name}\b.* = ", line)]
        assert "  # " in line, name


def test_the_commands_are_there():
    commands = re.findall(r"python (benchmarks/\w+\.py)", inspect.getsource(policy))
    assert len(commands) > 4
    for command in commands:
        assert (ROOT / command).exists(), command
