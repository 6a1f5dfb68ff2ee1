"""The data that methods are compared on, with the answer an oracle would give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm import make_ihgmm
from ihgmm.metrics import misclassification_rate


@dataclass(frozen=True)
class Case:
    """One data set.

    ``oracle`` is the error of the rule that knows the true centres and assigns each
    row to the one with the largest cosine.
    """

    name: str
    X: Any
    labels: np.ndarray
    n_clusters: int
    oracle: float


def dense(n: int, p: int, k: int, constant: float = 0.45, seed: int = 0) -> Case:
    """Sample the model at a signal where an oracle makes a few errors in 10,000."""
    sample = make_ihgmm(
        n, p, k, separation_constant=constant, dtype=np.float32, random_state=seed,
        return_params=True,
    )  # fmt: skip
    directions = sample.centers / np.linalg.norm(sample.centers, axis=1, keepdims=True)
    best = (sample.X @ directions.T.astype(np.float32)).argmax(axis=1)
    oracle = misclassification_rate(sample.labels, best)
    return Case(f"{n:,} x {p:,}, K {k}", sample.X, sample.labels, k, oracle)


def documents(n: int, p: int, k: int, density: float, seed: int = 0) -> Case:
    """Count words of documents of uneven length on k topics; sparse.

    Half of a document's words come from a common vocabulary with Zipf frequencies,
    half from its topic, which favours a random tenth of the words.
    """
    rng = np.random.default_rng(seed)
    common = 1.0 / np.arange(10, p + 10)
    topics = np.array(
        [np.where(rng.random(p) < 0.1, rng.gamma(1.0, size=p), 0) for _ in range(k)]
    )
    mix = 0.5 * common / common.sum() + 0.5 * topics / topics.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(mix, axis=1)
    labels = rng.integers(0, k, n)
    length = (rng.uniform(0.1, 2.1, n) * density * p).astype(int) + 5
    rows = np.repeat(np.arange(n), length)
    words = np.empty(len(rows), dtype=np.int64)
    kinds = labels[rows]
    for topic in range(k):
        mine = kinds == topic
        draw = rng.random(int(mine.sum())) * cumulative[topic, -1]
        words[mine] = np.searchsorted(cumulative[topic], draw, side="right")
    words = np.minimum(words, p - 1)
    rows, words = rows.astype(np.int32), words.astype(np.int32)
    X = sp.csr_array((np.ones(len(rows), np.float32), (rows, words)), shape=(n, p))
    X.sum_duplicates()
    directions = mix / np.linalg.norm(mix, axis=1, keepdims=True)
    best = (X @ directions.T.astype(np.float32)).argmax(axis=1)
    oracle = misclassification_rate(labels, best)
    share = X.nnz / n / p
    return Case(f"sparse {n:,} x {p:,}, {share:.1%}, K {k}", X, labels, k, oracle)


CASES = {
    "tall": lambda: dense(200_000, 200, 10),
    "wide": lambda: dense(2_000, 20_000, 8),
    "square": lambda: dense(20_000, 2_000, 20),
    "sparse": lambda: documents(50_000, 20_000, 10, 0.011),
}
