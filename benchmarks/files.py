"""What a pass over a file costs: text, Parquet and AnnData, block by block and whole.

    python benchmarks/files.py              # files of about 200 MB, a minute or two
    python benchmarks/files.py 1000 --save  # of 1 GB; keep the table under results/

Each file is made in a temporary folder and deleted afterwards. Each figure is of a
fresh process: seconds to open the file, seconds of a pass (row norms), and how much the
largest resident memory grows. Others read the same file whole.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import environment, markdown, peak, reset_peak, resident

HERE = Path(__file__).parent
PACKAGES = ("ihgmm", "numpy", "pandas", "pyarrow", "h5py", "anndata")


# The files, of about so many megabytes


def tall_text(path: Path, megabytes: float) -> None:
    _write_text(path, round(megabytes * 1e6 / 1_960), 100)


def wide_text(path: Path, megabytes: float) -> None:
    _write_text(path, round(megabytes * 1e6 / 393_000), 20_000)


def small_groups(path: Path, megabytes: float) -> None:
    _write_parquet(path, round(megabytes * 1e6 / 290), 10, 10)


def one_group(path: Path, megabytes: float) -> None:
    _write_parquet(path, round(megabytes * 1e6 / 87), 10, None)


def cells(path: Path, megabytes: float) -> None:
    import anndata

    n, p = round(megabytes * 1e6 / 12 / 200), 20_000  # 200 of 20,000 genes
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, p, (n, 200), dtype=np.int32), axis=1).ravel()
    data = rng.integers(1, 9, n * 200).astype(np.float32)
    X = sp.csr_matrix((data, indices, np.arange(n + 1) * 200), shape=(n, p))
    anndata.AnnData(X).write_h5ad(path)


def _write_text(path: Path, n: int, p: int) -> None:
    import pyarrow as pa
    import pyarrow.csv

    rng, names = np.random.default_rng(0), [f"f{j}" for j in range(p)]
    with open(path, "wb") as file:
        step = max(1, 2_000_000 // p)
        for start in range(0, n, step):
            part = rng.standard_normal((p, min(step, n - start))).astype(np.float32)
            table = pa.table(list(part.astype(np.float64)), names=names)
            options = pa.csv.WriteOptions(include_header=start == 0)
            pa.csv.write_csv(table, file, options)


def _write_parquet(path: Path, n: int, p: int, group: int | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    table = pa.table({f"f{j}": rng.standard_normal(n) for j in range(p)})
    pa.parquet.write_table(table, path, row_group_size=group or n)


FILES: dict[str, tuple[str, Callable[[Path, float], None], tuple[str, ...]]] = {
    "CSV, 100 columns": ("tall.csv", tall_text, ("pyarrow", "pandas")),
    "CSV, 20,000 columns": ("wide.csv", wide_text, ("pyarrow", "pandas")),
    "Parquet, groups of 10 rows": (
        "small.parquet",
        small_groups,
        ("pyarrow", "pandas"),
    ),
    "Parquet, one row group": ("one.parquet", one_group, ("pyarrow", "pandas")),
    "h5ad, 20,000 genes, CSR": ("cells.h5ad", cells, ("anndata",)),
}


# The ways to read them


def ihgmm_pass(path: Path) -> tuple[float, float]:
    from ihgmm import open_data

    started = time.perf_counter()
    X = open_data(path)
    opened = time.perf_counter()
    assert X.sqnorms.all()
    return opened - started, time.perf_counter() - opened


def whole(library: str) -> Callable[[Path], tuple[float, float]]:
    def read(path: Path) -> tuple[float, float]:
        reader = _reader(library, path.suffix)
        started = time.perf_counter()
        kept = reader(path)
        assert kept is not None
        return 0.0, time.perf_counter() - started

    return read


def _reader(library: str, suffix: str) -> Callable[[Path], Any]:
    if library == "anndata":
        import anndata

        return anndata.read_h5ad
    if library == "pandas":
        import pandas as pd

        return pd.read_csv if suffix == ".csv" else pd.read_parquet
    import pyarrow.csv
    import pyarrow.parquet

    if suffix == ".csv":
        # A row has to fit into a block.
        options = pyarrow.csv.ReadOptions(block_size=2**24)
        return lambda path: pyarrow.csv.read_csv(path, options)
    return pyarrow.parquet.read_table


def measure(way: str, path: Path) -> dict[str, float]:
    read = ihgmm_pass if way == "ihgmm" else whole(way)
    if way == "ihgmm":
        import ihgmm  # noqa: F401

        __import__("anndata" if path.suffix == ".h5ad" else "pyarrow.dataset")
    else:
        _reader(way, path.suffix)
    before = resident()
    reset_peak()
    opening, seconds = read(path)
    return {"open": opening, "seconds": seconds, "grown": (peak() - before) / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", type=float, nargs="?", default=200)
    parser.add_argument("--save", action="store_true", help="keep the table")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        way, path = options.measure
        print(json.dumps(measure(way, Path(path))))
        return
    table = [
        ["Seconds and memory of one pass over a file"],
        ["file", "way", "open (s)", "pass (s)", "memory (MB)"],
    ]
    with tempfile.TemporaryDirectory() as folder:
        for title, (name, write, others) in FILES.items():
            path = Path(folder) / name
            write(path, options.megabytes)
            size = path.stat().st_size / 1e6
            for way in ("ihgmm", *others):
                command = [sys.executable, __file__, "--measure", way, str(path)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
                found = json.loads(done.stdout)
                row = [f"{found[key]:.2f}" for key in ("open", "seconds")]
                label = "ihgmm, blocks" if way == "ihgmm" else f"{way}, whole"
                table.append(
                    [f"{title}, {size:.0f} MB", label, *row, f"{found['grown']:.0f}"]
                )
                print("  ".join(table[-1]), flush=True)
            path.unlink()
    text = f"{markdown(table)}\n{environment(PACKAGES)}\n"
    print(text)
    if options.save:
        (HERE / "results" / "files.md").write_text(text)


if __name__ == "__main__":
    main()
