"""
How many clusters
=================

Each row is linked to the rows that are nearest by angle. A number of clusters is good
if most links stay inside its clusters, and if there are gaps between them. Clouds
without clusters show what chance would give. Nested clusters have several good numbers,
and a tree shows how they merge.
"""

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, cluster_tree, make_ihgmm, select_n_clusters
from ihgmm.plotting import plot_count, plot_tree

# %%
# Five patterns over 200 features, in sizes from 1 to 10; the smallest cluster is small.
X, _ = make_ihgmm(
    500, 200, 5, scale_ratio=10, balance=0.2, separation_constant=1, random_state=0
)
five = select_n_clusters(X, random_state=0)
print("five patterns:", five)

# %%
# Pure noise, with a different level in every row, has no parts: the answer is 1.
rng = np.random.default_rng(0)
noise = rng.standard_normal((500, 200)) * rng.uniform(0.5, 1.5, (500, 1))
none = select_n_clusters(noise, random_state=0)
print("noise:", none)

# %%
# Three kinds of rows, and three clusters in each kind. A fit with more clusters than
# these gives a tree with two levels; ``labels(3)`` and ``labels(9)`` are the clusters
# there.
axes_of_kinds = np.linalg.qr(rng.standard_normal((100, 12)))[0].T
patterns = 10 * np.repeat(axes_of_kinds[:3], 3, axis=0) + 5 * axes_of_kinds[3:]
X = rng.lognormal(0, 0.4, (450, 1)) * np.tile(patterns, (50, 1))
X += rng.standard_normal(X.shape)
nested = cluster_tree(IhSC(12).fit(X), random_state=0)
print("nested:", nested)

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
plot_count(five, ax=axes[0])
axes[0].set_title(f"five patterns: {five.n_clusters} found")
plot_count(none, ax=axes[1])
axes[1].set_title(f"noise: {none.n_clusters} found")
plot_tree(nested, ax=axes[2])
levels = " and ".join(f"{k}" for k in nested.levels)
axes[2].set_title(f"three kinds of three clusters: levels {levels}")

plt.show()
