"""
Signs: opposite rows of one kind
================================

Some patterns come with either sign: a wave that starts up or down, a change that raises
some genes and lowers others, or the reverse. Rows of one kind then point both ways
along a line. ``IhSC(signed=True)`` finds lines instead of directions.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

# %%
# Three kinds of rows in 60 columns, each as likely to point one way as the other.
rng = np.random.default_rng(0)
centers = 7 * np.linalg.qr(rng.standard_normal((60, 3)))[0].T
kinds = np.arange(300) % 3
scales = rng.lognormal(0, 0.4, 300) * rng.choice([-1, 1], 300)
X = scales[:, None] * centers[kinds] + rng.standard_normal((300, 60))

# %%
# A fit that looks for directions cannot name six with three labels. It says so in
# warnings, which are turned off here.
with warnings.catch_warnings(action="ignore"):
    plain = IhSC(3, random_state=0).fit(X)
signed = IhSC(3, signed=True, random_state=0).fit(X)

# %%
# Rows in the embedding of the fit. With signs, both ends of a line have one colour, and
# rows that point away from their centre have a negative scale.
rows = signed.embedding_
view = np.array([[0.87, -0.5, 0.1], [0.25, 0.4, 0.88]])  # from three directions to two
flat = rows[:, :3] @ view.T
figure, panels = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
colors = np.array(["#0072B2", "#D55E00", "#009E73"])
for axes, model, name in zip(
    panels, (plain, signed), ("", "signed=True"), strict=False
):
    wrong = misclassification_rate(kinds, model.labels_)
    axes.scatter(*flat.T, s=14, c=colors[model.labels_])
    axes.set(
        title=f"IhSC(3{', ' * bool(name)}{name}): {wrong:.0%} wrong",
        xticks=[],
        yticks=[],
        aspect="equal",
    )
    axes.spines[:].set_visible(False)
panels[2].axline((0, 0), slope=1, color="0.8", zorder=0)
for k, color in enumerate(colors):
    mine = signed.labels_ == k
    # Which end of a line is positive is a matter of chance.
    sign = np.sign(np.sum(signed.scales_[mine] * scales[mine]))
    unit = np.abs(scales[mine]).mean()
    panels[2].plot(
        scales[mine] / unit, sign * signed.scales_[mine], ".", color=color, ms=5
    )
panels[2].set(xlabel="true scale", ylabel="scales_", title="Scales have both signs")
panels[2].spines[["top", "right"]].set_visible(False)

plt.show()
