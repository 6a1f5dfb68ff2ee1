"""One meaning has one name, in all commands and in the page about them."""

import re
from collections import defaultdict
from pathlib import Path

from ihgmm.cli.commands import COMMANDS, load_command

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def options():
    """Yield each command with the name of a parameter and those of its option."""
    for name in COMMANDS:
        for parameter in load_command(name).params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                names = " ".join(sorted(parameter.opts, key=len))
                yield name, parameter.name, names


def test_one_meaning_has_one_name():
    spellings = defaultdict(set)
    meanings = defaultdict(set)
    for _, parameter, names in options():
        spellings[parameter].add(names)
        for name in names.split():
            meanings[name].add(parameter)

    assert {k: v for k, v in spellings.items() if len(v) > 1} == {}
    assert {k: v for k, v in meanings.items() if len(v) > 1} == {}


def test_the_page_has_every_option_that_commands_share():
    text = PAGE.read_text(encoding="utf-8")
    table = re.findall(r"^\| `(-.+?)` \|.*\| (.+?) \|$", text, re.MULTILINE)
    documented_users = {names.replace("`, `", " "): users for names, users in table}

    assert len(documented_users) == len(table)

    users_by_option = defaultdict(list)
    for command, _, names in options():
        users_by_option[names].append(command)

    assert documented_users == {
        names: "all" if users == [*COMMANDS] else ", ".join(users)
        for names, users in users_by_option.items()
        if len(users) > 1
    }
