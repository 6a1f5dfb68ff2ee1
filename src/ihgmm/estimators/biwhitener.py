"""Rows and columns whose noise is alike, as a step before clustering."""

from functools import partial
from typing import Any, ClassVar, Literal, Self

from ihgmm._checks import check_matrix
from ihgmm._parameters import check_choice, generator
from ihgmm.estimators.base import Scaler, atomic
from ihgmm.numerics.whitening import (
    NOISE_KINDS,
    NoiseKind,
    learn_whitener,
    suited_noise,
    warn_of_fractions,
)


class Biwhitener(Scaler):
    """Multiply rows and columns so that noise has variance one in each, on average.

    ``IhSC(columns=...)`` does the same inside and returns centres and scales in the
    units of the data; this transformer serves other methods and pipelines.
    :doc:`/counts` says when to use it.

    Parameters
    ----------
    noise : {"auto", "counts", "learned"}, default="auto"
        How large the noise is. ``"counts"``: the variance of an entry is its mean, as
        in counts of independent events, or its mean m plus c m², where c is learnt
        (biwhitening [1]_). ``"learned"``: the variance is a factor of the row times one
        of the column, learnt from what a fit of low rank leaves, for data of any sign.
        ``"auto"``: the first where data look like counts, whole numbers many of which
        are 0; the second elsewhere.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the rows to learn from where data have more than a million entries.

    Attributes
    ----------
    noise_ : str
        "counts" or "learned".
    column_factors_ : ndarray of shape (n_features,)
        What columns are multiplied by; 0 for columns that were 0 throughout.
    dispersion_ : float
        c in the variance of counts; 0 for independent events.
    whitener_ : callable
        The map itself.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X had names.

    Notes
    -----
    The factor of a row depends on that row and ``column_factors_`` alone, so that new
    rows are treated as those of the fit. Sparse data stay sparse, those of a device
    stay there, a dask array stays lazy; rows on disk come back in memory.

    References
    ----------
    .. [1] B. Landa, T. Zhang and Y. Kluger (2022), Biwhitening reveals the rank of a
       count matrix. SIAM Journal on Mathematics of Data Science 4(4), 1420-1446.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import Biwhitener
    >>> rng = np.random.default_rng(0)
    >>> means = np.outer(rng.uniform(1, 9, 500), rng.exponential(size=300))
    >>> X = rng.poisson(means)
    >>> white = Biwhitener("counts").fit_transform(X)
    >>> [round(float(A.std(axis=0).std()), 1) for A in (X, white)]
    [2.4, 0.1]
    """

    _parameter_checks: ClassVar = {
        "noise": partial(check_choice, choices=("auto", *NOISE_KINDS))
    }

    def __init__(
        self, noise: NoiseKind | Literal["auto"] = "auto", *, random_state: Any = None
    ) -> None:
        self.noise = noise
        self.random_state = random_state

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the factors of columns from data of (n_samples, n_features).

        X is array-like, sparse, of another library, on disk or a dask array. ``y`` is
        ignored. Returns the transformer itself.
        """
        data = check_matrix(X, self)
        if self.noise == "auto":
            noise: NoiseKind = suited_noise(data) or "learned"
        else:
            noise = self.noise

        if self.noise == "counts":
            warn_of_fractions(data)
        whitener = learn_whitener(data, noise, generator(self.random_state))

        self.whitener_ = whitener
        self.noise_ = whitener.noise
        self.column_factors_ = whitener.columns
        self.dispersion_ = whitener.dispersion
        return self

    def _change_rows(self, X: Any) -> Any:
        white = self.whitener_(check_matrix(X, self, reset=False))
        return white.take(slice(0, white.shape[0])).array
