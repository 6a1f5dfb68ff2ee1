"""What is done to messy data, done together."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from ihgmm import Biwhitener, IhGMM, IhSC, diagnose, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.report.facts import Facts
from ihgmm.statistics.diagnosis import Verdict
from ihgmm.storage import load_model, save_model


@pytest.fixture(scope="module")
def counts():
    """Counts of three kinds, the first ten rows of none and twenty times as long."""
    rng = np.random.default_rng(0)
    profiles = rng.gamma(0.5, size=(3, 60))
    profiles /= profiles.sum(axis=1, keepdims=True)
    kinds, sizes = rng.integers(3, size=200), rng.lognormal(4.5, 0.5, size=200)
    X = rng.poisson(profiles[kinds] * sizes[:, None]).astype(float)
    X[:10] = 20 * rng.permuted(X[:10], axis=1)
    return X, kinds


@pytest.mark.filterwarnings("ignore:X looks like counts")
@pytest.mark.parametrize(
    ("missing", "whiten", "outliers", "weighted"),
    product(("error", "fit"), (None, "counts"), (None, "auto"), (False, True)),
)
def test_together(counts, missing, whiten, outliers, weighted, tmp_path):
    X, kinds = counts
    rng = np.random.default_rng(1)
    if missing == "fit":
        X = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    weights = rng.gamma(2.0, size=len(X)) if weighted else None
    if weighted:
        weights[20:30] = 0
    options = {"missing": missing, "whiten": whiten, "outliers": outliers}
    model = IhSC(3, random_state=0, **options).fit(X, sample_weight=weights)
    assert_array_equal(model.predict(X), model.labels_)
    save_model(model, tmp_path / "model.npz")
    assert_array_equal(load_model(tmp_path / "model.npz").predict(X), model.labels_)
    assert misclassification_rate(kinds[10:], np.maximum(model.labels_[10:], 0)) < 0.02
    flagged = np.flatnonzero(model.labels_ < 0)
    assert_array_equal(flagged, np.arange(10) if outliers else [])
    assert_array_equal(np.isnan(model.scales_), model.labels_ < 0)


def test_whitened_rows_are_no_outliers():
    for seed in range(3):
        X, _ = make_ihgmm(300, 100, 3, random_state=seed)
        model = IhSC(3, outliers="auto", whiten="learned", random_state=0).fit(X)
        assert (model.labels_ >= 0).all()


def test_zero_rows_beside_outliers():
    X, _ = make_ihgmm(200, 60, 3, random_state=0)
    X[5] = 0
    for model in (IhSC(3, outliers="auto"), IhGMM(3, outliers="auto")):
        model.set_params(random_state=0)
        with pytest.warns(UserWarning, match="1 of 200 rows are zero") as caught:
            model.fit(X)
        assert len(caught) == 1


def test_new_rows_that_are_no_counts_are_refused(counts):
    X, _ = counts
    model = IhSC(3, whiten="counts", random_state=0).fit(X)
    message = "X has the entry -1; counts are not negative"
    with pytest.raises(ValueError, match=message):
        model.predict(X - 1)
    with pytest.raises(ValueError, match=message):
        Biwhitener("counts").fit(X).transform(X - 1)


def test_counts_with_missing_cells_are_known_as_counts():
    rng = np.random.default_rng(0)
    profiles = rng.gamma(0.5, size=(3, 100))
    profiles /= profiles.sum(axis=1, keepdims=True)
    X = rng.poisson(40 * profiles[np.arange(150) % 3]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    with pytest.warns(UserWarning, match="X looks like counts"):
        IhSC(3, missing="fit", random_state=0).fit(X)
    model = IhSC(3, missing="fit", whiten="auto", random_state=0).fit(X)
    assert model.preparation_[1].noise == "counts"


def test_a_signed_fit_is_judged_on_one_side():
    rng = np.random.default_rng(0)
    centers = 6 * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    scales = rng.choice([-1, 1], 200) * rng.lognormal(0, 0.5, 200)
    X = scales[:, None] * centers[np.arange(200) % 4]
    X += rng.standard_normal(X.shape)
    model = IhSC(4, signed=True, random_state=0).fit(X)
    nothing = dict.fromkeys(
        ("ids", "id_name", "features", "known", "names", "original")
    )
    facts = Facts(model, X, **nothing)
    assert facts.diagnosis.verdict is Verdict.SEPARATED
    turned = X * np.sign(model.scales_)[:, None]
    assert diagnose(turned, model.labels_).verdict is Verdict.SEPARATED


def test_dates_are_no_numbers():
    X, _ = make_ihgmm(20, 3, 2, random_state=0)
    frame = pd.DataFrame(X).assign(day=pd.Timestamp("2020-01-01"))
    with pytest.raises(ValueError, match="columns that do not hold numbers: 'day'"):
        IhSC(2).fit(frame)
