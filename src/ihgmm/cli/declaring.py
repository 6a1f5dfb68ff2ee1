"""How functions become commands."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup


class _PlainFlags:
    """Help in which an option that takes no value shows no type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, the one for help too."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A command with others below it."""


def add_command(parent: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Make a function a command; its docstring is the help."""
    # Lines of a paragraph are joined: they break where the terminal ends.
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    add = parent.command(name, cls=Command, help=text, no_args_is_help=True)
    add(spell_out(function))


def spell_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has an option for each field of its groups of options.

    A group is a dataclass whose defaults are options. A command that has a parameter of
    that class gets it made of the options that were given.
    """
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            options.append(parameter)
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group)
        for field in fields(group):
            member = parameter.replace(name=field.name, default=field.default)
            options.append(member.replace(annotation=hints[field.name]))

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{f.name: values.pop(f.name) for f in fields(group)})
        command(**values)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def command_line(command: str, *arguments: object, **options: object) -> str:
    """Return a command as users write it, to be pasted into a shell.

    Arguments are texts, or groups of options that were given. Further options are left
    out where they are None.
    """
    words: list[str] = ["ihgmm", command]
    for argument in arguments:
        words += spelled(argument) if is_dataclass(argument) else [str(argument)]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def spelled(group: Any) -> Iterator[str]:
    """Yield the options of a group that are not at their defaults, as users write."""
    for field in fields(group):
        value: Any = getattr(group, field.name)
        declared: Any = field.default
        if value == declared.default:
            continue
        yield [f"--{field.name.replace('_', '-')}", *declared.param_decls][-1]
        if value is not True:
            yield ",".join(value) if isinstance(value, list) else str(value)
