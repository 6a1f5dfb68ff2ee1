"""
Can these labels be trusted?
============================

Every method returns labels, also where there are no clusters. ``diagnose`` looks at the
data once more and says in words how far to believe them. Here is an easy sample, a hard
one, and one of pure noise.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from ihgmm import IhSC, diagnose, make_ihgmm
from ihgmm.metrics import misclassification_rate

# A fit to the hopeless sample says itself that labels may be unstable.
warnings.filterwarnings("ignore", "Labels may be unstable")

# %%
# Three samples that differ only in how far apart their four patterns are. In the last
# one they are so close that the rows are noise.
samples = {
    name: make_ihgmm(
        400, 300, 4, scale_ratio=5, separation_constant=constant, random_state=0
    )
    for name, constant in [("easy", 1.0), ("hard", 0.3), ("hopeless", 0.01)]
}

# %%
# The diagnosis sees data and labels, never the truth. We do, and compare.
found, errors = {}, {}
for name, (X, truth) in samples.items():
    labels = IhSC(4, random_state=0).fit_predict(X)
    found[name] = diagnose(X, labels)
    errors[name] = misclassification_rate(truth, labels)
    print(f"--- {name}: in truth {errors[name]:.1%} of labels are wrong ---")
    print(found[name], end="\n\n")

# %%
# How certain the label of each row is, from the other rows alone. On noise few labels
# are certain, though k-means gave one to every row.
blue, orange = "#0072B2", "#D55E00"
figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.8), layout="constrained")
for ax, (name, result) in zip(axes, found.items(), strict=True):
    bins = np.linspace(0, 1, 21)
    share = np.full(len(result.certainty), 1 / result.n_samples)
    _, edges, bars = ax.hist(result.certainty, bins, weights=share, color=blue)
    for left, bar in zip(edges, bars, strict=False):
        if left < 0.899:
            bar.set_facecolor(orange)
    words = result.verdict.replace(": ", ":\n").replace(", ", ",\n")
    ax.set_title(f"{name}\n“{words}”" + "\n" * (1 - words.count("\n")), fontsize=11)
    low, high = result.error_range
    ax.text(
        0.04, 0.93,
        f"stability: {result.stability:.0%}\n"
        f"expected error: {low:.0%} to {high:.0%}\n"
        f"true error: {errors[name]:.1%}",
        transform=ax.transAxes, va="top",
    )  # fmt: skip
    ax.set_ylim(0, 1.05)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("certainty of a row's label")
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of rows")

plt.show()
