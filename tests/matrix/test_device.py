"""Arrays of other libraries stay where they are, and so do results.

That they give NumPy's answers is asked by the contract of all kinds. The arrays of
``array_api_strict`` are on a device that mixes with no other and whose arrays NumPy
cannot read: whatever is moved, is moved on purpose.
"""

import numpy as np
import pytest
from array_kinds import cupy, strict, torch_cpu, torch_cuda
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning

from ihgmm import (
    IhGMM,
    IhSC,
    SDPKMeans,
    SphericalKMeans,
    TwoComponentLloyd,
    diagnose,
    estimate_parameters,
    make_ihgmm,
    scale_heterogeneity_test,
)
from ihgmm.matrix import to_host
from ihgmm.metrics import misclassification_rate


@pytest.fixture(params=[torch_cpu, torch_cuda, cupy], ids=lambda p: p.__name__)
def to_device(request):
    """A way to turn a NumPy array into another library's."""
    request.param(np.zeros(1))
    return request.param


def sample(n=600, p=80, k=4, **options):
    return make_ihgmm(n, p, k, random_state=0, **options)[0]


def same_kind(a, X, dtype):
    """Check that ``a`` is of X's library, on its device and of a type."""
    assert type(a) is type(X)
    assert a.device == X.device
    assert to_host(a).dtype == dtype


def label_type(X):
    """Return the type of labels: that of KMeans, but torch has its own for indices."""
    return np.int64 if type(X).__module__ == "torch" else np.int32


def test_zero_rows(to_device):
    X = sample()
    X[[0, 7, 599]] = 0

    with pytest.warns(DataConversionWarning, match="3 of 600 rows are zero"):
        expected = IhSC(4, random_state=0).fit(X)
    with pytest.warns(DataConversionWarning, match="3 of 600 rows are zero"):
        model = IhSC(4, random_state=0).fit(to_device(X))

    for name in ("labels_", "embedding_", "scales_", "cluster_centers_"):
        result = to_host(getattr(model, name))
        assert_allclose(result, getattr(expected, name), 1e-9, 1e-5)
        assert name == "cluster_centers_" or not result[[0, 7, 599]].any()

    with pytest.raises(ValueError, match="All 9 rows of X are zero"):
        diagnose(to_device(np.zeros((9, 2))), np.zeros(9))


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


def test_torch_keeps_no_gradients_and_takes_half_precision():
    A = torch_cpu(sample(200, 30))
    expected = IhSC(4, random_state=0).fit(A)
    gradient_model = IhSC(4, random_state=0).fit(A.clone().requires_grad_())

    assert not gradient_model.scales_.requires_grad
    assert not gradient_model.transform(A.clone().requires_grad_()).requires_grad

    half_model = IhSC(4, random_state=0).fit(A.half())

    assert to_host(half_model.scales_).dtype == np.float32

    transposed_model = IhSC(4, random_state=0).fit(A.T.contiguous().T)

    for model in (gradient_model, half_model, transposed_model):
        assert_array_equal(to_host(model.labels_), to_host(expected.labels_))


def test_rows_and_models_of_different_libraries(to_device):
    X = sample()
    A = to_device(X)
    host_model = IhSC(4, random_state=0).fit(X)
    device_model = IhSC(4, random_state=0).fit(A)

    for name in ("cluster_centers_", "eigenvalues_"):
        same_kind(getattr(device_model, name), A, X.dtype)

    assert isinstance(device_model.predict(X), np.ndarray)
    assert_array_equal(device_model.predict(X), host_model.predict(X))
    assert misclassification_rate(host_model.labels_, device_model.labels_) == 0

    same_kind(host_model.predict(A), A, label_type(A))

    assert_array_equal(to_host(host_model.predict(A)), host_model.predict(X))


def test_parameters_of_labels_from_anywhere(to_device):
    X, labels = make_ihgmm(300, 40, 3, random_state=0)
    labels[:3] = [3, 4, 4]  # one row, two rows
    X[10] = 0
    A = to_device(X)
    class_names = np.array(list("abcde"))

    for known_classes, n_clusters in [
        (class_names[labels], None),
        (to_device(labels), 6),
    ]:
        estimates = estimate_parameters(A, known_classes, n_clusters)
        expected = estimate_parameters(X, to_host(known_classes), n_clusters)
        assert_array_equal(estimates.classes, expected.classes)
        for name in ("centers", "scales", "scale_errors", "center_errors"):
            same_kind(getattr(estimates, name), A, X.dtype)
            values = to_host(getattr(estimates, name))
            assert_allclose(values, getattr(expected, name), 1e-9, 1e-9)

        same_kind(estimates.scale_intervals(), A, X.dtype)


@pytest.mark.parametrize(
    "model",
    [
        IhSC(2, recipe="psc"),
        SDPKMeans(2),
        SDPKMeans(2, gram="cosine"),
        TwoComponentLloyd(),
    ],
    ids=["psc", "SDP", "cosine", "Lloyd"],
)
def test_distances_on_a_device(to_device, model):
    """Models that were fitted on the host take rows from anywhere."""
    if isinstance(model, SDPKMeans):
        pytest.importorskip("cvxpy")
    X = sample(40, 6, 2)
    X = X - X.mean(axis=0)
    model = model.fit(X)
    X[3] = 0
    A = to_device(X)

    same_kind(model.transform(A), A, X.dtype)

    assert_allclose(to_host(model.transform(A)), model.transform(X), 1e-6, 1e-6)

    same_kind(model.predict(A), A, label_type(A))

    assert_array_equal(to_host(model.predict(A)), model.predict(X))
    assert model.score(A) == pytest.approx(model.score(X))


@pytest.mark.parametrize(
    "work",
    [
        lambda A: IhSC(4, random_state=0).fit(A),
        lambda A: IhSC(4, recipe="paper", random_state=0).fit(A),
        lambda A: IhGMM(4, random_state=0).fit(A).bic(A),
        lambda A: IhSC(4, recipe="psc", random_state=0).fit(A).score(A),
        lambda A: SphericalKMeans(4, n_init=3, random_state=0).fit(A).score(A),
        lambda A: estimate_parameters(A, np.arange(4_000) % 4),
        lambda A: diagnose(A, np.arange(4_000) % 4),
        lambda A: scale_heterogeneity_test(A, np.arange(4_000) % 4),
    ],
    ids=["default", "paper", "mixture", "psc", "spherical", "fit", "diagnose", "test"],
)
def test_the_data_do_not_leave_their_device(monkeypatch, work):
    """What comes to the host has a few numbers for each row or for each column."""
    A = strict(sample(4_000, 120))
    sizes = []
    original_to_device = type(A).to_device

    def spy(a, device, **options):
        if a.ndim != 2 or a.shape[0] != a.shape[1]:  # those are eigenproblems
            sizes.append(a.size)
        return original_to_device(a, device, **options)

    monkeypatch.setattr(type(A), "to_device", spy)

    work(A)

    assert 0 < max(sizes) <= 16 * 4_000


@pytest.mark.parametrize("options", [{}, {"columns": "noise"}, {"outliers": "auto"}])
def test_dask_of_blocks_on_a_device(options):
    da = pytest.importorskip("dask.array")
    cupy_module = pytest.importorskip("cupy")
    X, _ = make_ihgmm(400, 30, 3, random_state=0)
    blocks = da.from_array(cupy_module.asarray(X), chunks=(100, 30), asarray=False)

    model = IhSC(3, **options).fit(blocks)
    host_model = IhSC(3, **options).fit(X)

    assert isinstance(model.labels_.compute(), cupy_module.ndarray)
    assert_array_equal(to_host(model.labels_), host_model.labels_)
    assert_array_equal(to_host(model.predict(blocks)), host_model.labels_)

    error = diagnose(X, host_model).expected_error

    assert diagnose(blocks, model).expected_error == pytest.approx(error, abs=1e-3)

    tied_model = IhGMM(3, noise="tied", random_state=0)

    labels = to_host(tied_model.fit(blocks).labels_)

    assert_array_equal(labels, tied_model.fit(X).labels_)
