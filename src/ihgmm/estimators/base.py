"""What the estimators share: checks, the rows of a fit, how new rows are placed."""

from collections.abc import Callable
from copy import copy, deepcopy
from functools import partial, wraps
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
from sklearn import base as sk
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm import _parameters as parameters
from ihgmm._display import write_page
from ihgmm._parameters import usual_errors
from ihgmm._progress import Steps
from ihgmm._warnings import PreparationWarning, UnstableLabelsWarning, warn
from ihgmm.matrix import HOST, Matrix, Ops, Scaled, Tall, ops_of, row_lengths, to_host
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.missing import MISSING_WAYS, Filler, learn_filler
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import SpectralFit
from ihgmm.numerics.whitening import NOISE_KINDS, Whitener
from ihgmm.numerics.wild_cells import learn_cell_filler
from ihgmm.policy import Doubt
from ihgmm.statistics.cautions import ruling_column
from ihgmm.statistics.missing_cells import missing_cells
from ihgmm.statistics.noise_structures import STRUCTURES
from ihgmm.statistics.outliers import find_outliers
from ihgmm.statistics.selection import count_with_warnings

F = TypeVar("F", bound=Callable[..., Any])
check_count_or_auto = partial(parameters.check_count, words=("auto",))
# How each parameter is checked, whichever estimators have it.
CHECKS: dict[str, Any] = {
    "n_clusters": parameters.check_count,
    "noise": partial(parameters.check_choice, choices=("auto", *STRUCTURES)),
    "recipe": lambda _, value: Recipe.of(value),
    "whiten": partial(parameters.check_choice, choices=("auto", *NOISE_KINDS, None)),
    "signed": parameters.check_flag,
    "missing": partial(parameters.check_choice, choices=MISSING_WAYS),
    "max_samples": parameters.check_count,
    "n_init": check_count_or_auto,
    "max_iter": parameters.check_count,
    "tol": partial(parameters.check_number, above=0),
    "outliers": partial(
        parameters.check_number, above=0, most=0.5, words=("auto", "cells", None)
    ),
    "verbose": parameters.check_verbose,
}


def atomic(fit: F) -> F:
    """Make a fit set all that it has learnt at its end, or nothing if it fails.

    A copy is fitted: until its end an earlier fit stays, also for other threads.
    """

    @wraps(fit)
    def fit_copy(self: Any, *args: Any, **options: Any) -> Any:
        self._check_parameters()
        draft = copy(self)
        draft.__dict__ = {k: v for k, v in vars(self).items() if k[-1] != "_"}
        with usual_errors():
            fit(draft, *args, **options)
        self.__dict__ = draft.__dict__
        return self

    return cast(F, fit_copy)


class FitRows(NamedTuple):
    """The rows of a fit: all of them, and those that it learns from."""

    everything: Matrix
    counted: Matrix  # those with a weight that are no outliers
    counts: Tall | None  # which of all rows these are; None for all
    live: int  # rows that count and are not zero
    outliers: Tall | None = None  # which of all rows are; None where nobody looked


def mark(ops: Ops, values: Tall, outliers: Tall | None, value: float) -> Tall:
    """Return values of rows, with another one in the place of those of outliers."""
    if outliers is None:
        return values
    outliers = ops.to_device(outliers, values)
    outliers = outliers if values.ndim == 1 else outliers[:, None]
    return ops.xp.where(outliers, ops.xp.full_like(values, value), values)


def number_by_size(X: Matrix, labels: Tall, k: int) -> tuple[Tall, np.ndarray]:
    """Give clusters numbers by decreasing size; return labels, and their order.

    Zero rows do not count, and are in the largest cluster.
    """
    ops, live = X.ops, X.sqnorms > 0
    weights = None if X.weights is None else ops.rows_where(X.weights, live)
    order = ops.order_by_size(ops.rows_where(labels, live), k, weights)
    labels = ops.take_lines(np.argsort(order), labels)
    return ops.persist(labels * ops.xp.astype(live, labels.dtype)), order


class Checked(sk.BaseEstimator):
    """An estimator whose ``fit`` checks its parameters first, see :func:`atomic`."""

    _checks: ClassVar[dict[str, Any]] = CHECKS

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if name in self._checks:
                self._checks[name](name, value)


class Scaler(sk.OneToOneFeatureMixin, sk.TransformerMixin, Checked):
    """A transformer that changes the cells of rows, in the place where they are."""

    _changed: Callable[[Any], Any]  # returns rows in memory or on a device

    @usual_errors()
    def transform(self, X: Any) -> Any:
        """Return rows, new or old, as the fit has learnt to change them."""
        check_is_fitted(self)
        data = checks.open_matrix(X, self, reset=False)
        return data.map_rows(self._changed, data.dtype, whole=True)


class Clusterer(
    sk.ClassNamePrefixFeaturesOutMixin, sk.TransformerMixin, sk.ClusterMixin, Checked
):
    """A clusterer that fills in cells, counts clusters, and sets rows aside.

    It does each only if it has a parameter for it.
    """

    _checks: ClassVar = {**CHECKS, "n_clusters": check_count_or_auto}
    # What placing a row needs of the fit, which may go to other processes.
    _placing: ClassVar[Any] = ("cluster_centers_", "n_features_in_", "preparation_")
    _nearest: Callable[..., Tall]  # returns the label of each row
    n_clusters: Any
    # Of estimators that have no such parameters.
    missing: Any = None
    outliers: Any = None
    signed: bool = False
    labels_: np.ndarray
    scales_: np.ndarray
    cluster_centers_: np.ndarray
    preparation_: tuple[Filler | Whitener, ...] = ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "fit"
        if hasattr(type(self), "predict_proba"):
            # scikit-learn's checks read off this how many columns it has.
            tags.classifier_tags = ClassifierTags(multi_class=self.n_clusters != 2)
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    @property
    def sizes_(self) -> np.ndarray:
        """Scale times the length of the centre, of models that have ``scales_``."""
        scales, ops = self.scales_, ops_of(self.scales_)
        # The scales of outliers, whose label is -1, are NaN.
        labels = ops.clip(ops.to_device(self.labels_, scales), 0, None)
        with np.errstate(over="ignore", under="ignore"):
            lengths = ops.take_lines(row_lengths(self.cluster_centers_), labels)
            return ops.cast_like(ops.widen(scales) * lengths, scales)

    @usual_errors()
    def report(self, X: Any, path: Any = None, **options: Any) -> Any:
        """Write the clustering of X, the data of the fit, as one page of HTML.

        The ``path`` ends in .html; without one the page is returned, which a notebook
        shows. Options are those of :func:`ihgmm.report.write_report`, such as ``ids``.
        """
        return write_page(X, self, path, **options)

    @usual_errors()
    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each row, new or old; of dask arrays when asked for."""
        check_is_fitted(self)
        rows, light = checks.open_matrix(X, self, reset=False), sk.clone(self)
        # Without what the fit knows of its own rows.
        vars(light).update({k: v for k, v in vars(self).items() if k in self._placing})
        return rows.map_rows(light._labels, np.int32)

    @usual_errors()
    def transform(self, X: Any) -> np.ndarray:
        """Return the cosine of each row, new or old, with each cluster centre.

        It is zero for zero rows and empty clusters.
        """
        return cosines(self._compared_centers(), self._check_new(X))

    def _compared_centers(self) -> np.ndarray:
        """Return centres on the host, whitened as rows are."""
        centers = to_host(self.cluster_centers_)
        for change in self.preparation_:
            # No cell of a centre is missing or wild.
            if isinstance(change, Whitener):
                centers = change(checks.check_matrix(centers)).toarray()
        return centers

    def _labels(self, X: Any, *batch: Any) -> Tall:
        labels = self._nearest(X, *batch)
        return ops_of(labels).as_labels(labels)

    def _check_new(self, X: Any) -> Matrix:
        """Return rows, new or old, prepared as those of the fit were."""
        check_is_fitted(self)
        data = checks.check_matrix(X, self, reset=False, missing=self.missing)
        return self._prepared(data)

    def _prepared(self, data: Matrix) -> Matrix:
        for change in self.preparation_:
            data = change(data)
        return data

    def _read(self, X: Any, sample_weight: Any, say: Callable[[str], None]) -> FitRows:
        """Check the data, find the rows that count, and fill in missing cells."""
        everything = checks.check_matrix(X, self, missing=self.missing)
        say("{:,} rows, {:,} features".format(*everything.shape))
        counted, counts = checks.counted_rows(everything, sample_weight)
        unobserved = checks.warn_missing(counted, everything.names)
        rows = FitRows(everything, counted, counts, live=0)
        if self.outliers == "cells":
            given = rows.everything if self.missing == "fit" else None
            rows = self._prepare(rows, learn_cell_filler(counted))
            self.outlier_cells_ = missing_cells(rows.everything.incomplete, given)
        elif self.missing == "fit":
            rows = self._prepare(rows, learn_filler(counted))
        return rows._replace(live=checks.warn_zero_rows(rows.counted, unobserved))

    def _prepare(self, rows: FitRows, change: Filler | Whitener) -> FitRows:
        """Return rows after a change, which new rows will go through too."""
        self.preparation_ = (*self.preparation_, change)
        counted = change(rows.counted)
        everything = counted if rows.counts is None else change(rows.everything)
        return rows._replace(everything=everything, counted=counted)

    def _warn_of_units(self, data: Matrix) -> None:
        """Warn of a column that would decide clusters alone, if data are at hand."""
        ruling = ruling_column(data) if data.on_host else None
        if ruling is not None:
            warn(
                f"Column {ruling.column!r} holds about {ruling.share:.0%} of the "
                "variance of ordinary rows, and clusters depend on its unit. If "
                "columns are in different units, "
                f"{parameters.option('ColumnScaler')} makes them comparable.",
                PreparationWarning,
            )

    def _warn_of_moves(
        self, start: SpectralFit, labels: Tall, k: int, doubt: float, advice: str
    ) -> None:
        """Warn if a likelihood moved more rows than the doubt of clusters explains."""
        moved = misclassification_rate(to_host(start.labels), to_host(labels))
        enough = len(start.sample) >= Doubt.ROWS_A_CLUSTER * k  # to know the doubt
        if enough and moved > max(Doubt.MOVED, Doubt.BEYOND * doubt):
            warn(
                f"The likelihood moved {moved:.0%} of the rows away from spectral "
                f"clusters that were stable. {advice}, which are often better then.",
                UnstableLabelsWarning,
            )

    def _choose(
        self, rows: FitRows, rng: np.random.Generator, steps: Steps
    ) -> tuple[FitRows, int]:
        """Count the clusters, and leave out rows that fit none, if asked to."""
        k = self._count_clusters(rows.counted, rows.live, rng, steps)
        checks.warn_few_weighty_rows(rows.counted, k)
        if self.outliers is None or self.outliers == "cells":
            return rows, k
        with steps.step("outliers") as say:
            data = self._before_whitening(rows.counted)
            rule = find_outliers(data, k, self.outliers, signed=self.signed, rng=rng)
            scores = rule.scores(self._before_whitening(rows.everything))
            self.outlier_rule_, self.outlier_threshold_ = rule, rule.threshold
            self.outlier_scores_ = rows.everything.cast(scores)
            outliers, counts = scores > rule.threshold, rows.counts
            rows = rows._replace(outliers=outliers)
            inside = ~to_host(outliers)
            inside = inside if counts is None else inside[to_host(counts)]
            say(f"{np.count_nonzero(~inside):,} rows")
        if inside.all():
            return rows, k
        counts = ~outliers if counts is None else counts & ~outliers
        data = rows.counted.keep_rows(np.flatnonzero(inside))
        live = checks.count_rows(data, data.sqnorms)
        k = self._count_clusters(data, live, rng, steps)
        return rows._replace(counted=data, counts=counts, live=live), k

    def _count_clusters(
        self, data: Matrix, live: int, rng: np.random.Generator, steps: Steps
    ) -> int:
        """Return the number of clusters, given or counted; there are rows for them."""
        k = self.n_clusters
        if k == "auto":
            with steps.step("count") as say:
                # The fit draws as if the number had been given.
                self.selection_ = count_with_warnings(
                    data, deepcopy(rng), signed=self.signed
                )
                k = max(self.selection_.n_clusters, 1)
                say(f"{k} cluster{'s' * (k != 1)}")
        checks.check_row_count(data.shape[0], k, live)
        return int(k)

    def _is_outlier(self, X: Matrix) -> Tall | None:
        """Tell which rows are outliers; None where the fit did not look for any."""
        rule = getattr(self, "outlier_rule_", None)
        return None if rule is None else rule(self._before_whitening(X))

    def _before_whitening(self, prepared: Matrix) -> Matrix:
        """Return rows before their noise was made alike, which outliers show by."""
        if any(isinstance(change, Whitener) for change in self.preparation_):
            return cast(Scaled, prepared).matrix
        return prepared


class DistanceClusterer(Clusterer):
    """A clusterer that places new rows by their distance to ``cluster_centers_``."""

    @usual_errors()
    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row, new or old, to each cluster centre."""
        return self._distances(self._check_new(X))

    def _nearest(self, X: Any) -> Tall:
        data = self._check_new(X)
        return data.ops.xp.argmin(self._distances(data), axis=1)

    @usual_errors()
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest centre.

        Rows may be new or old, and count by their weights; ``y`` is ignored. More
        centres are nearer, so that ``GridSearchCV`` picks the most clusters: give it
        ``scoring=``:func:`ihgmm.metrics.stability_score`.
        """
        data = self._check_new(X)
        ops = data.ops
        nearest = ops.widen(ops.xp.min(self._distances(data), axis=1))
        weights = data.to_device(checks.check_weights(sample_weight, data.shape[0]))
        with np.errstate(over="ignore"):
            return -ops.number(ops.xp.sum(weights * nearest * nearest))

    def _distances(self, X: Matrix) -> Tall:
        centers = to_host(self.cluster_centers_)
        size = float(np.abs(centers).max())
        if size / X.unit > np.sqrt(float(np.finfo(X.dtype).max)) / 1e6:
            # Beside centres so large, in the unit of the rows squares would overflow.
            X = X.rescaled(max(X.unit / size, 1e-300))
        ops, centers = X.ops, centers / X.unit
        products = X @ centers.T
        lengths = ops.to_device((centers.astype(np.float64) ** 2).sum(axis=1), products)
        squares = X.sqnorms[:, None] + lengths - 2 * ops.widen(products)
        distances = ops.xp.sqrt(ops.clip(squares, 0.0, None)) * float(X.unit)
        return ops.cast_like(distances, products)


def cosines(centers: np.ndarray, X: Matrix) -> Tall:
    """Return the cosine of each row with each centre; 0 where one of them is zero."""
    ops = X.ops
    products = X @ HOST.unit_rows(centers).T
    lengths = ops.cast_like(ops.xp.sqrt(X.sqnorms), products)[:, None]
    return ops.clip(ops.ratio(products, lengths), -1.0, 1.0)
