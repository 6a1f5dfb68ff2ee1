"""The paper's definitions and bounds, checked on random and on adversarial models."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.linalg import hadamard
from scipy.stats import norm

from ihgmm.paper import theory
from ihgmm.paper.theory import TrueModel
from ihgmm.statistics.model import default_separation


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


@pytest.fixture(params=range(15))
def model(request):
    return TrueModel(*random_model(request.param))


def at_most(value, bound, slack=1e-5):
    """Assert an inequality, up to what nearly dependent centres lose to rounding."""
    assert value <= bound * (1 + slack)


def test_simple_definitions():
    labels = [0] * 6 + [1] * 2 + [2]
    scales = np.arange(1, 10)
    model = TrueModel(labels, scales, [[3.0, -4.0], [0.0, 0.0], [0.0, 1.0]])

    assert model.balance == pytest.approx(1 / 3)
    assert (model.size_ratio, model.scale_ratio) == (6, 9)
    assert model.condition_number == np.inf
    assert model.entry_constants == (4, 0)

    single_cluster = TrueModel([0, 0, 0], [1.0, 2.0, 3.0], [[5.0, 0.0]])

    assert (single_cluster.separation, single_cluster.condition_number) == (np.inf, 1)
    assert single_cluster.theorem_conditions["separation_floor"] == np.inf
    assert single_cluster.explicit_error_bound["noise"] == 0

    with pytest.raises(ValueError, match="at least 2"):
        assert TrueModel([0], [1.0], [[1.0]]).log_size


def test_spectrum_and_incoherence_are_those_of_the_signal(model):
    P = model.signal
    n, p = P.shape
    k = model.n_clusters
    U, expected, V = np.linalg.svd(P, full_matrices=False)
    values = model.singular_values

    assert_allclose(values, expected[:k], rtol=1e-7, atol=1e-12 * expected[0])
    assert model.signal_condition_number == pytest.approx(values[0] / values[-1])

    mu = model.incoherence

    assert mu["entries"] == pytest.approx(p * n * (P**2).max() / (P**2).sum())

    samples = (U[:, :k] ** 2).sum(1)
    features = (V[:k] ** 2).sum(0)

    assert mu["samples"] == pytest.approx(n / k * samples.max(), rel=1e-5)
    assert mu["features"] == pytest.approx(p / k * features.max(), rel=1e-5)
    assert min(mu.values()) >= 1 - 1e-9


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


def test_ideal_embedding(model):
    U, normalized, H = model.ideal_embedding
    identity = np.eye(model.n_clusters)

    assert_allclose(H @ H.T, identity, atol=1e-10)
    assert_allclose(U.T @ U, identity, atol=1e-10)
    assert_array_equal(normalized, H[model.labels])

    norms = model.scales / np.sqrt(model.weighted_sizes[model.labels])

    assert_allclose(U, norms[:, None] * normalized, atol=1e-12)

    at_most(model.row_norm_bound, norms.min())

    # U holds singular vectors: it diagonalises the Gram matrix.
    coordinates = U.T @ model.signal
    values = model.singular_values

    assert_allclose(
        coordinates @ coordinates.T, np.diag(values**2), atol=1e-9 * values[0] ** 2
    )


@pytest.mark.parametrize("second", [-1.0, 2.0])
def test_dependent_centers(second):
    centers = [[1.0, 2.0], [second, 2 * second]]
    model = TrueModel([0, 0, 1, 1], [1.0, 2.0, 1.0, 3.0], centers)

    assert model.singular_values[1] == pytest.approx(0, abs=1e-12)
    assert model.signal_condition_number == np.inf
    assert model.signal_condition_number_bound == np.inf
    assert model.singular_value_bound == 0

    for name in ("ideal_embedding", "incoherence", "subspace_constant"):
        with pytest.raises(ValueError, match="2 rows but rank 1"):
            getattr(model, name)


def test_lemmas_2_to_4(model):
    bounds = model.incoherence_bounds

    for name, mu in model.incoherence.items():
        at_most(mu, bounds[name])

    # The smallest constant of Assumption 2 is mu_2 itself.
    assert bounds["features"] == pytest.approx(model.incoherence["features"], rel=1e-5)

    at_most(np.sqrt(2) * model.singular_value_bound, model.singular_values[-1])
    at_most(model.signal_condition_number, model.signal_condition_number_bound)

    # Assumption 1 forces the separation.
    c = model.entry_constants[1]
    root = np.sqrt(2 * model.n_features)

    at_most(root * c / model.condition_number, model.separation)


def tilde_error(model):
    """The terms of E_gen with a tilde, as the proof writes them."""
    n = model.n_samples
    p = model.n_features
    k = model.n_clusters
    log = model.log_size
    tau = model.size_ratio
    beta = model.balance
    delta = model.separation
    eta = model.noise_bound
    lower = model.scales.min()
    upper = model.scales.max()
    largest = model.sizes.max()

    factor = model.condition_number**4 * np.sqrt(max(model.incoherence.values()))
    diagonal = tau**2 * model.scale_ratio**7 / beta * np.sqrt(k**3 * largest / n**3)
    noise_squared = 4 * tau * eta**2 * upper**3 / (lower**5 * beta * delta**2)
    noise_squared *= log * np.sqrt(k**3 * p * largest) / n
    noise = 2 * upper**4 * eta * tau**1.5 / (lower**5 * np.sqrt(beta) * delta)
    noise *= k * np.sqrt(largest * log / n)

    return factor * diagonal, factor * noise_squared, factor * noise


def test_errors_follow_from_conditions(model):
    explicit_bound = model.explicit_error_bound
    mu = max(model.incoherence.values())

    assert_allclose(list(explicit_bound.values()), tilde_error(model))

    factor = model.scale_ratio * model.signal_condition_number**2
    factor *= np.sqrt(model.n_clusters * model.sizes.max() * mu / model.n_samples)

    for name, term in model.error_bound.items():
        at_most(factor * term, explicit_bound[name], slack=1e-4)


def test_theorem_conditions_imply_those_of_the_proof(model):
    proof = model.perturbation_conditions
    theorem = model.theorem_conditions
    at_most(np.sqrt(theorem["product"]), proof["product"], slack=1e-4)
    at_most(theorem["features"], proof["features"], slack=1e-4)
    at_most(theorem["separation_aspect"] / 2, proof["signal_aspect"], slack=1e-4)
    at_most(theorem["separation_floor"] / 2, proof["signal_floor"], slack=1e-4)

    k = model.n_clusters
    required = model.signal_condition_number**4
    required *= model.incoherence["samples"] * k

    assert proof["clusters"] == pytest.approx(model.n_samples / required)

    # The model with sizes and separation that meet the theorem exactly. The proof's
    # requirement on n, with its 1 / beta, follows from n_max >= n / K.
    aspect = model.separation / theorem["separation_aspect"]
    floor = model.separation / theorem["separation_floor"]
    R = model.scale_ratio
    tau = model.size_ratio
    kappa = model.condition_number
    base = kappa * model.noise_bound / model.scales.min()
    base *= np.sqrt(k * model.log_size / model.balance)
    root = (model.n_features / model.n_samples) ** 0.25

    at_most(base * kappa * R * np.sqrt(tau) * root, aspect)
    at_most(base * kappa**3 * R**3 * tau**1.5, floor)

    n_samples = np.sqrt(
        (model.n_samples / theorem["samples"]) ** 3 / model.sizes.max() / k
    )
    at_most(tau**2 * kappa**4 * R**6 * k / model.balance, n_samples)


def kmeans_cost(rows, labels):
    parts = [rows[labels == j] for j in range(3)]
    return sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)


def kmeans_optimum(rows):
    """Try all partitions into three parts; labels are those of their first rows."""
    partitions = (np.array((0, *c)) for c in itertools.product(range(3), repeat=5))
    optimum = min(
        (labels for labels in partitions if len(set(labels)) == 3),
        key=lambda labels: kmeans_cost(rows, labels),
    )
    return (optimum[:, None] == optimum).argmax(axis=1)


def rotated(labels, signs, distance):
    """Move unit rows along the sphere, by a chord, to two sides of their point."""
    points = np.eye(3)[labels]
    sideways = (np.eye(3)[(labels + 1) % 3] - np.eye(3)[(labels + 2) % 3]) / np.sqrt(2)
    angle = 2 * np.arcsin(distance / 2) * np.asarray(signs)[:, None]
    return np.cos(angle) * points + np.sin(angle) * sideways


@pytest.mark.parametrize(
    ("labels", "tau"), [([0, 0, 0, 0, 1, 2], 4), ([0, 0, 1, 1, 2, 2], 1)]
)
def test_within_the_radius_kmeans_is_right(labels, tau):
    labels = np.array(labels)
    expected = (labels[:, None] == labels).argmax(axis=1)
    radius = theory.kmeans_radius(tau) * 0.999
    rng = np.random.default_rng(0)

    for _ in range(3):
        displacements = rng.standard_normal((6, 3))
        displacements *= radius / np.linalg.norm(displacements, axis=1, keepdims=True)
        assert_array_equal(kmeans_optimum(np.eye(3)[labels] + displacements), expected)

    assert_array_equal(kmeans_optimum(rotated(labels, [1, -1] * 3, radius)), expected)


def test_the_papers_radius_is_not_enough_and_a_right_one_shrinks_with_tau():
    # Splitting the large cluster gains n_max * r**2; merging two single rows costs 1.
    for tau, distance in ((4, 0.7), (40, 0.2)):
        labels = np.array([0] * tau + [1, 2])
        signs = np.r_[np.tile([1, -1], tau // 2), 0, 0]
        rows = rotated(labels, signs, distance)

        distances = np.linalg.norm(rows[:, None] - np.eye(3), axis=2)
        assert_array_equal(distances.argmin(axis=1), labels)  # each closest to its own

        split_labels = np.r_[np.tile([0, 1], tau // 2), 2, 2]
        assert kmeans_cost(rows, split_labels) < kmeans_cost(rows, labels)
        assert theory.kmeans_radius(tau) < distance < np.sqrt(2) / 2

    assert theory.kmeans_radius(1e6) < 1e-3


def test_the_corollary_is_the_theorem_in_the_ideal_case():
    labels = np.repeat(np.arange(4), 16)
    centers = hadamard(64)[:4].astype(float)
    model = TrueModel(labels, np.ones(64), centers)

    assert max(model.incoherence.values()) == pytest.approx(1)

    theorem = model.theorem_conditions
    corollary = theory.corollary_conditions(64, 64, 4, model.separation)

    assert theorem["product"] == pytest.approx(corollary["product"])
    assert theorem["features"] == pytest.approx(corollary["features"])
    assert theorem["samples"] == pytest.approx(corollary["samples"] ** (2 / 3))

    separation = min(theorem["separation_aspect"], theorem["separation_floor"])

    assert separation == pytest.approx(corollary["separation"])

    clusters = model.perturbation_conditions["clusters"]

    assert clusters == pytest.approx(corollary["samples"])


def test_thresholds_as_printed():
    n = 400
    p = 900
    k = 3
    table = theory.thresholds(n, p, k)
    log = np.log(400)

    assert table["Löffler et al. 2021"] == pytest.approx(k**10.5 * 1.5)
    assert table["Zhang and Zhou 2024"] == pytest.approx(k * 1.5)

    chen = np.sqrt(1 + np.sqrt(1 + k * p / (n * log))) * np.sqrt(log)

    assert table["Chen and Yang 2021"] == pytest.approx(chen)
    assert table["IhSC"] == pytest.approx(np.sqrt(1.5 * k * np.log(p)))
    assert np.isnan(table["Ndaoud 2022"])

    table_of_two = theory.thresholds(n, p, 2)

    assert table_of_two["Ndaoud 2022"] == table_of_two["Chen and Yang 2021"]
    assert theory.thresholds(10**6, 2, 2)["Zhang and Zhou 2024"] == np.sqrt(np.log(1e6))

    # The text's psi is the whole threshold for many features.
    n = 10**3
    p = 10**12
    k = 2
    psi = (k * p * np.log(n) / n) ** 0.25

    assert theory.thresholds(n, p, k)["Chen and Yang 2021"] == pytest.approx(psi, 1e-3)

    # Where K p < n log d the older threshold is smaller.
    table_of_eight = theory.thresholds(5000, 1000, 8)

    assert table_of_eight["Zhang and Zhou 2024"] < table_of_eight["IhSC"]


@pytest.mark.parametrize("n", [100, 10**6])
@pytest.mark.parametrize("p", [100, 10**6])
def test_cluster_limits_follow_from_the_corollary(n, p):
    limit = theory.cluster_limits(n, p)["IhSC"]
    log = np.log(max(n, p))
    ratios = (n / limit, p / (limit * log**2), np.sqrt(n * p) / (limit * log**2))

    assert min(ratios) == pytest.approx(1)

    # The paper's first experiment has too few features for the condition.
    ratios = theory.corollary_conditions(2500, 200, 4, default_separation(2500, 200, 4))

    assert ratios["features"] < 1
    assert ratios["separation"] == pytest.approx(3)
    # The table's own growth of K breaks the condition on p, or that on n * p.
    assert theory.corollary_conditions(10**6, 100, 52, 1.0)["features"] < 0.1
    assert theory.corollary_conditions(10**4, 10**6, 10**3, 1.0)["product"] < 0.5


def pairwise_errors(labels, scales, centers, levels):
    """Sum, one by one, chances that a row looks more like another centre."""
    total = 0.0
    for z, omega, sigma in zip(labels, scales, levels, strict=True):
        for k in set(range(len(centers))) - {z}:
            # The difference of the two cosines, times the norm of the row.
            own_direction = centers[z] / np.linalg.norm(centers[z])
            other_direction = centers[k] / np.linalg.norm(centers[k])
            mean = omega * centers[z] @ (own_direction - other_direction)
            total += norm.cdf(
                0, mean, sigma * np.linalg.norm(own_direction - other_direction)
            )
    return total


@pytest.mark.parametrize("seed", range(15))
def test_oracle_errors_by_hand_and_the_limit_with_even_odds(seed):
    labels, scales, centers = random_model(seed)
    levels = np.random.default_rng(0).uniform(0.5, 2, len(labels)) * centers.std()

    expected = pairwise_errors(labels, scales, centers, levels)
    errors = theory.oracle_errors(labels, scales, centers, levels)

    assert errors == pytest.approx(expected, rel=1e-6, abs=1e-12)

    n = len(labels)
    errors_of_doubled = theory.oracle_errors(
        labels, scales, centers, levels, n_samples=2 * n
    )

    assert errors_of_doubled == pytest.approx(2 * errors)

    # How scales and lengths of centres share the size of a row is not identified.
    factors = np.arange(1.0, len(centers) + 1)
    errors_of_rescaled = theory.oracle_errors(
        labels, scales / factors[labels], centers * factors[:, None], levels
    )

    assert errors_of_rescaled == pytest.approx(errors)

    limit = theory.exact_recovery_limit(labels, scales, centers, levels)
    if n * (len(centers) - 1) / 2 <= np.log(2):
        assert limit == 0
        return

    separation = TrueModel(labels, scales, centers).separation
    centers_at_limit = centers * limit / separation
    errors_at_limit = theory.oracle_errors(labels, scales, centers_at_limit, levels)

    assert errors_at_limit == pytest.approx(np.log(2), rel=1e-6)

    limit_of_scaled = theory.exact_recovery_limit(labels, scales, centers * 7, levels)

    assert limit_of_scaled == pytest.approx(limit)


def test_limits_at_the_ends():
    labels = [0, 0, 1]
    scales = [1.0, 2.0, 3.0]
    parallel_centers = [[1.0, 2.0], [3.0, 6.0]]

    assert theory.exact_recovery_limit(labels, scales, parallel_centers) == np.inf
    assert theory.oracle_errors(labels, scales, parallel_centers) == pytest.approx(1.5)
    assert theory.exact_recovery_limit(labels, scales, np.eye(2), 0.0) == 0
    assert theory.oracle_errors([0, 0], [1.0, 2.0], [[1.0, 0.0]]) == 0
    assert theory.exact_recovery_limit([0, 0], [1.0, 2.0], [[1.0, 0.0]]) == 0

    # A row without noise has no part in it.
    limit = theory.exact_recovery_limit(labels, scales, np.eye(2), [1.0, 0.0, 1.0])
    expected = theory.exact_recovery_limit([0, 1], [1.0, 3.0], np.eye(2))

    assert limit == pytest.approx(expected)


PAIR = [0, 1], [1, 1]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("TrueModel", [[0], [1.0], [[1.0, np.nan]]], "finite"),
        ("TrueModel", [[0, 0], [1.0, 0.0], [[1.0]]], "not 2 positive"),
        ("TrueModel", [["a"], [1.0], [[1.0]]], "the row of its centre"),
        ("TrueModel", [[1], [1.0], [[1.0]]], "1 in all; with 1 centers"),
        ("TrueModel", [[1], [1.0], np.eye(2)], "leave out centers without rows"),
        ("TrueModel", [*PAIR, np.eye(2), 0.0], "noise_bound=0"),
        ("sub_gaussian_norm", [1.0, "cauchy"], "'cauchy'"),
        (
            "oracle_errors",
            [*PAIR, np.eye(2), [1.0]],
            "give one number that is not negative, or 2",
        ),
        ("exact_recovery_limit", [*PAIR, [[1, 0], [0, 0]]], "Row 1 of centers is zero"),
        ("kmeans_radius", [0.5], "size_ratio=0.5"),
        ("thresholds", [1, 2, 2], "n_samples=1"),
        ("cluster_limits", [2, 2], "n_samples=2"),
    ],
)
def test_errors_name_the_value_and_the_remedy(name, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(theory, name)(*arguments)
