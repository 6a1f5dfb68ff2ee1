"""Memory, passes and time of IhSC on a file larger than what it may hold in memory.

Run ``python benchmarks/out_of_core.py 8`` for 8 GB of float32, 1,000 features, in ten
clusters. The file is written to ``--folder`` and deleted afterwards; the fit runs in a
process of its own, whose largest resident memory is printed with the rest on one line.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

P, K, PIECE = 1_000, 10, 20_000


def write(folder: Path, gigabytes: float) -> None:
    """Write rows of the model, their labels, and those of one who knows the centres."""
    from ihgmm import make_ihgmm
    from ihgmm.paper.oracles import center_oracle
    from ihgmm.statistics.model import default_separation

    n = int(gigabytes * 1e9 / 4 / P)
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((P, K)))
    centers = default_separation(n, P, K, 0.5) / np.sqrt(2) * Q.T
    X = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (n, P))
    labels, best = np.empty((2, n), dtype=np.int8)
    for start in range(0, n, PIECE):
        rows = slice(start, min(start + PIECE, n))
        part = make_ihgmm(
            rows.stop - start,
            centers=centers,
            dtype=np.float32,
            random_state=rng,
            return_params=True,
        )
        X[rows], labels[rows], best[rows] = part.X, part.labels, center_oracle(part)
    X.flush()
    np.save(folder / "labels.npy", labels)
    np.save(folder / "best.npy", best)


def fit(folder: Path) -> None:
    """Fit the file and print figures as JSON."""
    from ihgmm import IhSC
    from ihgmm.matrix import as_matrix

    rows = as_matrix(np.load(folder / "x.npy", mmap_mode="r"))
    before = peak_memory()
    started = time.perf_counter()
    model = IhSC(K, random_state=0, verbose=True).fit(rows)
    seconds = time.perf_counter() - started
    np.save(folder / "found.npy", model.labels_.astype(np.int8))
    figures = {"peak": peak_memory(), "before": before, "passes": rows.passes}
    print(json.dumps(figures | {"seconds": seconds}))


def peak_memory() -> float:
    """Return the largest resident memory so far, in GB."""
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gigabytes", type=float)
    parser.add_argument("--folder", type=Path, help="where the file goes")
    parser.add_argument("--fit", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit(options.folder)
        return
    from ihgmm.metrics import misclassification_rate

    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free / 1e9
    if free < 1.1 * options.gigabytes:
        parser.error(f"{free:.0f} GB are free, too few; name another --folder.")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write(folder, options.gigabytes)
        command = [sys.executable, __file__, str(options.gigabytes), "--fit"]
        done = subprocess.run(
            [*command, "--folder", name], check=True, stdout=subprocess.PIPE
        )
        figures = json.loads(done.stdout)
        labels = np.load(folder / "labels.npy")
        found = misclassification_rate(labels, np.load(folder / "found.npy"))
        best = float(np.mean(labels != np.load(folder / "best.npy")))
    print(
        f"{options.gigabytes:g} GB, {len(labels)} x {P}: {figures['seconds']:.0f} s, "
        f"{figures['passes']} passes, peak memory {figures['peak']:.2f} GB "
        f"({figures['before']:.2f} before the fit), error {found:.5f}, "
        f"with known centres {best:.5f}"
    )


if __name__ == "__main__":
    main()
