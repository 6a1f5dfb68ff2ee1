"""
Do rows differ in scale at all?
===============================

The classical mixture gives all rows of a cluster the same scale. Before using a model
with a scale for each row, ask the data: the test of
:func:`ihgmm.scale_heterogeneity_test` gives a p-value for equal scales
and says how far apart they are.
"""

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, make_ihgmm, scale_heterogeneity_test

# %%
# The test needs the data and labels, here those that IhSC finds. Printed, it is a
# table with a recommendation.
X, _ = make_ihgmm(n_samples=200, n_features=100, scale_ratio=1.5, random_state=0)
print(scale_heterogeneity_test(X, IhSC(4, random_state=0).fit_predict(X)))

# %%
# Without individual scales its p-values are uniform, whatever the distribution of the
# noise, even if it is up to nine times as large in some rows as in others.
levels = (0.5, 4.5)
p_values = {}
for noise in ("gaussian", "rademacher"):
    p_values[noise] = [
        scale_heterogeneity_test(
            *make_ihgmm(
                100, 50, scale_ratio=1, noise=noise, noise_levels=levels, random_state=s
            )
        ).p_value
        for s in range(400)
    ]

# %%
# With individual scales, it rejects once they differ by more than noise hides.
ratios = np.array([1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5])
true = (ratios - 1) / np.sqrt(12) / ((ratios + 1) / 2)
tests = [
    [
        scale_heterogeneity_test(
            *make_ihgmm(200, 100, scale_ratio=ratio, random_state=seed)
        )
        for seed in range(60)
    ]
    for ratio in ratios
]
rejected = [np.mean([test.p_value < 0.05 for test in row]) for row in tests]
spreads = np.array([[test.spread for test in row] for row in tests])

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
colors = {"gaussian": "#0072B2", "rademacher": "#E69F00"}
styles = {"gaussian": "-", "rademacher": "--"}
ax = axes[0]
ax.plot([0, 1], [0, 1], color="0.6", lw=1)
for noise, values in p_values.items():
    share = np.arange(1, len(values) + 1) / len(values)
    ax.step(
        np.sort(values), share, where="post", color=colors[noise], ls=styles[noise],
        lw=2, label=f"{noise.capitalize()} noise",
    )  # fmt: skip
ax.set_title("Equal scales: uniform p-values", fontsize=13)
ax.set_xlabel("p-value")
ax.set_ylabel("share of samples below")
ax.set_aspect("equal")
ax.legend(frameon=False, loc="lower right")

ax = axes[1]
ax.plot(100 * true, rejected, "o-", color="#009E73", lw=2, ms=5)
ax.axhline(0.05, color="0.6", lw=1)
ax.text(11.5, 0.065, "level 5%", color="0.35", ha="right")
ax.set_title("Individual scales: they are found", fontsize=13)
ax.set_xlabel("true spread of scales (%)")
ax.set_ylabel("share of samples that reject")
ax.set_ylim(-0.03, 1.03)

ax = axes[2]
ax.plot([0, 12], [0, 12], color="0.6", lw=1, label="the truth")
low, middle, high = 100 * np.quantile(spreads, [0.05, 0.5, 0.95], axis=1)
ax.errorbar(
    100 * true, middle, [middle - low, high - middle], fmt="o", color="#0072B2", ms=5,
    capsize=3, label="median, and 90% of samples",
)  # fmt: skip
ax.set_title("How far apart: noise removed", fontsize=13)
ax.set_xlabel("true spread of scales (%)")
ax.set_ylabel("estimated spread (%)")
ax.legend(frameon=False, loc="upper left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

plt.show()
