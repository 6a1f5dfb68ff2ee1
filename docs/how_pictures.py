"""Draw the pictures of how-it-works.md: ``python docs/how_pictures.py docs/images``."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from ihgmm import IhSC, make_ihgmm
from ihgmm.metrics import match_labels, misclassification_rate
from ihgmm.numerics.gram import GramOperator

COLORS = np.array(["#0072B2", "#E69F00", "#009E73"])
MARKERS = ["o", "s", "^"]
GREY = "#8a8a8a"


def draw(noise_levels=1.0):
    """Return the sample of the page: three patterns that overlap, scales 1 to 12."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((1000, 3)))
    patterns = 8 * np.linalg.cholesky(0.4 * np.eye(3) + 0.6) @ Q.T
    return make_ihgmm(
        180,
        centers=patterns,
        scales=np.exp(rng.uniform(0, np.log(12), 180)),
        noise_levels=noise_levels,
        random_state=0,
        return_params=True,
    )


def noisy():
    """Return the same sample with four rows that are ten times as noisy."""
    return draw(np.where(np.arange(180) % 45 == 0, 10.0, 1.0))


def fan(sample):
    """Return a flat view in which the three patterns are rays from the origin."""
    unit = np.linalg.svd(sample.centers - sample.centers.mean(axis=0))[2][:2]
    return sample.X @ unit.T


def points(ax, coordinates, labels, **options):
    """Draw points in the colours and shapes of their labels."""
    for k in range(3):
        rows = labels == k
        ax.scatter(
            *coordinates[rows].T, c=COLORS[k], marker=MARKERS[k], s=18, lw=0, **options
        )


def bare(ax, title):
    """Give a flat view its title, and no numbers: only directions matter."""
    ax.set_title(title, fontsize=12)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    ax.plot(0, 0, "+", color="black", ms=9)


def rows():
    """Draw rows of one kind in two sizes, and all rows."""
    sample = draw()
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
    kind = np.flatnonzero(sample.labels == 0)
    kind = kind[np.argsort(sample.scales[kind])]
    other = np.flatnonzero(sample.labels == 1)
    other = other[np.argsort(sample.scales[other])]
    order = np.argsort(-np.abs(sample.centers).max(axis=0))[:24]
    order = np.sort(order)
    for row, name, style in [
        (kind[-2], "large", "-"),
        (kind[len(kind) // 2], "small, same kind", "--"),
        (other[-2], "large, another kind", ":"),
    ]:
        axes[0].plot(
            sample.X[row, order],
            style,
            color=COLORS[sample.labels[row]],
            lw=1.8,
            label=f"{name} (scale {sample.scales[row]:.0f})",
        )
    axes[0].set_title("Three rows, 24 of their 1,000 features", fontsize=12)
    axes[0].set_xlabel("feature")
    axes[0].set_ylabel("value")
    low, high = axes[0].get_ylim()
    axes[0].set_ylim(low, high + 0.35 * (high - low))
    axes[0].legend(frameon=False, loc="upper left")
    axes[0].spines[["top", "right"]].set_visible(False)
    points(axes[1], fan(sample), sample.labels)
    bare(axes[1], "All 180 rows: a ray for each kind")
    return figure


def kmeans():
    """Draw what k-means makes of it."""
    sample = draw()
    view = fan(sample)
    found = KMeans(3, n_init=10, random_state=0).fit_predict(sample.X)
    error = misclassification_rate(sample.labels, found)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
    points(axes[0], view, sample.labels)
    bare(axes[0], "The kinds")
    points(axes[1], view, match_labels(sample.labels, found))
    bare(axes[1], f"k-means: {error:.0%} of the rows misplaced")
    return figure


def gram():
    """Draw the Gram matrix, rows sorted by kind and by size."""
    sample = draw()
    order = np.lexsort((sample.scales, sample.labels))
    G = sample.X[order] @ sample.X[order].T
    unit = sample.X[order] / np.linalg.norm(sample.X[order], axis=1)[:, None]
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, np.nan)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    for ax, matrix, title, limit in [
        (axes[0], G, "inner products", np.quantile(G, 0.99)),
        (axes[1], cosines, "the same as cosines", 1.0),
    ]:
        colors = plt.get_cmap("viridis", 20)  # few colours make a small file
        drawn = ax.imshow(matrix, cmap=colors, vmin=0, vmax=limit)
        ax.set_title(title, fontsize=12)
        middle = [np.flatnonzero(sample.labels[order] == k).mean() for k in range(3)]
        ax.set_xticks(middle, ["kind 1", "kind 2", "kind 3"])
        ax.set_yticks(middle, ["kind 1", "kind 2", "kind 3"], rotation=90, va="center")
        ax.tick_params(length=0)
        figure.colorbar(drawn, ax=ax, shrink=0.8)
    return figure


def diagonal():
    """Draw what the diagonal holds, and what it does to an eigenvector."""
    sample = noisy()
    signal = np.linalg.norm(sample.signal, axis=1) ** 2
    diagonal = np.linalg.norm(sample.X, axis=1) ** 2
    loud = sample.noise_levels > 1
    figure, axes = plt.subplots(
        1, 3, figsize=(11.5, 3.8), layout="constrained", width_ratios=[1, 1.1, 1.1]
    )
    ax = axes[0]
    points(
        ax, np.column_stack([signal, diagonal])[~loud], sample.labels[~loud], alpha=0.8
    )
    ax.plot(signal[loud], diagonal[loud], "o", mfc="none", mec="#D55E00", ms=9, mew=1.8)
    ends = np.array([signal.min(), signal.max()])
    ax.plot(ends, ends, color=GREY, lw=1)
    ax.text(500, 180, "without noise", color="#555555")
    ax.annotate(
        "four noisy rows",
        (signal[loud].max(), diagonal[loud].max()),
        xytext=(-4, 12),
        textcoords="offset points",
        ha="right",
        color="#B04A00",
    )
    ax.set(xscale="log", yscale="log")
    ax.set_ylim(top=4 * diagonal.max())
    ax.set_xlabel("what the pattern gives")
    ax.set_title("The diagonal of the Gram matrix", fontsize=12)

    order = np.lexsort((sample.scales, sample.labels))
    for ax, kind, title in [
        (axes[1], "full", "with its diagonal"),
        (axes[2], "hollow", "with a zero diagonal"),
    ]:
        G = GramOperator.of(sample.X, kind).toarray()
        vector = np.linalg.eigh(G)[1][:, -2]
        vector = vector[order] * np.sign(vector[np.abs(vector).argmax()])
        place = np.arange(len(vector))
        ax.vlines(place, 0, vector, color=COLORS[sample.labels[order]], lw=1.2)
        rows = loud[order]
        ax.plot(place[rows], vector[rows], "o", mfc="none", mec="#D55E00", ms=9, mew=2)
        ax.axhline(0, color="black", lw=0.6)
        ax.set_title(f"Second eigenvector, {title}", fontsize=12)
        ax.set_xlabel("rows, sorted by kind and size")
        ax.set_xticks([])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def space(ax, rows, labels, title, limit):
    """Draw rows of three eigenvectors in space."""
    for k in range(3):
        which = labels == k
        ax.scatter(
            *rows[which].T, c=COLORS[k], marker=MARKERS[k], s=22, lw=0, depthshade=False
        )
    ax.scatter(0, 0, 0, marker="+", c="black", s=70)
    ax.set_title(title, fontsize=12, y=0.99)
    for name, low, high in zip("xyz", *limit, strict=True):
        getattr(ax, f"set_{name}lim")(low, high)
        getattr(ax, f"{name}axis").set_ticklabels([])
    ax.set_xlabel("eigenvector 1", labelpad=-10)
    ax.set_ylabel("eigenvector 2", labelpad=-10)
    ax.set_zlabel("eigenvector 3", labelpad=-10)
    ax.view_init(elev=18, azim=-62)
    ax.set_box_aspect(None, zoom=0.92)


def rays():
    """Draw rows of the eigenvectors, as they are and on the unit sphere."""
    sample = noisy()
    G = GramOperator.of(sample.X).toarray()
    vectors = np.linalg.eigh(G)[1][:, ::-1][:, :3]
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1, 1)
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    figure = plt.figure(figsize=(10, 4.3))
    left = figure.add_axes((0.0, 0.02, 0.49, 0.9), projection="3d")
    right = figure.add_axes((0.5, 0.02, 0.49, 0.9), projection="3d")
    reach = np.abs(vectors).max()
    space(
        left,
        vectors,
        sample.labels,
        "Rows of the eigenvectors: rays",
        (np.array([-0.2, -1, -1]) * reach, np.array([1.0, 1, 1]) * reach),
    )
    for row in vectors:
        left.plot(*np.outer([0, 1], row).T, color=GREY, lw=0.35)
    angle, height = np.meshgrid(
        np.linspace(-np.pi / 2, np.pi / 2, 40), np.linspace(-1, 1, 30)
    )
    ring = np.sqrt(1 - height**2)
    right.plot_wireframe(
        ring * np.cos(angle), ring * np.sin(angle), height, color="#cccccc", lw=0.4
    )
    space(
        right,
        unit,
        sample.labels,
        "Each row made one unit long: spots",
        (np.array([-0.2, -1, -1]), np.array([1.0, 1, 1])),
    )
    return figure


def labels():
    """Draw the labels and scales that come out."""
    sample = noisy()
    model = IhSC.paper(3, random_state=0).fit(sample.X)
    error = misclassification_rate(sample.labels, model.labels_)
    mean = np.bincount(sample.labels, sample.scales) / np.bincount(sample.labels)
    truth = sample.scales / mean[sample.labels]
    found = match_labels(sample.labels, model.labels_)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
    points(axes[0], fan(sample), found)
    bare(axes[0], f"IhSC: {error:.0%} of the rows misplaced")
    ax = axes[1]
    ends = [truth.min(), truth.max()]
    ax.plot(ends, ends, color=GREY, lw=1)
    points(ax, np.column_stack([truth, model.scales_]), found)
    ax.set(xscale="log", yscale="log")
    ticks = [0.25, 0.5, 1, 2]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("true scale, over the mean of its kind")
    ax.set_ylabel("scales_")
    ax.set_title("and the scale of every row", fontsize=12)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


PICTURES = {
    "how-1-rows": rows,
    "how-2-kmeans": kmeans,
    "how-3-gram": gram,
    "how-4-diagonal": diagonal,
    "how-5-rays": rays,
    "how-6-labels": labels,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, picture in PICTURES.items():
        picture().savefig(folder / f"{name}.png", dpi=110)
