"""
How sure is a label?
====================

``IhGMM`` gives every row a probability for each cluster. This example checks what they
are worth: of rows whose label has probability 0.8, eight in ten should be right. It
also shows why a row must not vote on its own centre: the same mixture, judging rows by
centres they are part of, is far too sure.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhGMM, make_ihgmm
from ihgmm.metrics import match_labels

warnings.filterwarnings("ignore", "Labels may be unstable")

# %%
# Samples near the limit, with many more features than rows.
sure, right, naive_sure, naive_right = [], [], [], []
for seed in range(60):
    X, labels = make_ihgmm(
        100, 3000, 3, scale_ratio=5, separation_constant=0.2, random_state=seed
    )
    model = IhGMM(3, random_state=0, tol=1e-2).fit(X)
    sure.append(model.memberships_.max(axis=1))
    right.append(match_labels(labels, model.labels_) == labels)
    # predict_proba judges by all rows of the fit, the row itself among them.
    proba = model.predict_proba(X)
    naive_sure.append(proba.max(axis=1))
    naive_right.append(match_labels(labels, proba.argmax(axis=1)) == labels)


def reliability(sure, right):
    """Return, in bins of equal width, mean probability, share right and row count."""
    sure, right = np.concatenate(sure), np.concatenate(right)
    bins = np.digitize(sure, np.linspace(0.4, 1.0, 9)[1:-1])
    kept = [k for k in range(8) if (bins == k).sum() >= 15]
    return np.array(
        [(sure[bins == k].mean(), right[bins == k].mean(), (bins == k).sum())
         for k in kept]
    ).T  # fmt: skip


figure, axes = plt.subplots(1, 2, figsize=(9.4, 4.3), layout="constrained")
ax = axes[0]
ax.plot([0.3, 1], [0.3, 1], color="#999999", lw=1, label="as sure as right")
for name, color, style, data in [
    ("each row by the others", "#0072B2", "o-", reliability(sure, right)),
    ("each row by all, itself too", "#D55E00", "s--",
     reliability(naive_sure, naive_right)),
]:  # fmt: skip
    stated, found, count = data
    error = np.sqrt(found * (1 - found) / count)
    ax.errorbar(stated, found, 2 * error, fmt=style, color=color, label=name, capsize=2)
ax.set_xlabel("probability of the label")
ax.set_ylabel("share of labels that are right")
ax.legend(frameon=False, loc="upper left")
ax = axes[1]
edges = np.linspace(0.3, 1, 29)
ax.hist(np.concatenate(sure), edges, color="#0072B2", alpha=0.75)
ax.hist(np.concatenate(naive_sure), edges, histtype="step", color="#D55E00", lw=1.5)
ax.set_yscale("log")
ax.set_xlabel("probability of the label")
ax.set_ylabel("rows")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

plt.show()
