"""The individual-heterogeneous sub-Gaussian mixture model, as a sampler."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial.distance import pdist

from ihgmm import _parameters as parameters
from ihgmm._checks import check_labels, check_row_count

NoiseDistribution = Literal["gaussian", "rademacher", "uniform"]
NoiseStructure = Literal["individual", "class", "common"]
NOISE_DISTRIBUTIONS: tuple[NoiseDistribution, ...] = get_args(NoiseDistribution)
NOISE_STRUCTURES: tuple[NoiseStructure, ...] = get_args(NoiseStructure)


@dataclass(frozen=True, eq=False, repr=False)
class IhGMMSample:
    """A sample together with everything that generated it."""

    X: np.ndarray  #: the data, ``scales[i] * centers[labels[i]]`` plus noise in row i
    labels: np.ndarray  #: the cluster of each row
    scales: np.ndarray
    noise_levels: np.ndarray  #: standard deviation of the noise of each row
    centers: np.ndarray
    separation: float  #: smallest distance of two centres; ``inf`` for a single one

    @property
    def signal(self) -> np.ndarray:
        """The expectation of X, of shape (n_samples, n_features)."""
        return self.scales[:, None] * self.centers[self.labels]

    def __repr__(self) -> str:
        (n, p), k = self.X.shape, len(self.centers)
        size = f"n_samples={n}, n_features={p}, n_clusters={k}"
        return f"IhGMMSample({size}, separation={self.separation:.4g})"


def default_separation(
    n_samples: int, n_features: int, n_clusters: int, constant: float = 3.0
) -> float:
    """Return ``C * sqrt(K * log d) * max(1, (p / n)**(1/4))``, ``d = max(n, p)``.

    So the paper's simulations have it; up to C it is the condition of Corollary 1.

    Examples
    --------
    >>> round(default_separation(500, 1000, 3), 4)
    16.2408
    """
    d = max(n_samples, n_features)
    aspect = max(1.0, (n_features / n_samples) ** 0.25)
    return float(constant * np.sqrt(n_clusters * np.log(d)) * aspect)


@parameters.usual_errors()
def make_ihgmm(
    n_samples: int = 500,
    n_features: int = 200,
    n_clusters: int = 4,
    *,
    scale_ratio: float = 20.0,
    balance: float = 1.0,
    separation: float | None = None,
    separation_constant: float = 3.0,
    noise: NoiseDistribution = "gaussian",
    noise_levels: Any = (0.5, 1.5),
    noise_structure: NoiseStructure = "individual",
    centers: Any = None,
    scales: Any = None,
    dtype: Any = np.float64,
    random_state: Any = None,
    return_params: bool = False,
) -> Any:
    """Sample from the individual-heterogeneous sub-Gaussian mixture model.

    Row i is ``scale_i * center_{label_i} + noise_i``. The defaults are the recipe of
    the paper's simulation studies.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Size of the sample; features at least as many as clusters, or give centres.
    scale_ratio : float
        Scales are uniform between 1 and this number, R in the paper; 1 is the
        classical mixture.
    balance : float
        The smallest cluster has ``max(1, floor(balance * n_samples / n_clusters))``
        rows, beta in the paper; the others share the rest as evenly as possible.
    separation, separation_constant : float, optional
        Distance between any two centres, Delta in the paper, and the constant C of its
        default, :func:`~ihgmm.statistics.model.default_separation`.
    noise : {"gaussian", "rademacher", "uniform"}
        Distribution of the noise, scaled to the row's noise level.
    noise_levels : float, (low, high) or array-like
        Standard deviations of the noise: one number for all; a tuple ``(low, high)``
        to draw them uniformly; or the values themselves.
    noise_structure : {"individual", "class", "common"}
        Whether each row, each class or the whole sample has its own level.
    centers : array-like of shape (n_clusters, n_features), optional
        Centres to use; ``n_features`` and ``n_clusters`` are then theirs. Default:
        random orthogonal directions, times ``separation / sqrt(2)``.
    scales : array-like of shape (n_samples,), optional
        Scales to use, positive.
    dtype : {float64, float32}
        Type of X.
    random_state : int, RandomState, Generator or None
        Seed for a reproducible sample.
    return_params : bool
        Whether to return a :class:`~ihgmm.statistics.model.IhGMMSample` instead.

    Returns
    -------
    X, labels : ndarray of shape (n_samples, n_features) and (n_samples,)
        The data, and the cluster of each row.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> X, labels = make_ihgmm(n_samples=100, n_features=50, random_state=0)
    >>> X.shape, labels.shape
    ((100, 50), (100,))
    >>> make_ihgmm(100, 50, 3, random_state=0, return_params=True).scales.shape
    (100,)
    """
    n = parameters.check_count("n_samples", n_samples)
    p = parameters.check_count("n_features", n_features)
    k = parameters.check_count("n_clusters", n_clusters)
    parameters.check_number("scale_ratio", scale_ratio, least=1)
    parameters.check_number("balance", balance, above=0, most=1)
    parameters.check_number("separation_constant", separation_constant, above=0)
    parameters.check_flag("return_params", return_params)
    parameters.check_choice("noise", noise, NOISE_DISTRIBUTIONS)
    parameters.check_choice("noise_structure", noise_structure, NOISE_STRUCTURES)
    try:
        X_dtype = np.dtype(dtype)
    except TypeError:
        X_dtype = np.dtype(object)
    if X_dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not supported; give float32 or float64.")
    rng = parameters.generator(random_state)
    if centers is None:
        if separation is None:
            separation = default_separation(n, p, k, separation_constant)
        separation = parameters.check_number("separation", separation, above=0)
        if p < k:
            raise ValueError(
                f"n_features={p} is less than n_clusters={k}: no orthogonal centres "
                "exist. Raise n_features or give centers."
            )
        theta = separation / np.sqrt(2) * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    else:
        (theta,) = check_model(centers=centers)
        k, p = theta.shape
    check_row_count(n, k)
    # The small addition keeps 0.7 * 300 / 3 from falling below 70.
    smallest = max(1, int(balance * n / k + 1e-9)) if k > 1 else n
    rest = np.sort(np.arange(n - smallest) % max(k - 1, 1))
    labels = rng.permutation(np.append(rest, np.full(smallest, k - 1)))
    omega = rng.uniform(1.0, scale_ratio, n) if scales is None else scales
    _, omega = check_model(labels=labels, scales=omega)
    sigma = _noise_levels(noise_levels, noise_structure, labels, k, rng)
    with np.errstate(over="ignore"):
        largest = omega.max() * np.abs(theta).max() + sigma.max()
    if not largest < np.finfo(X_dtype).max / 100:  # noise may be many levels away
        raise ValueError(
            f"The sample would have entries of {largest:.3g}, beyond {X_dtype}; give "
            "smaller scales, noise levels or distances between centres."
        )
    X = np.empty((n, p), dtype=X_dtype)
    # About a million entries at a time, so that no second n by p array is ever made;
    # another step would draw other signs.
    step = max(1, 2**20 // p)
    for rows in (slice(start, start + step) for start in range(0, n, step)):
        part = X[rows]
        if noise == "gaussian":
            rng.standard_normal(out=part, dtype=X_dtype)
        elif noise == "rademacher":
            part[:] = 2.0 * rng.integers(0, 2, part.shape, dtype=np.int8) - 1
        else:
            part[:] = np.sqrt(12) * (rng.random(part.shape, dtype=X_dtype) - 0.5)
        part *= sigma[rows, None]
        part += omega[rows, None] * theta[labels[rows]]
    if not return_params:
        return X, labels
    return IhGMMSample(X, labels, omega, sigma, theta, smallest_distance(theta))


def check_model(**given: Any) -> tuple[Any, ...]:
    """Check those of centers, labels and scales that are given; return new arrays.

    Labels beside centres must be row numbers of these, all in use. Other labels may be
    of any kind and are replaced by their places in sorted order.
    """
    checked: dict[str, np.ndarray] = {}
    for name in given.keys() - {"labels"}:
        with parameters.making_array(name):
            checked[name] = np.array(given[name], dtype=np.float64)
    if "centers" in given:
        theta = checked["centers"]
        if theta.ndim != 2 or theta.size == 0 or not np.isfinite(theta).all():
            raise ValueError(
                f"centers of shape {theta.shape} are no matrix of finite numbers; give "
                "one with a centre in each row."
            )
    if "labels" in given:
        labels = check_labels("labels", given["labels"])
        names, checked["labels"] = np.unique(labels, return_inverse=True)
        if "centers" in given and not np.array_equal(names, np.arange(len(theta))):
            raise ValueError(
                f"labels are {names[0]!r} to {names[-1]!r}, {len(names)} in all; with "
                f"{len(theta)} centers give each sample the row of its centre, and "
                "leave out centers without rows."
            )
    if "scales" in given:
        omega = checked["scales"]
        n = max(checked.get("labels", omega).size, 1)
        if omega.shape != (n,) or not (np.isfinite(omega) & (omega > 0)).all():
            raise ValueError(
                f"scales of shape {omega.shape} are not {n} positive, finite numbers; "
                "give one for each row."
            )
    return tuple(checked[name] for name in given)


def smallest_distance(centers: np.ndarray) -> float:
    """Return the smallest distance between two rows, ``inf`` for a single row."""
    return float(pdist(centers).min(initial=np.inf))


def _noise_levels(
    levels: Any, structure: str, labels: np.ndarray, k: int, rng: np.random.Generator
) -> np.ndarray:
    count = {"individual": len(labels), "class": k, "common": 1}[structure]
    with parameters.making_array("noise_levels"):
        array = np.asarray(levels, np.float64)
    is_range = isinstance(levels, tuple)
    fits = array.shape in ([(2,)] if is_range else [(), (count,)])
    known = (np.isfinite(array) & (array >= 0)).all()
    if not fits or not known or (is_range and array[0] > array[1]):
        raise ValueError(
            f"noise_levels={levels!r:.60} are no levels; give a number that is not "
            "negative, a tuple (low, high) to draw them from, or a list or array of "
            f"{count}, since noise_structure={structure!r}."
        )
    if is_range:
        array = rng.uniform(array[0], array[1], count)
    values = np.broadcast_to(array, count)
    return values[labels] if structure == "class" else np.resize(values, len(labels))
