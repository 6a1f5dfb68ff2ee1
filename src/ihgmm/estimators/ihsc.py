"""Individual-heterogeneity spectral clustering."""

from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from ihgmm import _checks as checks
from ihgmm._parameters import generator, option, usual_errors
from ihgmm._progress import Steps
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.estimators import given
from ihgmm.estimators.base import (
    Clusterer,
    FitRows,
    atomic,
    cosines,
    mark,
)
from ihgmm.matrix import HOST, Matrix, RowSubset, Scaled, Tall, to_host
from ihgmm.numerics import incremental, whitening
from ihgmm.numerics import spectral as sc
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.numerics.missing import Missing, learn_filler
from ihgmm.numerics.placement import CosinePlacement, Placement
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.rules import LinearRule
from ihgmm.policy import Doubt
from ihgmm.statistics import estimation
from ihgmm.statistics.calibration import expected_error, membership_temperature
from ihgmm.statistics.refits import calmer_noise, label_doubt, most_judged


class IhSC(Clusterer):
    """Cluster rows that share a pattern but differ in scale.

    K-means and Gaussian mixtures split such rows by size, because rows of one pattern
    lie on a ray from the origin and not in a round cloud. Individual-heterogeneity
    spectral clustering [1]_ embeds the rows by the leading eigenvectors of their Gram
    matrix, which averages the noise away, then scales the embedded rows to unit norm,
    which removes their scale, and clusters them. Cost and memory grow linearly with the
    data. :meth:`paper` has the settings of the paper; :doc:`/default` says what differs
    in the default, why, and what it costs.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" counts them, see :func:`~ihgmm.select_n_clusters`.
    recipe : {"default", "paper", "psc"} or Recipe, default="default"
        The settings of the spectral method, by name or as a :class:`~ihgmm.Recipe`.
    signed : bool, default=False
        Whether scales have both signs, so that opposite rows are of one cluster; only
        with ``labels="tied"`` and ``unit_norm``. See :doc:`/signs`.
    whiten : {"auto", "counts", "learned"} or None, default=None
        Whether rows and columns are multiplied first so that noise is alike in all of
        them, as by :class:`~ihgmm.Biwhitener`. Results are in the units of the data.
        ``"auto"`` looks whether data need it: :doc:`/counts` has the rule.
    outliers : float, "auto", "cells" or None, default=None
        Which rows get the label -1 and have no part in the fit: those that stand out
        ("auto"), or the strangest ones, a share of at most 0.5. With "cells", single
        cells that fit neither row nor column count as missing. See :doc:`/outliers`.
    missing : {"error", "fit"}, default="error"
        Whether missing cells, NaN, are refused or filled in by a low-rank model of the
        data, in ``predict``, too. See :doc:`/missing`.
    init : fitted estimator or None, default=None
        An older model of such rows, whose clusters keep their numbers where they are
        still there. Others take the numbers that are left.
    verbose : bool or int, default=False
        Whether to write a line for each step of the fit (1) and each round in it (2).
    random_state : int, RandomState, Generator or None, default=None
        Seed of starts of k-means, and of rows in counts of clusters. The default draws
        nothing once the number of clusters is given.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by decreasing size, or as in ``init`` and
        ``classes_``; -1 for outliers.
    classes_ : ndarray of shape (n_clusters,)
        The class of each cluster, which ``predict`` returns, with ``known_labels``.
    known_rows_ : ndarray of shape (n_known,)
        The numbers of the rows whose label was given, with ``known_labels``.
    embedding_ : ndarray of shape (n_samples, n_components)
        What was clustered: weighted coordinates of each row in the eigenvectors, or in
        the projected data, scaled to unit norm; ``space_`` says which.
    eigenvalues_ : ndarray of shape (n_components,)
        Leading eigenvalues of the Gram matrix. Those of ``select_n_clusters``, whose
        diagonal is 0, are 1 less if rows have unit length.
    preparation_, placement_ : tuple of callables, callable
        What is done to rows first, if anything, and how they get their labels.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The pattern of each cluster: what a row of scale 1 looks like without noise.
    scales_, noise_levels_ : ndarray of shape (n_samples,)
        The scale of each row, 1 on average in each cluster, with ``signed`` that of
        absolute values; and the standard deviation of its noise. NaN for outliers.
    sizes_ : ndarray of shape (n_samples,)
        Scale times the Euclidean length of the cluster's centre, in the units of the
        data. Scales compare rows of one cluster only; sizes compare all rows.
    temperature_ : float
        By which ``predict_proba`` divides log-odds; 1 with ``known_labels``, and with
        fewer than 20 rows for each cluster.
    n_clusters_, n_iter_ : int
        Number of clusters, given or found, and iterations that the labels took.
    selection_ : ClusterCount
        How the number of clusters was chosen; only with ``n_clusters="auto"``.
    outlier_scores_, outlier_threshold_ : ndarray of shape (n_samples,), float
        How strange each row is, if ``outliers`` looks for rows: a score of 3 says that
        one in a thousand rows of the clusters is as strange. Outliers are above.
    outlier_cells_ : ndarray of shape (n_cells, 2)
        Row and column of each wild cell, in order; only with ``outliers="cells"``.
    batches_ : Batches
        Factors of the columns in each batch; only with ``batch``.
    n_samples_seen_ : int
        Rows of all calls of :meth:`partial_fit`. ``labels_``, ``scales_`` and other
        attributes with a line for each row are then those of the last call.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X had names.

    Notes
    -----
    ``predict`` places rows as the fit did: for its own rows that gives ``labels_``.
    Zero rows get label 0, the largest cluster.

    References
    ----------
    .. [1] H. Qing, Individual-heterogeneous sub-Gaussian mixture models.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.metrics import exact_recovery
    >>> X, labels = make_ihgmm(n_samples=300, n_features=100, random_state=0)
    >>> model = IhSC(n_clusters=4, random_state=0).fit(X)
    >>> exact_recovery(labels, model.labels_)
    True
    """

    _placing: ClassVar = (*Clusterer._placing, "placement_", "outlier_rule_")

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        recipe: Recipe | str = "default",
        signed: bool = False,
        whiten: whitening.NoiseKind | Literal["auto"] | None = None,
        outliers: float | Literal["auto", "cells"] | None = None,
        missing: Missing = "error",
        init: Any = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.recipe = recipe
        self.signed = signed
        self.whiten = whiten
        self.outliers = outliers
        self.missing = missing
        self.init = init
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def paper(cls, n_clusters: int | Literal["auto"] = 8, **options: Any) -> Self:
        """Return an estimator with the settings of the paper's Algorithm 1.

        Options are settings of the :class:`~ihgmm.Recipe` or parameters of the class.

        Examples
        --------
        >>> from ihgmm import IhSC
        >>> IhSC.paper(4, random_state=0)
        IhSC(n_clusters=4, random_state=0, recipe='paper')
        >>> IhSC.paper(4, order="magnitude").recipe.order
        'magnitude'
        """
        names = {field.name for field in fields(Recipe)} & set(options)
        changes = {name: options.pop(name) for name in names}
        recipe = Recipe.of("paper", **changes) if changes else "paper"
        return cls(n_clusters, recipe=recipe, **options)

    def __sklearn_clone__(self) -> Self:
        other = super().__sklearn_clone__()
        other.init = self.init  # a clone of it would have no clusters
        return other

    @atomic
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        known_labels: Any = None,
        batch: Any = None,
    ) -> Self:
        """Fit the model to data, array-like or sparse of (n_samples, n_features).

        Arrays of torch, CuPy and other libraries stay on their device, and results are
        of the same kind. ``sample_weight`` says how much each row counts; only ratios
        matter, and rows of weight 0 only get labels (:doc:`/weights`). ``known_labels``
        are classes, -1, None or NaN where they are not known: they teach the clusters,
        and rows keep them (:doc:`/known-labels`). ``batch`` names the lab, kit or
        country of each row, which multiplies each column by a factor. It is learnt and
        taken out, in the memory of the host, from data without entries below 0
        (:doc:`/batches`). ``y`` is ignored. Returns the fitted estimator itself.
        """
        recipe, rng = Recipe.of(self.recipe), generator(self.random_state)
        steps = Steps(self.verbose)
        # Check the data, fill in what is missing, and whiten.
        with steps.step("check") as say:
            rows = self._read(X, sample_weight, say)
            noise = whitening.noise_to_whiten(rows.counted, self.whiten)
            if batch is not None:
                self.batches_, rows = given.fit_batches(self, rows, batch, noise, rng)
            if noise is not None:
                whitener = whitening.learn_whitener(rows.counted, noise, rng)
                rows = self._prepare(rows, whitener)
            else:
                self._warn_of_units(rows.counted)

        # Count the clusters, and leave out rows that fit none.
        rows, k = self._choose(rows, rng, steps)
        data, k, of_all = rows.counted, *self._teach(X, rows, k, known_labels, batch)
        taught = of_all if rows.counts is None else of_all.of_rows(to_host(rows.counts))

        # From the Gram matrix to eigenvectors, and from these to labels.
        seed = int(rng.integers(2**31))
        spectral = sc.spectral_clustering(
            data,
            k,
            recipe,
            signed=self.signed,
            seed=seed,
            known_labels=taught,
            steps=steps,
        )
        labels, self.temperature_ = taught.keep_classes(data, spectral.labels), 1.0
        placement: Placement | CosinePlacement = spectral.placement
        empty = checks.warn_empty_clusters(data, labels, k)
        if not empty and taught.classes is None:  # known labels hold clusters in place
            with steps.step("doubt"):
                self._warn_of_doubt(data, spectral, labels, recipe, k)

        # Estimate centres, scales and noise levels; place the rows left out.
        with steps.step("centers"):
            fitted = estimation.estimates_of_fit(data, spectral, labels, k)
        embedding, embedded = spectral.placement.embedding, spectral.rows
        weights, ops, counts = data.weights, data.ops, rows.counts
        data = rows.everything
        if counts is not None:
            labels = of_all.keep_classes(data, placement(data))
            embedded = embedding(data)
            subset = RowSubset(ops=ops, n_rows=data.shape[0], is_member=counts)
            fitted = estimation.for_all_rows(
                fitted, data, labels, subset, signed=self.signed
            )
            weights = counts if weights is None else ops.place(weights, counts)
        if noise is not None:
            white = cast(Scaled, data)
            fitted = estimation.in_data_units(fitted, white, labels, weights)

        self.n_clusters_ = k
        labels = ops.as_labels(labels)
        self.labels_ = ops.persist(mark(ops, labels, rows.outliers, -1))
        in_units = recipe.unit_norm or spectral.space == "eigenvectors"
        self.embedding_ = embedded if in_units else embedded * float(data.unit)
        self.eigenvalues_ = data.to_device(data.restore_squares(embedding.eigenvalues))
        self.space_ = spectral.space
        self.cluster_centers_ = fitted.centers
        if recipe.placement == "cosine":
            placement = CosinePlacement(self._compared_centers(), self.signed)
        self.placement_ = placement
        self.scales_ = ops.persist(mark(ops, fitted.scales, rows.outliers, np.nan))
        levels = mark(ops, fitted.noise_levels, rows.outliers, np.nan)
        self.noise_levels_ = ops.persist(levels)
        self.n_iter_ = spectral.n_iter
        return self

    @usual_errors()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with more rows; clusters keep their numbers.

        The first call fits the model, unless :meth:`fit` or a file has. The model
        remembers directions, sums for each cluster, and a sample of rows: its size does
        not grow, and the time of a call depends on its rows alone. ``labels_`` and
        other attributes with a line for each row are those of the last call. Recipes
        need unit rows and ``labels="tied"``, and there is none of ``signed``,
        ``whiten``, ``outliers`` and ``batch``. Missing cells are filled in as the first
        call has learnt. A warning says once if a cluster gets no more
        rows, or if another one seems to appear: see :doc:`/new-rows`. ``y`` is ignored.
        Returns the estimator itself.

        Examples
        --------
        >>> from ihgmm import IhSC, make_ihgmm
        >>> X, _ = make_ihgmm(400, 50, 3, random_state=0)
        >>> model = IhSC(3).partial_fit(X[:200])
        >>> before = model.predict(X[:200])
        >>> bool((model.partial_fit(X[200:]).predict(X[:200]) == before).all())
        True
        >>> model.n_samples_seen_
        400
        """
        self._check_parameters()
        given.check_can_grow(self)
        first, steps = not hasattr(self, "placement_"), Steps(self.verbose)
        with steps.step("check") as say:
            data = checks.check_matrix(X, self, reset=first, missing=self.missing)
            say("{:,} rows, {:,} features".format(*data.shape))
            weights = given.check_growing(data, sample_weight)
            counted = data if weights.all() else data.keep_rows(np.flatnonzero(weights))
            unobserved = checks.warn_missing(counted, data.names) if first else 0
            if first and self.missing == "fit":
                self.preparation_ = (learn_filler(counted),)
            data, counted = self._prepared(data), self._prepared(counted)
            live = checks.warn_zero_rows(counted, unobserved)
        start_labels = None
        if first:
            rng, self.temperature_ = generator(self.random_state), 1.0
            self.n_clusters_ = self._count_clusters(counted, live, rng, steps)
            if self.init is not None:
                start_labels, _ = given.old_labels(self.init, X)
        else:
            self.temperature_ = self.temperature_  # before the clusters move on
        k = self.n_clusters_
        with steps.step("grow"):
            if first:
                grown = incremental.first_fit(data, k, weights, start_labels)
            else:
                grown = incremental.update_fit(data, weights, self._earlier_fit())
        given.warn_of_drift(grown, k)
        centers, placement = grown.state.centers, grown.placement
        self.labels_ = data.ops.as_labels(grown.labels)
        self.__dict__.pop("known_rows_", None)  # of other rows
        in_unit = centers / data.unit
        self.scales_, levels = estimation.fit_to_centers(data, self.labels_, in_unit)
        self.noise_levels_ = levels * data.dtype.type(data.unit)
        self.embedding_ = grown.embedded
        self.eigenvalues_ = data.to_device(placement.embedding.eigenvalues)
        self.cluster_centers_ = data.cast(centers)
        self.placement_, self.space_ = placement, placement.embedding.space
        rows = grown.embedded_sample
        if rows is not None and k > 1 and not hasattr(self, "classes_"):
            self._temper(rows, placement.linear_rule, k)
        self.growth_, self.n_iter_ = grown.state, grown.n_iter
        return self

    def _earlier_fit(self) -> incremental.EarlierFit:
        """Return the model as it is before an update."""
        placement = cast(Placement, self.placement_)
        state = getattr(self, "growth_", None)
        if state is None:
            state = incremental.state_of_fit(
                placement.embedding,
                labels=to_host(self.labels_),
                centers=to_host(self.cluster_centers_).astype(np.float64),
                sizes=to_host(self.sizes_).astype(np.float64),
                noise_levels=to_host(self.noise_levels_),
                embedded=to_host(self.embedding_),
                known_rows=getattr(self, "known_rows_", np.zeros(0, dtype=np.intp)),
            )
        return incremental.EarlierFit(state=state, placement=placement)

    @property
    def n_samples_seen_(self) -> int:
        """Rows of all calls of partial_fit, of models that have grown."""
        return self.growth_.n_samples

    def _check_new(self, X: Any, batch: Any = None) -> Matrix:
        if batch is None and not hasattr(self, "batches_"):
            return super()._check_new(X)
        return self._prepared(given.rows_without_batches(self, X, batch))

    @usual_errors()
    def without_batches(self, X: Any, batch: Any) -> Any:
        """Return rows, new or old, without the factors of their batches.

        They are a NumPy array, or sparse as X is. The model has to be fitted with
        batches; ``batch`` is as in :meth:`predict`.
        """
        data = given.rows_without_batches(self, X, batch)
        return data.array * data.unit  # type: ignore[attr-defined]

    def _teach(
        self, X: Any, rows: FitRows, k: int, labels: Any, batch: Any
    ) -> tuple[int, KnownLabels]:
        """Return the number of clusters, and what is known of rows beforehand."""
        taught = KnownLabels()
        if labels is not None:
            if self.signed or Recipe.of(self.recipe).labels != "tied":
                raise ValueError(
                    "known_labels teach Gaussian clusters of positive scales, and "
                    "cannot be combined with signed, or a recipe of other "
                    "labels than 'tied'; leave one of them out."
                )
            classes, known = given.check_known(labels, rows.everything.shape[0])
            k = max(k, len(classes)) if self.n_clusters == "auto" else k
            self.classes_ = given.class_names(classes, k)
            taught = KnownLabels(classes=known)
            self.known_rows_ = np.flatnonzero(known >= 0)
        if self.init is not None:
            start, nearness = given.old_labels(self.init, X, batch)
            taught = replace(taught, start=start, start_weights=nearness)
        return k, taught

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.signed:
            return
        recipe = Recipe.of(self.recipe)
        one_way = [f"labels={recipe.labels!r}"] * (recipe.labels != "tied")
        one_way += ["unit_norm=False"] * (not recipe.unit_norm)
        if one_way:
            raise ValueError(
                f"{one_way[0]} expects positive scales and cannot be combined with "
                f"{option('signed', True)}; leave one out."
            )

    def _warn_of_doubt(
        self,
        data: Matrix,
        spectral: sc.SpectralFit,
        labels: Tall,
        recipe: Recipe,
        k: int,
    ) -> None:
        """Warn of labels that other rows would change, and of misleading data."""
        if k < 2 or not recipe.unit_norm:
            return
        if data.ops.taken_ops is not HOST:
            # It would wait half a fit for the host, which is asked when need be.
            del self.temperature_
            self.judged_rows_ = spectral.sample[: most_judged(k)]
            return
        at, doubt = spectral.placement, 0.0
        if recipe.labels == "tied":
            doubt = self._temper(spectral.sample, at.linear_rule, k)
        if doubt > Doubt.LEAST:
            kind = None
            if self.whiten is None and data.gaps is None:
                kind = calmer_noise(data, at, k, doubt, signed=self.signed)
            remedy = f"Noise differs between columns: with {option('whiten', kind)}, "
            remedy += "they would change far less."
            checks.warn_unstable_labels(self.missing, remedy if kind else "")
        if not self.signed and sc.looks_signed(data, spectral, k):
            warn(
                "Rows point both ways along the same lines, and clusters of lines fit "
                "better than clusters of directions. If opposite rows are of one kind, "
                f"use {option('signed', True)}.",
                PreparationWarning,
            )

    @cached_property
    def temperature_(self) -> float:
        """By which to divide log-odds; rows of a fit on a GPU are asked here, once."""
        rows, rule = self.judged_rows_, cast(Placement, self.placement_).linear_rule
        self._temper(rows, rule, self.n_clusters_)
        return self.temperature_

    def _temper(self, rows: np.ndarray, rule: LinearRule, k: int) -> float:
        """Let memberships be as sure as labels; return the bound of their doubt."""
        doubt, most = label_doubt(rows, rule, k)
        rows, self.temperature_ = rows[: Doubt.ROWS], 1.0
        if len(rows) >= Doubt.ROWS_A_CLUSTER * k:  # fewer do not know the doubt
            error = expected_error(doubt * (1 - 1 / k), len(rows), k)
            self.temperature_ = membership_temperature(rows, rule, error)
        return most

    @usual_errors()
    def predict(self, X: Any, batch: Any = None) -> np.ndarray:
        """Return the cluster of each row, new or old; its class, if some were known.

        Labels of dask arrays are computed when they are asked for, classes at once. A
        model that was fitted with batches takes the batch of each row, or one for all;
        rows of a new batch, ten at least, get its factors from themselves.
        """
        if batch is None and not hasattr(self, "batches_"):
            return self._named(super().predict(X))
        return self._named(self._labels(X, batch))

    @usual_errors()
    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Fit the model, and return the cluster of each row, or its class.

        Options are those of :meth:`fit`; ``y`` is ignored.
        """
        return self._named(self.fit(X, **options).labels_)

    def _named(self, labels: Tall) -> Any:
        """Return the classes that clusters stand for, if some were known."""
        if not hasattr(self, "classes_"):
            return labels
        numbers, names = to_host(labels), self.classes_
        if (numbers < 0).any():
            names = np.append(names, -1 if names.dtype.kind in "iuf" else "outlier")
        return names[numbers]

    def _has_memberships(self) -> bool:
        recipe = Recipe.of(self.recipe)
        return (recipe.labels, recipe.placement) == ("tied", "embedding")

    @available_if(_has_memberships)  # type: ignore[untyped-decorator]
    @usual_errors()
    def predict_proba(self, X: Any, batch: Any = None) -> np.ndarray:
        """Return the membership of each row, new or old, in each cluster.

        They are those of the Gaussian clusters that gave the labels, and add up to 1 in
        each row. Log-odds are divided by ``temperature_``, such that memberships are as
        sure as labels were right on real data with as much doubt. Fits with
        ``labels="tied"`` and ``placement="embedding"`` have them.
        ``batch`` is as in :meth:`predict`.
        """
        data, placement = self._check_new(X, batch), cast(Placement, self.placement_)
        rule, rows = placement.linear_rule, placement.embedding(data)
        shares = partial(rule.memberships, temperature=self.temperature_)
        return data.ops.row_map(shares, rows, width=len(rule.intercepts))

    @usual_errors()
    def transform(self, X: Any, batch: Any = None) -> np.ndarray:
        """Return the cosine of each row, new or old, with each cluster centre.

        It is zero for zero rows and empty clusters. ``batch`` is as in :meth:`predict`.
        """
        return cosines(self._compared_centers(), self._check_new(X, batch))

    def _nearest(self, X: Any, batch: Any = None) -> Any:
        data = self._check_new(X, batch)
        return mark(data.ops, self.placement_(data), self._is_outlier(data), -1)

    @usual_errors()
    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, batch: Any = None
    ) -> float:
        """Return the share of the rows' squared length that their centres explain.

        Each row, new or old, is fitted by the best non-negative multiple of the centre
        nearest in angle, and counts by its weight; outliers do not count. With
        ``whiten`` rows are whitened ones. More centres explain more, so that
        ``GridSearchCV`` picks the most clusters: give it
        ``scoring=``:func:`ihgmm.metrics.stability_score`. ``batch`` is as in
        :meth:`predict`; ``y`` is ignored.
        """
        data = self._check_new(X, batch)
        ops, sqnorms = data.ops, data.sqnorms
        near = ops.widen(cosines(self._compared_centers(), data))
        near = ops.xp.abs(near) if self.signed else near
        best = ops.clip(ops.xp.max(near, axis=1), 0.0, None)
        weights = checks.check_weights(sample_weight, data.shape[0])
        sqnorms = sqnorms * data.to_device(weights)
        sqnorms = mark(ops, sqnorms, self._is_outlier(data), 0.0)
        known = ops.number(ops.xp.sum(sqnorms * best**2))
        total = ops.number(ops.xp.sum(sqnorms))
        return known / total if total else 0.0
