"""The methods that studies compare: from a sample and a seed to labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from ihgmm.estimators import PSC, IhGMM, IhSC, SphericalKMeans
from ihgmm.paper.oracles import center_oracle, label_oracle

Method = Callable[[Any, int], np.ndarray]


def _labels(make: Any, sample: Any, seed: int, **options: Any) -> np.ndarray:
    model = make(len(set(sample.labels)), random_state=seed, **options)
    return np.asarray(model.fit_predict(sample.X))


def _on_unit_rows(n_clusters: int, **options: Any) -> Any:
    return make_pipeline(Normalizer(), IhSC.paper(n_clusters, **options))


def _psc_once(sample: Any, seed: int) -> np.ndarray:
    """Run PSC with a single, random start of k-means, as k-means itself is run."""
    k = len(set(sample.labels))
    rows = PSC(k, random_state=seed).fit(sample.X).embedding_
    return np.asarray(KMeans(k, n_init=1, random_state=seed).fit_predict(rows))


METHODS: dict[str, Method] = {
    "IhSC": partial(_labels, IhSC.paper),
    "IhSC, magnitude": partial(_labels, IhSC.paper, order="magnitude"),
    "IhSC, cosine": partial(_labels, _on_unit_rows),
    "IhSC, refined": partial(_labels, IhSC.paper, refine=True),
    "IhGMM": partial(_labels, IhGMM),
    "PSC": _psc_once,
    "PSC, restarts": partial(_labels, PSC),
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
