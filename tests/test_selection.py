"""The number of clusters: the null as mathematics, the count over sweeps of seeds."""

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from ihgmm import IhGMM, IhSC, make_ihgmm
from ihgmm._checks.data import check_data
from ihgmm.flips import FlippedLanczos, Residual, Signs, run_on_kept, run_together
from ihgmm.gram import GramOperator
from ihgmm.metrics import misclassification_rate
from ihgmm.selection import ClusterCount, choose, select_n_clusters
from ihgmm.selection.parallel import count_above_noise

matplotlib.use("Agg")


def noise(n, p, kind, seed):
    """Rows of symmetric noise, each with its own level."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, p))
    return (np.sign(E) if kind == "rademacher" else E) * rng.uniform(0.5, 1.5, (n, 1))


def plane(degrees):
    angles = np.deg2rad(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
def test_residual_is_orthogonal_to_the_directions(gram):
    X, _ = make_ihgmm(60, 25, 3, random_state=0)
    G = GramOperator.of(X, gram)
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 3)))[0]
    residual = Residual(G, vectors)
    found = np.vstack([residual[rows] for rows in residual.ranges])
    A = X if gram == "hollow" else X / np.linalg.norm(X, axis=1)[:, None]
    V = np.linalg.svd(A.T @ vectors, full_matrices=False)[0]
    taken = np.square(V).sum(axis=1)
    assert_allclose(found, (A - A @ V @ V.T) / np.sqrt(1 - taken), atol=1e-10)


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
def test_sparse_residual_keeps_the_energy_of_features(gram, monkeypatch):
    monkeypatch.setattr("ihgmm.flips.BLOCK", 300)
    monkeypatch.setattr("ihgmm.flips.LARGEST_RATIO", np.inf)
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.8, (50, 40)).astype(float))
    vectors = rng.standard_normal((50, 2))
    sparse = Residual(GramOperator.of(X, gram), vectors)
    dense = Residual(GramOperator.of(X.toarray(), gram), vectors)
    found = sp.vstack([sparse[rows] for rows in sparse.ranges])
    full = np.vstack([dense[rows] for rows in dense.ranges])
    assert found.nnz == X.nnz
    assert_allclose(found.multiply(found).sum(axis=0), np.square(full).sum(axis=0))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("kept", [True, False])
def test_null_eigenvalue_is_that_of_the_dense_flipped_matrix(
    storage, kept, monkeypatch
):
    monkeypatch.setattr("ihgmm.flips.BLOCK", 300)
    monkeypatch.setattr("ihgmm.flips.ACCURACY", 1e-9)
    X, _ = make_ihgmm(70, 30, 3, random_state=1)
    G = GramOperator.of(storage(X), "hollow")
    rng = np.random.default_rng(0)
    residual = Residual(G, np.linalg.qr(rng.standard_normal((70, 3)))[0])
    assert len(residual.ranges) > 3
    runs = [FlippedLanczos(Signs(G.X, rng), G, 70, rng) for _ in range(2)]
    flipped = [
        [run.signs.flip(residual[rows], rows) for rows in residual.ranges]
        for run in runs
    ]
    if kept:
        for run, blocks in zip(runs, flipped, strict=True):
            run_on_kept(run, blocks, residual.ranges)
    else:
        run_together(runs, residual)
    for run, blocks in zip(runs, flipped, strict=True):
        F = np.vstack([b.toarray() if sp.issparse(b) else b for b in blocks])
        dense = np.vstack(
            [
                b.toarray() if sp.issparse(b) else b
                for b in map(residual.__getitem__, residual.ranges)
            ]
        )
        assert_allclose(np.abs(F), np.abs(dense))  # only signs differ
        flips = (F * dense < 0).sum() / np.count_nonzero(dense)
        assert 0.4 < flips < 0.6
        H = F @ F.T
        np.fill_diagonal(H, 0)
        assert run.top == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-6)


@pytest.mark.parametrize(("n", "p"), [(600, 3000), (1500, 600)])
def test_few_steps_point_to_the_end_of_the_bulk(n, p):
    G = GramOperator.of(noise(n, p, "gaussian", 0))
    exact = np.linalg.eigvalsh(G.toarray())[-1]
    rng = np.random.default_rng(0)
    residual = Residual(G, np.zeros((n, 0)))
    runs = [FlippedLanczos(Signs(G.X, rng), G, 6, rng) for _ in range(6)]
    run_together(runs, residual)
    assert not any(run.converged for run in runs)
    ritz = np.array([run.value for run in runs]) / exact - 1
    top = np.array([run.top for run in runs]) / exact - 1
    assert ritz.mean() < -0.03  # so few steps alone fall short
    assert abs(top.mean()) < 0.02


SETTINGS = [
    (300, 1000, 4, 3.0, 1.0, 0.5, "gaussian", "individual"),
    (500, 200, 12, 20.0, 0.5, 0.2, "rademacher", "class"),
    (200, 2000, 7, 20.0, 3.0, 0.2, "gaussian", "common"),
    (1000, 300, 2, 3.0, 1.0, 0.2, "rademacher", "individual"),
    (500, 200, 6, 1.0, 3.0, 0.2, "gaussian", "individual"),
    (300, 100, 1, 20.0, 1.0, 1.0, "gaussian", "individual"),
]


@pytest.mark.parametrize("gram", ["hollow", "cosine"])
@pytest.mark.parametrize(
    ("n", "p", "k", "ratio", "constant", "balance", "kind", "structure"), SETTINGS
)
def test_number_of_clusters(n, p, k, ratio, constant, balance, kind, structure, gram):
    for seed in range(2):
        X, _ = make_ihgmm(
            n, p, k, scale_ratio=ratio, separation_constant=constant, balance=balance,
            noise=kind, noise_structure=structure, random_state=seed,
        )  # fmt: skip
        found = select_n_clusters(X, gram=gram, random_state=seed)
        assert (found.n_clusters, found.rank) == (k, k)


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
@pytest.mark.parametrize(("n", "p"), [(100, 300), (300, 100)])
def test_pure_noise_has_no_structure(n, p, kind):
    counts = [
        select_n_clusters(noise(n, p, kind, seed), random_state=seed).n_clusters
        for seed in range(20)
    ]
    # At a rate of 2 in 100, more than 3 of 20 would be a chance of 1 in 1,500.
    assert sum(count > 0 for count in counts) <= 3


def test_a_strong_cluster_does_not_hide_a_weak_one():
    # Flipped without taking the strong one out, its energy swamps the weak one.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        E = noise(400, 100, "gaussian", seed)
        u, v = np.linalg.qr(rng.standard_normal((100, 2)))[0].T
        E[:300] += 60 * rng.uniform(1, 3, (300, 1)) * u
        E[300:] += 5 * rng.uniform(1, 3, (100, 1)) * v
        G = GramOperator.of(E)
        flipped = E * rng.choice([-1, 1], E.shape)
        null = np.linalg.eigvalsh(GramOperator.of(flipped).toarray())[-1]
        assert np.linalg.eigvalsh(G.toarray())[-2] < null
        assert select_n_clusters(E, random_state=seed).n_clusters == 2


@pytest.mark.parametrize(("n", "p", "k"), [(200, 600, 3), (400, 150, 4)])
def test_noisy_rows_do_not_hide_a_cluster(n, p, k):
    for seed in range(3):
        X, _ = make_ihgmm(
            n, p, k, scale_ratio=1, separation_constant=1.1, noise_levels=(0.3, 3.0),
            random_state=seed,
        )  # fmt: skip
        assert select_n_clusters(X, gram="hollow", random_state=seed).n_clusters < k
        found = select_n_clusters(X, random_state=seed)
        assert (found.n_clusters, found.rank, found.gram) == (k, k, "cosine")
        assert (found.eigenvalues > found.edge).sum() == k
        other = select_n_clusters(1e5 * X, random_state=seed)
        assert_allclose(other.edge, found.edge)  # cosines have no units
        model = IhSC("auto", gram="cosine", random_state=seed).fit(X)
        assert model.selection_.n_clusters == k


def test_the_second_look_starts_from_what_is_known():
    # Of four clusters in the cosines, those known are taken out and still count.
    G = GramOperator.of(make_ihgmm(300, 100, 4, random_state=0)[0], "cosine")
    for known in (None, 0, 2, 4, 6):
        _, rank, null, edge = count_above_noise(
            G, 10, 3, np.random.default_rng(0), known=known
        )
        assert rank == max(known or 0, 4)
        assert null.max() < edge
        assert len(null) <= 3


@pytest.mark.parametrize(
    ("centers", "count"),
    [
        (plane([12, 45, 78]), 3),
        (plane([10, 100, 190, 280]), 4),
        (np.vstack([np.eye(3), 1 - np.eye(3)]), 6),
        (plane([0, 60, 120]) @ np.random.default_rng(0).standard_normal((2, 60)), 3),
        (np.array([[1.0], [-1.0]]) * np.ones(30), 2),
        (np.ones((1, 30)), 1),
    ],
)
def test_stability_finds_more_clusters_than_directions(centers, count):
    for seed in range(2):
        X, _ = make_ihgmm(
            400, centers=centers, scale_ratio=4, noise_levels=0.06, random_state=seed
        )
        found = select_n_clusters(X, method="stability", random_state=seed)
        assert found.n_clusters == count
        assert found.rank <= min(count, centers.shape[1])


def test_stability_of_noise():
    for seed in range(3):
        X = noise(200, 2, "gaussian", seed)
        found = select_n_clusters(X, method="stability", random_state=seed)
        assert found.n_clusters == 0


def test_sparse_counts():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(600, 0.1), 5) * 80
    labels = rng.integers(5, size=800)
    X = rng.poisson(topics[labels] * rng.uniform(0.3, 3, (800, 1)))
    for storage in (np.asarray, sp.csr_array, sp.csc_array):
        assert select_n_clusters(storage(X), random_state=0).n_clusters == 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_and_few_steps(dtype, monkeypatch):
    # The paths of large data, on data that is not.
    monkeypatch.setattr("ihgmm.flips.SMALL", 100)
    monkeypatch.setattr("ihgmm.flips.MEDIUM", 100)
    monkeypatch.setattr("ihgmm.selection.count.MOST_ENTRIES", 2**16)
    X, _ = make_ihgmm(6000, 40, 5, scale_ratio=3, random_state=0, dtype=dtype)
    for data in (X, sp.csr_array(X)):
        found = select_n_clusters(data, random_state=0)
        assert found.n_clusters == 5
        assert found.n_rows < 3000
        assert len(found.null) == 2


def test_units_storage_and_seed():
    X, _ = make_ihgmm(200, 60, 3, random_state=0)
    found = select_n_clusters(X, random_state=0)
    for scale in (1e-120, 1e-8, 1e6, 1e120):
        other = select_n_clusters(X * scale, random_state=0)
        assert other.n_clusters == 3
        assert_allclose(other.edge / scale / scale, found.edge, rtol=1e-6)
    huge = select_n_clusters(X * 1e200, random_state=0)
    assert huge.n_clusters == 3
    unit = 2.0 ** np.floor(np.log2(np.abs(X * 1e200).max()))  # no float holds squares
    assert_allclose(huge.edge, found.edge * (1e200 / unit) ** 2, rtol=1e-6)
    again = select_n_clusters(np.asfortranarray(X), random_state=0)
    assert again.edge == pytest.approx(found.edge)
    whole = np.rint(X * 8).astype(np.int32)
    before = whole.copy()
    assert select_n_clusters(whole, random_state=0).n_clusters == 3
    assert (whole == before).all()


def test_private_twin():
    X, _ = make_ihgmm(200, 60, 3, random_state=0)
    data = check_data(X)
    twin = choose(data.X, data.sqnorms, "auto", np.random.default_rng(0))
    public = select_n_clusters(X, random_state=0)
    assert isinstance(twin, ClusterCount)
    assert public.gram == "hollow"  # where the cosines show no more
    assert (twin.n_clusters, twin.edge) == (public.n_clusters, public.edge)


@pytest.mark.parametrize("method", ["parallel", "stability"])
@pytest.mark.parametrize("gram", ["hollow", "cosine"])
def test_odd_data(method, gram):
    def count(X):
        return select_n_clusters(X, method=method, gram=gram, random_state=0).n_clusters

    rng = np.random.default_rng(0)
    assert count(np.full((40, 6), 3.0)) == 1
    assert count(np.outer(np.arange(1, 31), rng.standard_normal(20))) == 1
    assert count(np.zeros((20, 5))) == 0
    assert count(rng.standard_normal((1, 5))) == 0
    assert count(rng.standard_normal((5, 50))) == 0
    assert count(rng.uniform(1, 2, (50, 1))) == 1
    assert count(make_ihgmm(5, 50, 1, random_state=0)[0]) == 1
    X, _ = make_ihgmm(90, 30, 3, random_state=0)
    assert count(np.vstack([X, np.zeros((20, 30))])) == 3


def test_limit_words_and_picture():
    X, _ = make_ihgmm(400, 100, 6, random_state=0)
    assert select_n_clusters(X, max_clusters=4, random_state=0).n_clusters == 4
    found = select_n_clusters(X, n_flips=2, random_state=0)
    assert len(found.null) == 2
    assert repr(found).startswith("ClusterCount(n_clusters=6, rank=6, edge=")
    assert str(found).startswith("6 eigenvalues stand out from sign-flipped data")
    assert (found.eigenvalues[:6] > found.edge).all()
    assert (found.eigenvalues[6:] < found.edge).all()
    ax = found.plot()
    assert ax.get_title() == "6 clusters, rank 6"
    assert found.plot(ax) is ax
    one = select_n_clusters(make_ihgmm(90, 30, 1, random_state=0)[0], random_state=0)
    assert "share one direction" in one.summary
    none = select_n_clusters(noise(60, 90, "gaussian", 0), random_state=0)
    assert "No structure" in none.summary
    few = select_n_clusters(np.repeat(np.eye(2), 20, axis=0), method="stability")
    assert few.rank == 0
    assert "Halves of the data agree on 2 clusters" in few.summary
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_clusters": 0}, ValueError, "max_clusters=0 is too small; give 1"),
        ({"max_clusters": 2.5}, TypeError, "max_clusters=2.5 is a float; give a whole"),
        (
            {"gram": "full"},
            ValueError,
            "gram='full' is not known; give one of 'auto', 'hollow'",
        ),
        (
            {"method": "gap"},
            ValueError,
            "method='gap' is not known; give .*'stability'",
        ),
        ({"n_flips": 0}, ValueError, "n_flips=0 is too small; give 1"),
        ({"random_state": "x"}, TypeError, "random_state='x' is a str; give"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        select_n_clusters(np.eye(4), **options)


def test_nan():
    X = np.eye(4)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN at row 2, column 1"):
        select_n_clusters(X)


def test_a_column_that_dominates_is_said_to():
    X, _ = make_ihgmm(400, 100, 4, random_state=0)
    assert select_n_clusters(X, random_state=0).largest_column < 0.2
    units = X * np.where(np.arange(100) == 7, 1e4, 1)
    for storage in (np.asarray, sp.csr_array):
        found = select_n_clusters(storage(units), random_state=0)
        assert found.n_clusters == 0
        assert "Cannot tell: column 7 holds" in found.summary
        assert "Divide the columns by their deviation" in found.summary
    remedy = units / units.std(axis=0)
    assert select_n_clusters(remedy, random_state=0).n_clusters == 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_is_to_be_subtracted(dtype):
    X = make_ihgmm(400, 100, 4, random_state=0, dtype=dtype)[0]
    X[:, 3] += 1e3
    for data in (X, sp.csc_array(X), X / X.std(axis=0)):
        found = select_n_clusters(data, random_state=0)
        assert found.n_clusters == 0
        assert "Cannot tell: column 3 holds" in found.summary
        assert "subtract its mean, or leave it out" in found.summary
        assert "Divide" not in found.summary
    assert found.plot().get_title() == "cannot tell, rank 0"
    matplotlib.pyplot.close("all")
    X[:, 3] -= X[:, 3].mean()
    assert select_n_clusters(X, random_state=0).n_clusters == 4


@pytest.mark.parametrize("method", ["auto", "parallel", "stability"])
@pytest.mark.parametrize(("n_features", "most"), [(100, 1), (100, 2), (8, 1)])
def test_the_largest_number_looked_for_is_said(n_features, most, method):
    X, _ = make_ihgmm(400, n_features, 4, scale_ratio=3, random_state=1)
    found = select_n_clusters(X, max_clusters=most, method=method, random_state=0)
    assert found.n_clusters == most
    assert f"stopped at max_clusters={most}, there may be more" in found.summary
    assert "share one direction" not in found.summary


def test_an_estimator_says_that_it_stopped_counting():
    X, _ = make_ihgmm(600, 200, 52, scale_ratio=2, random_state=0)
    message = r"50 clusters at most .* select_n_clusters\(X, max_clusters=500\)"
    with pytest.warns(ConvergenceWarning, match=message):
        model = IhSC("auto", random_state=0).fit(X)
    assert model.n_clusters_ == 50
    assert select_n_clusters(X, max_clusters=500, random_state=0).n_clusters == 52


def noisy_rows():
    levels = np.where(np.random.default_rng(0).random(300) < 0.2, 12.0, 0.7)
    return make_ihgmm(
        300, 300, 4, scale_ratio=3, separation_constant=0.9, noise_levels=levels,
        random_state=0,
    )  # fmt: skip


def test_a_count_that_only_cosines_show_is_said_to():
    X, labels = noisy_rows()
    found = select_n_clusters(X, random_state=0)
    assert (found.n_clusters, found.gram) == (4, "cosine")
    assert "cluster with gram='cosine' or refine=True" in found.summary
    plain = IhSC("auto", random_state=0)
    with pytest.warns(ConvergenceWarning, match="gram='cosine' or refine=True"):
        plain.fit(X)
    assert misclassification_rate(labels, plain.labels_) > 0.4
    for model in (
        IhSC("auto", gram="cosine", random_state=0),
        IhSC("auto", refine=True, random_state=0),
        IhGMM("auto", random_state=0),
    ):  # warnings are errors
        assert misclassification_rate(labels, model.fit_predict(X)) < 0.2


@pytest.mark.parametrize(("p", "k"), [(2, 2), (5, 4), (9, 9), (20, 3)])
def test_few_features_are_counted_by_stability(p, k):
    for seed in range(2):
        X, _ = make_ihgmm(400, p, k, random_state=seed)
        found = select_n_clusters(X, random_state=seed)
        assert (found.n_clusters, found.method) == (k, "stability")
        assert f"Halves of the data agree on {k} clusters" in found.summary
        signs = select_n_clusters(X, method="parallel", random_state=seed)
        assert signs.n_clusters <= k
        assert "compare the method 'stability'" in signs.summary
    assert IhSC("auto", random_state=0).fit(X).n_clusters_ == k


def test_many_features_are_counted_by_flips():
    found = select_n_clusters(make_ihgmm(300, 21, 3, random_state=0)[0])
    assert (found.n_clusters, found.method, found.strengths) == (3, "parallel", {})
    assert "stability" not in found.summary


@pytest.mark.parametrize("p", [2, 3, 6])
def test_noise_in_few_features_has_no_clusters(p):
    counts = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        # Columns of unequal length: two sides of the longest are no clusters.
        X = rng.standard_normal((60, p)) * rng.uniform(0.3, 3, p)
        counts.append(select_n_clusters(X, random_state=seed).n_clusters)
    # At a rate of 3 in 100, more than 2 of 10 would be a chance of 1 in 360.
    assert np.count_nonzero(counts) <= 2
    found = select_n_clusters(noise(60, p, "gaussian", 0), random_state=0)
    assert "No structure: no eigenvalue stands out" in found.summary
    assert "No number of clusters from 2 to" in found.summary
    assert f"Signs on {p} features may not show" in found.summary


def test_no_stable_number_is_said():
    X = load_digits().data
    found = select_n_clusters(X, method="stability", random_state=0)
    assert found.n_clusters == found.rank == min(found.strengths)
    assert max(found.strengths.values()) < 0.9
    last = max(found.strengths)
    assert last == found.rank + 8
    assert f"No number of clusters from {found.rank} to {last} is" in found.summary
    assert "The number given is the rank" in found.summary
    assert found.plot_strengths().get_title() == "stable: no number"
    matplotlib.pyplot.close("all")


def test_picture_of_stability():
    X, _ = make_ihgmm(400, 5, 4, random_state=0)
    found = select_n_clusters(X, random_state=0)
    left, right = found.plot().figure.axes
    assert left.get_title() == "4 clusters, rank 1"
    assert right.get_title() == "stable: 4 clusters"
    assert_allclose(right.lines[0].get_xdata(), list(found.strengths))
    assert_allclose(right.lines[0].get_ydata(), list(found.strengths.values()))
    assert_allclose(right.lines[1].get_xdata(), 4)
    assert_allclose(right.lines[2].get_ydata(), 0.9)
    own = matplotlib.pyplot.figure().add_subplot()
    assert found.plot(own) is own
    assert own.get_xlabel() == "eigenvalue number"
    assert own.figure.axes == [own]
    assert found.plot_strengths().get_ylabel() == "prediction strength"
    matplotlib.pyplot.close("all")
    signs = select_n_clusters(X, method="parallel", random_state=0)
    with pytest.raises(ValueError, match="has no prediction strengths"):
        signs.plot_strengths()
