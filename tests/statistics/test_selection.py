"""The number of clusters: the count over sweeps of seeds, and what it says."""

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from ihgmm import IhSC, make_ihgmm, select_n_clusters
from ihgmm.matrix import as_matrix
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.gram import GramOperator
from ihgmm.plotting import plot_evidence
from ihgmm.statistics.evidence import Confidence, Side
from ihgmm.statistics.selection import count_above_noise, count_clusters

matplotlib.use("Agg")


def noise(n, p, kind, seed):
    """Rows of symmetric noise, each with its own level."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, p))
    return (np.sign(E) if kind == "rademacher" else E) * rng.uniform(0.5, 1.5, (n, 1))


def named(count):
    return [number.n_clusters for number in count.plausible]


@pytest.fixture(scope="module")
def six():
    """The count of six clear clusters."""
    X, _ = make_ihgmm(300, 100, 6, random_state=0)
    return select_n_clusters(X, random_state=0)


def plane(degrees):
    angles = np.deg2rad(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.mark.parametrize(
    ("n", "p", "k", "ratio", "constant", "balance", "kind", "structure", "gram"),
    [
        (200, 400, 4, 3.0, 1.0, 0.5, "gaussian", "individual", "hollow"),
        (300, 100, 12, 20.0, 0.5, 0.2, "rademacher", "class", "cosine"),
        (150, 600, 7, 20.0, 3.0, 0.2, "gaussian", "common", "hollow"),
        (300, 100, 1, 20.0, 1.0, 1.0, "gaussian", "individual", "cosine"),
    ],
)
def test_number_of_clusters(n, p, k, ratio, constant, balance, kind, structure, gram):
    X, _ = make_ihgmm(
        n, p, k, scale_ratio=ratio, separation_constant=constant, balance=balance,
        noise=kind, noise_structure=structure, random_state=0,
    )  # fmt: skip
    count = select_n_clusters(X, gram=gram, random_state=0)
    assert (count.n_clusters, count.rank) == (k, k)


@pytest.mark.parametrize(
    ("n", "p", "kind"), [(60, 180, "gaussian"), (180, 60, "rademacher")]
)
def test_pure_noise_has_no_structure(n, p, kind):
    counts = [
        select_n_clusters(noise(n, p, kind, seed), random_state=seed).n_clusters
        for seed in range(3)
    ]
    # At a rate of 2 in 100, more than 1 of 3 would be a chance of 1 in 800.
    assert sum(count > 0 for count in counts) <= 1


def test_a_strong_cluster_does_not_hide_a_weak_one():
    # Flipped without taking the strong one out, its energy swamps the weak one.
    rng = np.random.default_rng(0)
    E = noise(200, 100, "gaussian", 0)
    u, v = np.linalg.qr(rng.standard_normal((100, 2)))[0].T
    E[:150] += 60 * rng.uniform(1, 3, (150, 1)) * u
    E[150:] += 5 * rng.uniform(1, 3, (50, 1)) * v
    flipped = GramOperator.of(E * rng.choice([-1, 1], E.shape)).toarray()
    second = np.linalg.eigvalsh(GramOperator.of(E).toarray())[-2]
    assert second < np.linalg.eigvalsh(flipped)[-1]
    signs = select_n_clusters(E, method="parallel", random_state=0)
    assert signs.n_clusters == 2


def test_noisy_rows_do_not_hide_a_cluster():
    X, _ = make_ihgmm(
        200, 600, 3, scale_ratio=1, separation_constant=1.1, noise_levels=(0.3, 3.0),
        random_state=0,
    )  # fmt: skip
    options = {"method": "parallel", "random_state": 0}
    assert select_n_clusters(X, gram="hollow", **options).n_clusters < 3
    assert select_n_clusters(X, gram="cosine", **options).n_clusters == 3
    count = select_n_clusters(X, random_state=0)
    assert (count.rank, count.gram) == (3, "cosine")
    assert 3 in named(count)
    assert (count.eigenvalues > count.edge).sum() == 3
    other = select_n_clusters(1e5 * X, **options)
    assert_allclose(other.edge, count.edge)  # cosines have no units


def test_the_second_look_starts_from_what_is_known():
    # Of four clusters in the cosines, those known are taken out and still count.
    G = GramOperator.of(make_ihgmm(200, 60, 4, random_state=0)[0], "cosine")
    for known in (None, 0, 2, 4, 6):
        _, rank, null, edge = count_above_noise(
            G, 10, np.random.default_rng(0), known=known
        )
        assert rank == max(known or 0, 4)
        assert null.mean() < edge


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
    X, _ = make_ihgmm(
        200, centers=centers, scale_ratio=4, noise_levels=0.06, random_state=0
    )
    found = select_n_clusters(X, method="stability", random_state=0)
    assert found.n_clusters == count
    assert found.rank <= min(count, centers.shape[1])


@pytest.mark.filterwarnings("ignore:X looks like counts")
def test_sparse_counts():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), 5) * 80
    labels = rng.integers(5, size=300)
    X = rng.poisson(topics[labels] * rng.uniform(0.3, 3, (300, 1)))
    assert select_n_clusters(sp.csr_array(X), random_state=0).n_clusters == 5


def test_some_of_many_rows_are_enough():
    X, _ = make_ihgmm(2000, 40, 5, scale_ratio=3, random_state=0)
    for storage in (np.asarray, sp.csc_array):
        data, rng = as_matrix(storage(X)), np.random.default_rng(0)
        count = count_clusters(data, "auto", rng, method="parallel", max_entries=2**14)
        assert (count.n_clusters, count.n_rows) == (5, 2**14 // 40)


def test_units_and_storage():
    X, _ = make_ihgmm(120, 60, 3, random_state=0)
    options = {"method": "parallel", "random_state": 0}
    plain = select_n_clusters(X, **options)
    assert (plain.n_clusters, plain.gram) == (3, "hollow")  # cosines show no more
    small = select_n_clusters(np.asfortranarray(X * 1e-120), **options)
    assert_allclose(small.edge * 1e240, plain.edge, rtol=1e-6)
    huge = select_n_clusters(X * 1e200, **options)
    unit = 2.0 ** np.floor(np.log2(np.abs(X * 1e200).max()))  # no float holds squares
    assert_allclose(huge.edge, plain.edge * (1e200 / unit) ** 2, rtol=1e-6)
    assert small.n_clusters == huge.n_clusters == 3
    whole = np.rint(X * 8).astype(np.int32)
    before = whole.copy()
    assert select_n_clusters(whole, **options).n_clusters == 3
    assert (whole == before).all()


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


def test_words(six):
    assert repr(six).startswith("ClusterCount(n_clusters=6, rank=6, edge=")
    assert repr(six).endswith("confidence='high')")
    assert str(six).startswith("6 clusters, supported by the number of directions")
    assert "6 eigenvalues stand out from noise" in str(six)
    one = select_n_clusters(make_ihgmm(90, 30, 1, random_state=0)[0], random_state=0)
    assert one.n_clusters == 1
    assert "1 eigenvalue stands out" in str(one)
    assert "share one direction" in str(one)
    none = select_n_clusters(noise(60, 90, "gaussian", 0), random_state=0)
    assert "No structure" in str(none)
    few = select_n_clusters(np.repeat(np.eye(2), 20, axis=0), method="stability")
    assert (few.rank, few.is_stable) == (0, True)
    assert "Halves of the data agree on 2 clusters" in str(few)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_clusters": 0}, ValueError, "max_clusters=0 is too small; give 1"),
        ({"max_clusters": 2.5}, TypeError, "max_clusters=2.5 is a float; give a whole"),
        ({"gram": "full"}, ValueError, "gram='full' is not known; give one of 'auto'"),
        ({"method": "gap"}, ValueError, "method='gap' is not known; .*'stability'"),
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
    X, _ = make_ihgmm(200, 60, 4, random_state=0)
    units = X * np.where(np.arange(60) == 7, 1e4, 1)
    count = select_n_clusters(sp.csr_array(units), random_state=0)
    assert (count.n_clusters, count.is_dominated) == (0, True)
    assert "Cannot tell: column 7 holds" in str(count)
    assert "Divide the columns by their deviation" in str(count)
    remedy = units / units.std(axis=0)
    assert select_n_clusters(remedy, random_state=0).n_clusters == 4


def test_an_offset_is_to_be_subtracted():
    X = make_ihgmm(200, 60, 4, random_state=0, dtype=np.float32)[0]
    X[:, 3] += 1e3
    for data in (sp.csc_array(X), X / X.std(axis=0)):
        count = select_n_clusters(data, random_state=0)
        assert (count.n_clusters, count.is_offset) == (0, True)
        assert "Cannot tell: column 3 holds" in str(count)
        assert "Subtract its mean, or leave it out" in str(count)
        assert "Divide" not in str(count)
    assert count.plot().get_title() == "none above noise"
    matplotlib.pyplot.close("all")
    X[:, 3] -= X[:, 3].mean()
    assert select_n_clusters(X, random_state=0).n_clusters == 4


@pytest.mark.parametrize("method", ["parallel", "stability"])
@pytest.mark.parametrize(("n_features", "most"), [(60, 1), (60, 2), (8, 1)])
def test_the_largest_number_looked_for_is_said(n_features, most, method):
    X, _ = make_ihgmm(200, n_features, 4, scale_ratio=3, random_state=1)
    count = select_n_clusters(X, max_clusters=most, method=method, random_state=0)
    assert (count.n_clusters, count.is_capped) == (most, True)
    assert f"stopped at max_clusters={most}; there may be more" in str(count)
    assert "share one direction" not in str(count)


def test_an_estimator_says_that_it_stopped_counting():
    X, _ = make_ihgmm(400, 120, 52, scale_ratio=2, random_state=0)
    message = r"at most 50 clusters .* select_n_clusters\(X, max_clusters=500\)"
    with pytest.warns(ConvergenceWarning, match=message):
        model = IhSC("auto", random_state=0).fit(X)
    assert model.n_clusters_ == 50


@pytest.mark.filterwarnings("ignore:In .* of the rows noise outweighs")
@pytest.mark.filterwarnings("ignore:.* rows are more than three times as long")
def test_a_count_that_only_cosines_show_is_said_to():
    levels = np.where(np.random.default_rng(0).random(300) < 0.2, 12.0, 0.7)
    X, labels = make_ihgmm(
        300, 300, 4, scale_ratio=3, separation_constant=0.9, noise_levels=levels,
        random_state=0,
    )  # fmt: skip
    count = select_n_clusters(X, random_state=0)
    assert (count.n_clusters, count.gram) == (4, "cosine")
    assert "The cosines of rows show this" in str(count)
    plain = IhSC.paper("auto", random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"gram='cosine'\) or refine=True"):
        plain.fit(X)
    model = IhSC("auto", refine=True, random_state=0)  # warnings are errors
    assert misclassification_rate(labels, model.fit_predict(X)) < 0.2


@pytest.mark.parametrize(("p", "k"), [(2, 2), (9, 6)])
def test_few_features(p, k):
    X, _ = make_ihgmm(160, p, k, random_state=0)
    count = select_n_clusters(X, random_state=0)
    assert k in [number.n_clusters for number in count.plausible]
    stable = select_n_clusters(X, method="stability", random_state=0)
    assert (stable.n_clusters, stable.method) == (k, "stability")
    assert f"Halves of the data agree on {k} clusters" in str(stable)
    signs = select_n_clusters(X, method="parallel", random_state=0)
    assert signs.n_clusters <= k
    assert "compare with method='stability'" in str(signs)


def test_one_side_is_not_confirmed():
    X, _ = make_ihgmm(200, 21, 3, random_state=0)
    count = select_n_clusters(X, method="parallel", random_state=0)
    assert (count.n_clusters, count.method, count.strengths) == (3, "parallel", {})
    (only,) = count.plausible
    assert (only.n_clusters, only.sides) == (3, (Side.DIRECTIONS,))
    assert (count.confidence, count.evidence) == (Confidence.LOW, ())
    assert "stability" not in str(count)
    with pytest.raises(ValueError, match="used one criterion"):
        plot_evidence(count)


def test_noise_in_few_features_has_no_clusters():
    counts = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        # Columns of unequal length: two sides of the longest are no clusters.
        X = rng.standard_normal((60, 6)) * rng.uniform(0.3, 3, 6)
        counts.append(select_n_clusters(X, random_state=seed))
    # At a rate of 3 in 100, more than 1 of 4 would be a chance of 1 in 190.
    none = [count for count in counts if count.n_clusters == 0]
    assert len(none) >= 3
    assert str(none[0]).startswith("No structure")
    assert "no eigenvalue stands out" in str(none[0])
    assert not none[0].is_known  # little can be seen in few features
    stable = select_n_clusters(
        noise(60, 6, "gaussian", 0), method="stability", random_state=0
    )
    assert "No number of clusters from 2 to" in str(stable)
    assert "Random signs on 6 features may not show" in str(stable)


def test_no_stable_number_is_said():
    X = load_digits().data[:500]
    count = select_n_clusters(X, method="stability", random_state=0)
    assert count.n_clusters == count.rank == min(count.strengths)
    assert max(count.strengths.values()) < count.required_strength
    last = max(count.strengths)
    assert last == count.rank + 8
    assert f"No number of clusters from {count.rank} to {last} is" in str(count)
    assert "The number given is the rank" in str(count)
    assert plot_evidence(count).get_title() == "stable: no number"
    matplotlib.pyplot.close("all")


def test_picture_of_stability():
    X, _ = make_ihgmm(200, 5, 4, random_state=0)
    count = select_n_clusters(X, method="stability", random_state=0)
    left, right = count.plot().figure.axes
    assert left.get_title() == "none above noise"
    assert right.get_title() == "stable: 4 clusters"
    assert_allclose(right.lines[0].get_xdata(), list(count.strengths))
    assert_allclose(right.lines[0].get_ydata(), list(count.strengths.values()))
    assert_allclose(right.lines[1].get_xdata(), 4)
    assert_allclose(right.lines[2].get_ydata(), 0.9)
    own = matplotlib.pyplot.figure().add_subplot()
    assert count.plot(own) is own
    assert own.get_xlabel() == "eigenvalue number"
    assert own.figure.axes == [own]
    assert plot_evidence(count).get_ylabel() == "prediction strength"
    matplotlib.pyplot.close("all")


def ihgmm_rows(centers, seed, *, n=300, correlation=0.0, spread=0.5):
    """Rows of log-normal scale around centres, with noise correlated along columns."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, centers.shape[1]))
    for j in range(1, E.shape[1]):
        E[:, j] = correlation * E[:, j - 1] + np.sqrt(1 - correlation**2) * E[:, j]
    labels = np.arange(n) % len(centers)
    return rng.lognormal(0, spread, (n, 1)) * centers[labels] + E


def test_correlated_noise_has_directions_and_no_clusters():
    E = ihgmm_rows(np.zeros((1, 50)), 0, n=200, correlation=0.8)
    count = select_n_clusters(E, random_state=0)
    assert count.rank > 5
    assert (count.n_clusters, count.confidence) == (1, Confidence.NONE)
    assert named(count)[0] == 1
    assert "Not known" in str(count)
    assert "Noise that features share looks like this" in str(count)
    E = ihgmm_rows(np.zeros((1, 50)), 0, n=200, correlation=0.95)
    assert not select_n_clusters(E, random_state=0).is_known


def test_clusters_are_counted_in_correlated_noise():
    for seed in range(2):
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((100, 4)))[0]
        X = ihgmm_rows(6 * basis.T, seed, correlation=0.8)
        count = select_n_clusters(X, random_state=seed)
        assert count.rank > 10  # directions are more than clusters
        assert count.n_clusters == 4


def test_similar_patterns_with_few_rows():
    for seed in range(2):
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((100, 5)))[0].T
        centers = 15 * (np.sqrt(0.9) * basis[0] + np.sqrt(0.1) * basis[1:])
        count = select_n_clusters(ihgmm_rows(centers, seed, n=60), random_state=seed)
        assert count.rank == 1
        assert 4 in named(count)


def test_centers_that_depend_on_each_other():
    for seed in range(2):
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((100, 4)))[0].T
        corners = basis - basis.mean(axis=0)
        centers = 6 * corners / np.linalg.norm(corners, axis=1, keepdims=True)
        count = select_n_clusters(ihgmm_rows(centers, seed), random_state=seed)
        assert count.rank == 3
        assert 4 in named(count)


def test_evidence_of_each_number(six):
    assert six.is_known
    assert 1 <= len(six.plausible) <= 3
    first = six.plausible[0]
    assert first.n_clusters == six.n_clusters == 6
    assert {Side.DIRECTIONS, Side.GAP} <= set(first.sides)
    tried = [number.n_clusters for number in six.evidence]
    assert tried == sorted(tried)
    assert tried[0] == 2
    supports = [number.support for number in six.plausible]
    assert supports == sorted(supports, reverse=True)
    assert supports[0] == max(number.support for number in six.evidence)
    for number in six.evidence:
        assert six.strengths[number.n_clusters] == number.strength
        assert 0 <= number.strength <= 1
        for j in range(2):
            assert number.gaps[j] <= first.gaps[j]
    assert (six.eigenvalues[:6] > six.edge).all()
    assert (six.eigenvalues[6:] < six.edge).all()


def test_the_picture_shows_what_speaks_for_each_number(six):
    left, right = six.plot().figure.axes
    assert left.get_title() == "6 eigenvalues above noise"
    assert right.get_title() == "6 clusters (confidence high)"
    assert_allclose(right.lines[0].get_xdata(), [e.n_clusters for e in six.evidence])
    assert_allclose(right.lines[1].get_ydata(), [e.gaps[1] for e in six.evidence])
    upright = [x for line in right.lines if len(set(x := line.get_xdata())) == 1]
    assert upright[0][0] == 6
    assert six.plot(left) is left
    many = select_n_clusters(make_ihgmm(400, 120, 30, random_state=0)[0])
    assert many.n_clusters == 30
    assert plot_evidence(many).get_xscale() == "log"
    matplotlib.pyplot.close("all")


def test_one_cluster_is_never_silent():
    X, _ = make_ihgmm(90, 30, 1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="All rows are put in one cluster"):
        assert IhSC("auto", random_state=0).fit(X).n_clusters_ == 1
    E = ihgmm_rows(np.zeros((1, 50)), 0, n=200, correlation=0.8)
    with pytest.warns(ConvergenceWarning, match="Not known.*put in one cluster"):
        IhSC("auto", random_state=0).fit(E)


def test_a_doubtful_number_is_said_to_be():
    X = load_digits().data[:300]
    with pytest.warns(ConvergenceWarning, match="which is doubtful") as caught:
        model = IhSC("auto", random_state=0).fit(X)
    (text,) = [str(w.message) for w in caught if "doubtful" in str(w.message)]
    for number in named(model.selection_):
        assert str(number) in text
    assert "give n_clusters" in text
    assert not model.selection_.is_known


def test_skewed_noise_has_no_clusters():
    for seed in range(2):
        E = np.random.default_rng(seed).exponential(size=(200, 50)) - 1
        assert select_n_clusters(E, random_state=seed).n_clusters <= 1


def test_many_rows_say_the_same_whatever_the_seed():
    rng = np.random.default_rng(0)
    kinds = np.arange(4000) % 5
    noise = rng.normal(size=(4000, 10))
    X = 6 * np.eye(10)[kinds] * rng.lognormal(0, 0.5, (4000, 1)) + noise
    clear = select_n_clusters(X, random_state=0)
    assert (clear.n_clusters, clear.is_known) == (5, True)
    assert clear.strengths[5] > 0.8
    # Kinds of customers: 2% of labels are wrong, and with more noise a third.
    X = rng.gamma(1, size=(5, 8))[kinds] * rng.lognormal(0, 1, (4000, 1))
    noise = rng.lognormal(0, 0.35, (4000, 8))
    for seed in range(2):
        assert select_n_clusters(X * noise, random_state=seed).n_clusters == 5
    for seed in range(2):
        count = select_n_clusters(X * noise**2, random_state=seed)
        assert not count.is_known
        # Halves are said to agree only where they do.
        for number in count.plausible:
            assert number.strength > 0.5 or Side.HALVES not in number.sides


def test_a_small_cluster_counts_by_degrees():
    # A cluster of small rows, at the limit of what counts as noise.
    rng = np.random.default_rng(0)
    kinds = rng.choice(3, 1500, p=[0.6, 0.33, 0.07])
    X = np.eye(3)[kinds] * np.array([3.0, 3.0, 2.0])[kinds, None]
    X = np.hstack([X, np.zeros((1500, 2))]) + 0.1 * rng.normal(size=(1500, 5))
    strengths = [
        select_n_clusters(
            X, max_clusters=3, method="stability", random_state=seed
        ).strengths[3]
        for seed in range(4)
    ]
    assert max(strengths) - min(strengths) < 0.2
