"""IhGMM: the mixture model fitted by likelihood."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm._parameters import check_count, generator, option, usual_errors
from ihgmm._progress import Steps
from ihgmm._warnings import UnstableLabelsWarning, warn
from ihgmm.estimators.base import atomic
from ihgmm.estimators.clusterer import FitRows, number_by_size, replace_outliers
from ihgmm.estimators.pattern_clusterer import PatternClusterer
from ihgmm.matrix import HOST, Matrix, Tall, ops_of, row_lengths, to_host
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.missing import Missing
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.root_choice import try_roots
from ihgmm.numerics.spectral import SpectralFit, spectral_clustering
from ihgmm.numerics.whitening import warn_of_uneven_noise
from ihgmm.numerics.zero_rows import label_zero_rows
from ihgmm.policy import Doubt, Rounds, Small
from ihgmm.statistics import noise_structures as noises
from ihgmm.statistics.covariance import Covariance
from ihgmm.statistics.estimation import (
    estimates_of_labels,
    fit_to_centers,
)
from ihgmm.statistics.mixture_fit import MixtureFit, fit_mixture
from ihgmm.statistics.model import NoiseStructure
from ihgmm.statistics.parameters import Estimates
from ihgmm.statistics.projections import CenterSums, project_rows
from ihgmm.statistics.refits import label_doubt
from ihgmm.statistics.row_likelihood import joint_log_likelihood, temperature


class IhGMM(DensityMixin, PatternClusterer):
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
        recipe = Recipe.of(self.recipe)
        rng = generator(self.random_state)
        steps = Steps(self.verbose)

        # Read the data; count the clusters; leave out rows that fit none.
        with steps.step("check") as say:
            rows = self._read_rows(X, sample_weight, say)
            self._warn_of_units(rows.counted)
            warn_of_uneven_noise(rows.counted, "Biwhitener, or IhSC with {},")

        rows, k = self._count_and_leave_out(rows, rng, steps)
        data = rows.counted

        # Spectral clusters start the rounds, of rows as they are or of their roots.
        seed = int(rng.integers(2**31))
        trial = try_roots(data, k, recipe, seed=seed, steps=steps)
        start = trial.fit or spectral_clustering(
            data, k, recipe, seed=seed, roots=trial.columns, steps=steps
        )
        self.noise_ = self._choose_noise(data, start.labels, k, rng, steps)

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
        self._warn_unless_converged(fit.mixture.change)

        # Estimate centres, scales and noise levels; place the rows left out.
        with steps.step("centers"):
            self.n_clusters_ = k
            self._set_mixture(data, fit.mixture, fit.covariance)
            self._place_all(rows)
            self._judge_labels(rows, start, recipe)
        return self

    def _choose_noise(
        self,
        data: Matrix,
        labels: Tall,
        k: int,
        rng: np.random.Generator,
        steps: Steps,
    ) -> noises.Structure:
        """Return the kind of noise, given or found by comparing all kinds."""
        if self.noise != "auto":
            return self.noise

        with steps.step("noise") as say:
            evidence = noises.compare_noises(data, labels, k, rng)
            self.noise_evidence_ = evidence
            noise = min(evidence, key=evidence.__getitem__)
            say(noise)
        return noise

    def _warn_unless_converged(self, change: float) -> None:
        """Warn if memberships still changed when the rounds ended."""
        if change > self.tol:
            warn(
                f"Memberships still changed by {change:.1e} per row after "
                f"max_iter={self.max_iter} rounds, more than tol={self.tol:g}. "
                "Raise max_iter or tol, or ask for fewer clusters.",
                ConvergenceWarning,
            )

    def _set_mixture(
        self, data: Matrix, fit: MixtureFit, covariance: Covariance
    ) -> None:
        """Set the attributes that the rows of the fit give, clusters by size."""
        ops = data.ops
        k = self.n_clusters_
        likeliest = ops.persist(ops.xp.argmax(fit.memberships, axis=1))
        labels, order = number_by_size(data, likeliest, k)
        mixture = fit.in_order(order, ops)

        self.labels_ = ops.as_labels(labels)
        self.weights_ = data.to_device(mixture.mixing_weights)
        self.converged_ = mixture.change <= self.tol
        self.n_iter_ = mixture.n_iter

        # Where columns share noise, a centre that is fitted to each column's observed
        # cells may be far off in directions of little noise.
        estimates = estimates_of_labels(
            data, self.labels_, np.arange(k), observed_only=self.noise_ != "tied"
        )
        self.cluster_centers_ = estimates.centers
        self.scales_ = ops.persist(estimates.scales)
        self.scale_errors_ = ops.persist(estimates.scale_errors)

        self._set_noise(data, estimates, mixture, covariance)
        self._set_likelihood(data, mixture, covariance)

    def _set_noise(
        self,
        data: Matrix,
        estimates: Estimates,
        mixture: MixtureFit,
        covariance: Covariance,
    ) -> None:
        """Set levels and directions of the noise, and the errors of the centres."""
        levels = data.ops.persist(estimates.noise_levels)  # of each row
        errors = to_host(estimates.center_errors)  # (n_clusters, n_features)
        if mixture.noise_variances is not None:
            cluster_levels = np.sqrt(mixture.noise_variances)
            used = cluster_levels if self.noise_ == "class" else cluster_levels[:1]
            levels = data.to_device(used * data.unit)

            # The rounds know the noise of a cluster also where it has a single row.
            sums = mixture.center_sums
            relative = cluster_levels * np.sqrt(HOST.ratio(sums.loads, sums.sqnorms))
            _, lengths = self._unit_centers()
            by_rounds = np.broadcast_to((relative * lengths)[:, None], errors.shape)
            errors = np.where(np.isfinite(errors), errors, by_rounds)
        self.noise_levels_ = levels
        self.center_errors_ = data.cast(errors)

        if self.noise_ == "tied":
            # The loudest direction comes first.
            deviations = covariance.deviations[::-1] * to_host(levels)
            self.noise_components_ = data.cast(covariance.directions.T[::-1])
            self.component_levels_ = data.cast(deviations)

    def _set_likelihood(
        self,
        data: Matrix,
        mixture: MixtureFit,
        covariance: Covariance,
    ) -> None:
        """Set the memberships, tempered, and the log-likelihood of rows of the fit."""
        ops = data.ops
        unit_centers, _ = self._unit_centers()
        unit_centers = HOST.unit_rows(covariance.color(unit_centers, -1))

        self.temperature_ = temperature(
            covariance.whiten(data), self.labels_, unit_centers
        )

        log_memberships = ops.xp.log(ops.clip(mixture.memberships, Small.TINY, None))
        self.memberships_ = ops.persist(self._tempered(log_memberships))

        n_nonzero = checks.count_rows(data, data.sqnorms)
        log_likelihood = mixture.log_likelihood - n_nonzero * covariance.log_volume
        self.log_likelihood_ = log_likelihood - _log_unit(data, n_nonzero)

    def _place_all(self, rows: FitRows) -> None:
        """Move rows to where :meth:`predict` places them; place those left out.

        The centres of all rows, which come from observed cells if some are missing, may
        place a row elsewhere than the centres of the other rows did.
        """
        X = rows.everything
        subset = rows.subset
        ops = X.ops
        xp = ops.xp
        joint = self._joint(X)
        labels = label_zero_rows(X, xp.argmax(joint, axis=1))

        has_moved = labels != subset.scatter(self.labels_, labels)
        has_moved = has_moved & X.is_nonzero_row

        # Estimates of rows that have no part in their centre.
        centers = to_host(self.cluster_centers_) / X.unit
        scales, levels = fit_to_centers(X, labels, centers)
        lengths = ops.take_lines(row_lengths(centers), labels)
        scale_errors = X.cast(ops.ratio(ops.widen(levels), lengths))

        def merged(
            fitted: Tall, placed: Tall, of_outliers: float, uncounted: Any = None
        ) -> Tall:
            """Return what the fit gave, but for rows that were moved or left out."""
            placed = ops.cast_like(placed, fitted)

            values = subset.scatter(fitted, placed if uncounted is None else uncounted)
            is_placed = has_moved if values.ndim == 1 else has_moved[:, None]
            values = ops.persist(xp.where(is_placed, placed, values))
            return replace_outliers(ops, values, rows.is_outlier, of_outliers)

        unknown = xp.full_like(ops.cast_like(scale_errors, self.scale_errors_), np.nan)
        self.labels_ = merged(self.labels_, labels, -1)
        self.memberships_ = merged(self.memberships_, self._tempered(joint), 0.0)
        self.scales_ = merged(self.scales_, scales, np.nan)
        self.scale_errors_ = merged(self.scale_errors_, scale_errors, np.nan, unknown)
        if self.noise_ == "individual":
            levels = levels * X.unit
            self.noise_levels_ = merged(self.noise_levels_, levels, np.nan)

    def _judge_labels(self, rows: FitRows, start: SpectralFit, recipe: Recipe) -> None:
        """Warn of empty clusters, unstable labels, and a likelihood that spoils them.

        Spectral clusters that are stable should not change more than their own doubt
        explains: else the noise is not as the model says.
        """
        k = self.n_clusters_

        labels = rows.subset.select(self.labels_)
        has_empty = checks.warn_empty_clusters(rows.counted, labels, k)
        has_rule = recipe.labels == "tied" and recipe.unit_norm
        if k == 1 or has_empty or not has_rule:
            return

        _, doubt = label_doubt(start.sample, start.placement.rule, k)
        if doubt > Doubt.LEAST:
            checks.warn_unstable_labels(self.missing)
            return

        share_moved = misclassification_rate(to_host(start.labels), to_host(labels))
        knows_doubt = len(start.sample) >= Doubt.ROWS_A_CLUSTER * k
        if knows_doubt and share_moved > max(Doubt.MOVED, Doubt.BEYOND * doubt):
            warn(
                f"The likelihood moved {share_moved:.0%} of the rows away from "
                "spectral clusters that were stable. Noise may not be as "
                f"{option('noise', self.noise_)} says; compare the labels of IhSC, "
                "which are often better then.",
                UnstableLabelsWarning,
            )

    @usual_errors()
    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely cluster of each row; -1 for outliers."""
        return self._labels_of(X)

    def _place_rows(self, X: Any) -> Tall:
        data = self._check_new(X)
        labels = label_zero_rows(data, data.ops.xp.argmax(self._joint(data), axis=1))
        return replace_outliers(data.ops, labels, self._is_outlier(data), -1)

    @usual_errors()
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each cluster for each row.

        Rows sum to 1, those of outliers to 0.
        """
        data = self._check_new(X)
        memberships = self._tempered(self._joint(data))
        return replace_outliers(data.ops, memberships, self._is_outlier(data), 0.0)

    def _tempered(self, joint: Tall) -> Tall:
        """Return memberships of log-likelihoods of rows and clusters."""
        return ops_of(joint).softmax(joint / self.temperature_)

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
        ops = data.ops

        log_likelihoods = self._log_likelihoods(data)
        weights = checks.check_weights(sample_weight, data.shape[0])
        weights = data.to_device(weights)
        weights = replace_outliers(ops, weights, self._is_outlier(data), 0.0)

        total = ops.number(ops.xp.sum(weights))
        if not total:
            raise ValueError(
                f"All {len(weights)} rows of X are outliers of this model. Outliers "
                "do not count in the score; score_samples tells of each row."
            )

        return ops.number(ops.xp.sum(log_likelihoods * weights)) / total

    def _log_likelihoods(self, data: Matrix) -> Tall:
        """Return the log-likelihood of each row, in the units of X."""
        values = data.ops.logsumexp(self._joint(data)) - _log_unit(data)

        is_nonzero = data.ops.widen(data.is_nonzero_row)
        return values - self._covariance().log_volume * is_nonzero

    @usual_errors()
    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion of rows; smaller is better.

        It is ``-2 L`` plus a penalty, L being the log-likelihood of the rows that are
        no outliers, each given centres of the others, which therefore need no penalty.
        It tells which structure the noise has; to choose the number of clusters, take
        :meth:`icl`.
        """
        return self._criterion(X)[0]

    @usual_errors()
    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion, as :meth:`bic`; smaller is better.

        Its penalty is lighter, so that it takes even more clusters.
        """
        return self._criterion(X, akaike=True)[0]

    @usual_errors()
    def icl(self, X: Any) -> float:
        """Return the integrated completed likelihood criterion; smaller is better.

        It is :meth:`bic` plus twice the entropy of the memberships. With correlated or
        unequal columns it counts too many clusters, unless ``noise="tied"``:
        :doc:`/inference` has the shares.
        """
        bic, memberships = self._criterion(X)
        ops = ops_of(memberships)
        logs = ops.xp.log(ops.clip(memberships, Small.TINY, None))
        return bic - 2 * ops.number(ops.xp.sum(memberships * logs))

    def _criterion(self, X: Any, akaike: bool = False) -> tuple[float, Tall]:
        """Return a criterion of rows that are no outliers, and their memberships.

        A round of the mixture judges each row by centres of the others.
        """
        data = self._check_new(X)
        ops = data.ops

        memberships = ops.softmax(self._joint(data))

        is_outlier = self._is_outlier(data)
        if is_outlier is not None:
            rows = np.flatnonzero(~to_host(is_outlier))
            if len(rows) == 0:
                raise ValueError("All rows of X are outliers: give some that are not.")
            memberships = ops.take_rows(memberships, rows)
            data = data.keep_rows(rows)

        covariance = self._covariance()
        mixture = fit_mixture(
            covariance.whiten(data),
            memberships,
            noise=self._noise_of_white_rows,
            settling=Rounds.SETTLING,
            max_iter=1,
        )

        fitted = noises.NoisyMixture(mixture=mixture, covariance=covariance)
        criterion = noises.information(data, fitted, self.noise_, akaike)
        n_nonzero = checks.count_rows(data, data.sqnorms)
        return criterion + 2 * _log_unit(data, n_nonzero), mixture.memberships

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
        labels, donors = self._draw_donors(n, rng)

        centers = self.cluster_centers_
        scales = to_host(self.scales_)[donors]
        signal = scales[:, None] * to_host(centers)[labels]  # (n, n_features)

        levels = to_host(self.noise_levels_)
        if self.noise_ == "individual":
            levels = levels[donors]
        elif self.noise_ == "class":
            levels = levels[labels]
        noise = self._covariance().color(rng.standard_normal((n, self.n_features_in_)))
        X = noise * levels[:, None] + signal

        ops = ops_of(centers)

        return ops.cast_like(X, centers), ops.to_device(labels, centers)

    def _draw_donors(
        self, n: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw clusters of new rows, and for each a row of the fit from its cluster."""
        k = self.n_clusters_
        fit_labels = to_host(self.labels_)
        cluster_sizes = np.bincount(fit_labels[fit_labels >= 0], minlength=k)

        shares = np.where(cluster_sizes > 0, to_host(self.weights_), 0.0)
        labels = rng.choice(k, size=n, p=shares / shares.sum())

        donors = np.empty(n, dtype=np.intp)
        for cluster in np.unique(labels):
            is_of_cluster = labels == cluster
            members = np.flatnonzero(fit_labels == cluster)
            donors[is_of_cluster] = rng.choice(members, size=int(is_of_cluster.sum()))
        return labels, donors

    @property
    def _noise_of_white_rows(self) -> NoiseStructure:
        """The kind of noise of rows that are whitened if need be."""
        return "common" if self.noise_ == "tied" else self.noise_

    def _covariance(self) -> Covariance:
        """Return the covariance of the noise, up to its level, as it was fitted."""
        if self.noise_ != "tied":
            return Covariance.none(self.n_features_in_)

        level = float(to_host(self.noise_levels_)[0])
        components = to_host(self.noise_components_).astype(np.float64)
        component_levels = to_host(self.component_levels_).astype(np.float64)
        return Covariance(directions=components.T, deviations=component_levels / level)

    def _joint(self, data: Matrix) -> Tall:
        """Return log-likelihoods of rows and clusters, in the units of checked data.

        Entry (i, k) is the logarithm of the share of cluster k times the density of row
        i in it.
        """
        covariance = self._covariance()
        unit_centers, lengths = self._unit_centers()
        variances = None
        loads = np.zeros(self.n_clusters_)
        if self.noise_ != "individual":
            variances, loads = self._noise_of_clusters(data.unit, lengths, covariance)

        center_sums = CenterSums(sums=covariance.color(unit_centers, -1).T, loads=loads)

        shares = to_host(self.weights_)

        def log_likelihoods(block: Matrix) -> tuple[tuple[Tall], tuple[()]]:
            projections = project_rows(block, block.sqnorms, center_sums)
            joint = joint_log_likelihood(projections, shares, variances)
            return (joint,), ()

        (joint,), _ = covariance.whiten(data).sweep(log_likelihoods)
        return joint

    def _noise_of_clusters(
        self, unit: float, lengths: np.ndarray, covariance: Covariance
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the noise of clusters, with a level each or one for all.

        Parameters
        ----------
        unit : float
            That of the rows to judge.
        lengths : ndarray of shape (n_clusters,)
            Of the centres.
        covariance : Covariance
            Of the noise.

        Returns
        -------
        variances : ndarray of shape (n_clusters,)
            Of an entry of a row, in the unit of the rows.
        loads : ndarray of shape (n_clusters,)
            Variance of an entry of a centre brought to length 1, on average, in units
            of a row's noise variance.
        """
        levels = to_host(self.noise_levels_).astype(np.float64) / unit
        levels = np.minimum(levels, 1e150)  # whose squares are numbers
        squares = levels**2
        variances = np.broadcast_to(squares, self.n_clusters_)

        errors = to_host(self.center_errors_).astype(np.float64) / unit
        # Squares of the quotients are numbers, too.
        least_length = np.sqrt(Small.TINY) * float(errors.max(initial=0.0))
        lengths = np.maximum(lengths / unit, least_length)
        relative_errors = HOST.ratio(errors, lengths[:, None] + 0 * errors)

        loads = (relative_errors**2).mean(axis=1) / covariance.mean_variance
        loads = np.minimum(loads, np.minimum(squares, 1e150) * 1e150)
        return variances, HOST.ratio(loads, squares + 0 * loads)

    def _unit_centers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the directions of the centres and their lengths, in float64."""
        centers = to_host(self.cluster_centers_).astype(np.float64)
        return HOST.unit_rows(centers), row_lengths(centers)


def _log_unit(data: Matrix, n_rows: int = 1) -> float:
    """Return what the log-likelihood of rows loses in the units that X came in."""
    return float(n_rows * max(data.shape[1] - 1, 1) * np.log(data.unit))
