"""Those who know more than the data show."""

import numpy as np
import pytest

from ihgmm.paper.oracles import label_oracle
from ihgmm.statistics.model import make_ihgmm


def naive_label_oracle(sample, i):
    """Place row i with nothing but the other rows and their labels."""
    others = np.arange(len(sample.X)) != i
    X, labels = sample.X[others], sample.labels[others]
    norms = np.linalg.norm(X, axis=1)
    weights = 1 / norms
    for _ in range(5):
        cosines = np.empty(len(X))
        for j in range(len(X)):
            rows = (labels == labels[j]) & (np.arange(len(X)) != j)
            center = weights[rows] @ X[rows]
            cosines[j] = X[j] @ center / (np.linalg.norm(center) * norms[j])
        cosines = np.maximum(cosines, 0)
        weights = cosines * norms / ((1 - cosines**2) * norms**2)
    centers = [weights[labels == c] @ X[labels == c] for c in range(labels.max() + 1)]
    return np.argmax([sample.X[i] @ c / np.linalg.norm(c) for c in centers])


@pytest.mark.parametrize("seed", range(4))
def test_label_oracle_is_the_naive_one(seed):
    options = {"scale_ratio": 3.0, "separation_constant": 0.3, "random_state": seed}
    sample = make_ihgmm(50, 60, 3, **options, return_params=True)
    found = label_oracle(sample)
    assert (found != sample.labels).any()  # or the test would show nothing
    naive = [naive_label_oracle(sample, i) for i in range(len(found))]
    np.testing.assert_array_equal(found, naive)
