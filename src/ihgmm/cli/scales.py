"""The command ``ihgmm test-scales``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ihgmm import IhSC, scale_heterogeneity_test
from ihgmm.cli.data import Reading, gram_option, parse_n_clusters
from ihgmm.cli.options import DATA, READING, option, seed_option
from ihgmm.cli.screen import AnswerScreen


@dataclass(frozen=True)
class ReadingWithin(Reading):
    """The options of reading, where labels are more than compared with."""

    label_column: str | None = option(
        None,
        "Column with known labels (or array of an NPZ file): rows are tested within "
        "them, unless -k is given.",
        panel=READING,
    )


def scales(
    *,
    data: str = DATA,
    n_clusters: str | None = option(
        None,
        'Test within so many clusters that IhSC finds, or "auto"; without it within '
        "the known labels.",
        "-k --n-clusters",
    ),
    gram: str = gram_option(),
    random_state: int = seed_option(),
    reading: ReadingWithin,
    screen: AnswerScreen,
) -> None:
    """Test whether the rows of a cluster differ in scale at all.

    A small p-value speaks for individual scales, a large one for the classical mixture.

    [bold]Examples[/]

      ihgmm test-scales iris

      ihgmm test-scales cells.csv --label-column type

      ihgmm test-scales cells.csv -k 8 --drop-columns batch,plate --json
    """
    k = None if n_clusters is None else parse_n_clusters(n_clusters)
    table, _ = reading.load(data, screen)
    with screen.working("testing"):
        if k is not None:
            options: dict[str, Any] = {"gram": gram, "random_state": random_state}
            labels, origin = IhSC(k, **options).fit_predict(table.X), "found by IhSC"
        elif table.labels is not None:
            labels, origin = table.labels.astype(str), "known"
        else:
            raise ValueError(
                f"{data} has no known labels: name their column with --label-column, "
                "or give -k to test within clusters that are found."
            )
        test = scale_heterogeneity_test(table.X, labels, random_state=random_state)
    clusters = {
        "cluster": test.clusters,
        "rows": test.sizes,
        "spread": test.spreads,
        "statistic": test.statistics,
        "p_value": test.p_values,
    }
    names = ("p_value", "statistic", "spread", "detectable", "recommendation")
    screen.document(
        {
            "command": "test-scales",
            "data": data,
            "labels": origin,
            **{name: getattr(test, name) for name in names},
            "clusters": [
                dict(zip(clusters, row, strict=True))
                for row in zip(*clusters.values(), strict=True)
            ],
            "notes": table.notes,
        }
    )
    screen.say(f"{table.heading}, labels {origin}", "bold")
    screen.notes(table.notes)
    each = zip(test.clusters, test.sizes, test.spreads, test.p_values, strict=True)
    total = ("all", test.sizes.sum(), test.spread, test.p_value)
    screen.table(
        {"cluster": "", "rows": ",", "spread": ".1%", "p-value": ".2g"},
        [
            # Smaller ones are no longer exact.
            (str(name), size, spread, "<1e-300" if p_value < 1e-300 else p_value)
            for name, size, spread, p_value in (*each, total)
        ],
    )
    screen.say(test.recommendation)
    screen.answer(str(test.advice))
