"""The command line."""

import atexit
import os
import re
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback at any time."""
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        # Libraries trust them, and fail where they are no sizes of a terminal.
        if not re.fullmatch("[1-9][0-9]{0,3}", os.environ.get(name, "80")):
            del os.environ[name]
    with suppress(AttributeError):  # standard output is closed, or not a stream
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        import rich  # noqa: F401  (the help needs it, and all commands)

        from ihgmm.cli.commands import app

        app(prog_name="ihgmm")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit("The command line needs packages: pip install 'ihgmm[cli]'")
    except KeyboardInterrupt:  # while packages are loaded
        sys.exit(130)
    finally:
        # When Python ends, there is nothing left to interrupt: it would only complain.
        # Whoever called this function, a test for example, keeps Ctrl-C until then.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
