"""Compare IhSC with its peers on real data sets whose classes are known.

    python benchmarks/real.py                        # the sets that are there, 3 seeds
    python benchmarks/real.py --groups ten --seeds 1
    python benchmarks/real.py iris --methods IhSC rival k-means --max-rows 1000
    python benchmarks/real.py --extra FOLDER --save  # and sets of a folder; keep tables
    python benchmarks/real.py --peers peers.json     # run peers once, IhSC each time
    IHGMM_BEFORE=old/src python benchmarks/real.py   # beside another version

``labelled.py`` names the packages that the sets come from and says how they are split.
Every method is told the true number of clusters. A rate is the share of rows whose
label is wrong under the best matching of labels to classes, a mean over seeds. A set
counts once in the means of groups, however many preparations it has.
"""

import argparse
import json
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import labelled
import numpy as np
from labelled import DOMAINS, GROUPS
from measure import arguments, digits, markdown, publish
from methods import LEGEND, METHODS, PEERS, with_before

from ihgmm.metrics import misclassification_rate

USUAL = ["IhSC", "given", "rival", "rival-prepared", "paper-magnitude"]
USUAL += [f"{peer}{rows}" for peer in PEERS for rows in ("", "-roots", "-prepared")]
Known = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Row:
    """The rates of the methods on one preparation of a data set."""

    group: str
    domain: str
    name: str
    preparation: str
    shape: tuple[int, ...]  # rows, features, classes
    rates: list[float]  # not a number where a method failed

    def key(self, seeds: int) -> str:
        """Name what was run, for a file that keeps rates."""
        return f"{self.name}, {self.preparation}, {self.shape}, {seeds} seeds"

    def cells(self) -> list[str]:
        title = f"{self.name}, {self.preparation}"
        return [title, *map(str, self.shape), *map(digits, self.rates)]


def rate(X: np.ndarray, y: np.ndarray, method: str, seeds: int) -> float:
    """Return the mean rate of a method over seeds."""
    rates = []
    for seed in range(seeds):
        try:
            labels = METHODS[method](X, len(np.unique(y)), seed)
        except (ValueError, np.linalg.LinAlgError) as error:
            print(f"{method} failed: {error}", file=sys.stderr)
            return float("nan")
        rates.append(misclassification_rate(y, labels))

    return float(np.mean(rates))


def run_set(
    data: labelled.LabelledSet, options: argparse.Namespace, known: Known
) -> list[Row] | str:
    """Return the rows of a set, or what is missing."""
    warnings.simplefilter("ignore")  # real data are not what methods hope
    rows = []
    try:
        for preparation, X, y in data.prepared(options.max_rows):
            shape = (*X.shape, len(np.unique(y)))
            row = Row(
                group=data.group,
                domain=data.domain,
                name=data.name,
                preparation=preparation,
                shape=shape,
                rates=[],
            )
            saved = known.get(row.key(options.seeds), {})

            for method in options.methods:
                if method not in saved:
                    saved[method] = rate(X, y, method, options.seeds)
                row.rates.append(saved[method])

            rows.append(row)
    except labelled.MissingDataError as error:
        return f"{data.name}: {error}"

    return rows


def group_tables(rows: list[Row], methods: list[str]) -> list[str]:
    """Return tables of means, and of wins and losses of the first method."""
    parts = {group: [row for row in rows if row.group == group] for group in GROUPS}
    for domain in DOMAINS:
        parts[domain] = [row for row in rows if row.domain == domain]
    parts["all"] = rows

    rates_of_parts = {}  # (sets, methods) each
    for name, rows_of_part in parts.items():
        names = [row.name for row in rows_of_part]
        rates = labelled.means_by_set(names, [row.rates for row in rows_of_part])
        if len(rates):
            rates_of_parts[name] = rates

    means = [["Mean rate over sets"], ["group or domain", "sets", *methods]]
    for name, rates in rates_of_parts.items():
        means.append([name, len(rates), *map(digits, rates.mean(axis=0))])

    margins = (0.001, 0.05) if len(methods) > 1 else ()
    wins = [wins_table(rates_of_parts, methods, margin) for margin in margins]
    return [markdown(table) for table in (means, *wins)]


def wins_table(
    rates_of_parts: dict[str, np.ndarray], methods: list[str], margin: float
) -> list[list[str]]:
    """Return on how many sets the first method is better and worse than others."""
    title = f"Sets on which {methods[0]} is better : worse, by {margin:g} or more"
    table = [[title], ["group or domain", *methods[1:]]]

    for name, rates in rates_of_parts.items():
        gain = (rates[:, 1:] - rates[:, :1]).round(6)
        n_better = (gain >= margin).sum(axis=0)
        n_worse = (gain <= -margin).sum(axis=0)
        pairs = zip(n_better, n_worse, strict=True)
        table.append([name, *(f"{better} : {worse}" for better, worse in pairs)])
    return table


def set_tables(rows: list[Row], methods: list[str]) -> list[str]:
    """Return a table of each group, a line for each preparation of a set."""
    head = ["set", "n", "p", "K", *methods]
    tables = []

    for group in GROUPS:
        lines = [row.cells() for row in rows if row.group == group]
        if lines:
            title = f"Misclassification rates: {group}"
            tables.append(markdown([[title], head, *lines]))

    return tables


def main() -> None:
    parser = arguments(__doc__, "real.md", seeds=3, jobs=1)
    add = parser.add_argument
    add("sets", nargs="*", metavar="SET", help="names of sets, if not all")
    add("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    add("--methods", nargs="+", choices=METHODS, default=with_before(USUAL))
    add("--max-rows", type=int, default=10_000, help="larger sets are sampled")
    add("--extra", type=Path, help="a folder of further sets")
    add("--peers", type=Path, help="a JSON file that keeps rates, but those of IhSC")
    options = parser.parse_args()
    sets = {data.name: data for data in labelled.all_sets(options.extra)}
    if unknown := set(options.sets) - set(sets):
        parser.error(f"{unknown} are not known; give some of {', '.join(sets)}.")
    chosen_sets = (sets[name] for name in options.sets or sets)
    tasks = [data for data in chosen_sets if data.group in options.groups]

    saved_peers: Known = {}
    if options.peers and options.peers.exists():
        saved_peers = json.loads(options.peers.read_text(encoding="utf-8"))

    rows = []
    missing = []
    absent = sorted(set(labelled.EXTRA) - set(sets))
    if absent and not options.sets and set(options.groups) - {"ten", "other"}:
        missing.append(f"{', '.join(absent)}: not in a folder given by --extra")
    run = partial(run_set, options=options, known=saved_peers)

    with ProcessPoolExecutor(options.jobs) as pool:
        for rows_of_set in pool.map(run, tasks):
            if isinstance(rows_of_set, str):
                missing.append(rows_of_set)
                print(rows_of_set, file=sys.stderr)
                continue

            rows += rows_of_set
            for row in rows_of_set:
                rates = dict(zip(options.methods, row.rates, strict=True))
                rates.pop("IhSC", None)
                saved_peers.setdefault(row.key(options.seeds), {}).update(rates)
                print(row.group, *row.cells(), file=sys.stderr, flush=True)

            if options.peers:
                options.peers.write_text(
                    json.dumps(saved_peers, indent=1), encoding="utf-8"
                )

    texts = [*group_tables(rows, options.methods), *set_tables(rows, options.methods)]
    if missing:
        texts.append("Left out:\n\n" + "".join(f"- {line}\n" for line in missing))
    seeds = "one seed" if options.seeds == 1 else f"means over {options.seeds} seeds"
    head = (
        f"# Real data\n\n`python benchmarks/real.py`: "
        f"{seeds}, at most {options.max_rows:,} rows of a set. "
        f"Sets and their split are described in `labelled.py`.\n\n{LEGEND}\n"
    )
    publish(options, head + "\n".join(texts))


if __name__ == "__main__":
    main()
