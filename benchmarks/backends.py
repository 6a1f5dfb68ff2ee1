"""Compare IhSC with its peers on data on disk, on a dask cluster and in torch.

    python benchmarks/backends.py                  # everything that is installed
    python benchmarks/backends.py disk --gigabytes 4
    python benchmarks/backends.py torch --device cuda --save

The data are float32 rows of the model, 1,000 features in ten clusters. Methods take
turns, several rounds, each time in a process of its own; times are medians, shown as
ratios to IhSC, and errors the median and the worst over seeds. Memory is what is in
use before the work and at most during it. With ``--save`` tables go to
results/backends.md, where those of other parts stay.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from measure import environment, markdown
from out_of_core import K, P, write

from ihgmm.metrics import misclassification_rate

TARGET = Path(__file__).parent / "results" / "backends.md"
SECTIONS = ("disk", "dask", "torch, cpu", "torch, cuda")
INTRO = """# Benchmark on disk, on a dask cluster and in torch

`pip install ".[bench,large]"`, torch for its part, then
`python benchmarks/backends.py --save`. Seconds are medians, and `x IhSC` is the time
relative to IhSC in the first row; `error` is the median share of rows misplaced,
`worst` that of the worst seed; `before` and `peak` are the memory in use before the
work and at most during it, in GB: of the process, of the largest worker (`client`: the
client's peak), or on the CUDA device.
"""
Figures = dict[str, Any]


def child(*arguments: str) -> Figures:
    """Measure one method in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", *arguments],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    figures = json.loads(done.stdout.splitlines()[-1])
    told = figures.get("missing") or f"{figures['seconds']:#.3g} s"
    print(f"{', '.join(arguments[:2])}: {told}", file=sys.stderr, flush=True)
    return figures


def one(part: str, name: str, seed: str, *where: str) -> None:
    """Be that process: measure and print figures, or why there are none."""
    try:
        if part == "torch":
            import on_torch

            size = float(where[1])
            figures = on_torch.measure(name, where[0], size, int(seed))
        else:
            module = importlib.import_module(f"on_{part}")
            figures = module.measure(name, Path(where[0]), int(seed))
    except ModuleNotFoundError as error:
        figures = {"missing": f"{error.name} is not installed"}
    except MemoryError:
        figures = {"missing": "does not fit in memory"}
    print(json.dumps(figures))


def turns(
    part: str, names: Iterable[str], where: list[str], rounds: int
) -> dict[str, Figures]:
    """Let methods take turns; return a summary of each."""
    seen: dict[str, list[Figures]] = {name: [] for name in names}
    for turn in range(rounds):
        for name, figures in seen.items():
            if not figures or "missing" not in figures[0]:
                figures.append(child(part, name, str(turn), *where))
    return {name: summary(figures) for name, figures in seen.items()}


def summary(turns: list[Figures]) -> Figures:
    """Return medians, and the largest error of a method whose seed was unlucky."""
    if "missing" in turns[0]:
        return turns[0]
    medians = {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}
    return medians | {"worst": max(turn["error"] for turn in turns)}


def table(title: str, found: dict[str, Figures]) -> str:
    """Lay out figures, the first method being the one others are compared with."""
    first = next(iter(found.values()))
    extra = [
        key for key in ("passes", "client") if any(key in f for f in found.values())
    ]
    head = ["method", "seconds", "x IhSC", "before", "peak", *extra, "error", "worst"]
    rows = []
    for name, figures in found.items():
        if "missing" in figures:
            rows.append([name, figures["missing"], *[""] * (len(head) - 2)])
            continue
        ratio = figures["seconds"] / first["seconds"] if "seconds" in first else np.nan
        shown = {"passes": "{:.0f}", "client": "{:.2f}"}
        rows.append(
            [
                name,
                f"{figures['seconds']:#.3g}",
                f"{ratio:.2f}",
                f"{figures['before']:.2f}",
                f"{figures['peak']:.2f}",
                *(shown[k].format(figures[k]) if k in figures else "" for k in extra),
                f"{figures['error']:.5f}",
                f"{figures['worst']:.5f}",
            ]
        )
    return markdown([[title], head, *rows])


def stored(part: str, options: argparse.Namespace) -> dict[str, str]:
    """Compare on a file that is written for it and deleted afterwards."""
    module = importlib.import_module(f"on_{part}")
    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free / 1e9
    if free < 1.1 * options.gigabytes:
        sys.exit(f"{free:.1f} GB are free, too few; name another --folder.")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write(folder, options.gigabytes)
        X = np.load(folder / "x.npy", mmap_mode="r")
        np.save(folder / "small.npy", X[:2_000])
        labels = np.load(folder / "labels.npy")
        oracle = misclassification_rate(labels, np.load(folder / "best.npy"))
        shape = f"{len(X):,} x {P:,}, K {K}"
        found = turns(part, module.METHODS, [name], options.rounds)
    title = f"{shape}, {options.gigabytes:g} GB"
    if part == "dask":
        most = module.limit(options.gigabytes)
        title += f", {module.WORKERS} workers of {most:g} GB"
    text = table(f"{title} (oracle's error {oracle:.5f})", found)
    return {part: section(part, module, text, options.rounds)}


def tensors(options: argparse.Namespace) -> dict[str, str]:
    import on_torch

    texts = {}
    for device in [options.device] if options.device else on_torch.devices():
        if device not in on_torch.devices():
            sys.exit(f"torch finds no {device} device here.")
        names = on_torch.methods(device)
        found = turns("torch", names, [device, str(options.gigabytes)], options.rounds)
        n = int(options.gigabytes * 1e9 / 4 / P)
        title = f"{n:,} x {P:,}, K {K}, {options.gigabytes:g} GB on {device}"
        oracle = next((f["oracle"] for f in found.values() if "oracle" in f), np.nan)
        text = table(f"{title} (oracle's error {oracle:.5f})", found)
        key = f"torch, {device}"
        name = on_torch.named(device)
        texts[key] = section(key, on_torch, text, options.rounds, name)
    return texts


def section(key: str, module: Any, text: str, rounds: int, device: str = "") -> str:
    machine = environment(module.PACKAGES, device)
    threads = os.environ.get("OMP_NUM_THREADS")
    limit = f"; OMP_NUM_THREADS={threads}" if threads else ""
    runs = f"{rounds} round{'s' * (rounds > 1)}, a seed each."
    return f"## {key}\n\n{text}\n{module.NOTE} {runs}\n\n{machine}{limit}\n"


def save(new: dict[str, str]) -> None:
    """Write all sections whole: the new ones, and those that were there."""
    old = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    parts = re.split(r"^(?=## )", old, flags=re.MULTILINE)[1:]
    kept = {part.partition("\n")[0][3:]: part.rstrip() + "\n" for part in parts}
    kept |= new
    text = "\n".join([INTRO, *(kept[key] for key in SECTIONS if key in kept)])
    TARGET.parent.mkdir(exist_ok=True)
    part = TARGET.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(TARGET)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        return one(*sys.argv[2:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("disk", "dask", "torch")
    parser.add_argument("only", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (3)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of data (1)")
    parser.add_argument("--folder", type=Path, help="where the file goes")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="for torch; all")
    parser.add_argument("--save", action="store_true", help="keep the tables")
    options = parser.parse_args()
    unknown = set(options.only) - set(parts)
    if unknown:
        parser.error(f"no part {sorted(unknown)[0]!r}; there are {', '.join(parts)}")
    if options.rounds < 1 or options.gigabytes * 1e9 < 4 * P * 2_000:
        parser.error("--rounds must be 1 or more, --gigabytes 0.008 or more")
    needs = {"disk": "sklearn", "dask": "distributed", "torch": "torch"}
    for part in options.only or parts:
        if importlib.util.find_spec(needs[part]) is None:
            print(f"{part}: {needs[part]} is not installed\n", flush=True)
            continue
        texts = tensors(options) if part == "torch" else stored(part, options)
        print("\n".join(texts.values()), flush=True)
        if options.save:
            save(texts)
    return None


if __name__ == "__main__":
    main()
