"""
A row counted twice is not a row given twice
============================================

The product of a row with itself holds its noise, squared and added up over all
features. That is why the Gram matrix of the paper has a zero diagonal. Repeated rows
bring such products back, off the diagonal. Weights count rows as often and do not.
"""

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate

# %%
# A hundred rows of three kinds. Each counts once to five times, at random.
features = [100, 300, 1000, 3000]
styles = {
    "no weights": ("#0072B2", "s"),
    "weights": ("#009E73", "o"),
    "repeated rows": ("#D55E00", "^"),
}


def misplaced(n_features, seed):
    """Return the share of rows in the wrong cluster, in percent, for three ways."""
    X, kinds = make_ihgmm(
        100, n_features, 3, scale_ratio=5, separation_constant=0.45, random_state=seed
    )
    weights = np.random.default_rng(seed).integers(1, 6, size=100)
    first = np.r_[0, np.cumsum(weights)[:-1]]
    model = IhSC.paper(3, random_state=0)
    found = [
        model.fit(X).labels_,
        model.fit(X, sample_weight=weights).labels_,
        model.fit(np.repeat(X, weights, axis=0)).labels_[first],
    ]
    return [100 * misclassification_rate(kinds, labels) for labels in found]


# %%
# The more features, the more noise there is in the product of a row with itself.
rates = np.array(
    [np.mean([misplaced(p, seed) for seed in range(10)], axis=0) for p in features]
)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for column, (name, (color, marker)) in zip(rates.T, styles.items(), strict=True):
    axes.plot(features, column, color=color, marker=marker, label=name)
axes.set(
    xscale="log",
    xlabel="features",
    ylabel="rows in the wrong cluster (%)",
    title="100 rows, each counted 1 to 5 times",
    ylim=(0, None),
)
axes.set_xticks(features, [f"{p:,}" for p in features])
axes.minorticks_off()
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)

plt.show()
