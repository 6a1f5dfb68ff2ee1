"""Draw the picture of noise.md: ``python docs/noise_pictures.py docs/images``."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

KINDS = {
    "common": "one level for all rows",
    "class": "one level for each cluster",
    "individual": "one level for each row",
    "tied": "directions that features share",
}


def noise(kind, labels, rng, n_features=60):
    """Return noise of a kind for rows of some clusters."""
    E = rng.standard_normal((len(labels), n_features))
    if kind == "class":
        return E * np.array([0.4, 1.0, 1.8])[labels, None]
    if kind == "individual":
        return E * rng.lognormal(-0.2, 0.7, (len(labels), 1))
    if kind == "tied":  # six blocks of features that move together
        shared = rng.standard_normal((len(labels), 6)).repeat(10, axis=1)
        return 0.5 * E + 0.9 * shared
    return E


def main(folder):
    """Draw noise of each kind, and the levels of rows and correlations in it."""
    labels = np.repeat([0, 1, 2], 40)
    figure, axes = plt.subplots(
        3, 4, figsize=(11, 7.6), layout="constrained", height_ratios=(1, 0.8, 1.2)
    )
    for (kind, words), column in zip(KINDS.items(), axes.T, strict=True):
        E = noise(kind, labels, np.random.default_rng(0))
        top, middle, bottom = column
        top.imshow(E, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
        top.set_title(f'"{kind}"\n{words}', fontsize=11)
        middle.plot(E.std(axis=1), ".", ms=4, color="#0072B2")
        middle.set_ylim(0, 4)
        bottom.imshow(np.corrcoef(E.T), cmap="RdBu", vmin=-1, vmax=1)
        for ax in (top, bottom):
            ax.set_xticks([])
            ax.set_yticks([])
        for ax in (top, middle):
            for edge in (39.5, 79.5):
                (ax.axhline if ax is top else ax.axvline)(edge, color="0.3", lw=0.8)
        middle.set_xticks([20, 60, 100], ["cluster 1", "2", "3"])
    axes[0, 0].set_ylabel("noise: rows by features")
    axes[1, 0].set_ylabel("level of each row")
    axes[2, 0].set_ylabel("correlation of features")
    figure.savefig(Path(folder) / "noise-kinds.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
