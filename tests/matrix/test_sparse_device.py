"""Sparse matrices of torch and CuPy: layouts, types, messages, and what stays where.

That they give NumPy's answers is asked by the contract of all kinds.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from array_kinds import cupy_csr, needed, quiet, torch_csr, torch_csr_cuda
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC, diagnose
from ihgmm.matrix import as_matrix, to_host
from ihgmm.metrics import misclassification_rate


@pytest.fixture(params=[torch_csr, torch_csr_cuda, cupy_csr], ids=lambda p: p.__name__)
def to_device(request):
    """A way to turn a NumPy array into a sparse matrix of another library."""
    request.param(np.eye(2))
    return request.param


def sample(n=1_000, p=80, k=4, seed=0, dtype=np.float64):
    """Rows of a fifth of their entries, each cluster in columns of its own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    chances = np.where(rng.random((k, p)) < 0.3, 0.5, 0.05)
    X = rng.gamma(4.0, size=(n, p)) * (rng.random((n, p)) < chances[labels])
    return (X * rng.uniform(1, 20, (n, 1))).astype(dtype), labels


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: IhSC(4, columns="noise", random_state=0), np.float64),
        (lambda: IhSC(4, signed=True, random_state=0), np.float32),
        (lambda: IhSC(4, outliers="auto", random_state=0), np.float64),
        (lambda: IhGMM(4, noise="tied", random_state=0), np.float64),
    ],
    ids=["noise", "signed", "outliers", "tied"],
)
def test_estimators(to_device, make, dtype):
    X, labels = sample(dtype=dtype)
    A = to_device(X)

    fitted = make().fit(A)
    expected = make().fit(sp.csr_array(X))

    assert_array_equal(to_host(fitted.labels_), expected.labels_)
    assert misclassification_rate(labels, expected.labels_) < 0.02

    entries = as_matrix(A).values

    assert type(fitted.labels_) is type(entries)
    assert fitted.labels_.device == entries.device
    assert_array_equal(to_host(fitted.predict(A)), expected.predict(sp.csr_array(X)))


def layouts():
    torch = needed("torch")
    X, _ = sample(200, 40)
    A = torch.asarray(X)
    coo = A.to_sparse_coo()

    # Entries in any order, and one of them in two parts.
    indices = coo.indices().flip(1)
    values = coo.values().flip(0)
    indices = torch.cat([indices, indices[:, :1]], 1)
    values = torch.cat([values, -values[:1]])
    values[0] *= 2
    uncoalesced = torch.sparse_coo_tensor(
        indices, values, A.shape, check_invariants=True
    )

    return X, {
        "coo": coo,
        "coo, not coalesced": uncoalesced,
        "csc": quiet(A.to_sparse_csc),
        "csr, transposed": quiet(A.T.contiguous().to_sparse_csr).t(),
        "bsr": quiet(lambda: A.to_sparse_bsr((2, 4))),
        "bsc": quiet(lambda: A.to_sparse_bsc((4, 2))),
        "gradients": torch_csr(X).requires_grad_(),
    }


@pytest.mark.parametrize(
    "layout",
    ["coo", "coo, not coalesced", "csc", "csr, transposed", "bsr", "bsc", "gradients"],
)
def test_layouts_of_torch(layout):
    X, tensors = layouts()
    tensor = tensors[layout]
    layout_before = tensor.layout

    assert_allclose(as_matrix(tensor).toarray(), X, rtol=1e-15)

    fitted = IhSC(4, random_state=0).fit(tensor)
    expected = IhSC(4, random_state=0).fit(sp.csr_array(X))

    assert_array_equal(to_host(fitted.labels_), expected.labels_)
    assert not fitted.scales_.requires_grad
    assert tensor.layout == layout_before


@pytest.mark.parametrize("convert", ["tocsc", "tocoo"])
def test_layouts_of_cupy(convert):
    X, _ = sample(200, 40)
    cupy_matrix = getattr(cupy_csr(X), convert)()
    A = as_matrix(cupy_matrix)

    assert_array_equal(A.toarray(), X)
    assert_allclose(to_host(A.adjoint(X)), X.T @ X, rtol=1e-9)

    eye = needed("cupyx.scipy.sparse").eye(3)

    assert_array_equal(as_matrix(eye).toarray(), np.eye(3))


def test_cupy_entries_in_any_order():
    cupy = needed("cupy")
    sparse = needed("cupyx.scipy.sparse")
    parts = cupy.ones(4), cupy.asarray([2, 0, 1, 1]), cupy.asarray([0, 2, 4])
    cupy_matrix = sparse.csr_matrix(parts, shape=(2, 3))

    assert_array_equal(as_matrix(cupy_matrix).toarray(), [[1, 0, 1], [0, 2, 0]])
    assert_array_equal(to_host(cupy_matrix.indices), [2, 0, 1, 1])  # the user's own


@pytest.mark.parametrize(
    ("name", "expected"), [("bfloat16", "float32"), ("bool", "float64")]
)
def test_types(name, expected):
    torch_type = getattr(needed("torch"), name)
    X = np.random.default_rng(0).random((30, 9)) < 0.5
    tensor = torch_csr(X.astype(np.float64)).to(torch_type)
    A = as_matrix(tensor)

    assert A.dtype == expected
    assert_array_equal(A.toarray(), X)
    assert tensor.dtype == torch_type


def test_data_without_an_entry(to_device):
    for n, p in ((20, 3), (3, 20)):
        A = as_matrix(to_device(np.zeros((n, p))))

        assert (A.n_entries, A.max_abs(), A.most_negative()) == (0, 0.0, 0.0)
        assert_array_equal(to_host(A @ np.ones((p, 2))), np.zeros((n, 2)))
        assert_array_equal(to_host(A.adjoint(np.ones((n, 2)))), np.zeros((p, 2)))
        assert_array_equal(A.column_sqnorms(), np.zeros(p))

        with pytest.raises(ValueError, match=f"All {n} rows of X are zero"):
            IhSC(2).fit(to_device(np.zeros((n, p))))


def message(X, error=ValueError):
    with pytest.raises(error) as caught:
        IhSC(2).fit(X)
    return str(caught.value)


def test_tensors_that_are_no_matrix():
    torch = needed("torch")
    A = torch.asarray(sample(10, 4)[0])
    csr = torch_csr(A.numpy())

    assert "Complex data not supported" in message(csr.to(torch.complex64))

    text = message(quiet(torch.stack([A, A]).to_sparse_csr))

    assert "Expected 2D array, got 3D array instead: X has shape (2, 10, 4)" in text

    hybrid = A.to_sparse(1)

    assert "layout torch.sparse_coo, which has no rows of" in message(hybrid, TypeError)

    nested = quiet(
        lambda: torch.nested.nested_tensor([A[0], A[1, :2]], layout=torch.jagged)
    )
    text = message(nested, TypeError)

    assert "layout torch.jagged" in text
    assert "give a dense one or one of layout torch.sparse_csr" in text


def test_entries_that_are_in_no_column():
    torch = needed("torch")

    def tensor(indptr, indices):
        positions = torch.asarray(indptr), torch.asarray(indices)
        return torch.sparse_csr_tensor(
            *positions, torch.ones(3), (3, 4), check_invariants=False
        )

    for indptr, indices, text in (
        ([0, 1, 2, 3], [0, 4, 1], "have 3 entries, in columns 0 to 4; check how"),
        ([0, 1, 2, 3], [0, -1, 1], "have 3 entries, in columns -1 to 1; check how"),
        ([0, 1, 2, 2], [0, 3, 1], "3 entries, but its rows have 2 entries"),
    ):
        assert text in message(tensor(indptr, indices))


@pytest.mark.parametrize(
    "work",
    [
        lambda A, labels: IhSC(4, recipe="paper").fit(A),
        lambda A, labels: diagnose(A, labels),
    ],
    ids=["paper", "diagnose"],
)
def test_the_entries_do_not_leave_their_device(monkeypatch, work):
    """What comes to the host has a few numbers for each row or for each column."""
    torch = needed("torch")
    X, labels = sample(8_000, 120)
    A = as_matrix(torch_csr(X))
    sizes = []
    original_cpu = torch.Tensor.cpu

    def spy(tensor, *arguments):
        sizes.append(tensor.numel())
        return original_cpu(tensor, *arguments)

    monkeypatch.setattr(torch.Tensor, "cpu", spy)

    work(A, labels)

    assert 0 < max(sizes) <= 16 * 8_000 < A.n_entries
