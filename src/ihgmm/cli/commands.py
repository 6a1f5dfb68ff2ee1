"""All commands, and how a function becomes one.

``options`` read a table, a model is fitted or loaded, ``clusters`` describes its rows,
``files`` writes, and ``screen`` tells. An error is one line and an exit code.
"""

import inspect
import re
import shlex
import warnings
from importlib import import_module
from typing import Any

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
# Where it is not the module of its own name.
MODULES = {"report": "fit", "update": "predict", "choose-k": "choose_k"}

# What messages of the package call parameters and functions, while a command runs.
ALIKE = "jobs max_clusters method missing outliers prepare repeats signed whiten"
SHELL_NAMES = {name: f"--{name.replace('_', '-')}" for name in ALIKE.split()} | {
    "n_clusters": "-k",
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

        told = set()

        def tell_once(message: object, *_: Any, **__: Any) -> None:
            # Steps of a command look at the same data, and warn of the same things.
            if str(message) not in told:
                told.add(str(message))
                print_message("warning", message)

        with warnings.catch_warnings(), spelled_for_shell(SHELL_NAMES):
            warnings.showwarning = tell_once
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
                memory = "not enough memory: " * isinstance(error, MemoryError)
                text = f"{memory}{error}"
                if isinstance(error, ModuleNotFoundError):
                    package = (error.name or "").partition(".")[0]
                    text += f"; install it: pip install {package}"
                print_message("error", text, "red")
                raise typer.Exit(2 if isinstance(error, ValueError) else 1) from None


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


VERSION = typer.Option(False, "--version", help="Show the version.", metavar="")


@app.callback(invoke_without_command=True)
def _root(version: bool = VERSION) -> None:
    pass  # the version is shown before anything is loaded


def load_command(name: str) -> Any:
    """Import a command: the function of that name; its docstring is the help."""
    module = import_module(f"ihgmm.cli.{MODULES.get(name, name)}")
    function = getattr(module, name.replace("-", "_"))
    described = function.__doc__ or COMMANDS[name]  # Python may be told to drop it
    # Lines of a paragraph are joined, but not examples: they break on the screen.
    text = re.sub(r"(?<!\n)\n(?![\n ])", " ", inspect.cleandoc(described))
    # A dataclass among its parameters has an option for each field.
    options: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for key, parameter in inspect.signature(function, eval_str=True).parameters.items():
        kind: Any = parameter.annotation
        fields = [parameter]
        if hasattr(kind, "__dataclass_fields__"):
            fields = [*inspect.signature(kind, eval_str=True).parameters.values()]
            groups[key] = kind, [field.name for field in fields]
        options += [field.replace(kind=parameter.kind) for field in fields]

    def run(**values: Any) -> None:
        for key, (kind, names) in groups.items():
            values[key] = kind(**{name: values.pop(name) for name in names})
        function(**values)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    alone = typer.Typer(add_completion=False)
    alone.command(name, help=text, no_args_is_help=True)(run)
    return typer.main.get_command(alone)
