"""
Rows that fit no cluster
========================

One row in ten was replaced: half of these are ten times as long as others, half are as
long as others and point nowhere. ``outliers="auto"`` finds both kinds, and leaves alone
the rows that are long or short because their scale is.
"""

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC
from ihgmm.plotting import plot_embedding

# %%
# Three kinds of rows in 200 features, of log-normal scales. Forty go wrong.
rng = np.random.default_rng(0)
n, p = 400, 200
centers = 8 * np.linalg.qr(rng.standard_normal((p, 3)))[0].T
X = rng.lognormal(0, 0.5, n)[:, None] * centers[np.arange(n) % 3]
X += rng.standard_normal((n, p))
away = rng.standard_normal((40, p))
away *= np.median(np.linalg.norm(X, axis=1)) / np.linalg.norm(away, axis=1)[:, None]
away[:20] *= 10
X[:40] = away

model = IhSC(3, outliers="auto", random_state=0).fit(X)

# %%
# Left: the rows as the fit saw them, outliers grey. Right: the score of each row by its
# norm. Rows above the line get the label -1.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
plot_embedding(model, ax=left)
norms = np.linalg.norm(X, axis=1)
groups = {
    "row of a cluster": (slice(40, n), "#0072B2", "o"),
    "no direction": (slice(20, 40), "#D55E00", "^"),
    "no direction, ten times as long": (slice(0, 20), "#CC79A7", "s"),
}
for name, (rows, color, marker) in groups.items():
    right.scatter(
        norms[rows], model.outlier_scores_[rows], s=18, c=color, marker=marker,
        label=name, alpha=0.8, linewidths=0,
    )  # fmt: skip
right.axhline(model.outlier_threshold_, color="0.3", lw=1, ls="--")
right.set(xscale="log", xlabel="norm of the row", ylabel="outlier score")
right.set_yscale("symlog", linthresh=3)
right.set_yticks([0, 1, 2, 3, 10, 30], ["0", "1", "2", "3", "10", "30"])
right.set_xticks([15, 30, 60, 120], ["15", "30", "60", "120"])
right.set_ylim(-0.3, 45)
right.minorticks_off()
right.legend(frameon=False)
right.spines[["top", "right"]].set_visible(False)

plt.show()
