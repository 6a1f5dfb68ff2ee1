"""IhGMM: the mixture model fitted by likelihood."""

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm._parameters import check_count, generator, option, usual_errors
from ihgmm._progress import Steps
from ihgmm._warnings import warn
from ihgmm.estimators.base import Clusterer, FitRows, atomic, mark, number_by_size
from ihgmm.matrix import HOST, Matrix, Tall, ops_of, row_lengths, to_host
from ihgmm.numerics.missing import Missing
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.numerics.whitening import noise_to_whiten
from ihgmm.policy import Doubt, Rounds, Small
from ihgmm.statistics import noise_structures as noises
from ihgmm.statistics.covariance import Covariance
from ihgmm.statistics.estimation import estimates_of_labels, fit_to_centers
from ihgmm.statistics.mixture_fit import MixtureFit, fit_mixture
from ihgmm.statistics.model import NoiseStructure
from ihgmm.statistics.projections import CenterSums, project_rows
from ihgmm.statistics.refits import label_doubt
from ihgmm.statistics.row_likelihood import joint_log_likelihood, temperature


class IhGMM(DensityMixin, Clusterer):
    """Mixture of patterns at individual scales, fitted by likelihood.

    IhGMM stands beside :class:`~ihgmm.IhSC` as ``GaussianMixture`` beside ``KMeans``:
    from spectral clusters it comes to probabilities of each cluster for each row, a
    likelihood, and criteria to compare models by. Row i is modelled as ``scale_i *
    center + noise`` with Gaussian noise, the same in all directions.

    Parameters
    ----------
    n_clusters, missing, outliers, verbose, random_state
        As for :class:`~ihgmm.IhSC`.
    noise : {"individual", "class", "common", "tied", "auto"}, default="individual"
        Whether every row, every cluster or the whole sample has its own noise level.
        ``"tied"`` is for noise that features share: one covariance for all rows, full
        in the span of the centres and in directions where noise stands out, with one
        level in all others. ``"auto"`` takes the one of least :meth:`bic`. See
        :doc:`/noise`.
    recipe : {"default", "paper", "psc"} or Recipe, default="default"
        The settings of the spectral start, see :class:`~ihgmm.Recipe`.
    max_iter : int, default=200
        Cap on the rounds.
    tol : float, default=1e-3
        Memberships that move less than this, on average over rows, have converged.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The most likely cluster of each row, numbered by decreasing size; -1 for
        outliers.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Probability of each cluster for each row of the fit, given the other rows; of
        rows that the final centres place elsewhere, given these; 0 for outliers.
    temperature_ : float
        By what log-odds of clusters were divided: how much louder noise is between the
        centres than in all directions, 1 if it is not.
    weights_ : ndarray of shape (n_clusters,)
        Shares of the clusters, equal unless sizes differ by more than chance.
    cluster_centers_, center_errors_ : ndarray of shape (n_clusters, n_features)
        Centres, and the standard errors of their entries. The scales of a cluster have
        mean 1.
    scales_, scale_errors_ : ndarray of shape (n_samples,)
        Scale of each row in its cluster, and its standard error; NaN for outliers.
    noise_, noise_evidence_ : str, dict
        The kind of noise, given or found; and with ``noise="auto"`` the criterion of
        each kind, a row, over that of the best.
    noise_levels_ : ndarray of shape (n_samples,), (n_clusters,) or (1,)
        Standard deviation of the noise: of each row, each cluster or all.
    noise_components_ : ndarray of shape (n_components, n_features)
        With ``noise="tied"``, orthonormal directions in which noise has its own level.
    component_levels_ : ndarray of shape (n_components,)
        Standard deviations of the noise along them; elsewhere it is ``noise_levels_``.
    log_likelihood_ : float
        Log-likelihood of the rows of the fit, each given the others.
    converged_, n_iter_ : bool, int
        Whether the memberships settled before the cap, and rounds that were run.
    sizes_, n_clusters_, preparation_, selection_, outlier_scores_, outlier_threshold_,
    outlier_cells_, n_features_in_, feature_names_in_
        As of :class:`~ihgmm.IhSC`.

    Notes
    -----
    A round sums rows, weighted by scale over noise variance, to centres, and compares
    each row with the centres *without that row*, since a row fits best a centre that
    contains its own noise. :meth:`predict` and the methods beside it judge rows, new or
    old, by the final centres. A row of the fit that these place elsewhere, one or two
    in a hundred of real data, gets that label, so that ``predict(X)`` equals
    ``labels_``. Probabilities of the rows of the fit are better in ``memberships_``;
    :doc:`/noise` says how far to trust them.

    Examples
    --------
    >>> from ihgmm import IhGMM, make_ihgmm
    >>> X, labels = make_ihgmm(200, 100, 3, separation_constant=0.5, random_state=0)
    >>> model = IhGMM(3, random_state=0).fit(X)
    >>> model.memberships_.shape
    (200, 3)
    >>> IhGMM(3, noise="auto", random_state=0).fit(X).noise_
    'individual'
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        noise: noises.Structure | Literal["auto"] = "individual",
        recipe: Recipe | str = "default",
        missing: Missing = "error",
        max_iter: int = 200,
        tol: float = 1e-3,
        outliers: float | Literal["auto", "cells"] | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.noise = noise
        self.recipe = recipe
        self.missing = missing
        self.max_iter = max_iter
        self.tol = tol
        self.outliers = outliers
        self.verbose = verbose
        self.random_state = random_state

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to data and weights, as :meth:`ihgmm.IhSC.fit` does."""
        rng, steps = generator(self.random_state), Steps(self.verbose)
        # Check the data, and fill in what is missing.
        with steps.step("check") as say:
            rows = self._read(X, sample_weight, say)
            self._warn_of_units(rows.counted)
            noise_to_whiten(rows.counted, None, "Biwhitener, or IhSC with {},")

        # Count the clusters, and leave out rows that fit none.
        rows, k = self._choose(rows, rng, steps)
        data = rows.counted

        # Spectral clusters start the rounds.
        recipe, seed = Recipe.of(self.recipe), int(rng.integers(2**31))
        start = spectral_clustering(data, k, recipe, seed=seed, steps=steps)
        self.noise_ = "individual" if self.noise == "auto" else self.noise
        if self.noise == "auto":
            with steps.step("noise") as say:
                evidence = noises.compare_noises(data, start.labels, k, rng)
                self.noise_evidence_ = evidence
                self.noise_ = min(evidence, key=evidence.__getitem__)
                say(self.noise_)
        with steps.step("rounds") as say:
            fit = noises.fit_noise(
                data,
                start.labels,
                k,
                self.noise_,
                rng,
                max_iter=self.max_iter,
                tol=self.tol,
                say=say,
            )
        change = fit.mixture.change
        if change > self.tol:
            warn(
                f"Memberships still changed by {change:.1e} per row after "
                f"max_iter={self.max_iter} rounds, more than tol={self.tol:g}. "
                "Raise max_iter or tol, or ask for fewer clusters.",
                ConvergenceWarning,
            )

        # Estimate centres, scales and noise levels; place the rows left out.
        with steps.step("centers"):
            self.n_clusters_ = k
            self._store_mixture(data, fit.mixture, fit.covariance)
            self._place_rows(rows)
            labels = self.labels_
            if rows.counts is not None:
                labels = data.ops.rows_where(labels, rows.counts)
            empty = checks.warn_empty_clusters(data, labels, k)
            if k > 1 and not empty and recipe.labels == "tied" and recipe.unit_norm:
                _, doubt = label_doubt(start.sample, start.placement.linear_rule, k)
                given = option("noise", self.noise_)
                advice = f"Noise may not be as {given} says; compare the labels of IhSC"
                if doubt > Doubt.LEAST:
                    checks.warn_unstable_labels(self.missing)
                else:
                    self._warn_of_moves(start, labels, k, doubt, advice)
        return self

    @property
    def _rounds(self) -> NoiseStructure:
        """The noise of rows that are whitened if need be."""
        return "common" if self.noise_ == "tied" else self.noise_

    def _covariance(self) -> Covariance:
        """Return the covariance of the noise, up to its level, as it was fitted."""
        if self.noise_ != "tied":
            return Covariance.none(self.n_features_in_)
        level = float(to_host(self.noise_levels_)[0])
        deviations = to_host(self.component_levels_).astype(np.float64) / level
        B = to_host(self.noise_components_).astype(np.float64).T
        return Covariance(B, deviations)

    def _store_mixture(
        self, data: Matrix, fit: MixtureFit, covariance: Covariance
    ) -> None:
        """Set the attributes that the rows of the fit give."""
        k, ops = self.n_clusters_, data.ops
        likeliest = ops.persist(ops.xp.argmax(fit.memberships, axis=1))
        labels, order = number_by_size(data, likeliest, k)
        mixture = fit.in_order(order, ops)
        self.labels_ = ops.as_labels(labels)
        # Where columns share noise, a centre that is fitted to each column's observed
        # cells may be far off in directions of little noise.
        estimates = estimates_of_labels(
            data, self.labels_, np.arange(k), observed_only=self.noise_ != "tied"
        )
        self.weights_ = data.to_device(mixture.mixing_weights)
        self.cluster_centers_ = estimates.centers
        self.scales_ = ops.persist(estimates.scales)
        self.scale_errors_ = ops.persist(estimates.scale_errors)
        self.noise_levels_ = ops.persist(estimates.noise_levels)
        errors = to_host(estimates.center_errors)
        if mixture.noise_variances is not None:
            levels = np.sqrt(mixture.noise_variances)
            kept = levels if self.noise_ == "class" else levels[:1]
            self.noise_levels_ = data.to_device(kept * data.unit)
            # The rounds know the noise of a cluster also where it has a single row.
            sums = mixture.center_sums
            relative = levels * np.sqrt(HOST.ratio(sums.loads, sums.sqnorms))
            _, lengths = self._unit_centers()
            alone = np.broadcast_to((relative * lengths)[:, None], errors.shape)
            errors = np.where(np.isfinite(errors), errors, alone)
        self.center_errors_ = data.cast(errors)
        if self.noise_ == "tied":
            self.noise_components_ = data.cast(covariance.directions.T[::-1])
            deviations = covariance.deviations[::-1] * to_host(self.noise_levels_)
            self.component_levels_ = data.cast(deviations)
        units = HOST.unit_rows(covariance.color(self._unit_centers()[0], -1))
        white = covariance.whiten(data)
        self.temperature_ = temperature(white, self.labels_, units)
        odds = ops.xp.log(ops.clip(mixture.memberships, Small.TINY, None))
        self.memberships_ = ops.persist(self._tempered(odds))
        count = checks.count_rows(data, data.sqnorms)
        value = mixture.log_likelihood - count * covariance.log_volume
        self.log_likelihood_ = value - _log_unit(data, count)
        self.converged_ = mixture.change <= self.tol
        self.n_iter_ = mixture.n_iter

    def _tempered(self, joint: Tall) -> Tall:
        """Return memberships of log-likelihoods of rows and clusters."""
        return ops_of(joint).softmax(joint / self.temperature_)

    def _place_rows(self, rows: FitRows) -> None:
        """Move rows to where :meth:`predict` places them; place those left out.

        The centres of all rows, which come from observed cells if some are missing, may
        place a row elsewhere than the centres of the other rows did.
        """
        X, counts = rows.everything, rows.counts
        ops, xp, joint = X.ops, X.ops.xp, self._joint(X)
        labels, own = xp.argmax(joint, axis=1), self.labels_
        centers = to_host(self.cluster_centers_) / X.unit
        scales, levels = fit_to_centers(X, labels, centers)
        lengths = ops.take_lines(row_lengths(centers), labels)
        placed = {
            "labels_": labels,
            "memberships_": self._tempered(joint),
            "scales_": scales,
            "scale_errors_": X.cast(ops.ratio(ops.widen(levels), lengths)),
        }
        if self.noise_ == "individual":
            placed["noise_levels_"] = levels * X.unit
        own = own if counts is None else ops.place(own, counts, labels)
        moved = (labels != own) & (X.sqnorms > 0)
        for name, values in placed.items():
            own = getattr(self, name)
            there = ops.cast_like(values, own)
            if counts is not None:
                unknown = name == "scale_errors_"
                others = xp.full_like(there, np.nan) if unknown else there
                own = ops.place(own, counts, others)
            own = xp.where(moved if own.ndim == 1 else moved[:, None], there, own)
            of_outliers = {"labels_": -1, "memberships_": 0.0}.get(name, np.nan)
            setattr(self, name, mark(ops, ops.persist(own), rows.outliers, of_outliers))

    @usual_errors()
    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely cluster of each row; -1 for outliers."""
        return self._labels(X)

    def _nearest(self, X: Any) -> Tall:
        data = self._check_new(X)
        labels = data.ops.xp.argmax(self._joint(data), axis=1)
        return mark(data.ops, labels, self._is_outlier(data), -1)

    @usual_errors()
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each cluster for each row.

        Rows sum to 1, those of outliers to 0.
        """
        data = self._check_new(X)
        memberships = self._tempered(self._joint(data))
        return mark(data.ops, memberships, self._is_outlier(data), 0.0)

    @usual_errors()
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row, 0 for zero rows.

        The length of the row's signal is integrated out, and with individual noise the
        noise level is fitted to the row. Values compare models on the same rows; rows
        of different size are not comparable. Outliers are judged as if in a cluster.
        """
        return self._log_likelihoods(self._check_new(X))

    @usual_errors()
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the (weighted) mean of :meth:`score_samples` over rows of clusters.

        Outliers do not count. ``y`` is ignored. Of the rows of the fit it grows with
        the number of clusters: compare numbers by :meth:`bic`.
        """
        data = self._check_new(X)
        ops, values = data.ops, self._log_likelihoods(data)
        weights = data.to_device(checks.check_weights(sample_weight, values.shape[0]))
        weights = mark(ops, weights, self._is_outlier(data), 0.0)
        total = ops.number(ops.xp.sum(weights))
        if not total:
            raise ValueError(
                f"All {len(weights)} rows of X are outliers of this model. Outliers "
                "do not count in the score; score_samples tells of each row."
            )
        return ops.number(ops.xp.sum(values * weights)) / total

    def _log_likelihoods(self, data: Matrix) -> Tall:
        values = data.ops.logsumexp(self._joint(data)) - _log_unit(data)
        return values - self._covariance().log_volume * data.ops.widen(data.sqnorms > 0)

    @usual_errors()
    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion of rows; smaller is better.

        It is ``-2 L`` plus a penalty, L being the log-likelihood of the rows that are
        no outliers, each given centres of the others, which therefore need no penalty.
        It tells which structure the noise has; to choose the number of clusters, take
        :meth:`icl`.
        """
        return self._criteria(X)[0]

    @usual_errors()
    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion, as :meth:`bic`; smaller is better.

        Its penalty is lighter, so that it takes even more clusters.
        """
        return self._criteria(X, akaike=True)[0]

    @usual_errors()
    def icl(self, X: Any) -> float:
        """Return the integrated completed likelihood criterion; smaller is better.

        It is :meth:`bic` plus twice the entropy of the memberships. With correlated or
        unequal columns it counts too many clusters, unless ``noise="tied"``:
        :doc:`/inference` has the shares.
        """
        bic, memberships = self._criteria(X)
        ops = ops_of(memberships)
        logs = ops.xp.log(ops.clip(memberships, Small.TINY, None))
        return bic - 2 * ops.number(ops.xp.sum(memberships * logs))

    @usual_errors()
    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows from the fitted mixture.

        Scales, and noise levels where every row has its own, are those of rows of the
        fit drawn at random from the cluster. Returns the rows, of shape
        (n_samples, n_features), and their clusters, of shape (n_samples,).
        """
        check_is_fitted(self)
        n = check_count("n_samples", n_samples)
        rng = generator(self.random_state)
        own = to_host(self.labels_)
        used = np.bincount(own[own >= 0], minlength=self.n_clusters_) > 0
        shares = np.where(used, to_host(self.weights_), 0.0)
        labels = rng.choice(self.n_clusters_, size=n, p=shares / shares.sum())
        donors = np.empty(n, dtype=np.intp)
        for k in np.unique(labels):
            rows = labels == k
            donors[rows] = rng.choice(np.flatnonzero(own == k), size=int(rows.sum()))
        at = {"individual": donors, "class": labels, "common": np.zeros(n, np.intp)}
        X = self._covariance().color(rng.standard_normal((n, self.n_features_in_)))
        X *= to_host(self.noise_levels_)[at[self._rounds], None]
        like, scales = self.cluster_centers_, to_host(self.scales_)
        X += scales[donors, None] * to_host(like)[labels]
        ops = ops_of(like)
        return ops.cast_like(X, like), ops.to_device(labels, like)

    def _criteria(self, X: Any, akaike: bool = False) -> tuple[float, Tall]:
        """Return a criterion of rows, and their memberships."""
        data = self._check_new(X)
        ops, outliers = data.ops, self._is_outlier(data)
        memberships = ops.softmax(self._joint(data))
        if outliers is not None:
            rows = np.flatnonzero(~to_host(outliers))
            if len(rows) == 0:
                raise ValueError("All rows of X are outliers: give some that are not.")
            memberships, data = ops.take_rows(memberships, rows), data.keep_rows(rows)
        covariance = self._covariance()
        white = covariance.whiten(data)
        mixture = fit_mixture(
            white, memberships, noise=self._rounds, settling=Rounds.SETTLING, max_iter=1
        )
        live = checks.count_rows(data, data.sqnorms)
        fit = noises.NoisyMixture(mixture=mixture, covariance=covariance)
        value = noises.information(data, fit, self.noise_, akaike)
        return value + 2 * _log_unit(data, live), mixture.memberships

    def _joint(self, data: Matrix) -> Tall:
        """Return log-likelihoods of rows and clusters, in the units of checked data."""
        covariance = self._covariance()
        units, lengths = self._unit_centers()
        units = covariance.color(units, -1)
        variances, loads = None, np.zeros(self.n_clusters_)
        if self.noise_ != "individual":
            levels = to_host(self.noise_levels_).astype(np.float64) / data.unit
            levels = np.minimum(levels, 1e150)  # whose squares are numbers
            variances = np.broadcast_to(levels**2, self.n_clusters_)
            # The noise of an entry of a centre of length 1, on average, in units of a
            # row's noise variance.
            errors = to_host(self.center_errors_).astype(np.float64) / data.unit
            # Squares of these are numbers.
            least = np.sqrt(Small.TINY) * float(errors.max(initial=0.0))
            known = np.maximum(lengths / data.unit, least)
            squares = HOST.ratio(errors, known[:, None] + 0 * errors) ** 2
            loads = squares.mean(axis=1) / covariance.mean_variance
            most = np.minimum(levels**2, 1e150) * 1e150
            loads = HOST.ratio(np.minimum(loads, most), levels**2 + 0 * loads)
        directions = CenterSums(sums=units.T, loads=loads)
        shares = to_host(self.weights_)

        def work(block: Matrix) -> tuple[tuple[Tall], tuple[()]]:
            projections = project_rows(block, block.sqnorms, directions)
            return (joint_log_likelihood(projections, shares, variances),), ()

        return covariance.whiten(data).sweep(work)[0][0]

    def _unit_centers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the directions of the centres and their lengths, in float64."""
        centers = to_host(self.cluster_centers_).astype(np.float64)
        return HOST.unit_rows(centers), row_lengths(centers)


def _log_unit(data: Matrix, n_rows: int = 1) -> float:
    """Return what the log-likelihood of rows loses in the units that X came in."""
    return float(n_rows * max(data.shape[1] - 1, 1) * np.log(data.unit))
