"""
How many clusters
=================

Random signs on the entries of the data destroy a pattern that rows share and leave
noise as it was. Eigenvalues that stand out from such copies count the patterns. Along
these directions a tree of clusters is grown, and trees of halves of the rows show at
which numbers of clusters it is stable. Nested clusters have several such levels.
"""

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import make_ihgmm, select_n_clusters
from ihgmm.plotting import plot_scree, plot_tree

# %%
# Five patterns over 200 features, in sizes from 1 to 10; the smallest cluster is small.
X, _ = make_ihgmm(
    500, 200, 5, scale_ratio=10, balance=0.2, separation_constant=1, random_state=0
)
five = select_n_clusters(X, random_state=0)
print("five patterns:", five)

# %%
# Pure noise, with a different level in every row, has no structure.
rng = np.random.default_rng(0)
noise = rng.standard_normal((500, 200)) * rng.uniform(0.5, 1.5, (500, 1))
print("noise:", select_n_clusters(noise, random_state=0))

# %%
# Three kinds of rows, and three clusters in each kind: the tree has two levels.
# ``labels(3)`` and ``labels(9)`` are the clusters there.
axes_of_kinds = np.linalg.qr(rng.standard_normal((100, 12)))[0].T
patterns = 10 * np.repeat(axes_of_kinds[:3], 3, axis=0) + 5 * axes_of_kinds[3:]
X = rng.lognormal(0, 0.4, (450, 1)) * np.tile(patterns, (50, 1))
X += rng.standard_normal(X.shape)
nested = select_n_clusters(X, random_state=0)
print("nested:", nested)
print(nested.tree)

# %%
# Four patterns that are mixtures of two: the rank is 2, and there are 4 clusters. So
# directions alone do not count clusters, and halves of the rows agree on four.
basis = rng.standard_normal((2, 60)) / 4
angles = np.deg2rad([0, 30, 60, 90])
mixtures = np.column_stack([np.cos(angles), np.sin(angles)]) @ basis
X, _ = make_ihgmm(
    600, centers=mixtures, scale_ratio=5, noise_levels=(0.1, 0.3), random_state=0
)
mixed = select_n_clusters(X, random_state=0)
print("mixtures:", mixed)

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
plot_scree(five, ax=axes[0])
axes[0].set_title(f"five patterns: {five.n_clusters} found")
plot_tree(nested.tree, ax=axes[1])
levels = " and ".join(f"{k}" for k in nested.levels)
axes[1].set_title(f"three kinds of three clusters: levels {levels}")
plot_tree(mixed.tree, ax=axes[2])
axes[2].set_title(
    f"four mixtures of two: rank {mixed.rank}, {mixed.n_clusters} clusters"
)

plt.show()
