"""
How many clusters
=================

Random signs on the entries of the data destroy a pattern that rows share and leave
noise as it was. Eigenvalues that stand out from such copies count the patterns. When
patterns are mixtures of each other there are more clusters than that, and stability
finds them.
"""

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import make_ihgmm, select_n_clusters
from ihgmm.plotting import plot_evidence, plot_scree

# %%
# Five patterns over 200 features, in sizes from 1 to 10; the smallest cluster is small.
X, _ = make_ihgmm(
    500, 200, 5, scale_ratio=10, balance=0.2, separation_constant=1, random_state=0
)
many_features = select_n_clusters(X, random_state=0)
print("200 features:", many_features)

# %%
# Pure noise, with a different level in every row, has no structure.
rng = np.random.default_rng(0)
noise = rng.standard_normal((500, 200)) * rng.uniform(0.5, 1.5, (500, 1))
nothing = select_n_clusters(noise, random_state=0)
print("noise:", nothing)

# %%
# Four patterns that are mixtures of two: the rank is 2, the clusters are 4. Counting
# directions gives a lower bound, halves of the data agree on four clusters.
basis = rng.standard_normal((2, 60)) / 4
angles = np.deg2rad([0, 30, 60, 90])
mixtures = np.column_stack([np.cos(angles), np.sin(angles)]) @ basis
X, _ = make_ihgmm(
    600, centers=mixtures, scale_ratio=5, noise_levels=(0.1, 0.3), random_state=0
)
bound = select_n_clusters(X, method="parallel", random_state=0)
everything = select_n_clusters(X, random_state=0)
stable = select_n_clusters(X, method="stability", random_state=0)
print("mixtures, parallel:", bound)
print("mixtures, stability:", stable)
print("mixtures, all sides:", everything)

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
plot_scree(many_features, ax=axes[0])
axes[0].set_title(f"five patterns: {many_features.n_clusters} found")
plot_scree(nothing, ax=axes[1])
axes[1].set_title(f"pure noise: {nothing.n_clusters} found")

plot_evidence(stable, ax=axes[2])
axes[2].set_title(
    f"four mixtures of two: rank {stable.rank}, {stable.n_clusters} clusters"
)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

plt.show()
