"""
Can these labels be trusted?
============================

Every method returns labels, also where there are no clusters. ``diagnose`` looks at the
data once more and says in words how far to believe them. Here is an easy sample, a hard
one, and one of pure noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from ihgmm import IhSC, diagnose, make_ihgmm
from ihgmm.metrics import misclassification_rate

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
# Above: how certain the label of each row is, from the other rows alone. On noise few
# labels are certain, though k-means gave one to every row. Below: the leading
# eigenvalues of the Gram matrix. Four stand out where there are four patterns; without
# patterns the fifth is as large as the fourth.
blue, orange, gray = "#0072B2", "#D55E00", "#999999"
figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.2), layout="constrained")
for column, (name, result) in zip(axes.T, found.items(), strict=True):
    top, bottom = column
    bins = np.linspace(0, 1, 21)
    share = np.full(len(result.certainty), 1 / result.n_samples)
    _, edges, bars = top.hist(result.certainty, bins, weights=share, color=blue)
    for left, bar in zip(edges, bars, strict=False):
        if left < 0.899:
            bar.set_facecolor(orange)
    words = result.verdict.replace(": ", ":\n").replace(", ", ",\n")
    top.set_title(f"{name}\n“{words}”" + "\n" * (1 - words.count("\n")), fontsize=11)
    top.text(
        0.04, 0.93,
        f"less than 90% certain: {result.uncertain_share:.0%}\n"
        f"expected error: {result.expected_error:.1%}\n"
        f"true error: {errors[name]:.1%}",
        transform=top.transAxes, va="top",
    )  # fmt: skip
    top.set_ylim(0, 1.05)
    top.yaxis.set_major_formatter(PercentFormatter(1.0))
    top.set_xlabel("certainty of a row's label")
    top.xaxis.set_major_formatter(PercentFormatter(1.0))

    values = result.eigenvalues / result.eigenvalues[-1]
    place = np.arange(1, len(values) + 1)
    bottom.bar(place, values, color=[blue] * 4 + [gray], width=0.7)
    bottom.set_xticks(place)
    bottom.set_xlabel("eigenvalue number")
    bottom.set_title(
        f"gap: eigenvalue 4 is {result.eigenvalue_gap:.1f} times the next", fontsize=10
    )
    for ax in column:
        ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].set_ylabel("share of rows")
axes[1, 0].set_ylabel("eigenvalue over the fifth")

plt.show()
