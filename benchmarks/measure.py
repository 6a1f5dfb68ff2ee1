"""What every benchmark needs: time, memory, versions, tables."""

import argparse
import importlib.metadata
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "ihgmm", "numpy", "scipy", "scikit-learn", "faiss-cpu", "dask", "torch",
    "cupy-cuda13x", "wordllama", "umap-learn", "hdbscan", "evoc",
    "scanpy", "harmonypy", "scanorama",
)  # fmt: skip


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    time.sleep(0.15)  # let the threads of the method before go to sleep
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def measured(call: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Return seconds, and GB resident before and at most, with what the call gives."""
    before = resident()
    reset_peak()
    seconds, value = timed(call)
    figures = {"seconds": seconds, "before": before / 1e9, "peak": peak() / 1e9}

    return figures, value


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


def readings(X: Any, fit: Callable[[Any], Any]) -> int:
    """Return how often a fit reads X, when its rows come in blocks as from a file."""
    import scipy.sparse as sp

    from ihgmm.matrix.stored import Stored

    def block(start: int, stop: int) -> Any:
        return X[start:stop]

    rows = Stored(
        block,
        shape=X.shape,
        dtype=X.dtype,
        n_entries=X.size,
        sparse=sp.issparse(X),
    )
    fit(rows)

    return rows.passes


def arguments(
    doc: str, page: str = "", names: Iterable[str] = (), **numbers: int | None
) -> argparse.ArgumentParser:
    """Return the parser of a script: some names, else all; numbers; and ``--save``.

    ``page`` is the file of results that ``publish`` writes then.
    """

    def known(name: str) -> str:
        if name in names:
            return name
        words = f"{name!r} is not known; give some of {', '.join(names)}."
        raise argparse.ArgumentTypeError(words)

    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=layout)
    parser.set_defaults(page=page, save=False)
    if names:
        options = {"type": known, "default": [*names], "help": ", ".join(names)}
        parser.add_argument("names", nargs="*", metavar="NAME", **options)

    for name, number in numbers.items():
        words = "%(default)s if it is not given"
        parser.add_argument(f"--{name}", type=int, default=number, help=words)

    if page:
        parser.add_argument("--save", action="store_true", help=f"to results/{page}")

    return parser


def in_process(script: str, *values: Any, env: dict[str, str] | None = None) -> Any:
    """Return what a script, with ``--process`` and this, prints last, as JSON."""
    command = [sys.executable, script, "--process", *map(str, values)]
    process = subprocess.run(command, stdout=subprocess.PIPE, env=env, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def environment(device: str = "") -> str:
    """Name the versions of the packages that are there, the machine and the day."""
    numbers = [(package, version(package)) for package in PACKAGES]
    versions = ", ".join(f"{name} {number}" for name, number in numbers if number)
    cpu = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        models = [line for line in lines if line.startswith("model name")]
        cpu = models[0].split(": ")[1] + f" ({cpu})" if models else cpu

    return (
        f"Python {platform.python_version()}, {versions}; "
        f"{os.cpu_count()} cores, {cpu}; {device + '; ' if device else ''}"
        f"{time.strftime('%Y-%m-%d')}"
    )


def publish(options: argparse.Namespace, text: str, device: str = "") -> None:
    """Print a page; if asked to, keep it with what made it, whole or not at all."""
    print(text)
    if options.save:
        RESULTS.mkdir(exist_ok=True)
        page = f"{text.rstrip()}\n\n{environment(device)}\n"
        partial_file = RESULTS / f"{options.page}.part"
        partial_file.write_text(page, encoding="utf-8")
        partial_file.replace(RESULTS / options.page)


def digits(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


Table = Iterable[list[Any]]


def markdown(table: Table, mark: str = "###") -> str:
    """Return a table: a title, unless it is empty, a head, and lines as they come."""

    def line(cells: list[Any]) -> str:
        print(*cells, sep=" | ", file=sys.stderr, flush=True)
        return f"| {' | '.join(map(str, cells))} |"

    lines = iter(table)
    (title,) = next(lines)
    head = next(lines)
    text = [f"{mark} {title}", ""] if title else []
    text += [line(head), "|---|" + "---:|" * (len(head) - 1), *map(line, lines)]

    return "\n".join(text) + "\n"
