"""Draw predicted time against rows for a laptop, a GPU and a cluster.

    python benchmarks/scaling_plot.py   # writes docs/images/scaling.png

Lines are ``ihgmm.planning`` for 1,000 features and ten clusters; full where memory
suffices, dotted where it does not. Points are measured: see results/scaling.md,
results/gpu.md and out_of_core.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from ihgmm.planning import Estimate, Machines, plan

HERE = Path(__file__).parent
P, K = 1_000, 10
MACHINES = Machines(cores=2)
COLORS = {"laptop": "#0072B2", "gpu": "#D55E00", "cluster": "#009E73"}
NAMES = {
    "laptop": "laptop, 2 cores, 16 GB",
    "gpu": "one H200, 141 GB",
    "cluster": "cluster, 16 workers of 2 cores, 64 GB",
}
GPU_POINTS = [(1e6, 0.071), (1e7, 0.163)]
DISK_POINTS = [(2e6, 20.0), (2e6, 40.0)]
"""Of an 8 GB file, from the page cache at best and from the disk."""


def main() -> None:
    rows = np.unique(np.logspace(4, 9.3, 160).astype(int))
    plans = [plan(int(n), P, K, machines=MACHINES) for n in rows]
    _, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    for kind, color in COLORS.items():
        found: list[Estimate] = [getattr(one, kind) for one in plans]
        seconds = np.array([one.seconds for one in found])
        fits = np.array([one.fits for one in found])
        ax.plot(rows[fits], seconds[fits], color=color, lw=2, label=NAMES[kind])
        ax.plot(rows[~fits], seconds[~fits], ":", color=color, lw=1.5)
        if not fits.all():
            last = int(np.flatnonzero(fits)[-1])
            ax.plot(rows[last], seconds[last], "|", color=color, ms=18, mew=2.5)
    held = np.array([one.laptop.data == "in memory" for one in plans])
    edge = int(np.flatnonzero(held)[-1])
    ax.annotate(
        "X no longer in memory",
        (rows[edge], plans[edge].laptop.seconds),
        (rows[edge] / 60, plans[edge].laptop.seconds * 12),
        arrowprops={"arrowstyle": "-", "color": "#666666"},
        color="#444444",
        fontsize=9,
    )
    runs = json.loads((HERE / "results" / "scaling.json").read_text(encoding="utf-8"))
    mine = [
        (run["n"], run["busy"])
        for run in runs
        if run["where"] == "memory" and (run["p"], run["k"]) == (P, K)
    ]
    style = {"ls": "", "mec": "black", "ms": 8}
    blue, red = COLORS["laptop"], COLORS["gpu"]
    ax.plot(*zip(*mine, strict=True), "s", mfc=blue, label="measured, 1 core", **style)
    ax.plot(
        *zip(*DISK_POINTS, strict=True),
        "^",
        mfc=blue,
        label="measured, 2 cores, 8 GB file: cached, from disk",
        **style,
    )
    ax.plot(
        *zip(*GPU_POINTS, strict=True), "o", mfc=red, label="measured, H200", **style
    )
    ax.plot([], [], "|", color="#444444", ms=14, mew=2.5, ls="", label="memory ends")
    ax.set(xscale="log", yscale="log")
    ax.set_xlabel(f"rows (p = {P:,}, K = {K}, float32)")
    ax.set_ylabel("time of one fit")
    marks = [0.1, 1, 10, 60, 600, 3600, 36000]
    names = ["0.1 s", "1 s", "10 s", "1 min", "10 min", "1 hour", "10 hours"]
    ax.set_yticks(marks, names)
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize=9, loc="upper left")
    plt.savefig(HERE.parent / "docs" / "images" / "scaling.png", dpi=150)


if __name__ == "__main__":
    main()
