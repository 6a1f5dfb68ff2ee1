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
        n_samples, n_features = self.X.shape
        return (
            f"IhGMMSample(n_samples={n_samples}, n_features={n_features}, "
            f"n_clusters={len(self.centers)}, separation={self.separation:.4g})"
        )


def default_separation(
    n_samples: int, n_features: int, n_clusters: int, constant: float = 3.0
) -> float:
    """Return ``C * sqrt(K * log d) * max(1, (p / n)**(1/4))``, ``d = max(n, p)``.

    The paper's simulations have it so. Up to C it is the separation that Corollary 1
    asks for, equation (5) of the paper.

    Examples
    --------
    >>> round(default_separation(500, 1000, 3), 4)
    16.2408
    """
    d = max(n_samples, n_features)
    aspect = max(1.0, (n_features / n_samples) ** 0.25)
    order = np.sqrt(n_clusters * np.log(d))
    return float(constant * order * aspect)


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

    Row i is ``scale_i * center_{label_i} + noise_i``, equation (1) of the paper. The
    defaults are the recipe of its simulation studies.

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
    X_dtype = _check_dtype(dtype)
    rng = parameters.generator(random_state)

    # What a seed gives depends on the order in which these are drawn.
    if centers is None:
        if separation is None:
            separation = default_separation(n, p, k, separation_constant)
        separation = parameters.check_number("separation", separation, above=0)
        theta = _draw_centers(k, p, separation, rng)
    else:
        theta = check_centers(centers)
        k, p = theta.shape

    check_row_count(n, k)
    labels = _draw_labels(n, k, balance, rng)
    omega = rng.uniform(1.0, scale_ratio, n) if scales is None else scales
    omega = check_scales(omega, n)
    sigma = _noise_levels(noise_levels, noise_structure, labels, k, rng)
    _check_range(omega, theta, sigma, X_dtype)

    X = np.empty((n, p), dtype=X_dtype)
    # About a million entries at a time, so that no second n by p array is ever made;
    # another step would draw other signs.
    step = max(1, 2**20 // p)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        _draw_noise(X[rows], noise, rng)
        X[rows] *= sigma[rows, None]
        X[rows] += omega[rows, None] * theta[labels[rows]]

    if not return_params:
        return X, labels
    return IhGMMSample(
        X=X,
        labels=labels,
        scales=omega,
        noise_levels=sigma,
        centers=theta,
        separation=smallest_distance(theta),
    )


def _check_dtype(dtype: Any) -> np.dtype:
    """Return float32 or float64, or raise."""
    try:
        X_dtype = np.dtype(dtype)
    except TypeError:
        X_dtype = np.dtype(object)
    if X_dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not supported; give float32 or float64.")
    return X_dtype


def _draw_centers(
    k: int, p: int, separation: float, rng: np.random.Generator
) -> np.ndarray:
    """Return random orthogonal centres, any two of them so far apart."""
    if p < k:
        raise ValueError(
            f"n_features={p} is less than n_clusters={k}: no orthogonal centres "
            "exist. Raise n_features or give centers."
        )
    directions, _ = np.linalg.qr(rng.standard_normal((p, k)))
    return separation / np.sqrt(2) * directions.T


def _draw_labels(
    n: int, k: int, balance: float, rng: np.random.Generator
) -> np.ndarray:
    """Return labels in random order; the last cluster is the smallest."""
    smallest = n
    if k > 1:
        # The small addition keeps 0.7 * 300 / 3 from falling below 70.
        smallest = max(1, int(balance * n / k + 1e-9))
    larger_clusters = np.arange(n - smallest) % max(k - 1, 1)
    smallest_cluster = np.full(smallest, k - 1)
    in_order = np.append(np.sort(larger_clusters), smallest_cluster)
    return rng.permutation(in_order)


def _check_range(
    scales: np.ndarray, centers: np.ndarray, levels: np.ndarray, dtype: np.dtype
) -> None:
    """Raise if numbers of a type cannot hold a sample of such parameters."""
    with np.errstate(over="ignore"):
        largest_signal = scales.max() * np.abs(centers).max()
        largest = largest_signal + levels.max()
    if not largest < np.finfo(dtype).max / 100:  # noise may be many levels away
        raise ValueError(
            f"The sample would have entries of {largest:.3g}, beyond {dtype}; give "
            "smaller scales, noise levels or distances between centres."
        )


def _draw_noise(
    out: np.ndarray, noise: NoiseDistribution, rng: np.random.Generator
) -> None:
    """Fill an array with independent noise of variance 1."""
    if noise == "gaussian":
        rng.standard_normal(out=out, dtype=out.dtype)
    elif noise == "rademacher":
        out[:] = 2.0 * rng.integers(0, 2, out.shape, dtype=np.int8) - 1
    else:
        out[:] = np.sqrt(12) * (rng.random(out.shape, dtype=out.dtype) - 0.5)


def check_model(
    labels: Any, scales: Any, centers: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check the parameters of a sample; return new arrays.

    Labels are numbers of centres, all in use.
    """
    centers = check_centers(centers)
    classes, codes = np.unique(check_labels("labels", labels), return_inverse=True)
    if not np.array_equal(classes, np.arange(len(centers))):
        raise ValueError(
            f"labels are {classes[0]!r} to {classes[-1]!r}, {len(classes)} in all; "
            f"with {len(centers)} centers give each sample the row of its centre, and "
            "leave out centers without rows."
        )
    return codes, check_scales(scales, n=max(codes.size, 1)), centers


def check_centers(centers: Any) -> np.ndarray:
    """Return centres as a new matrix of finite numbers, with a centre in each row."""
    with parameters.making_array("centers"):
        array = np.array(centers, dtype=np.float64)
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"centers of shape {array.shape} are no matrix of finite numbers; give "
            "one with a centre in each row."
        )
    return array


def check_scales(scales: Any, n: int) -> np.ndarray:
    """Return scales of n rows as a new array of positive numbers."""
    with parameters.making_array("scales"):
        array = np.array(scales, dtype=np.float64)
    is_positive = np.isfinite(array) & (array > 0)
    if array.shape != (n,) or not is_positive.all():
        raise ValueError(
            f"scales of shape {array.shape} are not {n} positive, finite numbers; "
            "give one for each row."
        )
    return array


def smallest_distance(centers: np.ndarray) -> float:
    """Return the smallest distance between two rows, ``inf`` for a single row."""
    return float(pdist(centers).min(initial=np.inf))


def _noise_levels(
    levels: Any,
    structure: NoiseStructure,
    labels: np.ndarray,
    k: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the noise level of each row, given or drawn from a range."""
    count = {"individual": len(labels), "class": k, "common": 1}[structure]
    with parameters.making_array("noise_levels"):
        array = np.asarray(levels, np.float64)

    is_range = isinstance(levels, tuple)
    shapes = [(2,)] if is_range else [(), (count,)]
    is_level = np.isfinite(array) & (array >= 0)
    fits = array.shape in shapes and is_level.all()
    if not fits or (is_range and array[0] > array[1]):
        raise ValueError(
            f"noise_levels={levels!r:.60} are no levels; give a number that is not "
            "negative, a tuple (low, high) to draw them from, or a list or array of "
            f"{count}, since noise_structure={structure!r}."
        )

    if is_range:
        array = rng.uniform(array[0], array[1], count)
    values = np.broadcast_to(array, count)
    if structure == "class":
        return values[labels]
    return np.resize(values, len(labels))
