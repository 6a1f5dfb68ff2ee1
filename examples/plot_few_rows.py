"""
Few rows, similar patterns: what the diagonal holds
===================================================

The diagonal of a Gram matrix holds the squared norms of the rows, noise included. The
paper sets it to zero, which takes away the noise of the diagonal and the signal in it.
With few rows in a cluster that signal is a sizeable part of the matrix. Patterns at
right angles do not need it; patterns that resemble each other do: what tells them apart
has small eigenvalues. Unit rows, the default, have the same number on the whole
diagonal: it stays, and does no harm. In the first three lines all else is as in the
paper.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate

# Of so few rows, fits warn that labels may be unstable.
warnings.filterwarnings("ignore", "Labels may be unstable")
styles = {
    "full diagonal": (IhSC.paper(3, diagonal="full", random_state=0), "#E69F00", "^"),
    "zero diagonal": (IhSC.paper(3, random_state=0), "#0072B2", "s"),
    "unit rows": (IhSC.paper(3, rows="unit", random_state=0), "#CC79A7", "D"),
    "the default": (IhSC(3), "#009E73", "o"),
}


# %%
# Three patterns over 1,000 features, each with the same cosine to the others, scales
# from 1 to 20, and one row in five with nine times the noise of the others.
def draw(rows, cosine, seed):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((1000, 3)))
    mix = np.linalg.cholesky((1 - cosine) * np.eye(3) + cosine)
    noise = np.where(rng.random(3 * rows) < 0.2, 3.0, 1 / 3)
    return make_ihgmm(
        3 * rows, centers=6 * mix @ Q.T, noise_levels=noise, random_state=seed
    )


def misplaced(rows, cosine, model):
    """Return the mean share of rows in the wrong cluster, in percent."""
    rates = []
    for seed in range(10):
        X, labels = draw(rows, cosine, seed)
        rates.append(100 * misclassification_rate(labels, model.fit_predict(X)))
    return np.mean(rates)


# %%
# Left, similar patterns and more and more rows; right, four rows in a cluster and
# patterns more and more alike. It takes both for a zero diagonal to hurt. If the noise
# were the same in all rows, the full diagonal would do as well as unit rows.
sizes, cosines = [4, 6, 10, 20, 40], [0.0, 0.3, 0.6, 0.8, 0.9]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for name, (model, color, marker) in styles.items():
    found = [misplaced(rows, 0.8, model) for rows in sizes]
    alike = [misplaced(4, cosine, model) for cosine in cosines]
    for ax, x, values in zip(axes, (sizes, cosines), (found, alike), strict=True):
        ax.plot(x, values, color=color, marker=marker, lw=2, label=name)
    print(f"{name:13s}  by rows: {np.round(found, 1)}  by cosine: {np.round(alike, 1)}")

axes[0].set_xscale("log")
axes[0].set_xticks(sizes, [str(rows) for rows in sizes])
axes[0].minorticks_off()
axes[0].set_title("Patterns of cosine 0.8", fontsize=13)
axes[0].set_xlabel("rows in a cluster")
axes[0].set_ylabel("rows misplaced, %")
axes[0].legend(frameon=False)
axes[1].set_title("Four rows in a cluster", fontsize=13)
axes[1].set_xlabel("cosine of patterns")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

plt.show()
