"""All commands, and how a function becomes one.

``options`` say which table is read, a model is fitted or loaded, ``describing`` says
what its clusters are, ``files`` writes, and ``screen`` tells. An error is one line and
an exit code.
"""

import inspect
import re
import shlex
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ihgmm import __version__

# Each command and its line in the help of all. A command is imported when it is run, so
# that the help and the version need nothing but typer.
COMMANDS = {
    "fit": "Cluster the rows of DATA and describe the clusters.",
    "predict": "Label the rows of DATA with a saved model.",
    "update": "Let a saved model go on with the rows of DATA.",
    "choose-k": "Find the number of clusters in DATA, and show the evidence.",
    "report": "Cluster the rows of DATA and write a report about it.",
    "reproduce": "Run the experiments of the paper, or its table of real data.",
}

# What messages of the package call parameters and functions, while a command runs.
ALIKE = "jobs max_clusters method missing outliers prepare repeats signed"
SHELL_NAMES = {name: f"--{name.replace('_', '-')}" for name in ALIKE.split()} | {
    "n_clusters": "-k",
    "columns": "--columns-as",  # --columns names those to use
    "n_samples": "the number of rows,",
    "random_state": "--seed",
    "select_n_clusters": "ihgmm choose-k",
    "leave out": "--drop-columns",
    "batch": "--batch-column",
    "drop or fill in incomplete rows": "give --missing drop",
    "ColumnScaler": "--prepare scale",
    "ColumnScaler('scale')": "--prepare scale",
}

# By a ValueError the package says what is wrong with parameters and data. What is not
# here, such as a TypeError, is a defect: its traceback is wanted.
FAILURES = (ValueError, MemoryError, ArithmeticError, ImportError, OSError)


class LateCommand(TyperCommand):
    """A command that is imported when it is run."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Hand the arguments to the command itself."""
        return load_command(str(self.name)).make_context(*args, **extra)


class Commands(TyperGroup):
    """All commands: errors and warnings are told in one line each."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, summary in COMMANDS.items():
            self.add_command(LateCommand(name, help=summary))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember what was typed, for pages that say what made them."""
        if any(word.startswith("-.") for word in args):  # as in -.npz
            raise typer.BadParameter(
                "Write ./ before the name of a file that begins with a dash; - alone "
                "is standard input, which takes CSV, TSV or JSON lines."
            )
        ctx.obj = shlex.join(["ihgmm", *args])
        return list(super().parse_args(ctx, args))

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        if ctx.params["version"]:
            return typer.echo(f"ihgmm {__version__}")

        from ihgmm._parameters import spelled_for_shell
        from ihgmm.cli.screen import print_message

        with warnings.catch_warnings(), spelled_for_shell(SHELL_NAMES):
            warnings.showwarning = _teller_of_warnings()
            # Columns are matched by name when they are read.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as stop:
                print_message("stopped", str(stop) or "no file was left half written.")
                raise typer.Exit(130) from None
            except BrokenPipeError:
                raise  # the reader has gone: nobody to tell
            except FAILURES as error:
                print_message("error", _error_text(error), "red")
                raise typer.Exit(2 if isinstance(error, ValueError) else 1) from None


def _teller_of_warnings() -> Callable[..., None]:
    """Return what prints a warning, the same one only once."""
    from ihgmm.cli.screen import print_message

    texts = set()

    def tell_once(message: object, *_: Any, **__: Any) -> None:
        # Steps of a command look at the same data, and warn of the same things.
        if str(message) not in texts:
            texts.add(str(message))
            print_message("warning", message)

    return tell_once


def _error_text(error: BaseException) -> str:
    """Return what people are told of an error, and how it can be helped."""
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        return f"{error}; install it: pip install {package}"
    return str(error)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Cluster observations that share a pattern but differ in scale.",
    epilog="Exit codes: 0 success; 1 the work failed: a download, the disk, memory, or "
    "a package that is not installed; 2 wrong options, or data that cannot be used; "
    "130 interrupted.",
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", metavar="")
    ] = False,
) -> None:
    pass  # the version is shown before anything is loaded


def load_command(name: str) -> Any:
    """Import a command: the function of that name; its docstring is the help."""
    function_name = name.replace("-", "_")
    module = import_module(f"ihgmm.cli.{function_name}")
    function = getattr(module, function_name)
    description = function.__doc__ or COMMANDS[name]  # Python may be told to drop it

    command = typer.Typer(add_completion=False)
    command.command(name, help=_unwrapped(description), no_args_is_help=True)(
        _with_options_spelled_out(function)
    )
    return typer.main.get_command(command)


def _unwrapped(text: str) -> str:
    """Join the lines of a paragraph, but not examples: they break on the screen."""
    return re.sub(r"(?<!\n)\n(?![\n ])", " ", inspect.cleandoc(text))


def _with_options_spelled_out(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function with an option for each field of a group of options.

    A parameter whose type is a dataclass is such a group.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for key, parameter in inspect.signature(function).parameters.items():
        kind = parameter.annotation
        if hasattr(kind, "__dataclass_fields__"):
            groups[key] = kind
            fields = inspect.signature(kind).parameters.values()
            parameters += [field.replace(kind=parameter.kind) for field in fields]
        else:
            parameters.append(parameter)

    def run(**values: Any) -> None:
        for key, kind in groups.items():
            names = inspect.signature(kind).parameters
            values[key] = kind(**{name: values.pop(name) for name in names})
        function(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {field.name: field.annotation for field in parameters}
    return run
