"""Arrays of other libraries: the same answers as NumPy's, and they stay where they are.

The arrays of ``array_api_strict`` are on a device that mixes with no other and whose
arrays NumPy cannot read: whatever is moved, is moved on purpose.
"""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from ihgmm import (
    PSC,
    IhGMM,
    IhSC,
    SphericalKMeans,
    _arrays,
    _tall,
    _validation,
    krylov,
    make_ihgmm,
)
from ihgmm._devices import is_device, to_host
from ihgmm.blocks import orthonormal, weighted_gram
from ihgmm.eigen import leading_eigenpairs
from ihgmm.gram import GramOperator
from ihgmm.metrics import misclassification_rate
from ihgmm.rounding import FIT_ROWS, normalize_rows, number_by_size

# With NumPy 1, array_api_strict cannot move arrays between its devices.
NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
STRICT_DEVICE = "device1" if NUMPY_2 else "CPU_DEVICE"
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
    size = _arrays.row_sqnorms(X) / (X.shape[1] - 1)
    assert_array_less(np.abs(variances - others), noise * tol * size + 1e-300)
    same_kind(got.predict(A), A, np.intp)
    assert_array_equal(to_host(got.predict(A)), wanted.predict(X))
    same_kind(got.transform(A), A, X.dtype)
    assert_allclose(to_host(got.transform(A)), wanted.transform(X), atol=tol)
    assert got.score(A) == pytest.approx(wanted.score(X), rel=tol)
    assert got.n_features_in_ == X.shape[1]
    return got


@pytest.mark.parametrize("gram", ["hollow", "full", "cosine"])
@pytest.mark.parametrize("order", ["algebraic", "magnitude"])
@pytest.mark.parametrize("shape", [(600, 80), (200, 700)], ids=["tall", "wide"])
def test_the_same_answers_as_numpy(to_device, dtype, shape, gram, order):
    X = sample(*shape, dtype=dtype, separation_constant=1.0)
    check_like_numpy(X, to_device, gram=gram, order=order, eigen_solver="block")


@pytest.mark.parametrize("solver", ["auto", "dense"])
def test_small_data_may_be_solved_on_the_host(to_device, dtype, solver):
    X = sample(100, 30, dtype=dtype)
    check_like_numpy(X, to_device, eigen_solver=solver)
    check_like_numpy(X, to_device, eigen_solver=solver, gram="cosine")


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
    monkeypatch.setattr(krylov, "LARGE", 10_000)
    monkeypatch.setattr(krylov, "CHECKED_ROWS", 256)
    monkeypatch.setattr(_arrays, "DEVICE_BLOCK", 10_000)
    monkeypatch.setattr(_tall, "DEVICE_ENTRIES", 20_000)
    monkeypatch.setattr(_tall, "BATCH", 1_000)


@pytest.mark.parametrize("gram", ["hollow", "full", "cosine"])
@pytest.mark.parametrize("p", [20, 300], ids=["many rows", "fewer rows"])
def test_large_data(monkeypatch, small_limits, to_device, dtype, gram, p):
    """A start from a sample of rows, checked on others; centres from a sample."""
    taken = []
    real = krylov._start_will_do

    def spy(*arguments):
        taken.append(real(*arguments))
        return taken[-1]

    monkeypatch.setattr(krylov, "_start_will_do", spy)
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


@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_not_finite(monkeypatch, to_device, dtype, value, name):
    monkeypatch.setattr(_validation, "HOST_ENTRIES", 20)  # three rows at a time
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": "auto"}, "n_clusters='auto' works on the host.*NumPy copy"),
        ({"gram": "hetero"}, "gram='hetero' works on the host.*NumPy copy"),
        ({"refine": True}, "refine=True works on the host.*NumPy copy"),
    ],
)
def test_what_needs_the_host(to_device, options, message):
    with pytest.raises(TypeError, match=message):
        IhSC(**options).fit(to_device(sample()))


@pytest.mark.parametrize(
    ("solver", "n"), [("lanczos", 600), ("dense", 2_001)], ids=["lanczos", "dense"]
)
def test_solvers_that_need_the_host(to_device, solver, n):
    message = f"eigen_solver='{solver}' works on the host.*take 'block' or 'auto'"
    with pytest.raises(ValueError, match=message):
        IhSC(4, eigen_solver=solver).fit(to_device(sample(n, 20)))


@pytest.mark.skipif(not NUMPY_2, reason="needs a device that NumPy cannot read")
@pytest.mark.parametrize("Estimator", [PSC, SphericalKMeans, partial(IhGMM, 3)])
def test_other_estimators_ask_for_a_numpy_copy(Estimator):
    with pytest.raises(TypeError, match=r"X is a array_api_strict .*give a NumPy copy"):
        Estimator().fit(strict_array(sample()))


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
    assert "pip install 'ihgmm[gpu]'" in second
