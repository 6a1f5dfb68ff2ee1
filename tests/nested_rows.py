"""Rows with clusters inside clusters."""

import numpy as np


def nested(seed, *, types=3, kinds=3, n=450, p=100):
    """Types of patterns, each with some kinds; return rows, types and kinds."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((p, types + types * kinds)))[0].T
    labels = np.arange(n) % (types * kinds)
    centers = 10 * np.repeat(basis[:types], kinds, axis=0) + 5 * basis[types:]
    X = rng.lognormal(0, 0.4, (n, 1)) * centers[labels] + rng.standard_normal((n, p))
    return X, labels // kinds, labels
