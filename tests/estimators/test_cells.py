"""Cells that fit no row: found, taken for missing, and known again in new rows."""

from functools import cache

import numpy as np
import pytest
from matrix.array_kinds import csc, csr, dask_in_four, hdf5_in_blocks, numpy_c, strict
from numpy.testing import assert_array_equal

from ihgmm import IhGMM, IhSC, make_ihgmm
from ihgmm.matrix import to_host
from ihgmm.metrics import misclassification_rate
from ihgmm.storage import load_model, save_model


def sample(seed=0, times=20.0, plus=0.0, share=0.02, n=300, p=100):
    """Return rows with wild cells, which cells these are, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    X = rng.lognormal(0, 0.5, (n, 1)) * rng.gamma(1.0, 3.0, (3, p))[labels]
    X += rng.standard_normal(X.shape)
    is_wild = rng.random(X.shape) < share
    return np.where(is_wild, times * X + plus * np.abs(X).mean(), X), is_wild, labels


def errors(labels, labels_found):
    return misclassification_rate(labels, to_host(labels_found))


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.parametrize(
    ("Estimator", "changes", "seed"),
    [
        (IhSC, {"times": 20.0}, 0),
        (IhSC, {"times": 1.0, "plus": 30.0}, 1),
        (IhGMM, {"times": 20.0}, 1),
        (IhGMM, {"times": 1.0, "plus": 30.0}, 0),
    ],
)
def test_labels_are_those_of_rows_without_wild_cells(Estimator, changes, seed):
    X, is_wild, labels = sample(seed, **changes)
    model = Estimator(3, outliers="cells", random_state=0).fit(X)

    assert errors(labels, model.labels_) <= 0.01

    if Estimator is IhSC:
        baseline = IhSC(3, random_state=0).fit(X)
        assert errors(labels, model.labels_) < errors(labels, baseline.labels_)

    rows, columns = model.outlier_cells_.T

    assert is_wild[rows, columns].mean() > 0.98

    # Of a wild cell that was next to zero, 20 times as much is not far off.
    is_distant = is_wild & (np.abs(X) > 10 * np.median(np.abs(X)))
    is_found = np.zeros_like(is_wild)
    is_found[rows, columns] = True

    assert is_found[is_distant].mean() > 0.95
    assert_array_equal(model.outlier_cells_, np.argwhere(is_found))


@pytest.mark.parametrize("seed", range(2))
def test_a_column_with_many_wild_cells(seed):
    X, _, labels = sample(seed, share=0.0)
    is_wild = np.random.default_rng(seed).random(300) < 0.3
    X[is_wild, 7] += 50 * np.abs(X).mean()
    model = IhSC(3, outliers="cells", random_state=0).fit(X)

    assert errors(labels, model.labels_) <= 0.01
    assert_array_equal(model.outlier_cells_[:, 0], np.flatnonzero(is_wild))
    assert (model.outlier_cells_[:, 1] == 7).all()


CLEAN = {
    "Gaussian": (lambda rng, X: X + rng.standard_normal(X.shape), 0.001),
    "t3": (lambda rng, X: X + rng.standard_t(3, X.shape), 0.01),
    "log-normal": (lambda rng, X: np.abs(X) * rng.lognormal(0, 0.5, X.shape), 0.005),
    "counts": (lambda rng, X: rng.poisson(np.abs(X)).astype(float), 0.001),
    "two values": (lambda rng, X: (X + rng.standard_normal(X.shape) > 0) + 0.0, 0.001),
    "no noise": (lambda rng, X: X, 0.001),
}


@pytest.mark.filterwarnings("ignore:X looks like counts")
@pytest.mark.parametrize("name", CLEAN)
def test_few_cells_of_clean_data_are_wild(name):
    change, max_share = CLEAN[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        centers = rng.gamma(1.0, 3.0, (3, 60))
        X = rng.lognormal(0, 0.5, (300, 1)) * centers[np.arange(300) % 3]
        X = change(rng, X)
        model = IhSC(3, outliers="cells", random_state=0).fit(X)
        baseline = IhSC(3, random_state=0).fit(X)

        assert len(model.outlier_cells_) <= max_share * X.size
        assert errors(baseline.labels_, model.labels_) <= 0.01
        if len(model.outlier_cells_) == 0:
            assert_array_equal(model.scales_, baseline.scales_)


def test_what_a_small_kind_has_in_common_is_not_wild():
    X, labels = make_ihgmm(300, 100, 3, separation_constant=2.0, random_state=0)
    small_cluster = np.flatnonzero(labels == 2)[:15]
    large_clusters = np.flatnonzero(labels != 2)
    rows_kept = np.sort(np.append(large_clusters, small_cluster))
    X = X[rows_kept]
    labels = labels[rows_kept]
    X[labels == 2, :5] += 30 * np.abs(X).mean()  # in five columns, 15 rows stand out
    model = IhSC(3, outliers="cells", random_state=0).fit(X)

    assert len(model.outlier_cells_) <= 5
    assert errors(labels, model.labels_) == 0


@cache
def with_zeros():
    """Return rows of which a third of the cells are zero, and a model of them."""
    X, _, _ = sample()
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0
    return X, IhSC(3, outliers="cells", random_state=0).fit(X)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (numpy_c, "float32"),
        (csr, "float64"),
        (csc, "float32"),
        (hdf5_in_blocks, "float64"),
        (dask_in_four, "float32"),
        (strict, "float64"),
    ],
)
def test_kinds_of_data(kind, dtype, tmp_path):
    X, reference = with_zeros()

    assert (X[tuple(reference.outlier_cells_.T)] != 0).all()

    data = kind(X.astype(dtype), tmp_path)
    model = IhSC(3, outliers="cells", random_state=0).fit(data)
    cells = {tuple(cell) for cell in model.outlier_cells_}
    expected_cells = {tuple(cell) for cell in reference.outlier_cells_}

    assert len(cells ^ expected_cells) <= (0 if dtype == "float64" else 2)
    assert model.outlier_cells_.dtype.kind == "i"
    assert_array_equal(to_host(model.labels_), reference.labels_)
    assert_array_equal(to_host(model.predict(data)), reference.labels_)


@pytest.mark.parametrize("Estimator", [IhSC, IhGMM])
def test_new_rows_and_models_from_files(Estimator, tmp_path):
    X, is_wild, labels = sample(n=400)
    model = Estimator(3, outliers="cells", random_state=0).fit(X[:200])

    assert errors(labels[200:], model.predict(X[200:])) <= 0.01

    clean_rows = np.where(is_wild, X / 20, X)[200:]

    assert errors(model.predict(clean_rows), model.predict(X[200:])) <= 0.01

    save_model(model, tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")

    assert_array_equal(loaded.outlier_cells_, model.outlier_cells_)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.score(X), model.score(X))


@pytest.mark.parametrize(
    ("dtype", "exponent"), [("float64", 160), ("float64", 250), ("float32", 25)]
)
@pytest.mark.filterwarnings("ignore::ihgmm.PreparationWarning")
def test_columns_of_which_one_vanishes_beside_another(dtype, exponent):
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    X[:, 3] *= 10.0**exponent

    with pytest.raises(ValueError, match=r"Column 3 of X is .*e\+\d+ times .* Divide"):
        IhSC(3, outliers="cells").fit(X.astype(dtype))

    X[:, 3] /= 10.0 ** (exponent - 10)
    IhSC(3, outliers="cells", random_state=0).fit(X.astype(dtype))
