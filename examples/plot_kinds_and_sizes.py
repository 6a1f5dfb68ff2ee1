"""
Kinds, not sizes
================

Three kinds of observations, each in every size from small to large. K-means cuts the
data by size; IhSC finds the kinds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import match_labels, misclassification_rate

# %%
# Three patterns over two features, and 600 rows that are noisy multiples of them.
angles = np.deg2rad([12, 45, 78])
centers = np.column_stack([np.cos(angles), np.sin(angles)])
X, labels = make_ihgmm(
    600, centers=centers, scale_ratio=12, noise_levels=0.16, random_state=0
)

found = {
    "k-means": KMeans(3, n_init=10, random_state=0).fit_predict(X),
    "IhSC": IhSC(3, random_state=0).fit_predict(X),
}

colors = np.array(["#0072B2", "#E69F00", "#009E73"])
markers = ["o", "s", "^"]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for ax, (name, clusters) in zip(axes, found.items(), strict=True):
    error = misclassification_rate(labels, clusters)
    shown = match_labels(labels, clusters)
    for k in range(3):
        rows = shown == k
        ax.scatter(*X[rows].T, s=16, c=colors[k], marker=markers[k], linewidths=0)
    ax.set_title(f"{name}: {error:.1%} of rows misplaced", fontsize=13)
    ax.set_xlabel("feature 1")
    ax.set_aspect("equal")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("feature 2")

plt.show()
