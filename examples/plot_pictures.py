"""
Pictures of a clustering
========================

A fit is a few arrays. ``ihgmm.plotting`` draws them: how many clusters there are, how
far they are apart, how sure the labels are, and what tells one cluster from another.
"""

import matplotlib.pyplot as plt

from ihgmm import IhSC, make_ihgmm, select_n_clusters, top_features
from ihgmm.plotting import (
    plot_confidence,
    plot_confusion,
    plot_count,
    plot_embedding,
    plot_scales,
    plot_top_features,
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
figure, places = plt.subplots(2, 3, figsize=(13.5, 7.6), layout="constrained")
(number, scales, embedding), (features, confidence, confusion) = places

# Above: what speaks for each number of clusters; how scales are spread in each cluster;
# and the rows on the sphere, seen so that each cluster has a place of its own.
plot_count(count, ax=number)
plot_scales(model, ax=scales)
plot_embedding(model, ax=embedding)

# Below: a cell is red if the cluster is many noise levels above other rows in that
# feature. Can the labels be trusted? Look at the certainty of each label, and beside
# known labels, if there are any.
plot_top_features(top_features(X, model), n_features=12, ax=features)
plot_confidence(X, model, ax=confidence)
plot_confusion(truth, model.labels_, ax=confusion)

plt.show()
