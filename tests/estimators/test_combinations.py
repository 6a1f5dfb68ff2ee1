"""What is done to messy data, done together: any two options meet in some case."""

import numpy as np
import pytest
from covering import case_name, covering
from matrix.array_kinds import (
    csr,
    dask_in_four,
    hdf5_in_blocks,
    numpy_c,
    opened,
    strict,
)
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC, Recipe
from ihgmm.matrix import to_host
from ihgmm.metrics import misclassification_rate
from ihgmm.storage import load_model, save_model

RECIPES = {
    "default": Recipe(),
    "paper": Recipe.of("paper"),
    "projected rows": Recipe(rows="given", space="projected", n_components=4),
    "no neighbours": Recipe(neighbors=False),
    "magnitude": Recipe.of("paper", order="magnitude", labels="tied"),
    "cosine": Recipe(placement="cosine", tol=1e-4),
}
DATA = {
    "kind": [numpy_c, csr, hdf5_in_blocks, dask_in_four, strict],
    "dtype": ["float64", "float32"],
    "missing": ["error", "fit"],
    "weighted": [False, True],
    "outliers": [None, "auto", 0.06],
}
SPECTRAL = covering(
    DATA
    | {
        "recipe": list(RECIPES),
        "columns": ["auto", "given", "roots", "counts", "noise"],
        "signed": [False, True],
        "n_clusters": [3, "auto"],
    },
    forbidden=[
        (("signed", True), ("recipe", "paper")),
        (("signed", True), ("columns", "counts")),  # counts are not negative
        (("outliers", "auto"), ("n_clusters", "auto")),  # wild rows count as clusters
        (("outliers", 0.06), ("n_clusters", "auto")),
        # Fits on dask are slow, and its results for other recipes are no others.
        *(
            (("kind", dask_in_four), ("recipe", name))
            for name in RECIPES
            if name not in ("default", "paper")
        ),
    ],
)
MIXTURES = covering(
    DATA
    | {"noise": ["individual", "class", "common", "tied"], "n_clusters": [3, "auto"]},
    forbidden=[
        (("outliers", "auto"), ("n_clusters", "auto")),
        (("outliers", 0.06), ("n_clusters", "auto")),
    ],
)


class Sample:
    """Counts of three kinds: with gaps, random signs and rows of none, as is asked."""

    def __init__(self, case):
        rng = np.random.default_rng(0)
        n = 200
        p = 60
        profiles = rng.gamma(0.5, size=(3, p))
        profiles /= profiles.sum(axis=1, keepdims=True)
        self.kinds = rng.integers(3, size=n)
        sizes = rng.lognormal(5.0, 0.5, size=(n, 1))
        self.complete_rows = rng.poisson(profiles[self.kinds] * sizes).astype(float)
        self.is_outlier = np.arange(n) < (10 if case["outliers"] else 0)
        self.complete_rows[self.is_outlier] = 20 * rng.permuted(
            self.complete_rows[self.is_outlier], axis=1
        )
        if case.get("signed"):
            self.complete_rows *= rng.choice([-1, 1], (n, 1))
        is_hidden = rng.random((n, p)) < (0.3 if case["missing"] == "fit" else 0)
        self.X = np.where(is_hidden, np.nan, self.complete_rows).astype(case["dtype"])
        self.weights = rng.uniform(0.5, 2, n) if case["weighted"] else None
        if case["weighted"]:
            self.weights[20:40] = 0
        self.is_counted = (
            ~self.is_outlier
            if self.weights is None
            else ~self.is_outlier & (self.weights > 0)
        )


def estimator(case):
    options = {
        key: case[key] for key in case if key not in ("kind", "dtype", "weighted")
    }
    return IhSC(**options | {"recipe": RECIPES[case["recipe"]]}, random_state=0)


def check_together(case, model, tmp_path, *, same=1.0):
    """Fit to the data of a case and compare what comes of it with what is true.

    ``same`` is the least share of rows that ``predict`` labels as the fit did.
    """
    sample = Sample(case)
    data = case["kind"](sample.X, tmp_path)
    model.fit(data, sample_weight=sample.weights)
    names = ("labels_", "scales_", "noise_levels_", "cluster_centers_")
    labels, scales, levels, centers = (to_host(getattr(model, name)) for name in names)

    is_usual = ~sample.is_outlier
    rate = misclassification_rate(sample.kinds[is_usual], np.abs(labels[is_usual]))

    # Clusters are the kinds, and outliers are rows of none.
    assert model.n_clusters_ == 3
    assert rate < 0.03
    assert_array_equal(np.isnan(scales), labels < 0)

    if case["outliers"] is None:
        assert (labels >= 0).all()
    else:
        assert (labels[sample.is_outlier] < 0).all()
        assert (labels < 0).sum() <= 12

    # Rows are labelled again as they were, also by a model from a file.
    labels_found = to_host(model.predict(data))

    assert (labels_found == labels).mean() >= same

    save_model(model, tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")

    assert_array_equal(to_host(loaded.predict(data)), labels_found)

    # Parameters are in the units and the type of the data, from observed cells.
    assert centers.dtype == scales.dtype == case["dtype"]

    is_counted = sample.is_counted & (labels >= 0)
    turned_rows = sample.complete_rows * np.sign(scales)[:, None]
    weights = np.ones(len(labels)) if sample.weights is None else sample.weights
    for k in range(3):
        is_member = is_counted & (labels == k)
        member_weights = weights[is_member]
        mean = np.average(turned_rows[is_member], axis=0, weights=member_weights)
        mean_size = np.average(np.abs(scales[is_member]), weights=member_weights)

        assert np.linalg.norm(centers[k] - mean) < 0.1 * np.linalg.norm(mean)
        assert mean_size == pytest.approx(1, abs=1e-3)

    return sample, data, is_counted, levels, labels_found


@pytest.mark.filterwarnings(
    "ignore:X looks like counts", "ignore:n_clusters='auto' chose 3, which is doubtful"
)
@pytest.mark.parametrize("case", SPECTRAL, ids=case_name)
def test_together(case, tmp_path):
    model = estimator(case)
    sample, data, is_counted, levels, labels = check_together(case, model, tmp_path)
    row_centers = to_host(model.cluster_centers_)[labels]
    residual = sample.complete_rows - to_host(model.scales_)[:, None] * row_centers
    noise_level = np.sqrt(np.mean(residual[is_counted] ** 2))

    # Filled cells have no noise: with them, levels would be lower by a sixth. Columns
    # of counts that are learnt to be quiet raise levels by a tenth.
    assert 0.9 < np.sqrt(np.mean(levels[is_counted] ** 2)) / noise_level < 1.2
    # What is given stays as it was.
    assert_array_equal(opened(data).toarray(), sample.X)

    # The kind of array does not matter, nor do units and what rows of weight 0 hold.
    X = sample.X.astype(np.float64)
    reference = estimator(case).fit(X, sample_weight=sample.weights)

    assert_array_equal(reference.labels_, labels)

    models_and_units = [(model, 1)]
    if case["columns"] != "counts":  # multiples of counts are no counts
        model_in_thousandths = estimator(case)
        model_in_thousandths.fit(1000 * X, sample_weight=sample.weights)
        models_and_units.append((model_in_thousandths, 1000))
    if case["weighted"]:
        X[20:40] = 3 * X[20:40, ::-1]
        weighted_model = estimator(case).fit(X, sample_weight=sample.weights)
        models_and_units.append((weighted_model, 1))

    for other_model, unit in models_and_units:
        centers = to_host(other_model.cluster_centers_) / unit
        tolerance = 1e-3 * np.abs(reference.cluster_centers_).max()
        assert_allclose(centers, reference.cluster_centers_, rtol=0, atol=tolerance)


@pytest.mark.parametrize("case", MIXTURES, ids=case_name)
def test_mixtures_together(case, tmp_path):
    options = {key: case[key] for key in ("noise", "n_clusters", "missing", "outliers")}
    model = IhGMM(**options, tol=0.1, random_state=0)  # rounds on dask are slow
    _, data, *_, labels = check_together(case, model, tmp_path, same=0.98)
    sums = to_host(model.predict_proba(data)).sum(axis=1)

    assert_allclose(sums, labels >= 0)
