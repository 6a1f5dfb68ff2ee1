"""A fit with whitening, and what is said of its labels."""

import numpy as np
import pytest

from ihgmm import Biwhitener, IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.report.facts import Facts

NOTHING = dict.fromkeys(("ids", "id_name", "features", "known", "names", "original"))


@pytest.mark.parametrize("seed", [0, 3])
def test_labels_of_whitened_counts_are_judged_on_whitened_rows(seed):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 1, 300) * np.exp(rng.normal(0, 0.6, (4, 300)))
    rates /= rates.sum(axis=1, keepdims=True)
    kinds, depths = rng.integers(4, size=600), np.exp(rng.normal(4.6, 0.5, (600, 1)))
    X = rng.poisson(depths * rates[kinds]).astype(float)
    X = X[:, X.any(axis=0)]
    model = IhSC(4, whiten="counts", random_state=0).fit(X)
    expected = Facts(model, X, **NOTHING).diagnosis.expected_error
    true = misclassification_rate(kinds, model.labels_)
    assert abs(expected - true) < 0.01  # raw counts say 3 to 5% more


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_cosines_of_whitened_data_of_any_size(unit):
    X = make_ihgmm(90, 15, 3, random_state=0)[0]
    model = IhSC(3, whiten="learned", random_state=0)
    wanted = model.fit(X).transform(X)
    np.testing.assert_allclose(model.fit(X * unit).transform(X * unit), wanted)


def test_a_fit_that_fails_leaves_what_was_there():
    counts = np.random.default_rng(0).poisson(2.0, (40, 5)).astype(float)
    model = Biwhitener("counts").fit(counts)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(np.full((4, 3), np.nan))
    assert vars(model) == before
