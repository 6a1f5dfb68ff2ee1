"""The paper's definitions, lemmas and conditions, each formula once.

:class:`TrueModel` has those that depend on labels, scales and centres, functions the
others, and what is possible at best, which is not in the paper. Observations are rows.
A condition "left side much larger than right side" is given as the ratio of the two:
far below 1 the paper promises nothing, above 1 it may.
"""

from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.special import erfi, ndtr, ndtri

from ihgmm._parameters import check_choice, check_count, check_number
from ihgmm.statistics import model


class TrueModel:
    """Labels, scales and centres, and all that the paper derives from them.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        The row of ``centers`` that each sample belongs to, from 0.
    scales : array-like of shape (n_samples,)
        Positive numbers, omega.
    centers : array-like of shape (n_clusters, n_features)
        The centres, theta, one in each row.
    noise_bound : float
        eta, the bound of the sub-Gaussian norm of the noise; the largest noise level
        will do, see :func:`sub_gaussian_norm`.

    Attributes
    ----------
    sizes, weighted_sizes : ndarray of shape (n_clusters,)
        Number of rows, and sum of squared scales, n tilde (section 3.1).
    separation : float
        Delta, the smallest distance of two centres (section 2); ``inf`` for one centre.
    balance, size_ratio, scale_ratio : float
        beta, the smallest size over ``n / K`` (section 2), tau, the largest over the
        smallest (section 4), and R, the same of scales (section 5).
    weighted_centers : ndarray of shape (n_clusters, n_features)
        Rows ``sqrt(n tilde) * theta``, with the spectrum of the signal.
    singular_values : ndarray of shape (n_clusters,)
        Those of the signal (proof of Lemma 1).
    condition_number, signal_condition_number : float
        kappa, ``sigma_1 / sigma_K`` of the centres (section 4), and kappa_P, that of
        the signal (Lemma 4); ``inf`` for linearly dependent centres.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> s = make_ihgmm(500, 200, 4, random_state=0, return_params=True)
    >>> model = TrueModel(s.labels, s.scales, s.centers, noise_bound=1.5)
    >>> model.balance, round(model.condition_number, 6), round(model.scale_ratio, 2)
    (1.0, 1.0, 19.26)
    >>> min(model.theorem_conditions.values()) < 1e-8  # not met
    True
    >>> round(sum(model.error_bound.values()), 2)
    0.11
    """

    def __init__(
        self, labels: Any, scales: Any, centers: Any, noise_bound: float = 1.0
    ) -> None:
        self.labels, self.scales, self.centers = model.check_model(
            labels=labels, scales=scales, centers=centers
        )
        self.noise_bound = check_number("noise_bound", noise_bound, above=0)
        self.n_samples = len(self.labels)
        self.n_clusters, self.n_features = self.centers.shape

        self.sizes = np.bincount(self.labels)
        self.weighted_sizes = np.bincount(self.labels, self.scales**2)
        self.separation = model.smallest_distance(self.centers)
        self.balance = float(self.sizes.min() * self.n_clusters / self.n_samples)
        self.size_ratio = float(self.sizes.max() / self.sizes.min())
        self.scale_ratio = float(self.scales.max() / self.scales.min())

        self.weighted_centers = np.sqrt(self.weighted_sizes)[:, None] * self.centers
        values = np.linalg.svd(self.weighted_centers, compute_uv=False)
        self.singular_values = np.pad(values, (0, self.n_clusters - len(values)))
        self.condition_number = _singular_ratio(self.centers)
        self.signal_condition_number = _singular_ratio(self.weighted_centers)

    @property
    def log_size(self) -> float:
        """The logarithm of d, the larger of n and p, which conditions divide by."""
        if self.n_samples == self.n_features == 1:
            raise ValueError("One row of one feature has log d = 0; give at least 2.")
        return float(np.log(max(self.n_samples, self.n_features)))

    @property
    def signal(self) -> np.ndarray:
        """The expectation of X, rows ``omega_i * theta``; P (section 2) transposed."""
        return np.asarray(self.scales[:, None] * self.centers[self.labels])

    @property
    def ideal_embedding(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, U_* and H: what the algorithm sees without noise (Lemma 1).

        U has the singular vectors of the signal, U_* its rows at norm 1, which are the
        K orthogonal rows of H.
        """
        rotation, _ = _independent_svd(self.weighted_centers)  # H
        unit_rows = rotation[self.labels]  # U_*

        signal_norms = np.sqrt(self.weighted_sizes)
        norms = self.scales / signal_norms[self.labels]
        return norms[:, None] * unit_rows, unit_rows, rotation

    @cached_property
    def incoherence(self) -> dict[str, float]:
        """Mu_0, mu_1 and mu_2 (Definition 1); mu is the largest."""
        n = self.n_samples
        squared_scales = self.scales**2
        squared_centers = self.centers**2

        # Entries of the signal, its rows, and its right singular vectors.
        largest_of_centers = squared_centers.max(axis=1)
        squared_norms = squared_centers.sum(axis=1)
        largest = (squared_scales * largest_of_centers[self.labels]).max()
        total = (squared_scales * squared_norms[self.labels]).sum()
        squared_row_norms = squared_scales / self.weighted_sizes[self.labels]  # Lemma 1
        return {
            "entries": float(self.n_features * n * largest / total),
            "samples": float(n / self.n_clusters * squared_row_norms.max()),
            "features": _feature_incoherence(self.weighted_centers),
        }

    @property
    def entry_constants(self) -> tuple[float, float]:
        """C_Theta and c of Assumption 1: largest entry, least norm over root p."""
        largest_entry = np.abs(self.centers).max()
        smallest_norm = np.linalg.norm(self.centers, axis=1).min()
        return float(largest_entry), float(smallest_norm / np.sqrt(self.n_features))

    @property
    def subspace_constant(self) -> float:
        """C_inc, the smallest constant of Assumption 2, between 1 and ``p / K``."""
        return _feature_incoherence(self.centers)

    @property
    def incoherence_bounds(self) -> dict[str, float]:
        """Upper bounds of ``incoherence`` (Lemma 2; mu_1: proof of Theorem 1).

        They are ``R**2 * C_Theta**2 / (beta * c**2)``, ``R**2 / beta`` and ``C_inc``.
        """
        features = self.subspace_constant  # raises where c may be 0
        largest_entry, smallest_norm = self.entry_constants
        samples = self.scale_ratio**2 / self.balance
        return {
            "entries": samples * (largest_entry / smallest_norm) ** 2,
            "samples": samples,
            "features": features,
        }

    @property
    def singular_value_bound(self) -> float:
        """``omega_min * Delta / (2 * kappa) * sqrt(beta * n / K)`` (Lemma 3).

        It is a lower bound of sigma_K of the signal.
        """
        separation = self.separation
        if self.n_clusters == 1:
            # A single centre has no separation; its norm takes the place of
            # Delta / sqrt(2).
            separation = np.sqrt(2) * np.linalg.norm(self.centers)

        bound = self.scales.min() * separation / (2 * self.condition_number)
        return float(bound * np.sqrt(self.sizes.min()))

    @property
    def signal_condition_number_bound(self) -> float:
        """``kappa * R * sqrt(tau)``, an upper bound of kappa_P (Lemma 4)."""
        return float(self.condition_number * self.scale_ratio * self.size_ratio**0.5)

    @property
    def row_norm_bound(self) -> float:
        """``1 / (R * sqrt(n_max))``: no row of U is shorter (proof of Theorem 1)."""
        return float(1 / (self.scale_ratio * np.sqrt(self.sizes.max())))

    @property
    def theorem_conditions(self) -> dict[str, float]:
        """How far the conditions of Theorem 1 are met (MainNPKCond, MainDeltaCond).

        Up to constants, and with n_1 for the size of the largest cluster, they are::

            n p   >> mu^2 tau^4 kappa^8 R^8 K^2 log^4 d
            p     >> mu tau^4 kappa^8 R^8 K log^2 d
            n     >> mu^(1/3) (tau kappa^2)^(4/3) R^(14/3) K n_1^(1/3) / beta^(2/3)
            Delta >> eta / sqrt(beta) * kappa^2 tau^(1/2) mu^(1/4)
                     * omega_max^(3/2) / omega_min^(5/2)
                     * (K p n_1 / n^2)^(1/4) sqrt(K log d)
            Delta >> eta / sqrt(beta) * kappa^4 tau^(3/2) mu^(1/2)
                     * omega_max^4 / omega_min^5 * K sqrt(n_1 log d / n)
        """
        n = self.n_samples
        p = self.n_features
        k = self.n_clusters
        log = self.log_size
        tau = self.size_ratio
        kappa = self.condition_number
        mu = max(self.incoherence.values())

        largest_size = self.sizes.max()
        difficulty = tau**4 * kappa**8 * self.scale_ratio**8

        n_needed = (tau * kappa**2) ** (4 / 3) * self.scale_ratio ** (14 / 3)
        n_needed *= mu ** (1 / 3)
        n_needed *= k * largest_size ** (1 / 3) / self.balance ** (2 / 3)

        aspect, floor = self._separations_needed(kappa, mu)
        return {
            "product": n * p / (mu**2 * difficulty * k**2 * log**4),
            "features": p / (mu * difficulty * k * log**2),
            "samples": float(n / n_needed),
            "separation_aspect": float(self.separation / aspect),
            "separation_floor": float(self.separation / floor),
        }

    def _separations_needed(self, kappa: float, mu: float) -> tuple[float, float]:
        """Return the separations that Theorem 1 asks for, the last two conditions.

        The first grows with the number of features, the second does not.
        """
        n = self.n_samples
        k = self.n_clusters
        log = self.log_size
        tau = self.size_ratio

        largest_size = self.sizes.max()
        smallest_scale = self.scales.min()
        largest_scale = self.scales.max()
        noise = self.noise_bound / np.sqrt(self.balance)

        aspect = noise * kappa**2 * largest_scale**1.5 * tau**0.5 * mu**0.25
        aspect /= smallest_scale**2.5
        aspect *= (k * self.n_features * largest_size / n**2) ** 0.25
        aspect *= np.sqrt(k * log)

        floor = noise * kappa**4 * largest_scale**4 * np.sqrt(tau**3 * mu)
        floor /= smallest_scale**5
        floor *= k * np.sqrt(largest_size * log / n)
        return aspect, floor

    @property
    def perturbation_conditions(self) -> dict[str, float]:
        """How far the conditions behind the proof of Theorem 1 are met (cai15).

        They are those of the subspace perturbation theorem of Cai, Li, Chi, Poor and
        Chen (2021): all are at least 1/2 where those of Theorem 1 are at least 1.
        """
        n = self.n_samples
        p = self.n_features
        k = self.n_clusters
        log = self.log_size
        kappa = self.signal_condition_number
        mu = max(self.incoherence.values())

        # The weakest part of the signal, in units of the noise.
        strength = self.singular_values[-1] / self.noise_bound
        aspect = kappa * (n * p) ** 0.25 * np.sqrt(log)
        floor = kappa**3 * np.sqrt(n * log)
        return {
            "product": float(np.sqrt(n * p) / (mu * kappa**4 * k * log**2)),
            "features": p / (mu * kappa**8 * k * log**2),
            "signal_aspect": float(strength / aspect),
            "signal_floor": float(strength / floor),
            "clusters": n / (self.incoherence["samples"] * kappa**4 * k),
        }

    @property
    def error_bound(self) -> dict[str, float]:
        """The terms of E_gen of the proof of Theorem 1, up to a constant.

        "diagonal" is what zeroing the diagonal of the Gram matrix costs, whatever the
        noise and the separation; the others are what noise costs.
        """
        n = self.n_samples
        log = self.log_size
        kappa = self.signal_condition_number
        weakness = self.noise_bound / self.singular_values[-1]

        return {
            "diagonal": self.incoherence["samples"] * kappa**2 * self.n_clusters / n,
            "noise_squared": float(weakness**2 * np.sqrt(n * self.n_features) * log),
            "noise": float(weakness * kappa * np.sqrt(n * log)),
        }

    @property
    def explicit_error_bound(self) -> dict[str, float]:
        """The bound of the normalized rows' error, E_gen with a tilde in the proof."""
        # The conditions of the theorem are that these terms be small.
        ratio = self.theorem_conditions
        return {
            "diagonal": ratio["samples"] ** -1.5,
            "noise_squared": 4 / ratio["separation_aspect"] ** 2,
            "noise": 2 / ratio["separation_floor"],
        }


def _singular_ratio(matrix: np.ndarray) -> float:
    """Return the first singular value over the last; ``inf`` if rows are dependent."""
    has_full_rank = np.linalg.matrix_rank(matrix) == len(matrix)
    return float(np.linalg.cond(matrix)) if has_full_rank else np.inf


def _independent_svd(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular vectors of independent rows; raise if rows are dependent."""
    rank = np.linalg.matrix_rank(centers)
    if rank < len(centers):
        raise ValueError(
            f"centers has {len(centers)} rows but rank {rank}; give linearly "
            "independent centers, no more of them than features."
        )
    left_vectors, _, right_vectors = np.linalg.svd(centers, full_matrices=False)
    return left_vectors, right_vectors


def _feature_incoherence(centers: np.ndarray) -> float:
    """Return ``p / K`` times the largest squared projection of a unit vector."""
    k, p = centers.shape
    _, basis = _independent_svd(centers)
    squared_projections = (basis**2).sum(axis=0)
    return float(p / k * squared_projections.max())


def sub_gaussian_norm(
    noise_level: float = 1.0,
    noise: Literal["gaussian", "rademacher", "uniform"] = "gaussian",
) -> float:
    """Return the smallest t with ``E exp(x**2 / t**2) <= 2``, for the bound eta.

    It is the psi_2 norm (section 2) of an entry x of the noise, whose standard
    deviation is ``noise_level``.

    Examples
    --------
    >>> round(sub_gaussian_norm(1.0, "rademacher"), 4)
    1.2011
    """
    sigma = check_number("noise_level", noise_level, least=0)
    check_choice("noise", noise, model.NOISE_DISTRIBUTIONS)

    if noise == "gaussian":
        return float(sigma * np.sqrt(8 / 3))
    if noise == "rademacher":
        return float(sigma / np.sqrt(np.log(2)))

    def excess(t: float) -> float:
        # Of x uniform on (-1, 1) the mean is t * sqrt(pi) / 2 * erfi(1 / t).
        return float(t * erfi(1 / t) - 4 / np.sqrt(np.pi))

    root = brentq(excess, 0.5, 1.5, xtol=1e-14)
    return float(sigma * np.sqrt(3.0) * root)


def corollary_conditions(
    n_samples: int, n_features: int, n_clusters: int, separation: float
) -> dict[str, float]:
    """Return how far the conditions of Corollary 1 are met (cond:cor, cond:delta).

    They are on ``n * p``, p, n and Delta, in units of the noise.

    Examples
    --------
    >>> ratios = corollary_conditions(2500, 200, 4, 16.78)
    >>> round(ratios["separation"], 2), round(ratios["features"], 2)
    (3.0, 0.82)
    """
    # This checks the three numbers, too.
    threshold = ihsc_threshold(n_samples, n_features, n_clusters)
    delta = check_number("separation", separation, least=0)
    log = np.log(max(n_samples, n_features))
    n_entries = n_samples * n_features

    return {
        "product": float(n_entries / (n_clusters**2 * log**4)),
        "features": float(n_features / (n_clusters * log**2)),
        "samples": n_samples / n_clusters,
        "separation": delta / threshold,
    }


def kmeans_radius(size_ratio: float) -> float:
    """Return ``1 / (sqrt(2) * (3 + sqrt(1 + tau)))``, within which k-means is right.

    If every row of an embedding is closer than that to its cluster's point, and these
    points are ``sqrt(2)`` apart, the best k-means solution is the true clustering.

    Examples
    --------
    >>> round(kmeans_radius(1.0), 4)
    0.1602
    """
    tau = check_number("size_ratio", size_ratio, least=1)
    return float(1 / (np.sqrt(2) * (3 + np.sqrt(1 + tau))))


def ihsc_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``sqrt(K * log d) * max(1, (p / n)**(1/4))``, ``d = max(n, p)``.

    It is the paper's separation for IhSC (Corollary 1), for at least 2 rows.

    Examples
    --------
    >>> [round(ihsc_threshold(500, p, 4), 1) for p in (200, 5_000, 50_000)]
    [5.0, 10.4, 20.8]
    """
    n = check_count("n_samples", n_samples, least=2)
    p = check_count("n_features", n_features)
    k = check_count("n_clusters", n_clusters)
    return model.default_separation(n, p, k, 1.0)


def thresholds(n_samples: int, n_features: int, n_clusters: int) -> dict[str, float]:
    """Return the separations that five works ask for, by name (tab:comparison).

    They are for balanced clusters and noise of level 1, and hold up to constants, which
    differ between the works; Ndaoud's is for two clusters (NaN for more).

    Examples
    --------
    >>> for name, value in thresholds(500, 5000, 2).items():
    ...     print(f"{name}: {value:.2f}")
    Löffler et al. 2021: 4579.47
    Chen and Yang 2021: 4.36
    Ndaoud 2022: 4.36
    Zhang and Zhou 2024: 6.32
    IhSC: 7.34
    """
    n = n_samples
    p = n_features
    k = n_clusters
    ihsc = ihsc_threshold(n, p, k)  # checks the three numbers, too

    log = np.log(n)
    root_aspect = np.sqrt(p / n)
    growth = 1 + np.sqrt(1 + k * p / (n * log))
    chen = float(np.sqrt(growth * log))
    return {
        "Löffler et al. 2021": float(max(k**10.5 * root_aspect, np.sqrt(log))),
        "Chen and Yang 2021": chen,
        "Ndaoud 2022": chen if k == 2 else np.nan,
        "Zhang and Zhou 2024": float(max(k * root_aspect, np.sqrt(log))),
        "IhSC": ihsc,
    }


def cluster_limits(n_samples: int, n_features: int) -> dict[str, float]:
    """Return the orders that K must stay below, for n of at least 3.

    That of IhSC is what Corollary 1 asks for, the others are those of tab:comparison.

    Examples
    --------
    >>> limits = cluster_limits(100_000, 1000)
    >>> round(limits["Zhang and Zhou 2024"], 1), round(limits["IhSC"], 1)
    (316.2, 7.5)
    """
    n = check_count("n_samples", n_samples, least=3)
    p = check_count("n_features", n_features)

    log = np.log(n)
    log_size = np.log(max(n, p))
    features = min(p, np.sqrt(n * p)) / log_size**2
    return {
        "Löffler et al. 2021": float(n),
        "Chen and Yang 2021": float(log / np.log(log)),
        "Ndaoud 2022": 2.0,
        "Zhang and Zhou 2024": float(np.sqrt(n)),
        "IhSC": float(min(n, features)),
    }


def oracle_errors(
    labels: Any,
    scales: Any,
    centers: Any,
    noise_levels: Any = 1.0,
    *,
    n_samples: int | None = None,
) -> float:
    """Return a bound on the mean number of rows that known centres misplace.

    Centre k beats a row's own, at unknown scale, with probability ``Phi(-omega_i *
    |theta_z| * |u_z - u_k| / (2 * sigma_i))``, where u are the centres at unit norm.
    The bound is the sum over rows and other centres; a row that two centres beat counts
    twice. All labels are right with a probability of about ``exp(-errors)``.

    Parameters
    ----------
    labels, scales, centers
        The model; no centre may be zero.
    noise_levels : float or array-like of shape (n_samples,)
        Standard deviation of the noise, sigma_i, of all rows or of each.
    n_samples : int, optional
        Number of rows to count errors of, where the given ones stand for all that
        might be drawn. Default: the given ones.

    Examples
    --------
    >>> model = [0, 0, 1, 1], [1.0, 2.0, 1.0, 2.0], [[3.0, 0.0], [0.0, 3.0]]
    >>> round(oracle_errors(*model), 4)
    0.0339
    """
    distances, weight = _distances(labels, scales, centers, noise_levels, n_samples)
    return float(weight * ndtr(-distances).sum())


def exact_recovery_limit(
    labels: Any,
    scales: Any,
    centers: Any,
    noise_levels: Any = 1.0,
    *,
    n_samples: int | None = None,
) -> float:
    """Return the separation Delta at which known centres give all labels half the time.

    There :func:`oracle_errors`, which has the same arguments, is ``log 2`` after the
    centres are multiplied by one number. The limit is ``inf`` where two centres have
    the same direction, and 0 where nothing can go wrong.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> s = make_ihgmm(500, 200, 4, random_state=0, return_params=True)
    >>> limit = exact_recovery_limit(s.labels, s.scales, s.centers, s.noise_levels)
    >>> round(limit / ihsc_threshold(500, 200, 4), 2)
    0.78
    """
    distances, weight = _distances(labels, scales, centers, noise_levels, n_samples)
    wanted_errors = np.log(2) / weight

    if distances.size / 2 <= wanted_errors:
        return 0.0
    if distances.min() == 0:
        return np.inf

    # Were all distances as small as the smallest, errors would be log 2 at this factor,
    # so that it is an upper bound.
    largest_factor = -ndtri(wanted_errors / distances.size) / distances.min()
    at_bound = largest_factor * distances

    def excess(share: float) -> float:
        return float(ndtr(-share * at_bound).sum() - wanted_errors)

    factor = brentq(excess, 0.0, 1.0) * largest_factor
    separation = model.smallest_distance(np.asarray(centers, float))
    return float(factor * separation)


def _distances(
    labels: Any, scales: Any, centers: Any, noise_levels: Any, n_samples: int | None
) -> tuple[np.ndarray, float]:
    """Return how far noisy rows are from each border, and how many each stands for.

    Distances, (n_noisy_rows, n_clusters - 1), are those of the expected row to the
    border between its own centre and each other one, in levels of its noise.
    """
    z, omega, theta = model.check_model(labels=labels, scales=scales, centers=centers)
    sigma = _check_levels(noise_levels, len(z))
    n = len(z) if n_samples is None else check_count("n_samples", n_samples)
    norms = np.linalg.norm(theta, axis=1)
    if not norms.all():
        raise ValueError(
            f"Row {norms.argmin()} of centers is zero; give centres with a direction."
        )

    # Distances of the directions of centres: (n_clusters, n_clusters - 1).
    directions = theta / norms[:, None]
    gaps = cdist(directions, directions)
    gaps[gaps < 10 * np.finfo(np.float64).eps] = 0.0  # parallel, but for rounding
    is_other_center = ~np.eye(len(theta), dtype=bool)
    gaps_to_others = gaps[is_other_center].reshape(len(theta), -1)

    # Rows without noise are never misplaced.
    is_noisy = sigma > 0
    signal = (omega * norms[z])[is_noisy]
    signal_to_noise = signal / (2 * sigma[is_noisy])
    distances = signal_to_noise[:, None] * gaps_to_others[z[is_noisy]]
    return distances, n / len(z)


def _check_levels(noise_levels: Any, n_samples: int) -> np.ndarray:
    """Return a noise level for each row; raise if these are none."""
    levels = np.asarray(noise_levels, dtype=np.float64)
    are_levels = (np.isfinite(levels) & (levels >= 0)).all()
    if levels.shape not in ((), (n_samples,)) or not are_levels:
        raise ValueError(
            f"noise_levels={noise_levels!r:.60} are no levels; give one number that is "
            f"not negative, or {n_samples} of them."
        )
    return np.broadcast_to(levels, n_samples)
