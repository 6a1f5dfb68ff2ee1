"""A table of clusters, and how clusters agree with known classes, in words."""

from ihgmm.metrics import ClassAgreement
from ihgmm.words.phrases import percent

# What the headings of a table of clusters mean, a line each.
CLUSTER_WORDS = (
    "size: how much a row has of the pattern of its cluster: the root of a sum of",
    "    squares, not the sum of its columns; the median is shown",
    "scales: sizes over their mean in the fit, by cluster, for the middle 90% of rows",
    "certainty: how probable it is that a label is right; the mean is shown;",
    "    a fit that separates nothing shows none",
    "typical: of rows of ordinary size in which no cell was filled in, that whose",
    "    pattern is nearest to the cluster's",
)


def class_words(
    agreement: ClassAgreement, n: int, rival: ClassAgreement | None = None
) -> str:
    """Return how many of n rows are in another class than their cluster stands for.

    The ``rival`` is the agreement of k-means on the same rows.
    """
    rows = f"{agreement.misplaced:,} of {n:,} rows"
    share = percent(agreement.rate)
    if agreement.by_majority:
        text = f"{rows} ({share}) are not of the largest class in their cluster"
    else:
        text = f"{rows} differ ({share})"

    text += f", adjusted Rand index {agreement.adjusted_rand_index:z.2f}"
    if rival is not None:
        share = percent(rival.rate)
        index = f"{rival.adjusted_rand_index:z.2f}"
        text += f"; with k-means {rival.misplaced:,} ({share}), {index}"

    return text
