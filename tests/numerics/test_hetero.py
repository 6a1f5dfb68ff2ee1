import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import exact_recovery, misclassification_rate
from ihgmm.numerics.eigen import ORDERS, leading_eigenpairs
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.hetero import impute_diagonal


def leading(M, order):
    values, vectors = np.linalg.eigh(M)
    lead = np.argsort(-(np.abs(values) if order == "magnitude" else values))
    return values[lead], vectors[:, lead]


def next_rank(sizes, rank, k):
    """The rule of Deflated HeteroPCA, word for word."""
    fit = [
        r
        for r in range(rank + 1, k + 1)
        if sizes[rank] / sizes[r - 1] <= 4
        and sizes[r - 1] - sizes[r] >= sizes[r - 1] / k
    ]
    return max(fit) if fit else k


def papers(X, k, order, *, deflate=True):
    """Both papers' algorithms on the matrix itself, without bounds."""
    M = X @ X.T
    np.fill_diagonal(M, 0)
    rank, ranks = 0, []
    while rank < k:
        sizes = leading(M, order)[0]
        rank = next_rank(np.abs(sizes), rank, k) if deflate else k
        ranks.append(rank)
        for _ in range(200):
            values, vectors = leading(M, order)
            diagonal = vectors[:, :rank] ** 2 @ values[:rank]
            change = np.abs(diagonal - np.diag(M)).max()
            np.fill_diagonal(M, diagonal)
            if change <= 1e-12 * diagonal.max():
                break
    return np.diag(M).copy(), tuple(ranks), leading(M, order)[1][:, :k]


def one_update(X, diagonal, k, order):
    M = X @ X.T
    most = np.diag(M).copy()
    np.fill_diagonal(M, diagonal)
    values, vectors = leading(M, order)
    used = values[:k] if order == "magnitude" else np.maximum(values[:k], 0)
    return np.clip(vectors[:, :k] ** 2 @ used, 0, most)


def turned(U, V):
    """The sine of the largest angle between two subspaces."""
    return np.linalg.norm(V - U @ (U.T @ V), 2)


def directions(k, p, seed):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((p, k)))
    return Q.T


def unequal(seed, n=50):
    """Centres of norms 100, 100 and 6."""
    centers = directions(3, 300, seed) * np.array([[100], [100], [6]])
    return make_ihgmm(
        n, centers=centers, scale_ratio=3, random_state=seed, return_params=True
    )


def few_rows(seed, rows=40):
    """Centres with cosine 0.8, scales 1 to 20, noise that differs ninefold."""
    rng = np.random.default_rng(seed)
    mix = np.linalg.cholesky(0.2 * np.eye(3) + 0.8)
    return make_ihgmm(
        rows,
        centers=6 * mix @ directions(3, 1000, seed),
        scale_ratio=20,
        noise_levels=np.where(rng.random(rows) < 0.2, 3.0, 1 / 3),
        random_state=seed,
        return_params=True,
    )


SAMPLES = {
    "strong": lambda: make_ihgmm(120, 60, 4, random_state=0)[0],
    "weak": lambda: make_ihgmm(120, 300, 3, separation_constant=0.3, random_state=1)[0],
    "few": lambda: make_ihgmm(40, 300, 4, scale_ratio=5, random_state=2)[0],
    "ill": lambda: unequal(3, 120).X,
    "one cluster": lambda: make_ihgmm(100, 30, 1, random_state=4)[0],
}


@pytest.mark.parametrize("solver", ["dense", "block"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", list(SAMPLES))
def test_agrees_with_the_papers(name, order, solver):
    X = SAMPLES[name]()
    k = {"strong": 4, "few": 4, "one cluster": 1}.get(name, 3)
    diagonal, ranks, vectors = papers(X, k, order)
    assert ranks == ((2, 3) if name == "ill" else (k,))
    found = impute_diagonal(
        GramOperator.of(X),
        k,
        order=order,
        solver=solver,
        tol=1e-9,
        rng=np.random.default_rng(0),
    )
    assert_allclose(found.diagonal, diagonal, atol=1e-6 * diagonal.max())
    assert found.ranks == ranks
    assert turned(vectors, found.pairs.vectors) <= 1e-6
    assert found.pairs.solver == ("dense" if name == "few" else solver)


def test_stages_rescue_what_one_stage_loses():
    # What Deflated HeteroPCA is for, with singular values as in the papers.
    for seed in range(4):
        sample = unequal(seed)
        truth = np.linalg.svd(sample.signal, full_matrices=False)[0][:, :3]
        G = GramOperator.of(sample.X)
        found = impute_diagonal(G, 3, order="magnitude", tol=1e-4)
        assert found.ranks == (2, 3)
        assert turned(truth, found.pairs.vectors) < 0.25
        at_once = papers(sample.X, 3, "magnitude", deflate=False)[2]
        hollow = leading_eigenpairs(G, 3, order="magnitude").vectors
        assert turned(truth, at_once) > 0.9
        assert turned(truth, hollow) > 0.9


# With order "magnitude" a large row takes up two eigenvectors, of opposite eigenvalues,
# all by itself, and its diagonal is not determined.
@pytest.mark.parametrize(
    ("order", "large"), [("algebraic", 1), ("magnitude", 1), ("algebraic", 60)]
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_fixed_point(kind, order, large):
    X, _ = make_ihgmm(100, 40, 3, scale_ratio=4, random_state=0)
    X[7] *= large
    X[20:23] = 0
    stored = kind(X)
    for solver in ("dense", "block"):
        found = impute_diagonal(
            GramOperator.of(stored),
            3,
            order=order,
            solver=solver,
            tol=1e-8,
            rng=np.random.default_rng(0),
        )
        size = found.diagonal.max()
        again = one_update(X, found.diagonal, 3, order)
        assert_allclose(again, found.diagonal, atol=1e-7 * size)
        assert_allclose(np.diag(found.gram.toarray()), found.diagonal, atol=1e-9 * size)
        assert_array_equal(found.diagonal[20:23], 0)
        assert_allclose(found.pairs.vectors[20:23], 0, atol=1e-7)


@pytest.mark.parametrize("solver", ["dense", "block"])
def test_operator_and_pairs_belong_together(solver):
    X, _ = make_ihgmm(200, 50, 4, scale_ratio=3, random_state=0)
    rng = np.random.default_rng(0)
    G = GramOperator.of(X).scaled(0.25)
    found = impute_diagonal(G, 4, solver=solver, tol=1e-9, rng=rng)
    assert_allclose(found.gram @ np.eye(200), found.gram.toarray(), atol=1e-8)
    off = ~np.eye(200, dtype=bool)
    assert_allclose(found.gram.toarray()[off], G.toarray()[off])
    assert_allclose(np.diag(found.gram.toarray()), found.diagonal)
    wanted = leading_eigenpairs(found.gram, 4, solver="dense")
    assert_allclose(found.pairs.values, wanted.values, rtol=1e-7)
    assert_allclose(found.pairs.vectors, wanted.vectors, atol=1e-6)
    assert found.change <= 1e-9
    # The start does not matter: what was on the diagonal is not used.
    full = impute_diagonal(GramOperator.of(X, "full"), 4, solver="dense", tol=1e-9)
    assert_allclose(0.25 * full.diagonal, found.diagonal, rtol=1e-6)


@pytest.mark.parametrize("solver", ["dense", "block"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_without_noise_the_diagonal_comes_back(solver, k):
    # Also when the rank, 2, is less than asked for.
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (200, 2)) @ rng.standard_normal((2, 30))
    found = impute_diagonal(GramOperator.of(X), k, solver=solver, tol=1e-7, rng=rng)
    assert_allclose(found.diagonal, (X**2).sum(axis=1), rtol=1e-5)
    assert found.pairs.vectors.shape == (200, k)
    assert_allclose(found.pairs.vectors.T @ found.pairs.vectors, np.eye(k), atol=1e-8)


def test_bounds():
    # Unbounded, two rows with inner product 3 would both get a 3.
    X = np.outer([1.0, 3.0], [0.6, 0.8])
    assert_allclose(papers(X, 1, "algebraic")[0], 3)
    found = impute_diagonal(GramOperator.of(X), 1, tol=1e-8)
    assert_allclose(found.diagonal, [1, 9], rtol=1e-6)
    # Nor is anything negative put there by negative eigenvalues.
    X = np.random.default_rng(1).standard_normal((20, 3))
    assert papers(X, 10, "magnitude")[0].min() < -1
    found = impute_diagonal(GramOperator.of(X), 10, order="magnitude", tol=1e-3)
    assert found.diagonal.min() >= 0


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_float32(storage):
    X, _ = make_ihgmm(500, 80, 4, random_state=0)
    exact = impute_diagonal(GramOperator.of(X), 4, solver="dense", tol=1e-8)
    G = GramOperator.of(storage(X.astype(np.float32)))
    for solver in ("dense", "block"):
        rng = np.random.default_rng(0)
        found = impute_diagonal(G, 4, solver=solver, tol=1e-4, rng=rng)
        assert found.pairs.vectors.dtype == np.float32
        assert found.pairs.values.dtype == np.float64
        assert (found.gram @ np.eye(500, 2)).dtype == np.float32
        assert_allclose(found.diagonal, exact.diagonal, rtol=1e-2)
        assert turned(exact.pairs.vectors, found.pairs.vectors) <= 1e-3


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(120, 400), (700, 100)])
def test_pure_noise_ends(shape, order):
    X = np.random.default_rng(0).standard_normal(shape)
    G = GramOperator.of(X)
    found = impute_diagonal(G, 5, order=order, tol=1e-2, rng=np.random.default_rng(0))
    assert found.n_updates < 1000  # the cap
    assert (found.diagonal <= G.A.sqnorms).all()


@pytest.mark.parametrize(("n", "p", "k"), [(1, 3, 1), (2, 2, 2), (6, 4, 6), (90, 1, 3)])
def test_tiny(n, p, k):
    X = np.random.default_rng(1).standard_normal((n, p))
    found = impute_diagonal(GramOperator.of(X), k, tol=1e-3)
    assert found.pairs.vectors.shape == (n, k)
    assert_allclose(found.pairs.vectors.T @ found.pairs.vectors, np.eye(k), atol=1e-8)
    assert found.ranks[-1] == k


def test_zero_matrix():
    for solver in ("dense", "block"):
        found = impute_diagonal(GramOperator.of(np.zeros((100, 5))), 3, solver=solver)
        assert_array_equal(found.diagonal, 0)


def test_caps_warn():
    G = GramOperator.of(few_rows(0, 200).X)
    with pytest.warns(
        ConvergenceWarning, match=r"settle in 2 updates: .* by \d\.\de-0"
    ):
        found = impute_diagonal(G, 3, tol=1e-8, max_iter=2)
    assert found.change > 1e-8
    options = {"solver": "block", "tol": 1e-8, "max_products": 3}
    with pytest.warns(ConvergenceWarning, match=r"in 3 products: residual \d\.\de-"):
        impute_diagonal(G, 3, rng=np.random.default_rng(0), **options)


def test_costs_few_products():
    # The diagonal settles between products, not by them.
    X, _ = make_ihgmm(500, 200, 4, separation_constant=0.5, random_state=0)
    G = GramOperator.of(X)
    plain = leading_eigenpairs(
        G, 4, solver="block", tol=1e-2, rng=np.random.default_rng(0)
    )
    found = impute_diagonal(
        G, 4, solver="block", tol=1e-2, rng=np.random.default_rng(0)
    )
    assert found.pairs.n_iter <= plain.n_iter + 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_few_rows_a_cluster_settle_in_the_directions_of_features(storage, dtype):
    # Noise that differs ninefold moves rows away from the features' own directions.
    X, _ = make_ihgmm(600, 80, 40, noise_levels=(0.3, 2.7), random_state=0)
    G = GramOperator.of(X)
    exact = impute_diagonal(G, 40, extra=22, solver="dense", tol=1e-8)
    G = GramOperator.of(storage(X.astype(dtype)))
    found = impute_diagonal(G, 40, extra=22, tol=1e-2)
    assert found.pairs.solver == "block"
    assert found.pairs.n_iter <= 4
    assert found.pairs.vectors.shape == (600, 62)
    # The tolerance holds for eigenvectors and for the diagonal, each by itself.
    assert turned(exact.pairs.vectors[:, :40], found.pairs.vectors[:, :40]) <= 2e-2
    # However accurate it is to be: these directions are a start, and not the end.
    if dtype == np.float64:
        found = impute_diagonal(G, 40, extra=22, tol=1e-7)
        assert turned(exact.pairs.vectors[:, :40], found.pairs.vectors[:, :40]) <= 1e-6


def test_few_rows_of_unequal_noise():
    # Where it pays: the subspace, with few rows.
    for seed in range(8):
        sample = few_rows(seed)
        truth = np.linalg.svd(sample.signal, full_matrices=False)[0][:, :3]
        found = impute_diagonal(GramOperator.of(sample.X), 3, tol=1e-3)
        mine = turned(truth, found.pairs.vectors)
        for gram in ("hollow", "full"):
            G = GramOperator.of(sample.X, gram)
            assert mine < 0.6 * turned(truth, leading_eigenpairs(G, 3).vectors)


@pytest.mark.parametrize(
    ("storage", "solver"),
    [
        (np.asarray, "auto"),
        (sp.csr_array, "dense"),
        (sp.csc_array, "lanczos"),
        (sp.csr_array, "block"),
    ],
)
def test_recovery(storage, solver):
    for seed in range(2):
        X, labels = make_ihgmm(80, 100, 4, noise_levels=(0.3, 2.7), random_state=seed)
        for clip in (None, 1.5):
            recipe = Recipe(clip=clip, solver=solver, tol=1e-6)
            model = IhSC(4, recipe=recipe, random_state=0).fit(storage(X))
            assert exact_recovery(labels, model.labels_)
            assert model.placement_.embedding.diagonal == "imputed"
            found = impute_diagonal(GramOperator.of(X, clip=clip), 4, tol=1e-6)
            assert_allclose(model.eigenvalues_[:4], found.pairs.values, rtol=1e-4)


def test_a_diagonal_that_would_change_nothing_is_left_out():
    for seed in range(5):
        X, _ = make_ihgmm(600, 100, 4, random_state=seed)
        hetero, hollow = (
            IhSC(4, recipe=Recipe(gram=gram, tol=1e-8), random_state=0).fit(X)
            for gram in ("hetero", "hollow")
        )
        assert hetero.placement_.embedding.diagonal == "zero"
        assert_array_equal(hetero.labels_, hollow.labels_)
        assert_allclose(hetero.eigenvalues_, hollow.eigenvalues_)
        # Filled in, it turns the eigenvectors by less than a twentieth.
        imputed = impute_diagonal(GramOperator.of(X, clip=1.5), 4, tol=1e-6).pairs
        plain = leading_eigenpairs(GramOperator.of(X, clip=1.5), 4).vectors
        assert turned(plain, imputed.vectors) < 0.05


def test_recovery_with_singular_values():
    # With order "magnitude" the hollow matrix loses the small cluster, this one not.
    errors = {"hollow": [], "hetero": []}
    for seed in range(5):
        sample = unequal(seed, 60)
        for gram, seen in errors.items():
            model = IhSC.paper(3, gram=gram, order="magnitude", random_state=0)
            labels = model.fit_predict(sample.X)
            seen.append(misclassification_rate(sample.labels, labels))
    assert max(errors["hetero"]) == 0
    assert min(errors["hollow"]) > 0.1
