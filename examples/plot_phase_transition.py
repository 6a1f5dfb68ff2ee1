"""
From chance to exact recovery
=============================

How far apart must the centres be? A small version of the study that ``ihgmm reproduce
phase`` runs: the distance of the centres grows from left to right, the noise of the
rows from equal to very unequal. Each method is compared with an oracle that knows the
labels of all other rows and has only the centres to learn. IhSC has the settings of the
paper. A line marks the limit: where someone who knows the centres finds all labels in
about half of the samples.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC, SphericalKMeans, make_ihgmm
from ihgmm.estimators import IhGMM
from ihgmm.metrics import misclassification_rate
from ihgmm.paper.methods import label_oracle
from ihgmm.paper.theory import exact_recovery_limit, ihsc_threshold

warnings.filterwarnings("ignore", "Labels may be unstable")

# %%
# The separation is measured in units of the paper's condition for exact recovery:
# C = 1 meets it with constant 1. Scales vary fivefold.
constants = np.array([0.12, 0.2, 0.3, 0.5, 0.8, 1.2])
noises = {"all 1": 1.0, "0.5 to 1.5": (0.5, 1.5), "0.2 to 1.8": (0.2, 1.8)}
draws = 2

methods = {
    "IhSC": lambda s, seed: IhSC.paper(4, random_state=seed).fit_predict(s.X),
    "IhGMM": lambda s, seed: IhGMM(4, random_state=seed).fit_predict(s.X),
    "spherical k-means": lambda s, seed: SphericalKMeans(
        4, n_init=10, random_state=seed
    ).fit_predict(s.X),
    "label oracle": lambda s, seed: label_oracle(s),
}

errors = np.zeros((len(methods), len(noises), len(constants)))
for row, levels in enumerate(noises.values()):
    for column, constant in enumerate(constants):
        for seed in range(draws):
            sample = make_ihgmm(
                150,
                600,
                4,
                scale_ratio=5.0,
                separation_constant=constant,
                noise_levels=levels,
                random_state=seed,
                return_params=True,
            )
            for k, method in enumerate(methods.values()):
                found = method(sample, seed)
                errors[k, row, column] += misclassification_rate(sample.labels, found)
errors /= draws

# %%
# The limit is about exact recovery, so it hangs on the weakest rows. Many rows stand
# for all that might be drawn; the errors of 150 are counted.
limits = []
for levels in noises.values():
    rows = make_ihgmm(
        50_000,
        5,
        4,
        scale_ratio=5.0,
        noise_levels=levels,
        random_state=0,
        return_params=True,
    )
    model = rows.labels, rows.scales, rows.centers, rows.noise_levels
    limit = exact_recovery_limit(*model, n_samples=150)
    limits.append(limit / ihsc_threshold(150, 600, 4))
# From C to the place between the columns, which are about even on a log axis.
places = np.interp(np.log(limits), np.log(constants), np.arange(len(constants)))

# %%
# Bright is good. The numbers are percentages of misplaced rows.
figure, axes = plt.subplots(
    1, len(methods), figsize=(13, 3.0), sharey=True, layout="constrained"
)
for ax, name, values in zip(axes, methods, errors, strict=True):
    mesh = ax.imshow(
        np.sqrt(values), cmap="cividis_r", vmin=0, vmax=np.sqrt(0.75), aspect="auto"
    )
    for (row, column), value in np.ndenumerate(values):
        color = "white" if value > 0.15 else "black"
        text = f"{100 * value:.0f}" if value > 0.01 else f"{100 * value:.1f}"
        ax.text(column, row, text, ha="center", va="center", color=color, fontsize=8)
    for row, x in enumerate(places):
        ends = [row - 0.5, row + 0.5]
        (line,) = ax.plot([x, x], ends, color="#ff5a36", lw=2)
    ax.set_title(name, fontsize=10)
    ax.set_xticks(range(len(constants)), labels=[f"{c:g}" for c in constants])
    ax.set_yticks(range(len(noises)), labels=list(noises))
    ax.set_xlabel("separation constant C", fontsize=9)
axes[0].set_ylabel("noise levels")
figure.suptitle("Misplaced rows, per cent", fontsize=12)
legend = {"loc": "outside lower center", "frameon": False, "fontsize": 9}
figure.legend([line], ["limit: exact recovery at even odds, centres known"], **legend)

plt.show()
