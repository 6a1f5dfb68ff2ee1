"""IhGMM: the mixture model fitted by likelihood."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, Tags

from ihgmm._callbacks import InSteps, with_callbacks
from ihgmm._checks.data import CheckedData, check_data
from ihgmm._checks.fits import whole_fit
from ihgmm._checks.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_n_clusters,
    check_number,
    generator,
)
from ihgmm._checks.rows import (
    check_row_count,
    identical_rows,
    warn_empty_clusters,
    warn_zero_rows,
)
from ihgmm._devices import moved, times, to_host
from ihgmm._progress import Steps
from ihgmm._reporting import Reporting
from ihgmm._tall import Tall
from ihgmm.em import Mixture, evaluate_mixture, fit_mixture
from ihgmm.estimation import estimate_parameters
from ihgmm.gram import GRAMS, GramKind
from ihgmm.memberships import NOISES, Noise, indicators
from ihgmm.mixture._fitted import FittedMixture, log_unit
from ihgmm.refinement import refine_labels
from ihgmm.rounding import number_by_size
from ihgmm.spectral import spectral_clustering
from ihgmm.statistics.selection import resolve

__all__ = ["IhGMM"]


class IhGMM(InSteps, Reporting, FittedMixture):
    """Mixture of patterns at individual scales, fitted by likelihood.

    IhGMM stands beside :class:`~ihgmm.IhSC` as ``GaussianMixture`` stands beside
    ``KMeans``: it starts from the spectral clusters and gives each row a probability
    for each cluster, a likelihood, and criteria to compare models by. Row i is modelled
    as ``scale_i * center + noise`` with Gaussian noise, the same in all directions.

    Parameters
    ----------
    n_clusters : int or "auto", default=2
        Number of clusters; "auto" counts the directions that stand out from noise, in
        few features the clusters that halves of the data agree on: see
        :func:`~ihgmm.select_n_clusters`.
    noise : {"individual", "class", "common"}, default="individual"
        Whether every row, every cluster or the whole sample has its own noise level.
        ``"individual"`` is the full model; :meth:`bic` tells which one fits.
    gram : {"hollow", "full", "cosine", "hetero"}, default="hollow"
        Gram matrix of the spectral start, see :class:`~ihgmm.IhSC`.
    max_iter : int, default=200
        Cap on the rounds.
    tol : float, default=1e-3
        Memberships that move less than this, on average over rows, have converged.
    verbose : bool, default=False
        Write a line for each step of the fit, with its time, and show how far each
        pass over data on disk has come.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The most likely cluster of each row, numbered by decreasing size.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Probability of each cluster for each row of the fit, given the other rows.
    weights_ : ndarray of shape (n_clusters,)
        Shares of the clusters, equal unless sizes differ by more than chance.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres; the scales of a cluster have mean 1.
    scales_ : ndarray of shape (n_samples,)
        Scale of each row in its cluster.
    scale_errors_ : ndarray of shape (n_samples,)
        Standard errors of the scales.
    noise_levels_ : ndarray of shape (n_samples,), (n_clusters,) or (1,)
        Standard deviation of the noise: of each row, each cluster or all.
    log_likelihood_ : float
        Log-likelihood of the rows of the fit, each given the others.
    n_clusters_ : int
        Number of clusters, given or found.
    converged_ : bool
        Whether the memberships settled before the cap.
    n_iter_ : int
        Rounds that were run.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had any.

    See Also
    --------
    IhSC : Clusters without probabilities, several times faster.

    Notes
    -----
    A round weighs rows by scale over noise variance, sums them to centres, and compares
    every row with the centres *without that row*. Ordinary maximum likelihood would
    use the row in its own centre: with many features it then fits its cluster best
    whatever it is, memberships are all 0 or 1, and with individual noise the likelihood
    has no maximum at all. The length of a row's signal is integrated out; the noise of
    the centres is accounted for. Memberships are calibrated under the model where
    scales differ widely: of rows with membership 0.8, eight in ten are where they
    belong. As lengths count for nothing, they are cautious where scales are nearly
    equal: there it is nine in ten. Noise that is not the same in all directions, as in
    most real data, makes them too sure.

    :meth:`predict` and :meth:`predict_proba` judge rows by all rows of the fit; for the
    rows of the fit themselves use ``labels_`` and ``memberships_``.

    X may be an array of torch, CuPy or another library that follows the array API
    standard (``pip install array-api-compat``). It stays on its device, and so do
    arrays among the results; what there is of each row and cluster is worked on on the
    host.

    Examples
    --------
    >>> from ihgmm import IhGMM, make_ihgmm
    >>> X, labels = make_ihgmm(200, 100, 3, separation_constant=0.5, random_state=0)
    >>> model = IhGMM(3, random_state=0).fit(X)
    >>> model.memberships_.shape
    (200, 3)
    >>> models = {
    ...     noise: IhGMM(3, noise=noise, random_state=0).fit(X)
    ...     for noise in ("individual", "class", "common")
    ... }
    >>> min(models, key=lambda noise: models[noise].bic(X))
    'individual'
    """

    memberships_: np.ndarray
    scale_errors_: np.ndarray
    log_likelihood_: float
    converged_: bool
    n_iter_: int

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 2,
        *,
        noise: Noise = "individual",
        gram: GramKind = "hollow",
        max_iter: int = 200,
        tol: float = 1e-3,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.noise = noise
        self.gram = gram
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's checks read off this how many columns predict_proba has.
        tags.classifier_tags = ClassifierTags(multi_class=self.n_clusters != 2)
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. Zero rows get the label of the largest cluster, with a warning.
            A torch tensor, a CuPy array or any other that follows the array API
            standard stays on its device, and results are arrays of the same kind.
        y : None
            Ignored.

        Returns
        -------
        IhGMM
            The fitted estimator itself.
        """
        self._check_parameters()
        count = 6 + (self.n_clusters == "auto")
        with self._steps(count, X, y, self.verbose) as steps, whole_fit(self):
            self._fit(X, steps)
        return self

    def _fit(self, X: Any, steps: Steps) -> None:
        with steps.step("check") as say:
            data = check_data(X, self, blocks=True, devices=True, verbose=self.verbose)
            n, p = data.X.shape
            say(f"{n:,} rows, {p:,} features")
            warn_zero_rows(data.sqnorms)
        rng = generator(self.random_state)
        k = self.n_clusters
        if k == "auto":
            with steps.step("count") as say:
                k, _ = resolve(k, data.X, data.sqnorms, self.gram, rng, refined=True)
                say(f"{k} cluster{'s' * (k != 1)}")
        check_row_count(data.X.shape[0], k)
        kinds = identical_rows(data.X, data.sqnorms, k)
        if kinds is not None:
            given = indicators(kinds, k)
            found = evaluate_mixture(data.X, given, data.sqnorms, self.noise)
            found = replace(found, memberships=given, change=0.0)
        else:
            start = self._start(data, k, rng, steps)
            with steps.step("rounds") as say:
                found = fit_mixture(
                    data.X,
                    start,
                    k,
                    data.sqnorms,
                    noise=self.noise,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    say=say,
                )
            warn_empty_clusters(found.memberships.argmax(axis=1), k)
        if found.change > self.tol:
            warnings.warn(
                f"Memberships still moved by {found.change:.1e} a row after "
                f"max_iter={self.max_iter} rounds; tol={self.tol:g} was asked for. "
                "Raise max_iter or tol, or ask for fewer clusters.",
                ConvergenceWarning,
                stacklevel=2,
            )
        with steps.step("centers"):
            self._store(found, data)

    def _start(
        self, data: CheckedData, k: int, rng: np.random.Generator, steps: Steps
    ) -> Tall:
        spectral = spectral_clustering(
            data.X, k, gram=self.gram, sqnorms=data.sqnorms, rng=rng, steps=steps
        )
        with steps.step("refine"):
            return refine_labels(
                data.X, spectral.labels, k, sqnorms=data.sqnorms
            ).labels

    def _store(self, found: Mixture, data: CheckedData) -> None:
        k = found.memberships.shape[1]
        sqnorms = to_host(data.sqnorms)
        hard = found.memberships.argmax(axis=1)
        hard[sqnorms == 0] = np.bincount(hard).argmax()
        labels = number_by_size(hard, k)
        found = found.in_order(_order(hard, labels, k))
        estimates = estimate_parameters(data.X, labels, k, sqnorms=sqnorms)
        self.labels_ = moved(labels, data.X)
        self.memberships_ = moved(found.memberships, data.X)
        self.weights_ = moved(found.mixing_weights, data.X)
        self.cluster_centers_ = times(estimates.centers, data.unit)
        self.scales_ = estimates.scales
        self.scale_errors_ = estimates.scale_errors
        if found.noise_variances is None:
            self.noise_levels_ = times(estimates.noise_levels, data.unit)
        else:
            levels = np.sqrt(found.noise_variances) * data.unit
            levels = levels[:1] if self.noise == "common" else levels
            self.noise_levels_ = moved(levels, data.X)
        live = int((sqnorms > 0).sum())
        self.log_likelihood_ = found.log_likelihood - log_unit(data, live)
        self.n_clusters_ = k
        self.converged_ = found.change <= self.tol
        self.n_iter_ = found.n_iter
        self._directions = found.directions

    def _check_parameters(self) -> None:
        check_n_clusters(self.n_clusters)
        check_choice("noise", self.noise, NOISES)
        check_choice("gram", self.gram, GRAMS)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, above=0)
        check_flag("verbose", self.verbose)


def _order(hard: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return which cluster of ``hard`` each of ``labels`` is; empty ones where free."""
    order = np.empty(k, dtype=np.intp)
    free = iter(sorted(set(range(k)) - set(labels)))
    for j in range(k):
        rows = np.flatnonzero(hard == j)
        order[labels[rows[0]] if len(rows) else next(free)] = j
    return order
