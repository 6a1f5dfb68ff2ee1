"""
How well is a scale known?
==========================

Every row is a multiple of its cluster's pattern, plus noise: the multiple is the row's
scale. ``estimate_parameters`` says how far off each scale may be. With many more
features than rows, the obvious estimate is wrong: it takes noise for size.
"""

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.statistics.estimation import estimate_parameters

# %%
# 150 rows of 5,000 features; the noise of some rows is three times that of others.
sample = make_ihgmm(
    150, 5000, 3, scale_ratio=2.5, separation_constant=1.0, random_state=0,
    return_params=True,
)  # fmt: skip
X = sample.X
labels = IhSC(3, random_state=0).fit_predict(X)
print(f"rows misplaced: {misclassification_rate(sample.labels, labels):.1%}")


def mean_one(scales):
    """Divide by the mean of each cluster: scales are known up to such a factor."""
    return scales / (np.bincount(labels, scales) / np.bincount(labels))[labels]


truth = mean_one(sample.scales)
found = estimate_parameters(X, labels)
lower, upper = found.scale_intervals(level=0.95).T
covered = (lower <= truth) & (truth <= upper)

# %%
# The obvious estimate: project each row on the mean of its cluster. The row's own noise
# is in that mean, and over 5,000 features its square adds up.
means = np.array([X[labels == k].mean(axis=0) for k in range(3)])
naive = mean_one(np.einsum("ij,ij->i", X, means[labels]))

blue, orange, grey = "#0072B2", "#D55E00", "#555555"
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")

order = np.argsort(truth)
place = np.arange(len(order))
for inside, color, name in [
    (True, blue, "95% interval that holds the true scale"),
    (False, orange, "one that misses it"),
]:
    rows = covered[order] == inside
    which = order[rows]
    axes[0].vlines(place[rows], lower[which], upper[which], color=color, label=name)
axes[0].plot(place, truth[order], color="black", linewidth=1.5, label="true scale")
axes[0].set_title(f"{covered.mean():.0%} of the intervals hold the true scale")
axes[0].set_xlabel("rows, sorted by true scale")
axes[0].set_ylabel("scale (mean 1 in each cluster)")
axes[0].legend(frameon=False, loc="upper left")

for scales, color, marker, name in [
    (naive, orange, "s", "row in its own centre"),
    (found.scales, blue, "o", "centre of the other rows"),
]:
    axes[1].scatter(
        sample.noise_levels, scales - truth, s=18, c=color, marker=marker,
        linewidths=0, alpha=0.8, label=name,
    )  # fmt: skip
axes[1].axhline(0, color=grey, linewidth=1)
axes[1].set_title("Noise that is taken for size")
axes[1].set_xlabel("noise level of the row")
axes[1].set_ylabel("estimated minus true scale")
axes[1].legend(frameon=False, loc="upper left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

for name, scales in [("naive", naive), ("leave-one-out", found.scales)]:
    tilt = np.corrcoef(scales - truth, sample.noise_levels)[0, 1]
    error = np.sqrt(np.mean((scales - truth) ** 2))
    print(f"{name}: error {error:.3f}, its correlation with the noise {tilt:.2f}")

plt.show()
