"""The paper's definitions and bounds, checked on random and on adversarial models."""

import itertools
from dataclasses import astuple, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.linalg import hadamard

from ihgmm import make_ihgmm, theory
from ihgmm.model import default_separation

SEEDS = range(30)


def random_model(seed):
    """Draw labels, scales and independent centres of a kind that the seed decides."""
    rng = np.random.default_rng(seed)
    k = 2 if seed % 2 else int(rng.integers(2, 7))
    p = int(rng.integers(k, 40))
    n = int(rng.integers(k, 120))
    weights = rng.dirichlet(np.full(k, 0.3)) if seed % 3 else np.full(k, 1 / k)
    labels = np.concatenate([np.arange(k), rng.choice(k, n - k, p=weights)])
    scales = np.exp(rng.normal(0, [0.0, 1.0, 3.0][seed % 3], n))
    centers = rng.standard_normal((k, p))
    if seed % 5 == 1:  # unequal norms
        centers *= 10.0 ** rng.uniform(-3, 3, (k, 1))
    elif seed % 5 == 2:  # nearly parallel
        centers = centers[:1] + 1e-3 * centers
    elif seed % 5 == 3:  # one direction, many norms, slightly apart
        centers = np.arange(1, k + 1)[:, None] * centers[:1] + 0.01 * centers
    elif seed % 5 == 4:  # a few entries carry everything
        centers *= rng.random((k, p)) ** 8
    return labels, scales, centers * 10.0 ** rng.uniform(-2, 2)


@pytest.fixture(params=SEEDS)
def model(request):
    return random_model(request.param)


def at_most(low, high):
    assert low <= high * (1 + 1e-8)


# Definitions


def test_simple_definitions():
    labels = ["a"] * 6 + ["b"] * 2 + ["c"]
    assert theory.balance(labels) == pytest.approx(1 / 3)
    assert theory.size_ratio(labels) == 6
    assert theory.separation([[1.0, 2.0]]) == np.inf
    assert theory.condition_number(np.eye(3)[:, :2]) == np.inf
    assert theory.condition_number(np.zeros((2, 3))) == np.inf
    assert theory.condition_number([[5.0, 0.0]]) == 1


def test_they_agree_with_the_sampler():
    sample = make_ihgmm(60, 30, 3, balance=0.5, random_state=0, return_params=True)
    assert theory.separation(sample.centers) == pytest.approx(sample.separation)
    assert theory.balance(sample.labels) == pytest.approx(0.5)
    assert theory.condition_number(sample.centers) == pytest.approx(1)
    found = theory.signal(sample.labels, sample.scales, sample.centers)
    assert_allclose(found, sample.signal)


def test_balance_is_at_least_the_inverse_size_ratio(model):
    assert 1 / theory.size_ratio(model[0]) <= theory.balance(model[0]) <= 1


def test_signal_spectrum(model):
    k = len(model[2])
    expected = np.linalg.svd(theory.signal(*model), compute_uv=False)[:k]
    found = theory.signal_singular_values(*model)
    assert_allclose(found, expected, rtol=1e-7, atol=1e-12 * expected[0])
    ratio = found[0] / found[-1]
    assert theory.signal_condition_number(*model) == pytest.approx(ratio)


def test_incoherence_is_that_of_the_signal(model):
    P = theory.signal(*model)
    (n, p), k = P.shape, len(model[2])
    U, _, V = np.linalg.svd(P, full_matrices=False)
    found = theory.incoherence(*model)
    assert found.entries == pytest.approx(p * n * (P**2).max() / (P**2).sum())
    assert found.samples == pytest.approx(
        n / k * (U[:, :k] ** 2).sum(1).max(), rel=1e-5
    )
    assert found.features == pytest.approx(p / k * (V[:k] ** 2).sum(0).max(), rel=1e-5)
    assert found.largest == max(astuple(found))
    assert min(astuple(found)) >= 1 - 1e-9


@pytest.mark.parametrize("noise", ["gaussian", "rademacher", "uniform"])
def test_sub_gaussian_norm(noise):
    t = theory.sub_gaussian_norm(1.0, noise)
    densities = {
        "gaussian": (lambda x: np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), 30),
        "uniform": (lambda x: 1 / np.sqrt(12), np.sqrt(3)),
    }
    if noise == "rademacher":
        moment = np.exp(1 / t**2)
    else:
        density, end = densities[noise]
        moment = 2 * quad(lambda x: np.exp(x**2 / t**2) * density(x), 0, end)[0]
    assert moment == pytest.approx(2, rel=1e-6)
    assert theory.sub_gaussian_norm(3.0, noise) == pytest.approx(3 * t)
    assert t > 1.2  # not 1, which section 5 has for Rademacher noise


@pytest.mark.parametrize("noise", ["gaussian", "rademacher", "uniform"])
def test_the_noise_level_is_a_variance_proxy(noise):
    s = np.linspace(0.01, 6, 300)
    width = np.sqrt(3) * s
    logs = {
        "gaussian": s**2 / 2,
        "rademacher": np.log(np.cosh(s)),
        "uniform": np.log(np.sinh(width) / width),
    }
    assert (logs[noise] <= s**2 / 2 + 1e-12).all()


def test_separation_is_not_identified_and_does_not_tell_clusters_apart():
    labels, scales, centers = random_model(0)
    factors = np.arange(1.0, len(centers) + 1)
    other = scales / factors[labels], centers * factors[:, None]
    assert_allclose(
        theory.signal(labels, scales, centers), theory.signal(labels, *other)
    )
    assert theory.separation(centers) != pytest.approx(theory.separation(other[1]))
    # Far apart, and the same distribution whatever the label.
    far = np.array([[3.0, 4.0], [300.0, 400.0]])
    assert theory.separation(far) > 400
    assert_allclose(
        theory.signal([0, 1], [100.0, 1.0], far),
        theory.signal([1, 0], [1.0, 100.0], far),
    )


# Lemma 1


def test_ideal_embedding(model):
    labels, scales, centers = model
    ideal = theory.ideal_embedding(*model)
    k = len(centers)
    U, H = ideal.singular_vectors, ideal.rotation
    assert_allclose(H @ H.T, np.eye(k), atol=1e-10)
    assert_allclose(U.T @ U, np.eye(k), atol=1e-10)
    assert_array_equal(ideal.normalized, H[labels])
    norms = scales / np.sqrt(theory.weighted_sizes(labels, scales)[labels])
    assert_allclose(U, norms[:, None] * H[labels], atol=1e-12)
    # U holds singular vectors: it diagonalises the Gram matrix.
    P = theory.signal(*model)
    inner = U.T @ P @ P.T @ U
    values = theory.signal_singular_values(*model)
    assert_allclose(inner, np.diag(values**2), atol=1e-9 * values[0] ** 2)
    apart = labels[:, None] != labels
    gaps = np.linalg.norm(ideal.normalized[:, None] - ideal.normalized, axis=2)
    assert_allclose(gaps[apart], np.sqrt(2), atol=1e-9)
    assert gaps[~apart].max() < 1e-9


@pytest.mark.parametrize("second", [-1.0, 2.0])
def test_lemma_1_needs_independent_centers(second):
    model = [0, 0, 1, 1], [1.0, 2.0, 1.0, 3.0], [[1.0, 2.0], [second, 2 * second]]
    assert np.linalg.matrix_rank(theory.signal(*model)) == 1
    assert theory.signal_singular_values(*model)[1] == pytest.approx(0, abs=1e-12)
    assert theory.signal_condition_number(*model) == np.inf
    for function in (theory.ideal_embedding, theory.incoherence):
        with pytest.raises(ValueError, match="2 rows but rank 1"):
            function(*model)
    with pytest.raises(ValueError, match="2 rows but rank 1"):
        theory.subspace_constant(model[2])


def test_rows_of_the_singular_vectors_are_not_too_short(model):
    norms = np.linalg.norm(theory.ideal_embedding(*model).singular_vectors, axis=1)
    at_most(theory.row_norm_bound(*model[:2]), norms.min())


# Assumptions and Lemmas 2, 3, 4


def test_incoherence_bounds(model):
    found = theory.incoherence(*model)
    for sharp in (False, True):
        bounds = theory.incoherence_bounds(*model, sharp=sharp)
        for low, high in zip(astuple(found), astuple(bounds), strict=True):
            at_most(low, high * (1 + 1e-5))
    # The smallest constant of Assumption 2 is mu_2 itself.
    assert found.features == pytest.approx(bounds.features, rel=1e-5)
    assert bounds.features >= 1 - 1e-9


def test_the_factor_one_over_balance_in_lemma_2_is_not_needed():
    labels = np.array([0] * 99 + [1])
    model = labels, np.ones(100), np.array([[1.0, 1.0], [1.0, -1.0]])
    assert theory.incoherence(*model).entries == pytest.approx(1)
    assert theory.incoherence_bounds(*model, sharp=True).entries == pytest.approx(1)
    assert theory.incoherence_bounds(*model).entries == pytest.approx(50)


def test_inverse_ratios_are_what_bounds_incoherence():
    # omega_min / omega_max and beta are at most 1, and mu_1 is as large as you like.
    labels, centers = np.array([0] * 50 + [1] * 50), np.eye(2)
    scales = np.ones(100)
    scales[0] = 1e3
    assert theory.incoherence(labels, scales, centers).samples > 49


def test_smallest_singular_value(model):
    found = theory.signal_singular_values(*model)[-1]
    low = theory.smallest_singular_value_bound(*model)
    sharp = theory.smallest_singular_value_bound(*model, sharp=True)
    assert sharp == pytest.approx(low * np.sqrt(2))
    at_most(sharp, found * (1 + 1e-5))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_sharp_bound_is_attained(k):
    model = np.repeat(np.arange(k), 4), np.full(4 * k, 0.5), 3 * np.eye(k, 8)
    found = theory.signal_singular_values(*model)[-1]
    bound = theory.smallest_singular_value_bound(*model, sharp=True)
    assert bound == pytest.approx(found)


def test_centers_limit_their_separation(model):
    values = np.linalg.svd(model[2], compute_uv=False)
    delta = theory.separation(model[2])
    at_most(np.sqrt(2) * values[-1], delta)
    at_most(delta, np.sqrt(2) * values[0])


def test_condition_number_of_the_signal(model):
    at_most(
        theory.signal_condition_number(*model),
        theory.signal_condition_number_bound(*model) * (1 + 1e-5),
    )


def test_dependent_centers_give_empty_bounds():
    model = [0, 1], [1.0, 1.0], [[1.0, 1.0], [-1.0, -1.0]]
    assert theory.smallest_singular_value_bound(*model) == 0
    assert theory.signal_condition_number_bound(*model) == np.inf


def test_assumption_1_forces_the_separation(model):
    centers = model[2]
    c = theory.entry_constants(centers).smallest_norm
    kappa = theory.condition_number(centers)
    forced = np.sqrt(2 * centers.shape[1]) * c / kappa
    at_most(forced, theory.separation(centers))


@pytest.mark.parametrize("n", [50, 1000, 10**5])
@pytest.mark.parametrize("p", [50, 1000, 10**5])
@pytest.mark.parametrize("k", [2, 10, 50])
def test_assumption_1_and_sample_sizes_imply_the_separation_condition(n, p, k):
    # Once the ratios exceed C, a separation of sqrt(p) has a ratio above root C.
    found = theory.corollary_conditions(n, p, k, np.sqrt(p))
    size = min(found.features, np.sqrt(found.product))
    assert found.separation >= np.sqrt(size * np.log(max(n, p))) * (1 - 1e-12)


def test_entry_constants():
    found = theory.entry_constants([[3.0, -4.0], [0.0, 0.0]])
    assert (found.largest_entry, found.smallest_norm, found.ratio) == (4, 0, np.inf)
    # Lemma 2 is scale free.
    one, two = (theory.entry_constants(f * np.ones((2, 3))).ratio for f in (1.0, 9.0))
    assert one == pytest.approx(two)


# Theorem 1 and its proof


def test_parameters(model):
    found = theory.model_parameters(*model, noise_bound=2.0)
    assert found.noise_bound == 2
    assert found.scale_ratio == pytest.approx(theory.scale_ratio(model[1]))
    assert found.largest_cluster == np.bincount(model[0]).max()
    assert found.incoherence == theory.incoherence(*model).largest
    assert found.largest_cluster >= found.n_samples / found.n_clusters


def test_conditions_do_not_depend_on_the_unit(model):
    labels, scales, centers = model
    first = theory.theorem_conditions(theory.model_parameters(*model, 1.0))
    other = labels, scales * 7, centers / 7
    again = theory.theorem_conditions(theory.model_parameters(*other, 1.0))
    assert_allclose(astuple(first), astuple(again), rtol=1e-5)
    louder = labels, scales, centers * 3
    again = theory.theorem_conditions(theory.model_parameters(*louder, 3.0))
    assert_allclose(astuple(first), astuple(again), rtol=1e-5)
    assert first.smallest == min(astuple(first))


def test_theorem_conditions_make_the_explicit_error_small(model):
    q = theory.model_parameters(*model)
    ratio, error = theory.theorem_conditions(q), theory.explicit_error_bound(q)
    assert error.diagonal == pytest.approx(ratio.samples**-1.5)
    assert error.noise_squared == pytest.approx(4 * ratio.separation_aspect**-2)
    assert error.noise == pytest.approx(2 / ratio.separation_floor)
    assert error.total == pytest.approx(sum(astuple(error)))


def test_the_explicit_error_bounds_the_exact_one(model):
    q = theory.model_parameters(*model)
    factor = q.scale_ratio * q.signal_condition_number**2
    factor *= np.sqrt(q.n_clusters * q.largest_cluster * q.incoherence / q.n_samples)
    exact, explicit = theory.error_bound(q), theory.explicit_error_bound(q)
    for low, high in zip(astuple(exact), astuple(explicit), strict=True):
        at_most(factor * low, high * (1 + 1e-4))


def test_the_diagonal_costs_the_same_whatever_the_separation():
    q = theory.model_parameters(*random_model(0))
    far = replace(q, separation=1e9, smallest_singular_value=1e9)
    assert theory.error_bound(far).diagonal == theory.error_bound(q).diagonal
    assert theory.error_bound(far).noise < 1e-5
    assert theory.explicit_error_bound(far).noise < theory.explicit_error_bound(q).noise


def test_theorem_conditions_imply_those_of_the_proof(model):
    """Give the model the sizes and the separation that meet the theorem exactly."""
    q = theory.model_parameters(*model)
    ratio = theory.theorem_conditions(q)
    needed = q.n_samples / ratio.samples  # free of n but for n_max and mu
    aspect, floor = (
        q.separation / r for r in (ratio.separation_aspect, ratio.separation_floor)
    )
    beta, R, k, log = q.balance, q.scale_ratio, q.n_clusters, q.log_size
    tau, kappa, low = q.size_ratio, q.condition_number, q.smallest_scale
    base = kappa * q.noise_bound / low * np.sqrt(k * log / beta)
    at_most(
        base * kappa * R * np.sqrt(tau) * (q.n_features / q.n_samples) ** 0.25, aspect
    )
    at_most(base * kappa**3 * R**3 * tau**1.5, floor)
    # n**3 = needed**3 with n_max >= n / K gives the requirement with its 1 / beta.
    n = np.sqrt((needed**3 / q.largest_cluster) / k)  # if n_max were n / K
    at_most(tau**2 * kappa**4 * R**6 * k / beta, n)


def test_perturbation_conditions(model):
    q = theory.model_parameters(*model)
    found, ratio = theory.perturbation_conditions(q), theory.theorem_conditions(q)
    slack = 1 + 1e-4
    at_most(np.sqrt(ratio.product), found.product * slack)
    at_most(ratio.features, found.features * slack)
    at_most(ratio.separation_aspect / 2, found.signal_aspect * slack)
    at_most(ratio.separation_floor / 2, found.signal_floor * slack)
    needed = q.signal_condition_number**4 * q.sample_incoherence * q.n_clusters
    assert found.clusters == pytest.approx(q.n_samples / needed)


def test_the_simulations_are_far_outside_the_theorem():
    sample = make_ihgmm(500, 1000, 3, random_state=0, return_params=True)
    q = theory.model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
    assert theory.theorem_conditions(q).features < 1e-10
    assert theory.theorem_conditions(q).separation_floor < 1e-3


def test_one_cluster():
    q = theory.model_parameters([0, 0, 0], [1.0, 2.0, 3.0], [[1.0, 2.0]])
    assert q.separation == np.inf
    assert theory.theorem_conditions(q).separation_floor == np.inf
    assert theory.explicit_error_bound(q).noise == 0


# The last step of the proof


def kmeans_optimum(rows, k):
    """Try all partitions into k non-empty parts; the first row has label 0."""
    best, kept = np.inf, None
    for rest in itertools.product(range(k), repeat=len(rows) - 1):
        labels = np.array((0, *rest))
        if len(set(labels)) < k:
            continue
        parts = [rows[labels == j] for j in range(k)]
        cost = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)
        if cost < best:
            best, kept = cost, labels
    return kept


def same(first, second):
    first, second = np.asarray(first), np.asarray(second)
    return ((first[:, None] == first) == (second[:, None] == second)).all()


def rotated(labels, signs, distance):
    """Move unit rows along the sphere, by a chord, to two sides of their point."""
    points = np.eye(3)[labels]
    sideways = (np.eye(3)[(labels + 1) % 3] - np.eye(3)[(labels + 2) % 3]) / np.sqrt(2)
    angle = 2 * np.arcsin(distance / 2) * np.asarray(signs)[:, None]
    return np.cos(angle) * points + np.sin(angle) * sideways


def test_half_the_distance_is_not_enough_for_kmeans():
    labels = np.array([0, 0, 0, 0, 1, 2])
    rows = rotated(labels, [1, 1, -1, -1, 0, 0], 0.7)
    assert_allclose(np.linalg.norm(rows, axis=1), 1)
    gaps = np.linalg.norm(rows[:, None] - np.eye(3), axis=2)
    assert gaps[np.arange(6), labels].max() < np.sqrt(2) / 2
    assert_array_equal(gaps.argmin(axis=1), labels)  # each closest to its own
    assert not same(kmeans_optimum(rows, 3), labels)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("labels", [[0, 0, 0, 0, 1, 2], [0, 0, 1, 1, 2, 2]])
def test_within_the_radius_kmeans_is_right(labels, seed):
    labels = np.array(labels)
    rng = np.random.default_rng(seed)
    radius = theory.kmeans_radius(theory.size_ratio(labels)) * 0.999
    rows = np.eye(3)[labels]
    if seed:
        steps = rng.standard_normal(rows.shape)
        rows = rows + radius * steps / np.linalg.norm(steps, axis=1, keepdims=True)
    else:
        rows = rotated(labels, [1, -1] * 3, radius)
    assert same(kmeans_optimum(rows, 3), labels)


def test_the_radius_must_shrink_with_the_size_ratio():
    # Splitting the large cluster gains n_max * r**2; merging two single rows costs 1.
    tau = 40
    labels = np.array([0] * tau + [1, 2])
    rows = rotated(labels, np.r_[np.tile([1, -1], tau // 2), 0, 0], 0.2)
    wrong = np.r_[np.tile([0, 1], tau // 2), 2, 2]

    def cost(names):
        parts = [rows[names == j] for j in range(3)]
        return sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)

    assert cost(wrong) < cost(labels)
    assert theory.kmeans_radius(tau) < 0.2
    assert theory.kmeans_radius(1e6) < 1e-3


# Corollary 1 and the comparison


def test_corollary_at_the_papers_separation():
    for n, p, k in [(500, 1000, 3), (2500, 200, 4), (200, 5000, 4)]:
        found = theory.corollary_conditions(n, p, k, default_separation(n, p, k))
        assert found.separation == pytest.approx(3)
        assert found.samples == n / k
    # The first experiment's own setting has too few features for the condition.
    assert theory.corollary_conditions(2500, 200, 4, 1.0).features < 1


def test_the_corollary_is_the_theorem_in_the_ideal_case():
    labels = np.repeat(np.arange(4), 16)
    centers = hadamard(64)[:4].astype(float)
    q = theory.model_parameters(labels, np.ones(64), centers)
    assert q.incoherence == pytest.approx(1)
    full = theory.theorem_conditions(q)
    simple = theory.corollary_conditions(64, 64, 4, q.separation)
    assert full.product == pytest.approx(simple.product)
    assert full.features == pytest.approx(simple.features)
    assert full.samples == pytest.approx(simple.samples ** (2 / 3))
    found = min(full.separation_aspect, full.separation_floor)
    assert found == pytest.approx(simple.separation)
    # Here the theorem's condition on n is met, and with it the proof's on K.
    assert full.samples > 1
    assert theory.perturbation_conditions(q).clusters == pytest.approx(simple.samples)


def test_thresholds_as_printed():
    n, p, k = 400, 900, 3
    found = theory.thresholds(n, p, k)
    log = np.log(n)
    assert found["Löffler et al. 2021"] == pytest.approx(k**10.5 * 1.5)
    assert found["Zhang and Zhou 2024"] == pytest.approx(k * 1.5)
    chen = np.sqrt(1 + np.sqrt(1 + k * p / (n * log))) * np.sqrt(log)
    assert found["Chen and Yang 2021"] == pytest.approx(chen)
    assert found["IhSC"] == pytest.approx(np.sqrt(1.5 * k * np.log(p)))
    assert np.isnan(found["Ndaoud 2022"])
    two = theory.thresholds(n, p, 2)
    assert two["Ndaoud 2022"] == two["Chen and Yang 2021"]
    assert theory.thresholds(10**6, 2, 2)["Zhang and Zhou 2024"] == np.sqrt(np.log(1e6))


def test_psi_of_the_text_is_the_whole_threshold():
    n, p, k = 10**3, 10**12, 2
    psi = (k * p * np.log(n) / n) ** 0.25
    assert theory.chen_threshold(n, p, k) == pytest.approx(psi, rel=1e-3)


@pytest.mark.parametrize(("n", "p", "k"), [(10**5, 10, 20), (5000, 1000, 8), (9, 9, 2)])
def test_where_the_older_threshold_is_smaller(n, p, k):
    assert k * p < n * np.log(max(n, p))
    assert theory.zhang_threshold(n, p, k) < theory.ihsc_threshold(n, p, k)


@pytest.mark.parametrize("n", [100, 10**4, 10**6])
@pytest.mark.parametrize("p", [100, 10**4, 10**6])
def test_cluster_limits_follow_from_the_corollary(n, p):
    limit = theory.cluster_limits(n, p)["IhSC"]
    log = np.log(max(n, p))
    ratios = (n / limit, p / (limit * log**2), np.sqrt(n * p) / (limit * log**2))
    assert min(ratios) == pytest.approx(1)


def test_the_tables_growth_of_clusters_breaks_the_corollary():
    # K far below n / log(n)**2 and still too many for the condition on p.
    n, p = 10**6, 100
    k = int(0.01 * n / np.log(n) ** 2)
    assert theory.corollary_conditions(n, p, k, 1.0).features < 0.1
    # p far above n and K far below n, and still too many for that on n * p.
    n, p, k = 10**4, 10**6, 10**3
    assert theory.corollary_conditions(n, p, k, 1.0).product < 0.5


# Input


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: theory.separation([1.0, 2.0]), ValueError, r"shape \(2,\)"),
        (lambda: theory.separation([[1.0, np.nan]]), ValueError, "NaN"),
        (lambda: theory.balance([]), ValueError, "not empty"),
        (lambda: theory.scale_ratio([1.0, 0.0]), ValueError, "smallest value 0"),
        (lambda: theory.scale_ratio([[1.0]]), ValueError, "one number for each row"),
        (lambda: theory.weighted_sizes([0, 1], [1.0]), ValueError, "give 2 positive, finite numbers"),
        (lambda: theory.row_norm_bound([0, 1], [1.0]), ValueError, "give 2 positive, finite numbers"),
        (lambda: theory.signal(["a"], [1.0], [[1.0]]), TypeError, "whole numbers"),
        (lambda: theory.signal([1], [1.0], [[1.0]]), ValueError, "from 1 to 1"),
        (lambda: theory.signal([1], [1.0], np.eye(2)), ValueError, "No label is 0"),
        (lambda: theory.incoherence([0, 1], [1, 1], [[1], [2]]), ValueError, "rank 1"),
        (lambda: theory.sub_gaussian_norm(1.0, "cauchy"), ValueError, "'cauchy'"),
        (lambda: theory.sub_gaussian_norm(-1.0), ValueError, "noise_level=-1"),
        (lambda: theory.kmeans_radius(0.5), ValueError, "size_ratio=0.5"),
        (lambda: theory.thresholds(1, 2, 2), ValueError, "n_samples=1"),
        (lambda: theory.thresholds(5, 2.5, 2), TypeError, "n_features=2.5"),
        (lambda: theory.cluster_limits(2, 2), ValueError, "n_samples=2"),
        (lambda: theory.corollary_conditions(1, 1, 1, 1.0), ValueError, "at least 2"),
        (lambda: theory.model_parameters([0], [1], [[1]]), ValueError, "at least 2"),
        (
            lambda: theory.model_parameters([0, 1], [1, 1], np.eye(2), 0.0),
            ValueError,
            "noise_bound=0",
        ),
    ],
)
def test_errors_name_the_value_and_the_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_input_is_left_alone():
    labels, scales, centers = random_model(0)
    before = labels.copy(), scales.copy(), centers.copy()
    theory.model_parameters(labels, scales, centers)
    for left, right in zip(before, (labels, scales, centers), strict=True):
        assert_array_equal(left, right)


def test_every_public_name_exists():
    for name in theory.__all__:
        assert getattr(theory, name).__doc__
