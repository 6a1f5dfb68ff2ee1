"""
Noise that features share
=========================

Real noise is seldom the same in all directions: neighbouring features move together,
some are noisier than others. If a model takes it to be the same, intervals are too
narrow, a test takes noise for scales, and memberships are too sure. Here is what each
does with several kinds of noise, and what it would do without the residuals.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ihgmm import IhGMM, estimate_parameters, scale_heterogeneity_test
from ihgmm.metrics import match_labels

blue, orange, grey = "#0072B2", "#D55E00", "#555555"


def draw(seed, correlation=0.0, decades=0.0, spread=0.5, length=6.0):
    """300 rows of four kinds in 100 features, and what they are made of."""
    rng = np.random.default_rng(seed)
    kinds, noise = np.arange(300) % 4, rng.standard_normal((300, 100))
    for j in range(1, 100):
        rest = np.sqrt(1 - correlation**2)
        noise[:, j] = correlation * noise[:, j - 1] + rest * noise[:, j]
    noise *= 10 ** rng.uniform(-decades / 4, decades / 4, 100)
    centers = length * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    scales = rng.lognormal(0, spread, 300)
    return scales[:, None] * centers[kinds] + noise, kinds, scales, centers, noise


# %%
# Intervals for the entries of the centres, in the noisiest tenth of the features. One
# error for all entries of a centre, as the model has it, is too small for them; the
# residuals of each feature show its own noise.
settings = {
    "independent": {},
    "AR(.5)": {"correlation": 0.5},
    "two decades\nof variances": {"decades": 2.0},
}
held = {name: [] for name in settings}
for name, options in settings.items():
    for seed in range(12):
        X, kinds, scales, centers, noise = draw(seed, **options)
        mean = np.bincount(kinds, scales) / np.bincount(kinds)
        found = estimate_parameters(X, kinds)
        noisiest = np.argsort(-noise.var(axis=0))[:10]
        off = np.abs(found.centers - mean[:, None] * centers)[:, noisiest]
        lower, upper = np.moveaxis(found.center_intervals(), -1, 0)[..., noisiest]
        one = np.sqrt(np.mean(found.center_errors**2, axis=1, keepdims=True))
        held[name].append(
            [np.mean(off < 1.96 * one), np.mean(off < (upper - lower) / 2)]
        )

# %%
# The test of equal scales, where all scales are equal: its p-values are uniform also
# where noise is correlated. ``correlation`` says how much more noise varies along the
# centres than independent entries would.
p_values = {
    r: [
        scale_heterogeneity_test(*draw(seed, correlation=r, spread=0.0)[:2]).p_value
        for seed in range(100)
    ]
    for r in (0.0, 0.8, 0.95)
}
print(scale_heterogeneity_test(*draw(0, correlation=0.95, spread=0.0)[:2]))

# %%
# Memberships of IhGMM, noise correlated by 0.95, with one noise level and with one
# covariance.
shares = {}
for noise in ("common", "tied"):
    sure, right = [], []
    for seed in range(4):
        X, kinds, *_ = draw(seed, correlation=0.95, length=4.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rounds of the wrong model may not settle
            model = IhGMM(4, noise=noise, random_state=0).fit(X)
        sure.append(model.memberships_.max(axis=1))
        right.append(match_labels(kinds, model.labels_) == kinds)
    shares[noise] = np.concatenate(sure), np.concatenate(right)
    print(f"{noise}: {np.mean(shares[noise][1]):.1%} of the labels are right")

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
ax, place = axes[0], np.arange(len(settings))
for column, (color, name) in enumerate(
    [(orange, "one error for a centre"), (blue, "one for each entry")]
):
    values = [np.mean(rows, axis=0)[column] for rows in held.values()]
    ax.bar(place + 0.38 * (column - 0.5), values, 0.36, color=color, label=name)
ax.axhline(0.95, color=grey, lw=1)
ax.set_xticks(place, list(settings))
ax.set_ylim(0.4, 1.12)
ax.set_ylabel("share of 95% intervals that hold the truth")
ax.set_title("Centres, noisiest tenth of features", fontsize=12)
ax.legend(frameon=False, loc="upper left", ncols=2, fontsize=9, columnspacing=1)

ax = axes[1]
ax.plot([0, 1], [0, 1], color="0.6", lw=1)
for (r, values), color in zip(p_values.items(), ("#009E73", blue, orange), strict=True):
    share = np.arange(1, len(values) + 1) / len(values)
    name = f"AR({r:g})" if r else "independent"
    ax.step(np.sort(values), share, where="post", color=color, lw=2, label=name)
ax.set_aspect("equal")
ax.set_xlabel("p-value of equal scales")
ax.set_ylabel("share of samples below")
ax.set_title("Equal scales: uniform p-values", fontsize=12)
ax.legend(frameon=False, loc="lower right")

ax = axes[2]
ax.plot([0.25, 1], [0.25, 1], color="0.6", lw=1)
edges = np.array([0.25, 0.5, 0.65, 0.8, 0.9, 0.97, 1.001])
names = {"common": "one noise level", "tied": 'one covariance, "tied"'}
for (noise, (sure, right)), color in zip(shares.items(), (orange, blue), strict=True):
    groups = np.digitize(sure, edges) - 1
    enough = [k for k in range(len(edges) - 1) if np.sum(groups == k) >= 10]
    x = [sure[groups == k].mean() for k in enough]
    y = [right[groups == k].mean() for k in enough]
    size = [20 + 250 * np.mean(groups == k) for k in enough]
    ax.plot(x, y, color=color, lw=1.5, label=names[noise])
    ax.scatter(x, y, s=size, color=color, alpha=0.7, linewidths=0)
ax.set_xlabel("largest membership of a row")
ax.set_ylabel("share of such rows that is right")
ax.set_title("Memberships, AR(.95) noise", fontsize=12)
ax.legend(frameon=False, loc="upper left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

plt.show()
