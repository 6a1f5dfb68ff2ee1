"""The number of clusters is that of the rows, in any order and of any scale."""

import numpy as np
import pytest
from nested_rows import nested
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

from ihgmm import IhSC, make_ihgmm, select_n_clusters
from ihgmm.matrix import as_matrix
from ihgmm.statistics.selection import count_clusters

ROWS = {
    "clear": make_ihgmm(240, 60, 4, random_state=0)[0],
    "nested": nested(0)[0],
    "noise": np.random.default_rng(0).standard_normal((120, 30)),
    "wine": scale(load_wine().data),
    "digits": load_digits().data[:400],
}


def count_of(X, **options):
    return select_n_clusters(X, max_clusters=8, random_state=0, **options)


@pytest.fixture(scope="module")
def counts():
    """Return the number of clusters of each of these rows, as they are."""
    return {name: count_of(X) for name, X in ROWS.items()}


def check_same(result, expected):
    """Check that a count is another one, to rounding."""
    assert result.plausible == expected.plausible
    assert result.confidence is expected.confidence
    assert result.n_rows == expected.n_rows
    assert result.clouds.numbers == expected.clouds.numbers
    assert_allclose(result.clouds.modularity, expected.clouds.modularity, atol=1e-9)
    assert_allclose(result.clouds.of_clouds, expected.clouds.of_clouds, atol=1e-9)
    for one, other in zip(result.evidence, expected.evidence, strict=True):
        assert one.n_clusters == other.n_clusters
        assert_allclose(one.links_inside, other.links_inside, atol=1e-9)
        assert_allclose(one.silhouette, other.silhouette, atol=1e-9)


@pytest.mark.parametrize("name", ROWS)
def test_order_of_rows_is_no_matter(name, counts):
    order = np.random.default_rng(1).permutation(len(ROWS[name]))

    check_same(count_of(ROWS[name][order]), counts[name])


@pytest.mark.parametrize("name", ["clear", "noise", "wine"])
def test_scales_of_rows_are_no_matter(name, counts):
    X = ROWS[name]
    powers = 2.0 ** np.random.default_rng(1).integers(-3, 4, (len(X), 1))
    result = count_of(powers * X)

    # Weights of rows in the fit depend on lengths, and what counts on angles alone.
    assert result.n_clusters == counts[name].n_clusters
    assert result.confidence is counts[name].confidence
    assert result.lead == pytest.approx(counts[name].lead, abs=0.03)


def test_the_unit_of_all_rows_is_no_matter(counts):
    check_same(count_of(1e150 * ROWS["wine"]), counts["wine"])


@pytest.mark.parametrize("name", ["clear", "noise"])
@pytest.mark.parametrize("n_zero", [1, 10])
def test_rows_of_zeros_are_left_out(name, n_zero, counts):
    X = ROWS[name]
    places = np.random.default_rng(n_zero).integers(0, len(X) + 1, n_zero)
    with_zeros = np.insert(X, places, 0.0, axis=0)

    assert len(with_zeros) == len(X) + n_zero

    check_same(count_of(with_zeros), counts[name])


def test_nothing_but_rows_of_zeros_is_one_cluster():
    count = count_of(np.zeros((40, 5)))

    assert (count.n_clusters, count.n_rows, count.evidence) == (1, 0, ())
    assert count.is_doubtful

    # 15 rows are one too few for two clusters, whatever else is zero.
    X = np.zeros((40, 60))
    X[:15] = ROWS["clear"][:15]

    assert count_of(X).evidence == ()

    X[15] = ROWS["clear"][15]

    assert count_of(X).evidence != ()


def test_of_many_rows_some_are_drawn():
    X, _ = make_ihgmm(3_000, 40, 4, random_state=0, return_params=False)
    count = count_of(X)

    assert (count.n_rows, count.n_clusters) == (600, 4)
    assert str(count) == str(count_of(X))

    # More where many clusters may be found: ten for each.
    A = as_matrix(X)
    for max_rows, n_rows in ((100, 120), (200, 200)):
        rng = np.random.default_rng(0)
        count = count_clusters(A, rng, max_clusters=12, max_rows=max_rows)
        assert (count.n_rows, count.n_clusters) == (n_rows, 4)


def test_an_estimator_counts_as_the_function_does():
    X = ROWS["clear"]
    model = IhSC("auto", random_state=0).fit(X)

    check_same(model.selection_, select_n_clusters(X, random_state=0))

    assert model.n_clusters_ == 4
