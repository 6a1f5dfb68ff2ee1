"""Missing cells: the model that fills them, against a naive oracle and the truth."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm

from ihgmm import make_ihgmm
from ihgmm.matrix import HOST, as_matrix
from ihgmm.numerics.missing import Donors, Filler, learn_filler
from ihgmm.numerics.missing.low_rank import MULTIPLES
from ihgmm.policy import Filling


def some_filler(rng, p=7, rank=3, spread=0.7):
    return Filler(
        rng.standard_normal((p, rank)),
        rng.uniform(0.5, 2, p),
        rng.standard_normal(rank),
        rng.uniform(0.5, 2, p),
        spread,
    )


def conditional_mean(filler, row):
    """Fill a row by the formula for a Gaussian vector, given a part and its scale."""
    is_observed = ~np.isnan(row)
    size = np.sqrt(np.mean((row / filler.sizes)[is_observed] ** 2))
    B = filler.loadings
    scales = size * MULTIPLES
    unit_covariance = B @ B.T + np.diag(filler.noise_levels**2)
    unit_mean = B @ filler.mean
    observed_block = unit_covariance[np.ix_(is_observed, is_observed)]
    cross_block = unit_covariance[np.ix_(~is_observed, is_observed)]
    gain = cross_block @ np.linalg.inv(observed_block)
    fills = []
    log_weights = []
    for scale in scales:
        mean = scale * unit_mean
        covariance = scale**2 * observed_block
        gaussian = multivariate_normal(mean[is_observed], covariance)
        log_density = gaussian.logpdf(row[is_observed])
        log_prior = norm.logpdf(np.log(scale), 0, filler.spread)
        log_weights.append(log_density + log_prior)
        fills.append(mean[~is_observed] + gain @ (row - mean)[is_observed])
    weights = np.exp(np.array(log_weights) - max(log_weights))
    filled = row.copy()
    filled[~is_observed] = weights @ fills / weights.sum()
    return filled


@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cells_get_their_conditional_means(dtype, spread):
    rng = np.random.default_rng(0)
    filler = some_filler(rng, spread=spread)
    X = rng.standard_normal((40, 7)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = np.nan
    X[3] = np.nan
    before = X.copy()
    filled = filler(as_matrix(X))

    assert_array_equal(X, before)
    assert filled.dtype == dtype
    assert_array_equal(filled.array[3], 0)

    expected = [
        conditional_mean(filler, row.astype(float)) for row in np.delete(X, 3, 0)
    ]
    tolerance = 1e-4 if dtype == "float32" else 1e-10

    assert_allclose(np.delete(filled.array, 3, 0), expected, tolerance, tolerance)

    is_observed = ~np.isnan(X)

    assert_array_equal(filled.array[is_observed], X[is_observed])


def test_complete_data_stay_as_they_are():
    rng = np.random.default_rng(1)
    X = as_matrix(rng.standard_normal((20, 7)))

    assert some_filler(rng)(X) is X


def test_draws_have_the_means_that_cells_are_filled_by():
    rng = np.random.default_rng(1)
    filler = some_filler(rng)
    row = np.where(np.arange(7) < 3, np.nan, rng.standard_normal(7))
    X = as_matrix(np.tile(row, (20_000, 1)))
    draws = filler.draw(X, 0).array
    means = filler(X).array[0]

    assert_array_equal(draws[:, 3:], X.array[:, 3:])

    error = draws[:, :3].std(axis=0) / np.sqrt(len(draws))

    assert (error > 0.001).all()
    assert (np.abs(draws[:, :3].mean(axis=0) - means[:3]) < 4 * error).all()
    assert_array_equal(filler.draw(X, 0).array, draws)


def proportional(rng, n=400, p=8):
    """Rows of two patterns, at scales of 1 to 1,000, with noise in proportion."""
    patterns = rng.dirichlet(np.ones(p), 2)
    kinds = rng.integers(2, size=n)
    scales = 10 ** rng.uniform(0, 3, n)
    X = scales[:, None] * rng.gamma(40 * patterns[kinds]) / 40
    return X, scales


@pytest.mark.parametrize("seed", range(3))
def test_small_rows_are_filled_as_well_as_large_ones(seed):
    rng = np.random.default_rng([3, seed])
    X, scales = proportional(rng)
    gaps = X.copy()
    rows = np.arange(len(X))
    hidden = rng.integers(X.shape[1], size=len(X))
    gaps[rows, hidden] = np.nan
    filler = learn_filler(as_matrix(gaps))

    assert 1.5 < filler.spread < 2.5  # the deviation of logarithms is 2

    errors = (filler(as_matrix(gaps)).array - X)[rows, hidden] / scales
    mean_squares = [np.mean(errors[part] ** 2) for part in (scales < 10, scales > 100)]
    error_of_small, error_of_large = np.sqrt(mean_squares)

    assert error_of_small < 1.3 * error_of_large


def test_scales_that_do_not_differ_are_told():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 12)) + 5
    X += 0.3 * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < 0.2] = np.nan

    assert learn_filler(as_matrix(X)).spread < 0.15


@pytest.mark.parametrize("seed", range(3))
def test_what_is_filled_in_is_near_what_was_there(seed):
    X, _ = make_ihgmm(300, 40, 4, separation_constant=1.0, random_state=seed)
    rng = np.random.default_rng(seed)
    is_hidden = rng.random(X.shape) < 0.3
    gaps = np.where(is_hidden, np.nan, X)
    filler = learn_filler(as_matrix(gaps))

    assert 3 <= filler.loadings.shape[1] <= 8

    filled = filler(as_matrix(gaps)).array
    error = np.square(filled - X)[is_hidden].mean()
    means = np.square(np.nanmean(gaps, axis=0) - X)[is_hidden].mean()

    # Noise levels are between 0.5 and 1.5: the mean square of noise is 13/12.
    assert error < 1.35 * 13 / 12
    assert error < 0.5 * means


def test_rows_are_drawn_from_large_data():
    X, _ = make_ihgmm(3_000, 12, 3, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    data = as_matrix(X)
    filler = learn_filler(data, max_rows=500)
    filled = filler(data).array
    filled_by_all = learn_filler(data, max_rows=3_000)(data).array
    difference = np.linalg.norm(filled - filled_by_all) / np.linalg.norm(filled_by_all)

    assert difference < 0.1


def some_donors(rng, n=60, p=5, by_direction=False):
    rows = rng.standard_normal((n, p)) * rng.lognormal(0, 1, (n, 1))
    if by_direction:
        rows /= np.sqrt(np.mean(rows**2, axis=1, keepdims=True))
    is_observed = (rng.random((n, p)) < 0.6).astype(float)
    return Donors(rows=rows, is_observed=is_observed, share=0.7)


def shift_of(donors, row):
    """Return how far cells of a row move to those of donors, cell by cell."""
    sizes = np.sqrt(np.mean(donors.rows**2, axis=1))
    size = np.sqrt(np.mean(row**2))
    factor = np.clip(size, min(sizes), max(sizes)) / size
    position = row * factor
    distances = [np.sum((position - donor) ** 2) for donor in donors.rows]
    last = sorted(distances)[Filling.NEIGHBORS - 1]
    shift = np.empty(len(row))

    for j in range(len(row)):
        count = Filling.OWN_WEIGHT
        total = Filling.OWN_WEIGHT * position[j]
        for i in range(len(donors.rows)):
            if donors.is_observed[i, j] and distances[i] < last:
                weight = 1 - distances[i] / last
                count += weight
                total += weight * donors.rows[i, j]
        shift[j] = donors.share * (total / count / factor - row[j])

    return shift


@pytest.mark.parametrize("by_direction", [False, True])
def test_cells_move_to_those_of_the_nearest_donors(by_direction):
    rng = np.random.default_rng(5)
    donors = some_donors(rng, by_direction=by_direction)
    rows = rng.standard_normal((8, 5))
    row_sizes = 10 ** rng.uniform(-3, 3, (8, 1))  # some beyond those of all donors
    expected = [
        shift_of(donors, row) / size
        for row, size in zip(rows * row_sizes, row_sizes, strict=True)
    ]

    assert_allclose(donors.shifts(HOST, rows, row_sizes), expected)


def test_the_order_of_donors_changes_nothing():
    rng = np.random.default_rng(6)
    donors = some_donors(rng)
    twice = np.tile(np.arange(60), 2)  # so that each has another that is as near
    rows = rng.standard_normal((8, 5))
    shifts = []

    for order in (twice, rng.permutation(twice)):
        ordered = replace(
            donors, rows=donors.rows[order], is_observed=donors.is_observed[order]
        )
        shifts.append(ordered.shifts(HOST, rows, np.ones((8, 1))))

    assert_allclose(*shifts, atol=1e-12)


def test_donors_that_are_the_row_itself_leave_it_where_it_is():
    row = np.arange(1.0, 6.0)
    donors = Donors(rows=np.tile(row, (30, 1)), is_observed=np.ones((30, 5)))

    assert_allclose(donors.shifts(HOST, 3 * row[None], np.ones((1, 1))), 0, atol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e200])
def test_rows_of_any_size_have_donors(size):
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((1, 5)) * bool(size)
    shifts = some_donors(rng).shifts(HOST, rows, np.full((1, 1), size))

    assert np.isfinite(shifts).all()


@pytest.mark.parametrize("seed", range(4))
def test_many_clusters_in_few_columns_are_filled_by_donors(seed):
    rng = np.random.default_rng([8, seed])
    patterns = rng.dirichlet(np.ones(6), 12)
    X = rng.lognormal(0, 0.5, (600, 1)) * patterns[rng.integers(12, size=600)]
    X += 0.01 * rng.standard_normal(X.shape)
    is_hidden = rng.random(X.shape) < 0.15
    gaps = as_matrix(np.where(is_hidden, np.nan, X))
    filler = learn_filler(gaps)

    assert filler.donors is not None

    alone = replace(filler, donors=None)
    error, error_alone = (
        np.square(fill(gaps).array - X)[is_hidden].mean() for fill in (filler, alone)
    )

    assert error < 0.9 * error_alone


@pytest.mark.parametrize("seed", range(4))
def test_donors_do_no_harm_to_rows_of_low_rank(seed):
    rng = np.random.default_rng([9, seed])
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 20))
    X += 0.5 * rng.standard_normal(X.shape)
    is_hidden = rng.random(X.shape) < 0.3
    gaps = as_matrix(np.where(is_hidden, np.nan, X))
    filler = learn_filler(gaps)
    alone = replace(filler, donors=None)
    error, error_alone = (
        np.square(fill(gaps).array - X)[is_hidden].mean() for fill in (filler, alone)
    )

    assert error < 1.01 * error_alone
