"""Tables and sentences on clusters that several commands print."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ihgmm.cli.comparing import LabelComparison
from ihgmm.cli.describing import ClusterLine
from ihgmm.cli.screen import Screen, print_message
from ihgmm.words.clusters import CLUSTER_WORDS
from ihgmm.words.features import contrast_text, feature_words
from ihgmm.words.phrases import shorten

MOST_DESCRIBED = 12  # clusters whose features are on the screen


def print_clusters(
    screen: Screen, clusters: Sequence[ClusterLine], id_name: str
) -> None:
    """Print a table of the clusters, and what its words mean."""
    rows = []
    for line in clusters:
        lower_scale, upper_scale = line.scale_range
        scales = None
        if not np.isnan(lower_scale):
            scales = f"{lower_scale:.2f} to {upper_scale:.2f}"

        typical = str(line.typical_ids[0]) if line.typical_ids else None
        rows.append(
            (
                str(line.cluster),
                line.n_rows,
                line.share,
                line.median_size,
                scales,
                line.certainty,
                typical,
            )
        )

    formats = {
        "cluster": "",
        "rows": ",",
        "share": ".1%",
        "size": ".4g",
        "scales": "",
        "certainty": ".0%",
        f"typical {id_name}": "",
    }
    screen.table(formats, rows)
    screen.explain(CLUSTER_WORDS)

    for line in clusters:
        if line.typical_texts:  # how the most typical one begins
            text = shorten(" ".join(line.typical_texts[0].split()), 70)
            screen.say(f"typical of {line.cluster}: {text}", "dim")


def print_features(
    screen: Screen, clusters: Sequence[ClusterLine], same_size: bool
) -> None:
    """Print the features that set each of the largest clusters apart."""
    described = [line for line in clusters if line.features]
    rows = []
    for line in described[:MOST_DESCRIBED]:
        heading = str(line.cluster)
        for feature in line.features or ():
            contrast = contrast_text(feature.contrast)
            rows.append(
                (heading, feature.feature, feature.mean, feature.others, contrast)
            )
            heading = ""  # stands in the first line of a cluster alone

    if rows:
        formats = {
            "cluster": "",
            "set apart by": "",
            "mean": ".4g",
            "others, same size" if same_size else "others": ".4g",
            "contrast": "",
        }
        screen.table(formats, rows)
        screen.explain(feature_words(same_size))

    if len(described) > MOST_DESCRIBED:
        screen.say("Features are shown of the 12 largest clusters; --json has all.")


def print_labels(
    screen: Screen,
    comparison: LabelComparison | None,
    path: Path | None,
    remarks: Sequence[str],
) -> None:
    """Print how labels compare with those known, and where they are."""
    if comparison is not None:
        screen.say(comparison.text)

    if path is None:
        screen.say("labels were not saved; add -o labels.csv")
    else:
        where = "standard output" if str(path) == "-" else path
        screen.say(f"labels written to {where}")

    if not screen.as_json:
        for text in remarks:
            print_message("note", text)
