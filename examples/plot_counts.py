"""
Counts: common words are loud
=============================

The variance of a count is its mean. Columns of common words or genes hold most of the
noise, and eigenvectors follow what is loud. IhSC takes the roots of such counts; or,
if asked, it multiplies rows and columns so that noise has variance one in each, on
average, which is called whitening.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import Biwhitener, IhSC
from ihgmm.metrics import misclassification_rate

# %%
# Three hundred rows of four kinds, 200 columns. Half of each profile is shared, and
# sizes of rows differ, as those of cells or documents do.
sizes = [20, 30, 60, 120, 240]


def rows_of_counts(size, seed, n=300, p=200, k=4):
    """Return Poisson counts with so many events in a row on average, and kinds."""
    rng = np.random.default_rng(seed)
    profiles = rng.gamma(0.5, size=p) + rng.gamma(0.5, size=(k, p))
    profiles /= profiles.sum(axis=1, keepdims=True)
    kinds, scales = np.arange(n) % k, size * rng.lognormal(-0.245, 0.7, n)
    X = rng.poisson(scales[:, None] * profiles[kinds]).astype(float)
    return X[X.any(axis=1)], kinds[X.any(axis=1)]


def log_normalised(X):
    """Return logarithms of rows of equal totals, as is usual for single cells."""
    totals = X.sum(axis=1, keepdims=True)
    return np.log1p(X * np.median(totals) / totals)


# %%
# Before, the noise of a column grows with its mean. Afterwards it does not. What that
# does to labels is on the right.
X, _ = rows_of_counts(120, seed=0)
white = Biwhitener("counts").fit_transform(X)
means, live = X.mean(axis=0), X.any(axis=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for values, color, name in ((X, "#0072B2", "counts"), (white, "#D55E00", "whitened")):
    left.plot(means[live], values.var(axis=0)[live], ".", color=color, label=name)
left.set(
    xscale="log",
    yscale="log",
    xlabel="mean count of a column",
    ylabel="variance of the column",
    title="120 counts a row",
)

# What that does to labels.
warnings.filterwarnings("ignore", message="Labels may be unstable")
ways = {
    "counts": (
        lambda X: IhSC(4, columns="given", random_state=0).fit_predict(X),
        "#0072B2",
        "s",
    ),
    "roots": (lambda X: IhSC(4, random_state=0).fit_predict(X), "#009E73", "D"),
    "logarithms": (
        lambda X: IhSC(4, columns="given", random_state=0).fit_predict(
            log_normalised(X)
        ),
        "#CC79A7",
        "^",
    ),
    "whitened": (
        lambda X: IhSC(4, columns="counts", random_state=0).fit_predict(X),
        "#D55E00",
        "o",
    ),
}
for name, (labels_of, color, marker) in ways.items():
    rates = []
    for size in sizes:
        draws = [rows_of_counts(size, seed) for seed in range(5)]
        wrong = [misclassification_rate(kinds, labels_of(X)) for X, kinds in draws]
        rates.append(100 * np.mean(wrong))
    right.plot(sizes, rates, color=color, marker=marker, label=name)
right.set(
    xscale="log",
    xlabel="counts in a row, on average",
    ylabel="rows in the wrong cluster (%)",
    title="Clusters found by IhSC",
    ylim=(0, None),
)
right.set_xticks(sizes, [str(size) for size in sizes])
right.minorticks_off()
for axes in (left, right):
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)

plt.show()
