"""Draw pictures of two pages: ``python docs/how_pictures.py docs/images``.

These are how-it-works.md and default.md.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import match_labels, misclassification_rate
from ihgmm.numerics.eigen import GramOperator
from ihgmm.numerics.krylov import signal_weights

COLORS = np.array(["#0072B2", "#E69F00", "#009E73", "#D55E00"])
MARKERS = ["o", "s", "^", "D"]
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


def unit(rows):
    """Return rows at unit length."""
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def fan(sample, rows):
    """Return a flat view in which the three patterns are rays from the origin."""
    view = np.linalg.svd(sample.centers - sample.centers.mean(axis=0))[2][:2]
    return rows @ view.T


def points(ax, coordinates, labels, **options):
    """Draw points in the colours and shapes of their labels."""
    for k in np.unique(labels):
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
    points(axes[1], fan(sample, sample.X), sample.labels)
    bare(axes[1], "All 180 rows: a ray for each kind")
    return figure


def kmeans():
    """Draw what k-means makes of it."""
    sample = draw()
    view = fan(sample, sample.X)
    found = KMeans(3, n_init=10, random_state=0).fit_predict(sample.X)
    error = misclassification_rate(sample.labels, found)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
    points(axes[0], view, sample.labels)
    bare(axes[0], "The kinds")
    points(axes[1], view, match_labels(sample.labels, found))
    bare(axes[1], f"k-means: {error:.0%} of the rows misplaced")
    return figure


def units():
    """Draw rows at unit length, and their cosines sorted by kind and by size."""
    sample = draw()
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    points(axes[0], fan(sample, unit(sample.X)), sample.labels)
    bare(axes[0], "Rows of unit length")
    order = np.lexsort((sample.scales, sample.labels))
    rows = unit(sample.X[order])
    colors = plt.get_cmap("viridis", 20)  # few colours make a small file
    drawn = axes[1].imshow(rows @ rows.T, cmap=colors, vmin=0, vmax=1)
    axes[1].set_title("their inner products: cosines", fontsize=12)
    middle = [np.flatnonzero(sample.labels[order] == k).mean() for k in range(3)]
    names = ["kind 1", "kind 2", "kind 3"]
    axes[1].set_xticks(middle, names)
    axes[1].set_yticks(middle, names, rotation=90, va="center")
    axes[1].tick_params(length=0)
    figure.colorbar(drawn, ax=axes[1], shrink=0.8)
    return figure


def diagonal():
    """Draw what diagonals hold, and what they do to an eigenvector."""
    sample = noisy()
    X = sample.X
    order = np.lexsort((sample.scales, sample.labels))
    colors, loud = COLORS[sample.labels[order]], sample.noise_levels[order] > 1
    place = np.arange(len(order))
    figure, axes = plt.subplots(
        2, 2, figsize=(9.5, 6.4), layout="constrained", sharex=True
    )
    ring = {"mfc": "none", "mec": "#D55E00", "ms": 9, "mew": 1.8}

    ax, squares = axes[0, 0], np.linalg.norm(X[order], axis=1) ** 2
    ax.scatter(place, squares, c=colors, s=14, lw=0)
    ax.plot(place[loud], squares[loud], "o", **ring, label="four noisy rows")
    ax.axhline(1, color="black", lw=2.2)
    ax.text(3, 1.5, "rows of unit length: 1 for all", fontsize=10)
    ax.text(3, 250, "rows as they are", fontsize=10)
    ax.set(yscale="log", ylim=(0.3, 2e6))
    ax.legend(frameon=False, loc="upper left")
    ax.set_title("The diagonal of the Gram matrix", fontsize=12)

    second = [
        (axes[0, 1], X @ X.T, "rows as they are"),
        (axes[1, 0], GramOperator.of(X).toarray(), "zero diagonal (the paper)"),
        (axes[1, 1], unit(X) @ unit(X).T, "unit rows (the default)"),
    ]
    for ax, gram, title in second:
        vector = np.linalg.eigh(gram)[1][:, -2]
        vector = vector[order] * np.sign(vector[np.abs(vector).argmax()])
        ax.vlines(place, 0, vector, color=colors, lw=1.2)
        ax.plot(place[loud], vector[loud], "o", **ring)
        ax.axhline(0, color="black", lw=0.6)
        ax.set_title(f"Second eigenvector: {title}", fontsize=12)
    for ax in axes.flat:
        ax.set_xticks([])
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[1]:
        ax.set_xlabel("rows, sorted by kind and size")
    return figure


def space(ax, rows, labels, title, limit):
    """Draw rows of three coordinates in space."""
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
    ax.set_xlabel("direction 1", labelpad=-10)
    ax.set_ylabel("direction 2", labelpad=-10)
    ax.set_zlabel("direction 3", labelpad=-10)
    ax.view_init(elev=22, azim=-38)
    ax.set_box_aspect(None, zoom=1.15)


def rays():
    """Draw rows in three singular vectors, as they are and on the unit sphere."""
    sample = noisy()
    U = unit(sample.X)
    vectors = U @ np.linalg.svd(U)[2][:3].T
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1, 1)
    figure = plt.figure(figsize=(10, 4.3))
    left = figure.add_axes((0.0, 0.02, 0.49, 0.9), projection="3d")
    right = figure.add_axes((0.5, 0.02, 0.49, 0.9), projection="3d")
    reach = np.abs(vectors).max()
    space(
        left,
        vectors,
        sample.labels,
        "Rows in three directions: rays",
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
        unit(vectors),
        sample.labels,
        "Each row made one unit long: spots",
        (np.array([-0.2, -1, -1]), np.array([1.0, 1, 1])),
    )
    return figure


def labels():
    """Draw the labels and scales that come out."""
    sample = noisy()
    model = IhSC(3).fit(sample.X)
    error = misclassification_rate(sample.labels, model.labels_)
    mean = np.bincount(sample.labels, sample.scales) / np.bincount(sample.labels)
    truth = sample.scales / mean[sample.labels]
    found = match_labels(sample.labels, model.labels_)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
    points(axes[0], fan(sample, sample.X), found)
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


def draw_counts():
    """Return counts of three kinds, 40 in a row, and the kinds."""
    rng = np.random.default_rng(0)
    profiles = rng.gamma(0.5, size=200) + rng.gamma(0.5, size=(3, 200))
    profiles /= profiles.sum(axis=1, keepdims=True)
    kinds = np.arange(300) % 3
    sizes = 40 * rng.lognormal(-0.25, 0.7, size=(300, 1))
    return rng.poisson(sizes * profiles[kinds]), kinds


def between(rows, kinds):
    """Return a view, (m, 2), in which the means of kinds are far apart."""
    means = np.array([rows[kinds == k].mean(axis=0) for k in np.unique(kinds)])
    return np.linalg.svd(means - means.mean(axis=0))[2][:2].T


def roots():
    """Draw the spread of columns of counts, and rows that are compared by counts."""
    X, kinds = draw_counts()
    figure, axes = plt.subplots(
        1, 3, figsize=(11, 3.9), layout="constrained", width_ratios=[1.15, 1, 1]
    )
    ax = axes[0]
    spread_of_roots = unit(np.sqrt(X)).std(axis=0)
    for spread, name, color, marker in [
        (unit(X).std(axis=0), "as they are", GREY, "o"),
        (spread_of_roots / spread_of_roots**0.75, "roots over spread$^{3/4}$",
         COLORS[3], "D"),
    ]:  # fmt: skip
        ax.plot(
            X.mean(axis=0), spread / np.median(spread), marker, color=color, ms=3.5,
            mew=0, label=name,
        )  # fmt: skip
    ax.set(
        xscale="log", yscale="log", xlabel="mean count of a column",
        ylabel="spread, over the median", ylim=(0.1, 6),
    )  # fmt: skip
    ticks = [0.1, 0.3, 1, 3]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_title("Columns of unit rows", fontsize=12)
    ax.legend(frameon=False, loc="upper left", handletextpad=0)
    ax.spines[["top", "right"]].set_visible(False)

    for ax, columns, name in [
        (axes[1], "given", "Counts"),
        (axes[2], "auto", "Roots"),
    ]:
        model = IhSC(3, columns=columns).fit(X)
        error = misclassification_rate(kinds, model.labels_)
        points(ax, model.embedding_ @ between(model.embedding_, kinds), kinds)
        bare(ax, f"{name}: {error:.0%} of the rows misplaced")
    return figure


def draw_unequal():
    """Return one kind of 360 rows and three of six, and the kinds."""
    rng = np.random.default_rng(0)
    patterns = 8 * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    kinds = np.repeat(np.arange(4), [360, 6, 6, 6])
    scales = np.exp(0.5 * rng.standard_normal((378, 1)))
    return scales * patterns[kinds] + rng.standard_normal((378, 100)), kinds


def walk(rows, sizes):
    """Return rows after three steps towards their neighbours, at unit length.

    A row has ten of them, or a quarter of the rows of its cluster, and at least three.
    """
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1)
    is_link = np.zeros(cosines.shape, bool)
    for row, count in enumerate(np.clip(sizes // 4, 3, 10)):
        is_link[row, order[row, :count]] = True

    links = (is_link + is_link.T.astype(float)) / 2 + np.eye(len(rows))
    step = links / links.sum(axis=1, keepdims=True)
    return unit(step @ step @ step @ rows)


def neighbors():
    """Draw clusters of rows alone, rows that move, and clusters that these teach."""
    X, kinds = draw_unequal()
    alone = IhSC(4, recipe=Recipe(neighbors=False)).fit(X)
    taught = IhSC(4).fit(X)
    rows = alone.embedding_
    moved_rows = walk(rows, np.bincount(alone.labels_)[alone.labels_])

    figure, axes = plt.subplots(
        1, 3, figsize=(11, 3.9), layout="constrained", sharex=True, sharey=True
    )
    for ax, coordinates, labels, title in [
        (axes[0], rows, alone.labels_, "Rows alone: {:.0%} misplaced"),
        (axes[1], moved_rows, taught.labels_, "Rows move to their neighbours"),
        (axes[2], rows, taught.labels_, "The rule that stays: {:.1%} misplaced"),
    ]:
        error = misclassification_rate(kinds, labels)
        found = match_labels(kinds, labels)
        points(ax, coordinates @ between(rows, kinds), found, alpha=0.8)
        bare(ax, title.format(error))
    return figure


def weights():
    """Draw eigenvalues of unit rows and the weights of their directions."""
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    for ax, X, k, title in [
        (axes[0], make_ihgmm(500, 200, 4, random_state=0)[0], 4, "the model, K = 4"),
        (axes[1], load_digits().data, 10, "pictures of digits, K = 10"),
    ]:
        count = 2 * k + 2
        values = np.linalg.svd(unit(X), compute_uv=False)[:count] ** 2
        place = np.arange(1, count + 1)
        ax.bar(place, signal_weights(values, k, None), color="#BBD7EA", width=0.8)
        ax.plot(place, values / values[k - 1], "o", color=COLORS[0], ms=5)
        ax.axvline(k + 0.5, color=GREY, lw=1, ls="--")
        ax.set(ylim=(0, 1.6), xlabel="direction", title=title)
        ax.text(k + 0.6, 1.5, "beyond K", color="#555555", va="top")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("bars: weight\ndots: eigenvalue / the K-th")
    return figure


def spaces():
    """Draw a large and a small cluster in both spaces."""
    rng = np.random.default_rng(0)
    patterns = 20 * np.linalg.qr(rng.standard_normal((100, 2)))[0].T
    kinds = np.r_[np.zeros(390, int), np.ones(10, int)]
    scales = np.exp(0.5 * rng.standard_normal((400, 1)))
    X = scales * patterns[kinds] + 2 * rng.standard_normal((400, 100))
    left, values, _ = np.linalg.svd(unit(X), full_matrices=False)
    left = left[:, :2] * np.where(left[:, :2].sum(axis=0) < 0, -1, 1)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    for ax, coordinates, title in [
        (axes[0], left, "eigenvectors"),
        (axes[1], left * values[:2], "projected rows"),
    ]:
        points(ax, coordinates, kinds, alpha=0.7)
        bare(ax, title)
    return figure


PICTURES = {
    "how-1-rows": rows,
    "how-2-kmeans": kmeans,
    "how-3-units": units,
    "how-4-diagonal": diagonal,
    "how-5-rays": rays,
    "how-6-labels": labels,
    "how-7-roots": roots,
    "how-8-neighbors": neighbors,
    "default-1-weights": weights,
    "default-2-spaces": spaces,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, picture in PICTURES.items():
        picture().savefig(folder / f"{name}.png", dpi=110)
