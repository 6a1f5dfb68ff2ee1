"""
Few rows, unequal noise: filling in the diagonal
================================================

The diagonal of a Gram matrix holds the squared norms of the rows, noise included, and
noise that differs between rows bends the eigenvectors. ``gram="hollow"`` sets the
diagonal to zero, which takes away the noise and the signal. ``gram="hetero"`` estimates
the signal's part from the other entries (HeteroPCA). With many rows it hardly matters;
with few it does.

Run ``python examples/plot_hetero_noise.py picture.png`` to save the picture.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate

sizes, seeds = [12, 15, 20, 30, 60, 120], range(10)
styles = {
    "full": ("#E69F00", "^"),
    "hollow": ("#0072B2", "s"),
    "cosine": ("#CC79A7", "D"),
    "hetero": ("#009E73", "o"),
}


# %%
# Three patterns with cosine 0.8 over 1,000 features, scales from 1 to 20, and one row
# in five with nine times the noise of the others.
def draw(n_samples, seed):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((1000, 3)))
    mix = np.linalg.cholesky(0.2 * np.eye(3) + 0.8)
    noise = np.where(rng.random(n_samples) < 0.2, 3.0, 1 / 3)
    return make_ihgmm(
        n_samples,
        centers=6 * mix @ Q.T,
        noise_levels=noise,
        random_state=seed,
        return_params=True,
    )


# %%
# Two errors: the share of rows in the wrong cluster, and how far the scales are off.
# Scales are known up to a factor for each cluster, so the true ones get mean 1 too.
def errors(sample, gram):
    model = IhSC(3, gram=gram, random_state=0).fit(sample.X)
    mean = np.bincount(sample.labels, sample.scales) / np.bincount(sample.labels)
    scales = sample.scales / mean[sample.labels]
    return (
        misclassification_rate(sample.labels, model.labels_),
        np.linalg.norm(model.scales_ - scales) / np.linalg.norm(scales),
    )


samples = [[draw(n, seed) for seed in seeds] for n in sizes]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for gram, (color, marker) in styles.items():
    found = np.array([[errors(s, gram) for s in drawn] for drawn in samples])
    misplaced, off = (
        100 * found[:, :, 0].mean(axis=1),
        np.median(found[:, :, 1], axis=1),
    )
    for ax, values in zip(axes, (misplaced, off), strict=True):
        ax.plot(sizes, values, color=color, marker=marker, lw=2, label=gram)
    print(f"{gram:6s}  misplaced, %: {misplaced.round(1)}  scales: {off.round(3)}")

for ax in axes:
    ax.set_xscale("log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    ax.set_xlabel("number of rows")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_title("Rows misplaced, %", fontsize=13)
axes[0].legend(title="gram", frameon=False)
axes[1].set_title("Relative error of the scales", fontsize=13)
axes[1].set_yscale("log")
axes[1].set_yticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.1", "0.2"])
axes[1].minorticks_off()

if len(sys.argv) > 1 and sys.argv[1].endswith(".png"):
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
