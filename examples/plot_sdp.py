"""
The semidefinite relaxation, on rows and on unit rows
=====================================================

K-means can be relaxed to a convex problem, whose solution is a matrix with a block for
each cluster. On the rows as they are, large rows dominate it; on unit rows,
``SDPKMeans(gram="cosine")``, it finds the kinds. It is an honest rival of IhSC: it has
no local optima, and where its solution is a clustering, ``exact_`` says that k-means on
unit rows has no better one. But near the limit of what can be found it makes about as
many errors as IhSC with cosines, and it takes far longer.

Take it for a few hundred rows at most, where a certificate is worth the wait. Take IhSC
for everything else: it also gives scales, counts clusters, and works on any number of
rows. The example needs cvxpy.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, SDPKMeans, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.paper.theory import exact_recovery_limit, ihsc_threshold

# %%
# Two solutions for one sample of 40 rows whose scales differ twentyfold, with the rows
# in the order of the true clusters and, within these, of their scales.
sample = make_ihgmm(
    40, 100, 3, separation_constant=1.0, random_state=0, return_params=True
)
order = np.lexsort([sample.scales, sample.labels])
solutions = {
    "all inner products": SDPKMeans(3, random_state=0).fit(sample.X),
    "unit rows": SDPKMeans(3, gram="cosine", random_state=0).fit(sample.X),
}

# %%
# Errors as the centres move apart: 40 rows of 100 features, scales from 1 to 5. The
# dotted line is where someone who knows the centres finds all labels in about half of
# the samples.
constants = np.array([0.15, 0.25, 0.4, 0.6, 0.9])
methods = {
    "SDPKMeans": (lambda: SDPKMeans(3, random_state=0), "#D55E00", "s-"),
    "SDPKMeans, cosine": (
        lambda: SDPKMeans(3, gram="cosine", random_state=0),
        "#E69F00",
        "D-",
    ),
    "IhSC.paper": (lambda: IhSC.paper(3, random_state=0), "#0072B2", "o-"),
    "IhSC.paper, cosine": (
        lambda: IhSC.paper(3, rows="unit", random_state=0),
        "#56B4E9",
        "^--",
    ),
}
# Where the centres are close, fits of IhSC warn that labels may be unstable.
warnings.filterwarnings("ignore", "Labels may be unstable")
draws = 3
errors = {name: np.zeros((len(constants), draws)) for name in methods}
for i, constant in enumerate(constants):
    for seed in range(draws):
        X, labels = make_ihgmm(
            40, 100, 3, scale_ratio=5.0, separation_constant=constant, random_state=seed
        )
        for name, (model, _, _) in methods.items():
            found = model().fit_predict(X)
            errors[name][i, seed] = misclassification_rate(labels, found)

rows = make_ihgmm(50_000, 4, 3, scale_ratio=5.0, random_state=0, return_params=True)
model = rows.labels, rows.scales, rows.centers, rows.noise_levels
limit = exact_recovery_limit(*model, n_samples=40) / ihsc_threshold(40, 100, 3)

# %%
figure, axes = plt.subplots(
    1, 3, figsize=(11, 3.6), layout="constrained", width_ratios=[1, 1, 1.35]
)
for ax, (name, model) in zip(axes, solutions.items(), strict=False):
    ax.imshow(model.solution_[np.ix_(order, order)], cmap="cividis", vmin=0, vmax=0.1)
    wrong = misclassification_rate(sample.labels, model.labels_)
    ax.set_title(f"solution, {name}\n{100 * wrong:.0f}% of rows misplaced", fontsize=10)
    edges = np.cumsum(np.bincount(sample.labels))[:-1] - 0.5
    for edge in edges:
        ax.axhline(edge, color="white", lw=0.8)
        ax.axvline(edge, color="white", lw=0.8)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("rows, by cluster and scale", fontsize=9)
for name, (_, color, style) in methods.items():
    mean = errors[name].mean(axis=1)
    error = errors[name].std(axis=1) / np.sqrt(draws)
    axes[2].plot(constants, mean, style, color=color, label=name, ms=4.5)
    axes[2].fill_between(
        constants, mean - error, mean + error, color=color, alpha=0.15, lw=0
    )
axes[2].axvline(limit, color="#444444", ls=":", label="limit, centres known")
axes[2].set_xscale("log")
axes[2].set_xticks(constants, labels=[f"{c:g}" for c in constants])
axes[2].minorticks_off()
axes[2].set_xlabel("separation constant C", fontsize=9)
axes[2].set_ylabel("share of misplaced rows", fontsize=9)
axes[2].set_title("errors as the centres part", fontsize=10)
axes[2].legend(facecolor="white", edgecolor="none", framealpha=1, fontsize=8)
axes[2].spines[["top", "right"]].set_visible(False)

plt.show()
