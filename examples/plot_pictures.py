"""
Pictures of a clustering
========================

A fit is a few arrays. ``ihgmm.plotting`` draws them: how many clusters stand out, how
far they are apart, how sure the labels are, and what tells one cluster from another.
"""

import matplotlib.pyplot as plt

from ihgmm import IhSC, make_ihgmm, select_n_clusters
from ihgmm.plotting import (
    plot_centers,
    plot_confidence,
    plot_confusion,
    plot_embedding,
    plot_embedding_3d,
    plot_scales,
    plot_scree,
    plot_silhouette,
    plot_sizes,
)

# %%
# Six patterns, so close that a few rows are hard to place, at tenfold scales.
X, truth = make_ihgmm(
    600, 120, 6, separation_constant=0.45, scale_ratio=10, balance=0.7, random_state=0
)
count = select_n_clusters(X, random_state=0)
model = IhSC(count.n_clusters, random_state=0).fit(X)

# %%
# Every function draws on the axes it is given and returns them; without ``ax`` it makes
# a figure of its own, as wide as the number of clusters needs.
figure = plt.figure(figsize=(13.5, 11), layout="constrained")
places = [
    figure.add_subplot(3, 3, i, projection="3d" if i == 3 else None)
    for i in range(1, 10)
]
scree, flat, deep, scales, centers, sizes, confusion, confidence, silhouette = places

# Above: six eigenvalues rise from the noise; the rows on the sphere, seen so that each
# cluster has a place of its own, in the plane and in space.
plot_scree(model, count, ax=scree)
plot_embedding(model, ax=flat)
plot_embedding_3d(model, ax=deep)

# In the middle: what the fit says of rows and of clusters. A cell is bright
# if the centre is many noise levels above the others in that feature.
plot_scales(model, ax=scales)
plot_centers(model, n_features=12, ax=centers)
plot_sizes(model, ax=sizes)

# Below: can the labels be trusted? Known labels show it, if there are any. Without
# them, look at the certainty of each label and at the silhouette, which uses angles.
plot_confusion(truth, model.labels_, ax=confusion)
plot_confidence(X, model, ax=confidence)
plot_silhouette(model, ax=silhouette)

plt.show()
