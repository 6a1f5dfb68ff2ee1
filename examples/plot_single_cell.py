"""
Cells that differ in depth
==========================

Counts of RNA molecules in cells of five types. The cells of a type share a pattern and
differ 20-fold in how many of their molecules were caught. The usual way is to divide
that out, take logarithms, choose genes, and cluster principal components. To IhSC
the depth is the scale of a row, which it estimates.

Run ``python examples/plot_single_cell.py table`` for the table of the tutorial, which
takes some minutes. Without scanpy (``pip install scanpy igraph``) the usual way is left
out.
"""

import sys
import warnings
from importlib.util import find_spec

import anndata
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from ihgmm.anndata import ihsc

SCANPY = find_spec("scanpy") is not None and find_spec("igraph") is not None


# %%
# Each type has a few marker genes with a multiple of their usual share. A gamma factor
# on every mean makes the counts negative binomial.
def simulate(
    n_cells=1500,
    sizes=(0.4, 0.3, 0.15, 0.1, 0.05),
    depth=(100, 2000),
    n_markers=60,
    fold=4.0,
    dispersion=0.3,
    seed=0,
):
    rng = np.random.default_rng(seed)
    n_genes, n_types = 2000, len(sizes)
    patterns = np.tile(rng.lognormal(0, 1.5, n_genes), (n_types, 1))
    for pattern in patterns:
        pattern[rng.choice(n_genes, n_markers, replace=False)] *= fold
    patterns /= patterns.sum(axis=1, keepdims=True)
    types = rng.choice(n_types, n_cells, p=sizes)
    depths = np.exp(rng.uniform(*np.log(depth), n_cells))
    means = depths[:, None] * patterns[types]
    means *= rng.gamma(1 / dispersion, dispersion, means.shape)
    adata = anndata.AnnData(sp.csr_matrix(rng.poisson(means).astype(np.float32)))
    adata.obs["type"] = types.astype(str)
    adata.obs["depth"] = depths
    return adata


# %%
# With this package: the counts as they are, their roots, which is the default, and with
# the noise of genes and cells made alike.
def ours(adata):
    n_types = adata.obs["type"].nunique()
    with warnings.catch_warnings(action="ignore"):  # of unstable labels
        ihsc(adata, n_types, columns="given", key_added="counts")
        ihsc(adata, n_types, key_added="roots")
    ihsc(adata, n_types, columns="counts")
    ihsc(adata, "auto", columns="counts", key_added="auto")


# %%
# The usual way, with and without a choice of 500 genes, once counting communities of
# near cells, once by k-means with the true number of types.
def usual(adata):
    import scanpy as sc

    for name, n_genes in (("all", None), ("chosen", 500)):
        other = anndata.AnnData(adata.X.copy())
        sc.pp.normalize_total(other)
        sc.pp.log1p(other)
        if n_genes:
            sc.pp.highly_variable_genes(other, n_top_genes=n_genes)
        sc.pp.pca(other, n_comps=30)
        sc.pp.neighbors(other)
        sc.tl.leiden(other, flavor="igraph", n_iterations=2)
        kmeans = KMeans(adata.obs["type"].nunique(), n_init=10, random_state=0)
        adata.obs[f"leiden_{name}"] = other.obs["leiden"].to_numpy()
        adata.obs[f"kmeans_{name}"] = kmeans.fit_predict(other.obsm["X_pca"])
        adata.obsm[f"pca_{name}"] = other.obsm["X_pca"]


METHODS = {
    "normalise, log, PCA, Leiden": "leiden_all",
    "the same, k-means": "kmeans_all",
    "500 genes first, Leiden": "leiden_chosen",
    "500 genes first, k-means": "kmeans_chosen",
    "IhSC on counts as they are": "counts",
    "IhSC on their roots": "roots",
    "IhSC on counts of even noise": "ihsc",
}


def agreement(adata):
    """Return the adjusted Rand index of each method with the true types."""
    return {
        name: adjusted_rand_score(adata.obs["type"], adata.obs[key])
        for name, key in METHODS.items()
        if key in adata.obs
    }


def clustered(**options):
    adata = simulate(**options)
    ours(adata)
    if SCANPY:
        usual(adata)
    return adata


SETTINGS = {
    "depth 100 to 2,000": {},
    "depth 500 to 10,000": {"depth": (500, 10_000)},
    "12 types, deep": {"depth": (500, 10_000), "sizes": (1 / 12,) * 12},
    "a type of 1%, deep": {
        "depth": (500, 10_000),
        "sizes": (0.5, 0.3, 0.14, 0.05, 0.01),
    },
    "weaker markers, deep": {"depth": (500, 10_000), "fold": 2.5},
    "15 markers, deep": {"depth": (500, 10_000), "n_markers": 15},
    "200 cells, deep": {"depth": (500, 10_000), "n_cells": 200},
    "dispersion 2, deep": {"depth": (500, 10_000), "dispersion": 2.0},
}


def table():
    for setting, options in SETTINGS.items():
        runs = [clustered(seed=seed, **options) for seed in range(3)]
        scores = [agreement(run) for run in runs]
        print(setting)
        for name in scores[0]:
            print(f"  {name:<28} {np.mean([s[name] for s in scores]):.2f}")
        print("  counted:", [run.uns["auto"]["n_clusters"] for run in runs])
        if SCANPY:
            print("  Leiden:", [run.obs["leiden_chosen"].nunique() for run in runs])


# %%
# Left: where all genes take part, depth moves cells along the components. Middle: the
# embedding of IhSC, where cells of a type are on one spot whatever their depth. Right:
# the scale of a cell and its true depth.
COLORS = np.array(["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"])


def picture(adata):
    colors = COLORS[adata.obs["type"].astype(int)]
    figure, axes = plt.subplots(
        1, 2 + SCANPY, figsize=(3.9 * (2 + SCANPY), 4), layout="constrained"
    )
    *first, middle, right = axes
    for ax in first:
        pca = adata.obsm["pca_all"]
        ax.scatter(adata.obs["depth"], pca[:, 0], c=colors, s=5, lw=0)
        ax.set(xscale="log", xlabel="true depth", ylabel="first principal component")
        score = agreement(adata)["normalise, log, PCA, Leiden"]
        ax.set_title(f"normalise, log, PCA, all genes\nagreement {score:.2f}")
    angle = adata.obsm["X_ihsc"]
    middle.scatter(angle[:, 1], angle[:, 2], c=colors, s=5, lw=0)
    middle.set(xlabel="second eigenvector", ylabel="third eigenvector")
    score = agreement(adata)["IhSC on counts of even noise"]
    middle.set_title(f"IhSC on counts of even noise\nagreement {score:.2f}")
    depth = adata.obs["depth"].to_numpy()
    right.scatter(depth, adata.obs["ihsc_scale"], c=colors, s=5, lw=0)
    right.set(xscale="log", yscale="log", xlabel="true depth", ylabel="ihsc_scale")
    right.set_yticks([0.2, 0.5, 1, 2, 5], labels=["0.2", "0.5", "1", "2", "5"])
    right.minorticks_off()
    right.set_title("the scale of a cell is its depth,\nin units of its type's mean")
    sizes = adata.obs["type"].value_counts(sort=True)
    for name, size in sizes.items():
        right.scatter([], [], c=COLORS[int(name)], s=20, label=f"{size} cells")
    right.legend(frameon=False, title="types", fontsize=8, title_fontsize=9)
    return figure


if sys.argv[-1] == "table":
    table()
else:
    adata = clustered()
    for name, score in agreement(adata).items():
        print(f"{name:<28} agreement {score:.2f}")
    if not SCANPY:
        print("scanpy and igraph are not installed: the usual way was left out.")
    picture(adata)
    plt.show()
