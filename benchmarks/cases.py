"""Large samples for benchmarks of speed, with the error of an oracle."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

PIECE = 2**24  # entries that are made at a time


class Case(NamedTuple):
    """Rows, their clusters, and the share that an oracle would misplace."""

    X: Any
    labels: np.ndarray
    oracle: float


def dense(
    n: int,
    p: int,
    k: int,
    seed: int = 0,
    *,
    length: float = 2.0,
    common: float = 0.0,
    ratio: float = 1.0,
    out: np.ndarray | None = None,
) -> Case:
    """Draw rows of the model in float32, into ``out`` if it is given.

    Centres of some ``length`` are at right angles, unless there are more of them than
    features or they have a ``common`` share. Scales are from 1 to 20, noise has level
    1, and the largest cluster is ``ratio`` times the smallest. The oracle knows the
    centres and takes the largest product.
    """
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((k, p))
    patterns = normalize(patterns) if k > p else np.linalg.qr(patterns.T)[0].T
    if common:
        shared = patterns.mean(axis=0) * np.sqrt(k)
        patterns = normalize(np.sqrt(1 - common) * patterns + np.sqrt(common) * shared)

    patterns = patterns.astype(np.float32)
    shares = np.geomspace(1, ratio, k)
    labels = rng.choice(k, n, p=shares / shares.sum())
    labels[:k] = np.arange(k)
    X = np.empty((n, p), np.float32) if out is None else out
    oracle_labels = np.empty_like(labels)
    step = max(1, PIECE // p)

    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        block = rng.standard_normal((rows.stop - start, p), dtype=np.float32)
        scales = length * rng.uniform(1, 20, (len(block), 1)).astype(np.float32)
        block += scales * patterns[labels[rows]]
        X[rows] = block
        oracle_labels[rows] = (block @ patterns.T).argmax(axis=1)

    return Case(X, labels, float((oracle_labels != labels).mean()))


def counts(n: int, p: int, k: int, seed: int = 0) -> Case:
    """Draw sparse counts of long and short texts, about 1.3% of them above zero.

    The oracle knows the topics and takes the likeliest.
    """
    rng = np.random.default_rng(seed)
    shared_profile = rng.dirichlet(np.full(p, 0.1))
    profiles = rng.dirichlet(np.full(p, 0.02), size=k)
    topics = 0.7 * shared_profile + 0.3 * profiles
    labels = rng.integers(k, size=n)
    labels[:k] = np.arange(k)
    lengths = rng.integers(30, 600, size=n)
    edges = np.r_[0, np.cumsum(lengths)].astype(np.int32)
    words = np.empty(edges[-1], dtype=np.int32)

    for topic in range(k):
        rows = np.flatnonzero(labels == topic)
        drawn_words = rng.choice(p, size=int(lengths[rows].sum()), p=topics[topic])
        parts = np.split(drawn_words, np.cumsum(lengths[rows])[:-1])
        for row, row_words in zip(rows, parts, strict=True):
            words[edges[row] : edges[row + 1]] = row_words

    X = sp.csr_array((np.ones(len(words), np.float32), words, edges), shape=(n, p))
    X.sum_duplicates()
    oracle_labels = (X @ np.log(topics).T).argmax(axis=1)

    return Case(X, labels, float((oracle_labels != labels).mean()))
