"""Arrays of other libraries: the same answers as NumPy's, and they stay where they are.

The arrays of ``array_api_strict`` are on a device that mixes with no other and whose
arrays NumPy cannot read: whatever is moved, is moved on purpose.
"""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from ihgmm import (
    PSC,
    IhGMM,
    IhSC,
    SDPKMeans,
    SphericalKMeans,
    TwoComponentLloyd,
    _norms,
    _tall,
    diagnose,
    estimate_parameters,
    flips,
    make_ihgmm,
    scale_heterogeneity_test,
    select_n_clusters,
    starts,
)
from ihgmm._checks import finite
from ihgmm._devices import is_device, to_host
from ihgmm.blocks import orthonormal, weighted_gram
from ihgmm.numerics.eigen import leading_eigenpairs
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.metrics import misclassification_rate
from ihgmm.statistics.likelihood import refine_labels
from ihgmm.rounding import FIT_ROWS, normalize_rows, number_by_size
from ihgmm.statistics.selection import count

# With NumPy 1, array_api_strict cannot move arrays between its devices.
NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
STRICT_DEVICE = "device1" if NUMPY_2 else "CPU_DEVICE"
OTHERS = (PSC, SphericalKMeans, SDPKMeans, TwoComponentLloyd)
RESULTS = ("embedding_", "cluster_centers_", "scales_", "noise_levels_")


def torch_array(a):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.asarray(np.array(a))


def strict_array(a):
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    xp = pytest.importorskip(
        "array_api_strict", reason="array-api-strict is not installed"
    )
    return xp.asarray(np.array(a), device=xp.Device(STRICT_DEVICE))


@pytest.fixture(params=[torch_array, strict_array])
def to_device(request):
    """A way to turn a NumPy array into another library's."""
    request.param(np.zeros(1))
    return request.param


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def sample(n=600, p=80, k=4, *, dtype=np.float64, **options):
    return make_ihgmm(n, p, k, random_state=0, dtype=dtype, **options)[0]


def same_kind(a, X, dtype):
    """Check that ``a`` is of X's library, on its device and of a type."""
    assert type(a) is type(X)
    assert a.device == X.device
    assert to_host(a).dtype == dtype


def check_like_numpy(X, to_device, k=4, *, noise=0.1, **options):
    """Fit NumPy's X and a copy on a device, and compare all there is."""
    options = {"random_state": 0, **options}
    wanted = IhSC(k, **options).fit(X)
    A = to_device(X)
    got = IhSC(k, **options).fit(A)
    assert_array_equal(to_host(A), X)
    narrow = X.dtype == np.float32
    tol = 1e-4 if narrow else 1e-9
    same_kind(got.labels_, A, np.intp)
    assert_array_equal(to_host(got.labels_), wanted.labels_)
    same_kind(got.eigenvalues_, A, np.float64)
    size = np.abs(wanted.eigenvalues_).max()
    assert_allclose(to_host(got.eigenvalues_), wanted.eigenvalues_, atol=tol * size)
    for name in RESULTS:
        same_kind(getattr(got, name), A, X.dtype)
    peak = np.abs(wanted.cluster_centers_).max()
    assert_allclose(
        to_host(got.cluster_centers_), wanted.cluster_centers_, tol, tol * peak
    )
    assert_allclose(to_host(got.scales_), wanted.scales_, tol, tol)
    assert_allclose(to_host(got.embedding_), wanted.embedding_, atol=10 * tol)
    # A noise variance is what is left of a squared norm, and as exact as that and
    # the scale are.
    variances, others = (
        to_host(m.noise_levels_).astype(np.float64) ** 2 for m in (got, wanted)
    )
    size = _norms.row_sqnorms(X) / (X.shape[1] - 1)
    assert_array_less(np.abs(variances - others), noise * tol * size + 1e-300)
    same_kind(got.predict(A), A, np.intp)
    assert_array_equal(to_host(got.predict(A)), wanted.predict(X))
    same_kind(got.transform(A), A, X.dtype)
    assert_allclose(to_host(got.transform(A)), wanted.transform(X), atol=tol)
    assert got.score(A) == pytest.approx(wanted.score(X), rel=tol)
    assert got.n_features_in_ == X.shape[1]
    return got


@pytest.mark.parametrize("gram", ["hollow", "full", "cosine", "hetero"])
@pytest.mark.parametrize("order", ["algebraic", "magnitude"])
@pytest.mark.parametrize("shape", [(600, 80), (200, 700)], ids=["tall", "wide"])
def test_the_same_answers_as_numpy(to_device, dtype, shape, gram, order):
    X = sample(*shape, dtype=dtype, separation_constant=1.0)
    check_like_numpy(X, to_device, gram=gram, order=order, eigen_solver="block")


@pytest.mark.parametrize("solver", ["auto", "dense"])
def test_small_data_may_be_solved_on_the_host(to_device, dtype, solver):
    X = sample(100, 30, dtype=dtype)
    check_like_numpy(X, to_device, eigen_solver=solver)
    for gram in ("cosine", "hetero"):
        check_like_numpy(X, to_device, eigen_solver=solver, gram=gram)


def test_cluster_qr(to_device, dtype):
    X = sample(dtype=dtype)
    check_like_numpy(X, to_device, eigen_solver="block", assign_labels="cluster_qr")


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
def test_zero_rows(to_device, dtype, gram):
    X = sample(dtype=dtype)
    X[[0, 7, 599]] = 0
    with pytest.warns(DataConversionWarning, match="3 of 600 rows are zero"):
        got = check_like_numpy(X, to_device, gram=gram, eigen_solver="block")
    assert_array_equal(to_host(got.labels_)[[0, 7, 599]], 0)
    assert_array_equal(to_host(got.embedding_)[[0, 7, 599]], 0)
    assert_array_equal(to_host(got.scales_)[[0, 7, 599]], 0)
    with pytest.raises(ValueError, match="All 20 rows of X are zero"):
        IhSC(2).fit(to_device(np.zeros((20, 3), dtype=dtype)))


@pytest.fixture
def small_limits(monkeypatch):
    """Take the ways of large data on small data, in many blocks of rows."""
    monkeypatch.setattr(starts, "LARGE", 10_000)
    monkeypatch.setattr(starts, "CHECKED_ROWS", 256)
    monkeypatch.setattr(_norms, "DEVICE_BLOCK", 10_000)
    monkeypatch.setattr(_tall, "DEVICE_ENTRIES", 20_000)
    monkeypatch.setattr(_tall, "BATCH", 1_000)


@pytest.mark.parametrize("gram", ["hollow", "full", "cosine"])
@pytest.mark.parametrize("p", [20, 300], ids=["many rows", "fewer rows"])
def test_large_data(monkeypatch, small_limits, to_device, dtype, gram, p):
    """A start from a sample of rows, checked on others; centres from a sample."""
    taken = []
    real = starts._start_will_do

    def spy(*arguments):
        taken.append(real(*arguments))
        return taken[-1]

    monkeypatch.setattr(starts, "_start_will_do", spy)
    n = FIT_ROWS + 3_000 if p == 20 else 3_000
    X = sample(n, p, dtype=dtype, separation_constant=1.0)
    check_like_numpy(X, to_device, gram=gram)
    assert len(taken) == 2
    assert (taken[0] is None) == (taken[1] is None)


def test_clusters_that_only_a_long_search_tells(small_limits, to_device, dtype):
    # The sample is not enough here, so that the basis grows and is condensed.
    X = sample(3_000, 60, 6, dtype=dtype, separation_constant=0.2)
    wanted = IhSC(6, random_state=0, tol=1e-4).fit(X)
    got = IhSC(6, random_state=0, tol=1e-4).fit(to_device(X))
    # Rows halfway between clusters may go either way in float32.
    changed = int((to_host(got.labels_) != wanted.labels_).sum())
    assert changed <= (3 if dtype == np.float32 else 0)
    tol = 1e-5 if dtype == np.float32 else 1e-9
    assert_allclose(to_host(got.eigenvalues_), wanted.eigenvalues_, rtol=tol)


def test_fewer_features_than_columns_of_a_block(to_device, dtype):
    # The block has to be filled up with random columns.
    X = sample(500, 3, 3, dtype=dtype)
    check_like_numpy(X, to_device, 3, eigen_solver="block")


@pytest.mark.parametrize("k", [1, 2, 5])
def test_few_rows(to_device, dtype, k):
    check_like_numpy(sample(15, 40, 2, dtype=dtype), to_device, k)


def test_fewer_kinds_of_rows_than_clusters(to_device, dtype):
    X = np.repeat(np.array([[2.0, 0.0], [0.0, 1.0]], dtype=dtype), 40, axis=0)
    with pytest.warns(ConvergenceWarning, match="2 distinct rows"):
        got = IhSC(3, random_state=0).fit(to_device(X))
    assert_array_equal(to_host(got.labels_), np.repeat([0, 1], 40))
    # The third cluster is empty, and no new row goes there.
    assert_array_equal(to_host(got.predict(to_device(-X))), [1] * 40 + [0] * 40)


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_squares_that_float32_cannot_hold(to_device, factor):
    X = (sample() * factor).astype(np.float32)
    check_like_numpy(X / np.float32(factor), to_device, eigen_solver="block")
    got = IhSC(4, random_state=0).fit(to_device(X))
    wanted = IhSC(4, random_state=0).fit(X)
    assert_array_equal(to_host(got.labels_), wanted.labels_)
    centers = wanted.cluster_centers_
    peak = np.abs(centers).max()
    assert_allclose(to_host(got.cluster_centers_), centers, atol=1e-4 * peak)


def test_scales_from_a_millionth_to_a_million(to_device):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    scales = 10.0 ** rng.uniform(-6, 6, 400)
    X = (np.eye(3, 50)[labels] + 0.01 * rng.standard_normal((400, 50))) * scales[
        :, None
    ]
    X = X.astype(np.float32)
    got = check_like_numpy(
        X, to_device, 3, noise=2.0, gram="cosine", eigen_solver="block"
    )
    own = to_host(got.labels_)
    assert all(len(np.unique(own[labels == k])) == 1 for k in range(3))


def test_whole_and_half_numbers(to_device):
    X = np.round(10 * sample()).astype(np.int64)
    got = IhSC(4, random_state=0).fit(to_device(X))
    wanted = IhSC(4, random_state=0).fit(X)
    same_kind(got.embedding_, got.labels_, np.float64)
    assert_array_equal(to_host(got.labels_), wanted.labels_)


def test_torch_keeps_no_gradients_and_takes_half_precision():
    A = torch_array(sample(200, 30))
    wanted = IhSC(4, random_state=0).fit(A)
    got = IhSC(4, random_state=0).fit(A.clone().requires_grad_())
    assert_array_equal(to_host(got.labels_), to_host(wanted.labels_))
    assert not got.scales_.requires_grad
    assert not got.transform(A.clone().requires_grad_()).requires_grad
    half = IhSC(4, random_state=0).fit(A.half())
    assert to_host(half.scales_).dtype == np.float32
    assert_array_equal(to_host(half.labels_), to_host(wanted.labels_))
    transposed = IhSC(4, random_state=0).fit(A.T.contiguous().T)
    assert_array_equal(to_host(transposed.labels_), to_host(wanted.labels_))


def test_rows_and_models_of_different_libraries(to_device, dtype):
    X = sample(dtype=dtype)
    A = to_device(X)
    here = IhSC(4, random_state=0).fit(X)
    there = IhSC(4, random_state=0).fit(A)
    assert isinstance(there.predict(X), np.ndarray)
    assert_array_equal(there.predict(X), here.predict(X))
    assert misclassification_rate(here.labels_, there.labels_) == 0
    same_kind(here.predict(A), A, np.intp)
    assert_array_equal(to_host(here.predict(A)), here.predict(X))
    other = SphericalKMeans(4, random_state=0).fit(X)
    assert_array_equal(to_host(other.predict(A)), other.predict(X))
    weights = np.linspace(1, 2, len(X))
    assert other.score(A, sample_weight=to_device(weights)) == pytest.approx(
        other.score(X, sample_weight=weights), rel=1e-5
    )


@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_not_finite(monkeypatch, to_device, dtype, value, name):
    monkeypatch.setattr(finite, "HOST_ENTRIES", 20)  # three rows at a time
    X = sample(50, 6, dtype=dtype)
    fitted = IhSC(2, random_state=0).fit(to_device(X))
    X[5, 2] = value
    message = f"contains {name} at row 5, column 2. IhSC does not accept .*: drop"
    with pytest.raises(ValueError, match=message):
        IhSC(2).fit(to_device(X))
    with pytest.raises(ValueError, match=message):
        fitted.predict(to_device(X))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), r"Expected 2D array, got 1D array.*shape \(5,\); give rows"),
        (np.zeros((5, 2, 2)), "Expected 2D array, got 3D array"),
        (np.ones((5, 2)) + 1j, "Complex data not supported.*give real numbers"),
        (np.zeros((0, 3)), r"0 row\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (np.eye(3), "n_clusters=4 is more than n_samples=3"),
    ],
)
def test_not_a_matrix_of_numbers(to_device, X, message):
    with pytest.raises(ValueError, match=message):
        IhSC(4).fit(to_device(X))


def test_another_number_of_features(to_device):
    fitted = IhSC(4, random_state=0).fit(to_device(sample()))
    with pytest.raises(ValueError, match="X has 3 features, but IhSC is expecting 80"):
        fitted.predict(to_device(np.ones((5, 3))))


def test_sparse_tensors():
    A = torch_array(np.eye(5)).to_sparse()
    with pytest.raises(TypeError, match=r"sparse_coo; give a dense one"):
        IhSC(2).fit(A)


@pytest.mark.parametrize("work", [IhSC(2).fit, IhGMM(2).fit, PSC(2).fit])
def test_tensors_without_numbers(work):
    A = torch_array(np.eye(5)).to("meta")
    message = r"torch array on meta: it has a shape, \(5, 5\), and no numbers; give"
    with pytest.raises(ValueError, match=message):
        work(A)


@pytest.mark.parametrize(
    ("solver", "n"), [("lanczos", 600), ("dense", 2_001)], ids=["lanczos", "dense"]
)
def test_solvers_that_need_the_host(to_device, solver, n):
    message = f"eigen_solver='{solver}' works on the host.*take 'block' or 'auto'"
    with pytest.raises(ValueError, match=message):
        IhSC(4, eigen_solver=solver).fit(to_device(sample(n, 20)))


def test_the_dense_solver_fills_in_the_diagonal_of_few_rows(to_device):
    message = "eigen_solver='dense' works on the host.*take 'block' or 'auto'"
    with pytest.raises(ValueError, match=message):
        IhSC(4, eigen_solver="dense", gram="hetero").fit(to_device(sample(2_001, 5)))


@pytest.mark.parametrize("Estimator", OTHERS)
def test_other_estimators_ask_for_a_numpy_copy(to_device, Estimator):
    """Also of a tensor that NumPy could read: labels would be of another library."""
    A = to_device(sample(40, 6, 2))
    message = rf" array on .*{Estimator.__name__} works on the host: give a NumPy copy"
    with pytest.raises(TypeError, match=message):
        Estimator().fit(A)


def test_distances_are_taken_on_the_host(to_device):
    X = sample(40, 6, 2)
    fitted = PSC(2, random_state=0).fit(X)
    for work in (fitted.predict, fitted.transform, fitted.score):
        with pytest.raises(TypeError, match="PSC works on the host: give a NumPy copy"):
            work(to_device(X))


def compare(got, wanted, names, tol):
    """Check figures by name, on a device or not, against those of NumPy."""
    for name in names:
        a, b = getattr(got, name), np.asarray(getattr(wanted, name))
        a = to_host(a) if is_device(a) else np.asarray(a)
        assert a.dtype == b.dtype, name
        peak = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        assert_allclose(a, b, rtol=tol, atol=tol * peak, err_msg=name)


@pytest.mark.parametrize("shape", [(400, 50), (150, 300)], ids=["tall", "wide"])
def test_refined_labels(to_device, dtype, shape):
    X = sample(*shape, dtype=dtype, separation_constant=0.15)
    got = check_like_numpy(X, to_device, refine=True)
    plain = IhSC(4, random_state=0).fit(X)
    assert (to_host(got.labels_) != plain.labels_).any()
    found = refine_labels(to_device(X), to_device(plain.labels_), 4)
    wanted = refine_labels(X, plain.labels_, 4)
    assert_array_equal(to_host(found.labels), wanted.labels)
    assert (found.n_iter, found.converged) == (wanted.n_iter, wanted.converged)


def test_refined_labels_of_zero_rows_and_of_one_cluster(to_device):
    X = sample()
    X[[0, 7]] = 0
    with pytest.warns(DataConversionWarning, match="2 of 600 rows are zero"):
        check_like_numpy(X, to_device, refine=True)
    check_like_numpy(sample(), to_device, 1, refine=True)


def test_refinement_of_noise_that_is_stopped(to_device):
    X = np.random.default_rng(0).standard_normal((200, 30))
    start = np.arange(200) % 5
    found, wanted = (refine_labels(Y, start, 5, max_iter=3) for Y in (to_device(X), X))
    assert_array_equal(to_host(found.labels), wanted.labels)
    assert (found.n_iter, found.converged) == (3, False)


def check_count(X, to_device, **options):
    A = to_device(X)
    got, wanted = (select_n_clusters(Y, random_state=0, **options) for Y in (A, X))
    assert_array_equal(to_host(A), X)
    for name in ("n_clusters", "rank", "n_rows", "max_clusters"):
        assert getattr(got, name) == getattr(wanted, name)
    # The eigenvalues of noise are settled to a percent or so only.
    tol = 1e-3 if X.dtype == np.float32 else 1e-8
    compare(got, wanted, ("eigenvalues", "null", "edge", "largest_column"), tol)
    assert isinstance(got.null, np.ndarray)
    assert str(got) == str(wanted)
    return got


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
@pytest.mark.parametrize("method", ["parallel", "stability"])
@pytest.mark.parametrize("shape", [(300, 60), (100, 300)], ids=["tall", "wide"])
def test_the_number_of_clusters(to_device, dtype, shape, gram, method):
    X = sample(*shape, dtype=dtype, separation_constant=1.0)
    found = check_count(X, to_device, gram=gram, method=method)
    assert found.n_clusters == 4


def test_the_number_of_clusters_in_odd_data(to_device, dtype):
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((100, 50)).astype(dtype)
    assert check_count(noise, to_device).n_clusters == 0
    one = rng.random((30, 1)).astype(dtype)
    assert check_count(one, to_device).n_clusters == 1
    holes = sample(200, 40, dtype=dtype)
    holes[::50] = 0
    for method in ("parallel", "stability"):
        assert check_count(holes, to_device, method=method).n_clusters == 4
    plane = rng.integers(0, 2, (200, 2)) + rng.normal(1, 0.01, (200, 2))
    check_count(plane.astype(dtype), to_device, method="stability")
    check_count(np.zeros((5, 3), dtype=dtype), to_device)
    large = (sample(200, 40) * 1e25).astype(np.float32)
    assert check_count(large, to_device).n_clusters == 4


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
def test_the_number_of_clusters_in_large_data(monkeypatch, to_device, dtype, gram):
    """Of a sample of rows; flips are made again for every pass, block by block."""
    monkeypatch.setattr(count, "MOST_ENTRIES", 20_000)
    monkeypatch.setattr(flips, "SMALL", 1_000)
    monkeypatch.setattr(flips, "MEDIUM", 2_000)
    monkeypatch.setattr(flips, "BLOCK", 3_000)
    monkeypatch.setattr(_tall, "DEVICE_ENTRIES", 5_000)
    X = sample(2_000, 40, dtype=dtype)
    found = check_count(X, to_device, gram=gram)
    assert (found.n_clusters, found.n_rows) == (4, 500)


def test_fit_with_the_number_of_clusters_found(to_device, dtype):
    X = sample(dtype=dtype)
    for gram in ("hollow", "cosine"):
        got = check_like_numpy(X, to_device, "auto", gram=gram)
        assert (got.n_clusters_, got.selection_.gram) == (4, gram)
    noise = np.random.default_rng(0).standard_normal((100, 50)).astype(dtype)
    with pytest.warns(ConvergenceWarning, match="All rows are put in one cluster"):
        check_like_numpy(noise, to_device, "auto")


ESTIMATES = ("centers", "scales", "noise_levels", "scale_errors", "center_errors")


@pytest.mark.parametrize("shape", [(300, 40), (100, 300)], ids=["tall", "wide"])
def test_parameters(to_device, dtype, shape):
    X, labels = make_ihgmm(*shape, 3, random_state=0, dtype=dtype)
    labels[:3] = [3, 4, 4]  # one row, two rows
    X[10] = 0
    A = to_device(X)
    tol = 1e-3 if dtype == np.float32 else 1e-9
    names = np.array(list("abcde"))
    for given in (labels, names[labels], to_device(labels)):
        got = estimate_parameters(A, given)
        wanted = estimate_parameters(X, to_host(given))
        assert_array_equal(got.classes, wanted.classes)
        for name in ESTIMATES:
            same_kind(getattr(got, name), A, dtype)
        compare(got, wanted, ESTIMATES, tol)
        same_kind(got.scale_intervals(), A, dtype)
        assert_allclose(
            to_host(got.scale_intervals()), wanted.scale_intervals(), tol, tol
        )
        assert repr(got) == repr(wanted)
    scales = np.linspace(-1, 2, len(X))
    for k in (None, 6):
        wanted = estimate_parameters(X, labels, k, scales=scales)
        for given in (scales, to_device(scales)):
            got = estimate_parameters(A, labels, k, scales=given)
            compare(got, wanted, ESTIMATES, tol)
    with pytest.raises(ValueError, match="labels has 2 entries and X has"):
        estimate_parameters(A, [0, 1], 2, scales=to_device(scales))


def test_parameters_whose_squares_float32_cannot_hold(to_device):
    X = (sample() * 1e25).astype(np.float32)
    labels = np.arange(600) % 4
    got, wanted = (estimate_parameters(Y, labels) for Y in (to_device(X), X))
    compare(got, wanted, ESTIMATES, 1e-4)


@pytest.mark.parametrize("factor", [1, 30], ids=["alike", "far apart"])
def test_an_imputed_diagonal(to_device, dtype, factor):
    X = sample(400, 50, dtype=dtype)
    X[:200] *= factor
    A = to_device(X)
    # Five eigenpairs of four clusters: the last is slow, and the subspace grows.
    found, wanted = (
        impute_diagonal(GramOperator.of(Y), 5, tol=1e-2, rng=np.random.default_rng(0))
        for Y in (A, X)
    )
    tol = 1e-3 if dtype == np.float32 else 1e-6
    same_kind(found.diagonal, A, np.float64)
    peak = wanted.diagonal.max()
    assert_allclose(to_host(found.diagonal), wanted.diagonal, tol, tol * peak)
    assert_allclose(found.pairs.values, wanted.pairs.values, tol)
    assert found.ranks == wanted.ranks
    assert len(found.ranks) > 1
    vectors = to_host(found.pairs.vectors)
    assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-4)
    product = to_host(found.gram @ found.pairs.vectors)
    lack = np.linalg.norm(product - vectors * found.pairs.values, axis=0)
    assert lack.max() < 1e-3 * found.pairs.values[0]


MIXTURE = ("memberships_", "weights_", "cluster_centers_", "scales_", "scale_errors_")


@pytest.mark.parametrize("noise", ["individual", "class", "common"])
def test_a_mixture(to_device, dtype, noise):
    X = sample(200, 40, 3, dtype=dtype, separation_constant=0.5)
    X[5] = 0
    A = to_device(X)
    tol = 1e-3 if dtype == np.float32 else 1e-7
    with pytest.warns(DataConversionWarning, match="1 of 200 rows are zero"):
        got, wanted = (IhGMM(3, noise=noise, random_state=0).fit(Y) for Y in (A, X))
    same_kind(got.labels_, A, np.intp)
    assert_array_equal(to_host(got.labels_), wanted.labels_)
    for name in MIXTURE:
        same_kind(getattr(got, name), A, getattr(wanted, name).dtype)
    compare(got, wanted, (*MIXTURE, "noise_levels_", "log_likelihood_"), tol)
    assert got.n_iter_ == wanted.n_iter_
    for name in ("predict", "predict_proba", "score_samples"):
        figures, others = getattr(got, name)(A), getattr(wanted, name)(X)
        same_kind(figures, A, others.dtype)
        assert_allclose(to_host(figures), others, tol, tol * np.abs(others).max())
        # Rows and models may be of different libraries.
        assert_allclose(getattr(got, name)(X), to_host(figures), tol, tol)
        same_kind(getattr(wanted, name)(A), A, others.dtype)
    for name in ("score", "bic", "icl"):
        assert getattr(got, name)(A) == pytest.approx(getattr(wanted, name)(X), rel=tol)
    (rows, labels), (others, own) = got.sample(20), wanted.sample(20)
    same_kind(rows, A, dtype)
    assert_array_equal(to_host(labels), own)
    assert_allclose(to_host(rows), others, atol=tol * np.abs(others).max())


def test_a_mixture_of_fewer_kinds_of_rows_than_clusters(to_device):
    X = np.repeat(np.array([[2.0, 0.0], [0.0, 1.0]]), 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="2 distinct rows"):
        got = IhGMM(3, random_state=0).fit(to_device(X))
    assert_array_equal(to_host(got.labels_), np.repeat([0, 1], 10))


@pytest.mark.parametrize("gram", ["hollow", "cosine", "hetero"])
def test_a_diagnosis(to_device, dtype, gram):
    X, labels = make_ihgmm(
        400, 40, 3, random_state=0, dtype=dtype, separation_constant=0.7
    )
    X[5] = 0
    A = to_device(X)
    got = diagnose(A, to_device(labels), gram=gram)
    wanted = diagnose(X, labels, gram=gram)
    same_kind(got.certainty, A, np.float64)
    figures = "expected_error certainty eigenvalues separation scale_ratio cosines"
    compare(got, wanted, figures.split(), 1e-3 if dtype == np.float32 else 1e-7)
    assert str(got) == str(wanted)
    with pytest.raises(ValueError, match="All 9 rows of X are zero"):
        diagnose(to_device(np.zeros((9, 2))), np.zeros(9))


def test_whether_scales_differ(monkeypatch, to_device, dtype):
    monkeypatch.setattr(_tall, "DEVICE_ENTRIES", 0)
    monkeypatch.setattr("ihgmm.heterogeneity.halves.CHUNK", 2_000)
    X, labels = make_ihgmm(200, 60, 2, scale_ratio=1.2, random_state=0, dtype=dtype)
    labels[:3] = 2  # too few to be tested
    X[10] = X[11]
    got = scale_heterogeneity_test(to_device(X), to_device(labels))
    wanted = scale_heterogeneity_test(X, labels)
    assert wanted.p_value > 1e-6  # so that there is something to compare
    figures = "p_value statistic spread detectable p_values statistics spreads"
    compare(got, wanted, figures.split(), 1e-3 if dtype == np.float32 else 1e-8)
    assert str(got) == str(wanted)


@pytest.mark.parametrize(
    "work",
    [
        lambda A: IhSC(4, refine=True, random_state=0).fit(A),
        lambda A: IhSC("auto", random_state=0).fit(A),
        lambda A: IhSC("auto", gram="cosine", random_state=0).fit(A),
        lambda A: IhSC(4, gram="hetero", random_state=0).fit(A),
        lambda A: IhGMM(4, random_state=0).fit(A).bic(A),
        lambda A: estimate_parameters(A, np.arange(2_000) % 4),
        lambda A: diagnose(A, np.arange(2_000) % 4),
        lambda A: scale_heterogeneity_test(A, np.arange(2_000) % 4),
    ],
    ids=["refine", "auto", "cosine", "hetero", "mixture", "fit", "diagnose", "test"],
)
def test_the_data_do_not_leave_their_device(monkeypatch, work):
    """What comes to the host has a few numbers for each row or for each column."""
    A = strict_array(sample(2_000, 120))
    compat = pytest.importorskip("array_api_compat")
    seen = []
    real = compat.to_device

    def spy(a, device, **options):
        seen.append(a.size)
        return real(a, device, **options)

    monkeypatch.setattr(compat, "to_device", spy)
    work(A)
    assert seen
    assert max(seen) <= 16 * 2_000


def test_operators_on_a_device_are_those_of_numpy(to_device, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 9)).astype(dtype)
    V = rng.standard_normal((70, 5)).astype(dtype)
    tol = 1e-4 if dtype == np.float32 else 1e-10
    for gram in ("hollow", "full", "cosine"):
        G, H = GramOperator.of(X, gram), GramOperator.of(to_device(X), gram)
        assert H.dtype == dtype
        assert_allclose(to_host(H @ to_device(V)), G @ V, atol=tol)
        assert_allclose(to_host(H @ to_device(V[:, 0])), G @ V[:, 0], atol=tol)
        assert_allclose(H.toarray(), G.toarray(), atol=tol)
        some = np.array([3, 60, 1])
        assert_allclose(
            H.rows(some).toarray(), G.toarray()[np.ix_(some, some)], atol=tol
        )
        pairs = leading_eigenpairs(
            H, 3, solver="block", tol=tol, rng=np.random.default_rng(1)
        )
        vectors = to_host(pairs.vectors).astype(np.float64)
        assert_allclose(vectors.T @ vectors, np.eye(3), atol=tol)
        lack = G.toarray() @ vectors - vectors * pairs.values
        assert np.abs(lack).max() < 10 * tol * pairs.values[0]


def test_blocks_on_a_device(monkeypatch, to_device, dtype):
    monkeypatch.setattr(_tall, "BATCH", 8)
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((53, 4)).astype(dtype)
    Y[:, 3] = Y[:, 0] + Y[:, 1]
    weights = rng.random(53).astype(dtype)
    got = weighted_gram(to_device(Y), to_device(weights))
    assert_allclose(got, (Y.T * weights) @ Y, rtol=1e-5)
    narrow = to_host(orthonormal(to_device(Y)))
    assert narrow.shape == (53, 3)
    full = to_host(orthonormal(to_device(Y), np.random.default_rng(0)))
    assert full.dtype == dtype
    for Q in (narrow, full):
        assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-5)
        assert_allclose(Q @ (Q.T @ Y), Y, atol=1e-4)  # it spans what Y does


def test_rows_of_any_size_are_normalised(to_device):
    U = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1e-200], [1e200, -1e200]])
    assert_allclose(to_host(normalize_rows(to_device(U))), normalize_rows(U))


def test_labels_are_numbered_by_size_then_first_appearance(to_device):
    labels = np.array([3, 1, 1, 0, 2, 2, 4])
    got = number_by_size(to_device(labels), 6)
    assert_array_equal(to_host(got), number_by_size(labels, 6))


def test_numpy_is_not_taken_for_another_library(to_device):
    assert is_device(to_device(np.ones(2)))
    for mine in (np.ones(2), np.float64(1), np.ma.ones(2), [1.0], None, "X"):
        assert not is_device(mine)


def test_other_libraries_are_loaded_for_their_arrays_only():
    """And a missing one is named; NumPy's own arrays do without."""
    pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    code = """
import sys
import numpy as np
from ihgmm import IhSC
X = np.random.default_rng(0).standard_normal((60, 5))
IhSC(2).fit(X)
print({"torch", "cupy", "array_api_compat", "array_api_strict"} & set(sys.modules))
sys.modules["array_api_compat"] = None
import array_api_strict as xp
try:
    IhSC(2).fit(xp.asarray(X))
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == "set()"
    assert "array_api_strict array" in second
    assert "install array-api-compat" in second


def test_labels_without_numbers():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = make_ihgmm(20, 5, 2, random_state=0)[0]
    with pytest.raises(ValueError, match="labels is a tensor on meta"):
        estimate_parameters(X, torch.zeros(20, dtype=torch.int64, device="meta"))
