"""The command ``ihgmm test-scales``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ihgmm import IhSC, scale_heterogeneity_test
from ihgmm._text import scale_rows
from ihgmm.cli.data import Reading
from ihgmm.cli.fitting import GRAM, parse_n_clusters
from ihgmm.cli.options import DATA, N_CLUSTERS, SEED, option, reading_option
from ihgmm.cli.screen import AnswerScreen
from ihgmm.numerics.recipe import Recipe


@dataclass(frozen=True)
class ReadingWithin(Reading):
    """The options of reading, where labels are more than compared with."""

    label_column: str | None = reading_option(
        "Column with known labels (or array of an NPZ file): rows are tested within "
        "them, unless -k is given."
    )


def scales(
    *,
    data: str = DATA,
    n_clusters: str | None = option(
        'Let IhSC find this many clusters, or "auto", and test within them. Without '
        "it, test within the known labels.",
        names=N_CLUSTERS,
    ),
    gram: str | None = GRAM,
    random_state: int = SEED,
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
    if reading.missing == "fit":
        raise ValueError(
            "--missing fit: cells that are filled in have no noise of their own, which "
            "the test compares scales with; give --missing drop, or --missing zero if "
            "an empty cell means none."
        )
    table = reading.load(data, screen, fills=False)
    with screen.working("testing"):
        if k is not None:
            settings: Any = {} if gram is None else {"gram": gram}
            recipe = Recipe(**settings)
            model = IhSC(k, recipe=recipe, random_state=random_state)
            labels, origin = model.fit_predict(table.named_data), "found by IhSC"
        elif table.labels is not None:
            labels, origin = table.labels.astype(str), "known"
        else:
            raise ValueError(
                f"{data} has no known labels: name their column with --label-column, "
                "or give -k to test within clusters that are found."
            )
        test = scale_heterogeneity_test(table.X, labels, random_state=random_state)
    figures = test.clusters, test.sizes, test.spreads, test.statistics, test.p_values
    keys = ("cluster", "rows", "spread", "statistic", "p_value")
    screen.document(
        "test-scales",
        {"data": data, "labels": origin},
        p_value=test.p_value,
        statistic=test.statistic,
        spread=test.spread,
        detectable=test.detectable,
        recommendation=test.recommendation,
        assumption=test.assumption.sentence,
        clusters=[
            dict(zip(keys, row, strict=True)) for row in zip(*figures, strict=True)
        ],
        notes=table.notes,
    )
    screen.say(f"{table.heading}, labels {origin}", "bold")
    screen.notes(table.notes)
    formats = {"cluster": "", "rows": ",", "spread": "", "p-value": ""}
    screen.table(formats, scale_rows(test))
    screen.say(test.recommendation)
    screen.say(test.assumption.sentence, "dim")
    screen.answer(str(test.advice))
