"""
Labels close to an oracle's
===========================

Near the limit of what can be told apart, the algorithm of the paper makes avoidable
errors, and the default settings of IhSC make fewer. Refinement compares every row once
more with the centres of the *other* rows, weighted by how much they say. This example
draws the error as the separation of the centres grows, beside that of a label oracle,
which knows the labels of all other rows and has only the centres to learn.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.paper.methods import label_oracle

# Where patterns are hard to tell apart, fits warn.
warnings.filterwarnings("ignore", "Labels may be unstable")

# %%
# 300 rows of 1000 features in three clusters, the smallest of 20 rows. Scales differ
# twentyfold, noise levels threefold.
constants = np.geomspace(0.07, 0.6, 7)
draws = 4
methods = {
    "IhSC.paper": lambda sample: IhSC.paper(3, random_state=0).fit_predict(sample.X),
    "IhSC": lambda sample: IhSC(3, random_state=0).fit_predict(sample.X),
    "IhSC, refined": lambda sample: IhSC(3, refine=True, random_state=0).fit_predict(
        sample.X
    ),
    "label oracle": label_oracle,
}
errors = {name: np.zeros((len(constants), draws)) for name in methods}
for i, constant in enumerate(constants):
    for seed in range(draws):
        sample = make_ihgmm(
            300, 1000, 3, balance=0.2, separation_constant=constant, random_state=seed,
            return_params=True,
        )  # fmt: skip
        for name, method in methods.items():
            found = method(sample)
            errors[name][i, seed] = misclassification_rate(sample.labels, found)

styles = {
    "IhSC.paper": ("#CC79A7", "D-"),
    "IhSC": ("#0072B2", "o-"),
    "IhSC, refined": ("#E69F00", "s-"),
    "label oracle": ("#444444", "^--"),
}
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for name, rates in errors.items():
    color, style = styles[name]
    mean, error = rates.mean(axis=1), rates.std(axis=1) / np.sqrt(draws)
    ax.plot(constants, mean, style, color=color, label=name)
    ax.fill_between(constants, mean - error, mean + error, color=color, alpha=0.2, lw=0)
ax.set_xscale("log")
ax.set_xticks([0.07, 0.1, 0.2, 0.3, 0.6], labels=["0.07", "0.1", "0.2", "0.3", "0.6"])
ax.minorticks_off()
ax.set_xlabel("separation, as a multiple C of the paper's threshold")
ax.set_ylabel("share of rows misplaced")
ax.set_ylim(bottom=0)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

plt.show()
