"""Draw the pictures of how-many.md: ``python docs/count_pictures.py docs/images``."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ihgmm import IhSC, cluster_tree, select_n_clusters
from ihgmm.plotting import plot_count, plot_tree

COLORS = np.array(["#0072B2", "#E69F00", "#009E73", "#D55E00"])


def digits():
    """Draw the evidence for each number of clusters in pictures of digits."""
    count = select_n_clusters(load_digits().data, random_state=0)
    figure, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    plot_count(count, ax=ax)
    ax.set_ylim(0, 1.4)
    ax.legend(loc="upper left", fontsize="small")
    return figure


def six_parts(rng):
    """Return two classes of three parts each, in a plane."""
    parts = rng.integers(0, 6, 360)
    place = np.column_stack([1.6 * (parts // 3) - 0.8, 0.5 * (parts % 3) - 0.5])
    return place + 0.08 * rng.standard_normal((360, 2)), parts // 3


def long_class(rng):
    """Return a long bent class and a round one, in a plane."""
    angles = rng.uniform(0, np.pi, 240)
    long = np.column_stack([np.cos(angles), np.sin(angles)])
    places = np.vstack([long, np.zeros((120, 2))]) + np.array([0, -0.4])
    return places + 0.08 * rng.standard_normal((360, 2)), np.repeat([0, 1], [240, 120])


def gradual(rng):
    """Return rows that change gradually from one end to the other, in a plane."""
    time = rng.uniform(-1, 1, 360)
    places = np.column_stack([time, 0.4 * np.sin(3 * time)])
    return places + 0.08 * rng.standard_normal((360, 2)), np.zeros(360, int)


def cloud(rng):
    """Return one cloud, in a plane."""
    return rng.standard_normal((360, 2)) * [0.4, 0.25], np.zeros(360, int)


PLANES = {
    "two classes in six parts": six_parts,
    "a long class and a round one": long_class,
    "gradual change": gradual,
    "one cloud": cloud,
}


def doubts():
    """Draw rows whose number of clusters is doubtful, and the evidence below."""
    rng = np.random.default_rng(0)
    figure, axes = plt.subplots(2, 4, figsize=(14, 6.6), layout="constrained")
    for (name, draw), (top, bottom) in zip(PLANES.items(), axes.T, strict=True):
        places, classes = draw(rng)
        top.scatter(*places.T, c=COLORS[classes], s=10, lw=0)
        top.set_title(name, fontsize=12)
        top.set(xticks=[], yticks=[], xlim=(-1.4, 1.4), ylim=(-1, 1))

        # Each point is the direction of a row; rows have any length.
        rows = np.column_stack([places, np.ones(len(places))])
        rows *= rng.lognormal(0, 0.5, (len(rows), 1))
        count = select_n_clusters(rows, random_state=0)
        plot_count(count, ax=bottom)
        bottom.set_ylim(0, 1.3)
        bottom.get_legend().remove()

    handles, names = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    return figure


def draw_nested():
    """Return three kinds of rows, with three clusters in each."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((100, 12)))[0].T
    patterns = 10 * np.repeat(axes[:3], 3, axis=0) + 5 * axes[3:]
    rows = rng.lognormal(0, 0.4, (450, 1)) * np.tile(patterns, (50, 1))
    return rows + rng.standard_normal((450, 100))


def levels():
    """Draw the evidence for clusters within clusters, and their tree."""
    X = draw_nested()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    plot_count(select_n_clusters(X, random_state=0), ax=axes[0])
    plot_tree(cluster_tree(IhSC(12).fit(X), random_state=0), ax=axes[1])
    return figure


PICTURES = {
    "count-1-digits": digits,
    "count-2-doubts": doubts,
    "count-3-levels": levels,
}

if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for name in names or PICTURES:
        PICTURES[name]().savefig(Path(folder, f"{name}.png"), dpi=110)
