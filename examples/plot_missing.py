"""
Missing cells: what to fill them with
=====================================

Cells are missing at random. A zero in place of a missing cell turns a row away from its
pattern; a column mean turns it towards the others. ``missing="fit"`` fills a cell with
what the other cells of its row say, by a low-rank model of the data without centring.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate

# Where patterns are hard to tell apart, fits warn.
warnings.filterwarnings("ignore", "Labels may be unstable")

shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
styles = {
    "zeros": ("#E69F00", "^"),
    "column means": ("#0072B2", "s"),
    'missing="fit"': ("#009E73", "o"),
}


# %%
# Four patterns over 100 features that resemble each other: any two have a cosine of
# 0.9. Scales are between 1 and 5.
def draw(seed):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((100, 5)))
    centers = 9 * (np.sqrt(0.9) * Q[:, 0] + np.sqrt(0.1) * Q[:, 1:].T)
    return make_ihgmm(300, centers=centers, scale_ratio=5, random_state=seed)


def misplaced(share, seed):
    """Return the share of rows in the wrong cluster for each way, in percent."""
    X, labels = draw(seed)
    gaps = X.copy()
    gaps[np.random.default_rng([seed, 1]).random(X.shape) < share] = np.nan
    ways = [
        (np.nan_to_num(gaps, nan=0.0), "error"),
        (np.where(np.isnan(gaps), np.nanmean(gaps, axis=0), gaps), "error"),
        (gaps, "fit"),
    ]
    models = [IhSC(4, missing=how, random_state=0).fit(data) for data, how in ways]
    return [100 * misclassification_rate(labels, model.labels_) for model in models]


rates = np.array(
    [np.mean([misplaced(s, seed) for seed in range(3)], 0) for s in shares]
)

# %%
# Left, rows in the wrong cluster. Right, scales with 40% missing: those of the fit,
# which come from observed cells alone, against those that generated the rows.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for (name, (color, marker)), values in zip(styles.items(), rates.T, strict=True):
    percent = [100 * share for share in shares]
    left.plot(percent, values, color=color, marker=marker, label=name)
left.set(xlabel="missing cells, percent", ylabel="rows in the wrong cluster, percent")
left.legend(frameon=False)

sample = make_ihgmm(300, 100, 3, scale_ratio=5, random_state=0, return_params=True)
gaps = sample.X.copy()
gaps[np.random.default_rng(2).random(gaps.shape) < 0.4] = np.nan
model = IhSC(3, missing="fit", random_state=0).fit(gaps)
true = sample.scales / np.bincount(sample.labels, sample.scales)[sample.labels]
true *= np.bincount(sample.labels)[sample.labels]
right.axline((1, 1), slope=1, color="0.7", lw=1)
right.scatter(true, model.scales_, s=12, color="#009E73", alpha=0.7, lw=0)
right.set(xlabel="true scale (mean 1 in a cluster)", ylabel="scale found, 40% missing")

plt.show()
