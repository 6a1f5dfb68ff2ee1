"""The command line."""

from __future__ import annotations

import atexit
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback at any time."""
    try:
        _run()
    except KeyboardInterrupt:  # while packages are loaded
        sys.exit(130)
    finally:
        # When Python ends, there is nothing left to interrupt: it would only complain.
        # Whoever called this function, a test for example, keeps Ctrl-C until then.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _run() -> None:
    try:
        import rich  # noqa: F401  (the help needs it, and all commands)

        from ihgmm.cli.commands import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(
            "The command line needs typer and rich: pip install typer rich pyarrow "
            "openpyxl jinja2"
        )
    app()


def __getattr__(name: str) -> Any:
    # The application needs typer, without which the package can be imported too.
    if name == "app":
        from ihgmm.cli.commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
