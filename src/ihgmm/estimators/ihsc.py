"""Individual-heterogeneity spectral clustering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from ihgmm import _checks as checks
from ihgmm._parameters import generator, option, usual_errors
from ihgmm._progress import Steps
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.estimators.base import atomic
from ihgmm.estimators.batch_factors import (
    fit_batches,
    placement_of_batches,
    rows_without_batches,
    take_out_shifts,
)
from ihgmm.estimators.clusterer import FitRows, cosines, replace_outliers
from ihgmm.estimators.doubt import judge_rule
from ihgmm.estimators.known_classes import check_known, class_names, names_of_clusters
from ihgmm.estimators.older_model import labels_of_older
from ihgmm.estimators.pattern_clusterer import PatternClusterer
from ihgmm.estimators.updates import check_can_grow, check_growing, warn_of_drift
from ihgmm.matrix import HOST, Matrix, Scaled, Tall, ops_of, to_host
from ihgmm.numerics import incremental
from ihgmm.numerics.batches import Batches
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.missing import Missing, learn_filler
from ihgmm.numerics.placement import CosinePlacement, Placement
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.root_choice import AS_GIVEN, try_roots
from ihgmm.numerics.spectral import SpectralFit, looks_signed, spectral_clustering
from ihgmm.numerics.whitening import (
    Columns,
    columns_for_noise,
    learn_whitener,
    noise_of_columns,
)
from ihgmm.policy import Doubt
from ihgmm.statistics.estimation import (
    estimates_of_fit,
    fit_to_centers,
    for_all_rows,
    in_data_units,
)
from ihgmm.statistics.parameters import Parameters
from ihgmm.statistics.refits import calmer_noise, most_judged


class IhSC(PatternClusterer):
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
    columns : {"auto", "given", "roots", "counts", "noise"}, default="auto"
        What is done to columns before rows are compared. "given": nothing. "roots": the
        root of each entry, and columns divided by a power of their spread, of data
        without negative entries. "auto" takes roots where most entries are zero, or
        where clusters of roots are clearer. "counts" and "noise" multiply rows and
        columns so that noise is alike in all, that of counts or any, as
        :class:`~ihgmm.Biwhitener` does. Results are in the units of the data. See
        :doc:`/counts`.
    outliers : float, "auto", "cells" or None, default=None
        Which rows get the label -1 and have no part in the fit: those that stand out
        ("auto"), or the strangest ones, a share of at most 0.5. With "cells", single
        cells that fit neither row nor column count as missing. See :doc:`/outliers`.
    missing : {"error", "fit"}, default="error"
        Whether missing cells, NaN, are refused or filled in by a low-rank model of the
        data and rows like the row, in ``predict``, too. See :doc:`/missing`.
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
        the projected data, scaled to unit norm; ``space_`` says which. Where roots are
        taken, or noise is evened out, they are of rows after that.
    eigenvalues_ : ndarray of shape (n_components,)
        Leading eigenvalues of the Gram matrix of rows as they were compared, such as
        roots. Those of ``select_n_clusters``, whose diagonal is 0, are 1 less if rows
        have unit length.
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
    columns_ : RootChoice
        Whether roots were taken, and why, with how clear clusters were.
    selection_ : ClusterCount
        How the number of clusters was chosen; only with ``n_clusters="auto"``.
    outlier_scores_, outlier_threshold_ : ndarray of shape (n_samples,), float
        How strange each row is, if ``outliers`` looks for rows: a score of 3 says that
        one in a thousand rows of the clusters is as strange. Outliers are above.
    outlier_cells_ : ndarray of shape (n_cells, 2)
        Row and column of each wild cell, in order; only with ``outliers="cells"``.
    batches_ : Batches
        Factors of the columns in each batch, shifts of its rows in the embedding, and
        which of these take batches out (``taken_out_by``); only with ``batch``.
    n_samples_seen_ : int
        Rows of all calls of :meth:`partial_fit`. ``labels_``, ``scales_`` and other
        attributes with a line for each row are then those of the last call.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X had names.

    Notes
    -----
    ``predict`` places rows as the fit did: for its own rows that gives ``labels_``.
    Zero rows get label 0: that of the largest cluster, unless ``init`` or known labels
    give the numbers. (Recipes without ``unit_norm`` place them as other rows.)

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

    batches_: Batches

    _attributes_to_place: ClassVar = (
        *PatternClusterer._attributes_to_place,
        "placement_",
        "outlier_rule_",
    )
    _attributes_to_warn: ClassVar = ("columns_",)

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        recipe: Recipe | str = "default",
        signed: bool = False,
        columns: Columns = "auto",
        outliers: float | Literal["auto", "cells"] | None = None,
        missing: Missing = "error",
        init: Any = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.recipe = recipe
        self.signed = signed
        self.columns = columns
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
        clone = super().__sklearn_clone__()
        clone.init = self.init  # a clone of it would have no clusters
        return clone

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
        country of each row. What it does, factors of columns or shifts that neighbours
        show, is learnt and taken out, in the memory of the host, from data without
        entries below 0 (:doc:`/batches`). ``y`` is ignored.
        Returns the fitted estimator itself.
        """
        recipe = Recipe.of(self.recipe)
        rng = generator(self.random_state)
        steps = Steps(self.verbose)

        # Read the data; count the clusters; leave out rows that fit none.
        with steps.step("check") as say:
            rows, batch_codes = self._read_and_prepare(
                X, sample_weight, batch, rng, say
            )
        rows, k = self._count_and_leave_out(rows, rng, steps)

        # What is known beforehand of all rows, and of those that the fit learns from.
        k, known_of_all = self._known_beforehand(X, rows, k, known_labels, batch)
        known_of_counted = known_of_all
        if not rows.subset.is_everything:
            known_of_counted = known_of_all.of_rows(rows.subset.positions())

        # From the Gram matrix to eigenvectors, and from these to labels.
        spectral = self._cluster(rows.counted, k, recipe, rng, known_of_counted, steps)
        if not (self._is_whitened or self.columns_.roots):
            self._warn_of_units(rows.counted)
        if batch_codes is not None:
            spectral, self.batches_ = take_out_shifts(
                rows.counted,
                spectral,
                self.batches_,
                batch_codes[rows.subset.positions()],
                k,
                known_of_counted,
            )
        labels = known_of_counted.keep_classes(rows.counted, spectral.labels)

        # How far the labels are to be trusted; known ones hold clusters in place.
        has_empty = checks.warn_empty_clusters(rows.counted, labels, k)
        temperature: float | None = 1.0
        if not has_empty and known_of_all.classes is None:
            with steps.step("doubt"):
                temperature = self._judge_labels(rows.counted, spectral, recipe, k)
        if temperature is not None:
            self.temperature_ = temperature

        # Centres, scales and noise levels of all rows, counted or not.
        with steps.step("centers"):
            clusters = self._estimate(
                rows, spectral, labels, k, known_of_all, batch_codes
            )
            parameters = self._in_data_units(rows, clusters)

        self.n_clusters_ = k
        self._set_clusters(rows, spectral, clusters, parameters)
        return self

    def _cluster(
        self,
        data: Matrix,
        k: int,
        recipe: Recipe,
        rng: np.random.Generator,
        known_labels: KnownLabels,
        steps: Steps,
    ) -> SpectralFit:
        """Return the clusters of rows, as they are or of their roots."""
        seed = int(rng.integers(2**31))
        trial = AS_GIVEN
        if self.columns in ("auto", "roots"):
            trial = try_roots(
                data,
                k,
                recipe,
                always=self.columns == "roots",
                seed=seed,
                known_labels=known_labels,
                steps=steps,
            )
        self.columns_ = trial.choice
        if trial.fit is not None:
            return trial.fit
        return spectral_clustering(
            data,
            k,
            recipe,
            seed=seed,
            known_labels=known_labels,
            roots=trial.columns,
            steps=steps,
        )

    def _read_and_prepare(
        self,
        X: Any,
        sample_weight: Any,
        batch: Any,
        rng: np.random.Generator,
        say: Callable[[str], None],
    ) -> tuple[FitRows, np.ndarray | None]:
        """Check the data, fill in what is missing, take out factors, and whiten.

        Returned are the rows, and the batch of each, (n,), or None without batches.
        """
        rows = self._read_rows(X, sample_weight, say)
        noise = noise_of_columns(rows.counted, self.columns)
        batch_codes = None
        if batch is not None:
            without_factors = fit_batches(self, rows, batch, noise, rng)
            rows = without_factors.rows
            self.batches_ = without_factors.batches
            batch_codes = without_factors.codes
            say(f"batches are taken out by {self.batches_.taken_out_by}")

        if noise is None:
            return rows, batch_codes
        whitener = learn_whitener(rows.counted, noise, rng)
        return self._prepare(rows, whitener), batch_codes

    def _known_beforehand(
        self, X: Any, rows: FitRows, k: int, known_labels: Any, batch: Any
    ) -> tuple[int, KnownLabels]:
        """Return the number of clusters, and what is known of rows beforehand."""
        known_of_all = NOTHING_KNOWN
        if known_labels is not None:
            self._check_can_be_taught()
            classes, codes = check_known(known_labels, rows.everything.shape[0])
            if self.n_clusters == "auto":
                k = max(k, len(classes))
            self.classes_ = class_names(classes, k)
            self.known_rows_ = np.flatnonzero(codes >= 0)
            known_of_all = KnownLabels(classes=codes)

        if self.init is not None:
            older = labels_of_older(self.init, X, batch)
            known_of_all = replace(
                known_of_all, start=older.labels, start_weights=older.weights
            )

        return k, known_of_all

    def _check_can_be_taught(self) -> None:
        """Raise where labels are not those of Gaussian clusters."""
        if self.signed or Recipe.of(self.recipe).labels != "tied":
            raise ValueError(
                "known_labels teach Gaussian clusters of positive scales, and "
                "cannot be combined with signed, or a recipe of other labels than "
                "'tied'; leave one of them out."
            )

    def _judge_labels(
        self, data: Matrix, spectral: SpectralFit, recipe: Recipe, k: int
    ) -> float | None:
        """Warn of labels that other rows would change, and of misleading data.

        Returns
        -------
        temperature : float, or None
            By which to divide log-odds of clusters. None leaves it to whoever asks
            for ``temperature_``: rows on a GPU would wait half a fit for the host.
        """
        if k < 2 or not recipe.unit_norm:
            return 1.0

        if data.ops.taken_ops is not HOST:
            if not self._has_memberships():
                return 1.0
            self.judged_rows_ = spectral.sample[: most_judged(k)]
            return None

        temperature = 1.0
        if recipe.labels == "tied":
            rule = spectral.placement.rule
            judgement = judge_rule(spectral.sample, rule, k)
            temperature = judgement.temperature
            if judgement.doubt > Doubt.LEAST:
                self._warn_of_doubt(data, spectral, judgement.doubt, k)

        if looks_signed(data, spectral, k):
            warn(
                "Rows point both ways along the same lines, and clusters of lines fit "
                "better than clusters of directions. If opposite rows are of one kind, "
                f"use {option('signed', True)}.",
                PreparationWarning,
            )

        return temperature

    def _warn_of_doubt(
        self, data: Matrix, spectral: SpectralFit, doubt: float, k: int
    ) -> None:
        """Warn of unstable labels, and name the whitening that would calm them."""
        remedy = ""
        is_shifted = hasattr(self, "batches_") and self.batches_.shifts is not None
        may_differ = self.columns == "auto" and not self.columns_.roots
        if may_differ and data.gaps is None and not is_shifted:
            noise = calmer_noise(data, spectral.placement, k, doubt)
            if noise is not None:
                even_columns = option("columns", columns_for_noise(noise))
                remedy = (
                    f"Noise differs between columns: with {even_columns}, they would "
                    "change far less."
                )

        checks.warn_unstable_labels(self.missing, remedy)

    def _estimate(
        self,
        rows: FitRows,
        spectral: SpectralFit,
        labels: Tall,
        k: int,
        known: KnownLabels,
        batch_codes: np.ndarray | None,
    ) -> Clusters:
        """Return the clusters of all rows, given the labels of those that count.

        Rows that had no part in the fit are placed as new rows are, and keep labels
        that are known.
        """
        parameters = estimates_of_fit(rows.counted, spectral, labels, k)
        weights = rows.counted.weights

        if rows.subset.is_everything:
            return Clusters(
                labels=labels,
                embedded=spectral.rows,
                weights=weights,
                parameters=parameters,
            )

        data = rows.everything
        placement = spectral.placement
        if batch_codes is not None and self.batches_.shifts is not None:
            placement = replace(placement, shifts=self.batches_.shifts[batch_codes])
        embedded = placement.embedded(data)
        labels = known.keep_classes(data, placement(data, embedded))
        parameters = for_all_rows(parameters, data, labels, rows.subset)
        return Clusters(
            labels=labels,
            embedded=embedded,
            weights=(
                rows.subset.is_member
                if weights is None
                else rows.subset.scatter(weights)
            ),
            parameters=parameters,
        )

    def _in_data_units(self, rows: FitRows, clusters: Clusters) -> Parameters:
        """Return parameters in the units of data that may have been whitened."""
        if not self._is_whitened:
            return clusters.parameters

        white = cast(Scaled, rows.everything)
        return in_data_units(
            clusters.parameters, white, clusters.labels, clusters.weights
        )

    def _set_clusters(
        self,
        rows: FitRows,
        spectral: SpectralFit,
        clusters: Clusters,
        parameters: Parameters,
    ) -> None:
        """Set the attributes that say how rows are placed, and where those of X are."""
        data = rows.everything
        ops = data.ops
        recipe = Recipe.of(self.recipe)
        embedding = spectral.placement.embedding

        def set_aside(values: Tall, value: float) -> Tall:
            """Return values of rows, with another one for outliers."""
            return ops.persist(replace_outliers(ops, values, rows.is_outlier, value))

        self.labels_ = set_aside(ops.as_labels(clusters.labels), -1)
        self.embedding_ = clusters.embedded
        if not recipe.unit_norm and spectral.space == "projected":
            self.embedding_ = clusters.embedded * float(data.unit)
        self.eigenvalues_ = data.to_device(data.restore_squares(embedding.eigenvalues))
        self.space_ = spectral.space
        self.n_iter_ = spectral.n_iter

        self.cluster_centers_ = parameters.centers
        self.scales_ = set_aside(parameters.scales, np.nan)
        self.noise_levels_ = set_aside(parameters.noise_levels, np.nan)

        self.placement_: Placement | CosinePlacement = spectral.placement
        if recipe.placement == "cosine":
            self.placement_ = CosinePlacement(self._compared_centers(), data.signed)

    @usual_errors()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with more rows; clusters keep their numbers.

        The first call fits the model, unless :meth:`fit` or a file has. The model
        remembers directions, sums for each cluster, and a sample of rows: its size does
        not grow, and the time of a call depends on its rows alone. ``labels_`` and
        other attributes with a line for each row are those of the last call. Recipes
        need unit rows and ``labels="tied"``, and there is none of ``signed``,
        ``outliers``, ``batch`` and ``columns`` that even out noise. The rows of the
        first call, or of the fit, choose whether roots are compared, and the weights of
        their columns, which then stay: a warning says if later rows have many negative
        entries. Missing cells are filled in as the first call has learnt. A warning
        says once if a cluster gets no more rows, or if another one seems to appear: see
        :doc:`/new-rows`. ``y`` is ignored. Returns the estimator itself.

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
        check_can_grow(self)
        steps = Steps(self.verbose)

        is_first = not hasattr(self, "placement_")
        with steps.step("check") as say:
            update = self._read_update(X, sample_weight, is_first, say)

        if is_first:
            fit = self._first_fit(X, update, steps)
        else:
            if self._has_roots:
                checks.warn_negative_entries(update.counted)
            # It is that of the clusters as they are: asked now, before they move on.
            self.temperature_ = self.temperature_
            with steps.step("grow"):
                fit = incremental.update_fit(
                    update.data,
                    update.weights,
                    self._earlier_fit(),
                    neighbors=Recipe.of(self.recipe).neighbors,
                )
        warn_of_drift(fit, self.n_clusters_)
        self._set_update(update.data, fit)
        return self

    def _read_update(
        self,
        X: Any,
        sample_weight: Any,
        is_first: bool,
        say: Callable[[str], None],
    ) -> UpdateRows:
        """Check the rows of an update, and fill in cells as the first call learns."""
        data = checks.check_matrix(X, self, reset=is_first, missing=self.missing)
        say("{:,} rows, {:,} features".format(*data.shape))

        weights = check_growing(data, sample_weight)
        counted = data if weights.all() else data.keep_rows(np.flatnonzero(weights))

        n_unobserved = checks.warn_missing(counted, data.names) if is_first else 0
        if is_first and self.missing == "fit":
            self.preparation_ = (learn_filler(counted),)

        data = self._prepared(data)
        counted = self._prepared(counted)
        return UpdateRows(
            data=data,
            weights=weights,
            counted=counted,
            n_nonzero=checks.warn_zero_rows(counted, n_unobserved),
        )

    def _first_fit(
        self, X: Any, update: UpdateRows, steps: Steps
    ) -> incremental.IncrementalFit:
        """Count the clusters, and find them among the rows of the first call."""
        self.temperature_ = 1.0

        rng = generator(self.random_state)
        self.n_clusters_ = self._count_clusters(
            update.counted, update.n_nonzero, rng, steps
        )

        recipe = Recipe.of(self.recipe)
        trial = AS_GIVEN
        if self.columns in ("auto", "roots"):
            rows, _ = checks.counted_rows(update.data, update.weights)
            trial = try_roots(
                rows,
                self.n_clusters_,
                recipe,
                always=self.columns == "roots",
                steps=steps,
            )
        self.columns_ = trial.choice
        columns = trial.columns
        if columns is not None:
            is_zero = update.counted.column_sqnorms() == 0
            columns = columns.with_weight(is_zero)

        start_labels = None
        if self.init is not None:
            start_labels = labels_of_older(self.init, X).labels
        with steps.step("grow"):
            return incremental.first_fit(
                update.data,
                self.n_clusters_,
                update.weights,
                start_labels,
                roots=columns,
                neighbors=recipe.neighbors,
            )

    def _earlier_fit(self) -> incremental.EarlierFit:
        """Return the model as it is before an update."""
        placement = cast(Placement, self.placement_)
        state = getattr(self, "growth_", None)
        if state is None:
            no_rows = np.zeros(0, dtype=np.intp)

            state = incremental.state_of_fit(
                placement.embedding,
                labels=to_host(self.labels_),
                centers=to_host(self.cluster_centers_).astype(np.float64),
                sizes=to_host(self.sizes_).astype(np.float64),
                noise_levels=to_host(self.noise_levels_),
                embedded=to_host(self.embedding_),
                known_rows=getattr(self, "known_rows_", no_rows),
            )

        return incremental.EarlierFit(state=state, placement=placement)

    def _set_update(self, data: Matrix, fit: incremental.IncrementalFit) -> None:
        """Set the attributes of a model that has gone on with rows."""
        k = self.n_clusters_
        centers = fit.state.centers

        self.labels_ = data.ops.as_labels(fit.labels)
        self.__dict__.pop("known_rows_", None)  # of other rows
        self.scales_, levels = fit_to_centers(data, self.labels_, centers / data.unit)
        self.noise_levels_ = levels * float(data.unit)

        self.embedding_ = fit.embedded
        self.cluster_centers_ = data.cast(centers)

        placement = fit.placement
        self.eigenvalues_ = data.to_device(placement.embedding.eigenvalues)
        self.placement_ = placement
        self.space_ = placement.embedding.space

        sample = fit.embedded_sample
        if sample is not None and k > 1 and not hasattr(self, "classes_"):
            judgement = judge_rule(sample, placement.rule, k)
            self.temperature_ = judgement.temperature

        self.growth_ = fit.state
        self.n_iter_ = fit.n_iter

    @property
    def n_samples_seen_(self) -> int:
        """Rows of all calls of partial_fit, of models that have grown."""
        return self.growth_.n_samples

    @property
    def temperature_(self) -> float:
        """By which ``predict_proba`` divides log-odds.

        A fit to rows on a GPU leaves it to the first who asks: it would have to wait
        for the host, half as long as it takes itself.
        """
        fitted = self.__dict__
        if "temperature_" not in fitted:
            rule = cast(Placement, self.placement_).rule
            judgement = judge_rule(self.judged_rows_, rule, self.n_clusters_)
            # Other threads may ask meanwhile: they never see an unfinished figure.
            fitted["temperature_"] = judgement.temperature
        return fitted["temperature_"]

    @temperature_.setter
    def temperature_(self, temperature: float) -> None:
        self.__dict__["temperature_"] = temperature

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.signed:
            return

        recipe = Recipe.of(self.recipe)
        setting = None
        if recipe.labels != "tied":
            setting = f"labels={recipe.labels!r}"
        elif not recipe.unit_norm:
            setting = "unit_norm=False"

        if setting is not None:
            raise ValueError(
                f"{setting} expects positive scales and cannot be combined with "
                f"{option('signed', True)}; leave one out."
            )

    def _check_new(self, X: Any, batch: Any = None) -> Matrix:
        if batch is None and not hasattr(self, "batches_"):
            data = super()._check_new(X)
        else:
            data = self._prepared(rows_without_batches(self, X, batch).X)
        return self._warn_of_negative(data)

    def _check_to_place(
        self, X: Any, batch: Any
    ) -> tuple[Matrix, Placement | CosinePlacement]:
        """Return rows, checked and prepared, and how these are placed."""
        if batch is None and not hasattr(self, "batches_"):
            return self._check_new(X), self.placement_

        rows = rows_without_batches(self, X, batch)
        data = self._warn_of_negative(self._prepared(rows.X))
        return data, placement_of_batches(self, rows)

    def _warn_of_negative(self, data: Matrix) -> Matrix:
        """Return rows; warn if many entries are negative, and roots are compared.

        A warning is not worth another reading of rows that are on disk.
        """
        if self._has_roots and not data.streamed:
            checks.warn_negative_entries(data)
        return data

    @property
    def _has_roots(self) -> bool:
        """Whether the model compares roots of rows."""
        choice = getattr(self, "columns_", None)
        return choice is not None and choice.roots

    def _place_rows(self, X: Any, batch: Any = None) -> Tall:
        data, placement = self._check_to_place(X, batch)

        labels = placement(data)
        return replace_outliers(data.ops, labels, self._is_outlier(data), -1)

    @usual_errors()
    def without_batches(self, X: Any, batch: Any) -> Any:
        """Return rows, new or old, without the factors of their batches.

        They are a NumPy array, or sparse as X is. The model has to be fitted with
        batches; ``batch`` is as in :meth:`predict`.
        """
        data = rows_without_batches(self, X, batch).X
        return data.to_memory().array * data.unit

    @usual_errors()
    def predict(self, X: Any, batch: Any = None) -> np.ndarray:
        """Return the cluster of each row, new or old; its class, if some were known.

        Labels of dask arrays are computed when they are asked for, classes at once. A
        model that was fitted with batches takes the batch of each row, or one for all;
        rows of a new batch, ten at least, get its factors from themselves.
        """
        if batch is None and not hasattr(self, "batches_"):
            return self._as_classes(super().predict(X))
        labels = self._place_rows(X, batch)
        return self._as_classes(ops_of(labels).as_labels(labels))

    @usual_errors()
    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Fit the model, and return the cluster of each row, or its class.

        Options are those of :meth:`fit`; ``y`` is ignored.
        """
        return self._as_classes(self.fit(X, **options).labels_)

    def _as_classes(self, labels: Tall) -> Tall:
        """Return the classes that clusters stand for, if some were known."""
        if not hasattr(self, "classes_"):
            return labels
        return names_of_clusters(to_host(labels), self.classes_)

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
        data, row_placement = self._check_to_place(X, batch)
        placement = cast(Placement, row_placement)
        rule = placement.rule

        memberships = partial(rule.memberships, temperature=self.temperature_)
        return data.ops.row_map(
            memberships, placement.embedded(data), width=len(rule.intercepts)
        )

    @usual_errors()
    def transform(self, X: Any, batch: Any = None) -> np.ndarray:
        """Return the cosine of each row, new or old, with each cluster centre.

        They are cosines of the data, also where roots are compared, and those after
        noise was evened out. They are zero for zero rows and empty clusters. ``batch``
        is as in :meth:`predict`.
        """
        return cosines(self._compared_centers(), self._check_new(X, batch))

    @usual_errors()
    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, batch: Any = None
    ) -> float:
        """Return the share of the rows' squared length that their centres explain.

        Each row, new or old, is fitted by the best non-negative multiple of the centre
        nearest in angle, and counts by its weight; outliers do not count. Where
        ``columns`` even out noise, rows are compared so; where they ask for roots, as
        they are. More centres explain more, so
        that ``GridSearchCV`` picks the most clusters: give it
        ``scoring=``:func:`ihgmm.metrics.stability_score`. ``batch`` is as in
        :meth:`predict`; ``y`` is ignored.

        Notes
        -----
        It is the sum of ``w |x|^2 c^2`` over that of ``w |x|^2``, with w the weight of
        row x and c its largest cosine with a centre, or 0 if that is negative.
        """
        data = self._check_new(X, batch)
        ops = data.ops
        similarities = ops.widen(cosines(self._compared_centers(), data))
        if data.signed:
            similarities = ops.xp.abs(similarities)
        largest = ops.clip(ops.xp.max(similarities, axis=1), 0.0, None)

        weights = checks.check_weights(sample_weight, data.shape[0])
        squares = data.sqnorms * data.to_device(weights)
        squares = replace_outliers(ops, squares, self._is_outlier(data), 0.0)

        explained = ops.number(ops.xp.sum(squares * largest**2))
        total = ops.number(ops.xp.sum(squares))
        return explained / total if total else 0.0


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of some rows: their labels, and what these say of the rows."""

    labels: Tall  # (n,)
    embedded: Tall  # (n, m): rows of the embedding
    weights: Tall | None  # (n,); None: all alike
    parameters: Parameters  # in the unit of data that may have been whitened


@dataclass(frozen=True, eq=False)
class UpdateRows:
    """The rows of an update."""

    data: Matrix  # all rows
    weights: np.ndarray  # (n,)
    counted: Matrix  # those with a weight
    n_nonzero: int  # how many of these are not zero
