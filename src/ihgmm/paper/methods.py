"""The methods that studies compare: from a sample and a seed to labels.

Oracles show what could be done at best: they know more than the data.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from ihgmm._warnings import UnstableLabelsWarning, ignored
from ihgmm.estimators import IhGMM, IhSC, SphericalKMeans
from ihgmm.matrix import HOST, to_host
from ihgmm.statistics.model import IhGMMSample
from ihgmm.statistics.refinement import refine_labels

Method = Callable[[Any, int], np.ndarray]


def _labels(make: Any, sample: Any, seed: int, **options: Any) -> np.ndarray:
    n_clusters = len(set(sample.labels))
    model = make(n_clusters, random_state=seed, **options)
    with ignored(UnstableLabelsWarning):  # the table counts what is wrong
        return np.asarray(model.fit_predict(sample.X))


def _on_unit_rows(n_clusters: int, **options: Any) -> Any:
    return make_pipeline(Normalizer(), IhSC.paper(n_clusters, **options))


def _psc_once(sample: Any, seed: int) -> np.ndarray:
    """Run PSC with a single, random start of k-means, as k-means itself is run."""
    n_clusters = len(set(sample.labels))
    model = IhSC(n_clusters, recipe="psc", random_state=seed).fit(sample.X)

    kmeans = KMeans(n_clusters, n_init=1, random_state=seed)
    return np.asarray(kmeans.fit_predict(model.embedding_))


def _refined(sample: Any, seed: int) -> np.ndarray:
    """Compare rows once more with the centres of the other rows, as IhGMM starts."""
    labels = _labels(IhSC.paper, sample, seed)
    n_clusters = len(set(sample.labels))
    refined = refine_labels(sample.X, labels, n_clusters)
    return to_host(refined.labels)


def label_oracle(sample: IhGMMSample) -> np.ndarray:
    """Return labels by one who knows the labels of all other rows.

    For each row the centres are learnt from the other rows and their true labels; the
    row goes to the largest cosine. Others count with length over noise variance, found
    in five rounds without the row, or rows like it would give its label away.
    """
    gram = sample.X @ sample.X.T
    sqnorms = gram.diagonal()
    norms = np.sqrt(sqnorms)

    members = np.eye(len(sample.centers))[sample.labels]  # (n, n_clusters)
    is_same_cluster = members @ members.T
    of_same_cluster = gram * is_same_cluster

    # Row i of the weights is how much the others count where row i is to be placed.
    weights = np.tile(1 / norms, (len(norms), 1))
    np.fill_diagonal(weights, 0.0)

    for _ in range(5):
        cosines = _cosines_with_others(
            weights, of_same_cluster, is_same_cluster, sqnorms
        )
        # No row fits a centre without any noise: its squared sine is 1e-12 at least.
        cosines = cosines.clip(0, np.sqrt(1 - 1e-12))
        squared_sines = 1 - cosines**2
        weights = cosines / (squared_sines * norms)
        np.fill_diagonal(weights, 0.0)

    # Of each row with the sums of rows by cluster: (n, n_clusters).
    products = (weights * gram) @ members
    squared_lengths = (weights * (weights @ of_same_cluster)) @ members
    cosines = HOST.ratio(products, np.sqrt(squared_lengths))
    return np.asarray(cosines.argmax(axis=1))


def _cosines_with_others(
    weights: np.ndarray,
    of_same_cluster: np.ndarray,
    is_same_cluster: np.ndarray,
    sqnorms: np.ndarray,
) -> np.ndarray:
    """Return the cosine of row j with the weighted sum of the rest of its cluster.

    Entry (i, j) is with the weights of line i; it is 0 where nothing is left.
    """
    # Column j: row j and the sum of its cluster, then without row j itself.
    products = weights @ of_same_cluster
    squared_lengths = (weights * products) @ is_same_cluster
    squared_lengths -= 2 * weights * products
    squared_lengths += weights**2 * sqnorms

    products_with_others = products - weights * sqnorms
    norms = np.sqrt(squared_lengths.clip(0) * sqnorms)
    return np.asarray(HOST.ratio(products_with_others, norms))


def center_oracle(sample: IhGMMSample) -> np.ndarray:
    """Return labels by one who knows the centres: each row to the largest cosine."""
    directions = HOST.unit_rows(sample.centers)
    products = sample.X @ directions.T
    return np.asarray(products.argmax(axis=1))


METHODS: dict[str, Method] = {
    "IhSC": partial(_labels, IhSC.paper),
    "IhSC, magnitude": partial(_labels, IhSC.paper, order="magnitude"),
    "IhSC, cosine": partial(_labels, _on_unit_rows),
    "IhSC, refined": _refined,
    "IhGMM": partial(_labels, IhGMM),
    "PSC": _psc_once,
    "PSC, restarts": partial(_labels, IhSC, recipe="psc"),
    "k-means": partial(_labels, KMeans, n_init=1),
    "spherical k-means": partial(_labels, SphericalKMeans, n_init=1),
    "spherical, restarts": partial(_labels, SphericalKMeans, n_init=10),
    "label oracle": lambda sample, seed: label_oracle(sample),
    "centre oracle": lambda sample, seed: center_oracle(sample),
}
"""What is run on simulated data."""

TABLE_METHODS: dict[str, Method] = {
    "IhSC": METHODS["IhSC"],
    "IhSC, magnitude": METHODS["IhSC, magnitude"],
    "IhSC, default": partial(_labels, IhSC),
    "PSC": METHODS["PSC, restarts"],
    "k-means": partial(_labels, KMeans, n_init=10),
    "spherical k-means": METHODS["spherical, restarts"],
}
"""What is run on real data, with restarts."""
