"""Clusters of embeddings: texts by static word vectors, and pictures by their pixels.

    pip install wordllama umap-learn hdbscan evoc
    python benchmarks/embeddings.py --save          # to results/embeddings.md

``labelled.py`` names the packages that the sets come from.
"""

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import wordllama
from evoc import EVoC
from hdbscan import HDBSCAN
from labelled import READERS, activities, all_sets, courses, documents, sampled
from measure import Table, arguments, markdown, publish
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from umap import UMAP

from ihgmm import IhSC, Recipe, SphericalKMeans
from ihgmm.metrics import misclassification_rate

ROWS = 500
SEEDS = 3
HEAD = f"""# Embeddings

The share of rows with a wrong label under the best matching, with the adjusted Rand
index in brackets: means over {SEEDS} seeds, at most {ROWS:,} rows of a set. Made by
`python benchmarks/embeddings.py`; wordllama gives a text the mean vector of its tokens.
Nothing was tuned: methods have their defaults, UMAP and HDBSCAN those of BERTopic.
HDBSCAN and EVoC find the number of clusters; the others are given that of the classes.
Rows that these two call noise are a cluster of their own; their share stands last.

"""
CELL = "{:.3f} ({:.2f}) {:.0%}"
METHODS = {
    "IhSC": IhSC,
    "- no neighbours": partial(IhSC, recipe=Recipe(neighbors=False)),
    "k-means": KMeans,
    "- unit rows": lambda k, **seed: make_pipeline(Normalizer(), KMeans(k, **seed)),
    "SphericalKMeans": SphericalKMeans,
    "UMAP, HDBSCAN": lambda k, **seed: make_pipeline(
        UMAP(15, 5, "cosine", min_dist=0.0, **seed), HDBSCAN(min_cluster_size=10)
    ),
    "EVoC": lambda k, **seed: EVoC(**seed),
}


def sets() -> Iterator[tuple[str, str, Any, np.ndarray]]:
    """Yield a kind of rows, the name of a set, its rows and its classes."""
    folder = Path(wordllama.__file__).parent  # the wheel has all files
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
    texts = {"activities": activities(), "courses": courses()}
    for name in ("newsgroups", "Reuters-8", "books", "tweets"):
        texts[name] = documents(*READERS[name][2:])

    for name, (words, y) in texts.items():
        words, y = sampled(words, y, ROWS)
        classes, sizes = np.unique(y.astype(str), return_counts=True)
        is_kept = np.isin(y, classes[sizes >= 5])
        words = words[is_kept]
        y = y[is_kept]
        yield "Texts, embedded", name, model.embed(list(words)), y
        yield "Texts by words", name, vectorizer.fit_transform(words).toarray(), y

    for labelled_set in all_sets(None):
        if labelled_set.name in ("digits", "mnist", "faces"):
            _, X, y = next(labelled_set.prepared(ROWS))
            yield "Pictures by pixels", labelled_set.name, X, y


def judge(make: Any, X: Any, y: np.ndarray, seed: int) -> tuple[float, ...]:
    """Return the error, the adjusted Rand index, and the share of noise."""
    model = make(len(np.unique(y)), random_state=seed)
    labels = model.fit_predict(np.asarray(X, dtype=np.float32))
    clusters = labels - labels.min()  # noise is a cluster like others
    error = misclassification_rate(y, clusters)

    return error, adjusted_rand_score(y, clusters), np.mean(labels < 0)


def main() -> None:
    options = arguments(__doc__, "embeddings.md").parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, dict[str, np.ndarray]] = {}

    for kind, name, X, y in sets():
        title = f"{name}: {len(y):,} x {X.shape[1]:,}, {len(np.unique(y))}"
        print(kind, title, file=sys.stderr)
        runs = [
            [judge(method, X, y, seed) for method in METHODS.values()]
            for seed in range(SEEDS)
        ]
        results.setdefault(kind, {})[title] = np.mean(runs, axis=0)

    tables = [markdown(table_of(*item)) for item in results.items()]
    publish(options, HEAD + "".join(table + "\n" for table in tables))


def table_of(kind: str, figures_of_sets: dict[str, np.ndarray]) -> Table:
    """Return the figures of all methods on each set of a kind, and their means."""
    table = [[kind], ["set: rows x columns, classes", *METHODS]]
    means = np.mean(list(figures_of_sets.values()), axis=0)
    for name, rows in {**figures_of_sets, "mean": means}.items():
        cells = (CELL.format(*row).removesuffix(" 0%") for row in rows)
        table.append([name, *cells])
    return table


if __name__ == "__main__":
    main()
