"""What the estimators share: checks, steps of a fit, reports, how rows are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, cast

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ihgmm._checks import (
    check_live_rows,
    check_matrix,
    check_row_count,
    check_weights,
    counted_rows,
    open_matrix,
    warn_missing,
    warn_zero_rows,
)
from ihgmm._display import made
from ihgmm._parameters import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_verbose,
    generator,
)
from ihgmm._progress import Steps, showing_passes
from ihgmm._values import OPTIONAL, Count, Domain
from ihgmm.matrix import Matrix, Scaled, Tall, as_matrix, namespace, only, to_host
from ihgmm.matrix.tall import (
    by_block,
    cast_like,
    clip,
    number,
    row_dots,
    row_lengths,
    stack,
    take_lines,
    to_device,
    unit_rows,
    widen,
)
from ihgmm.numerics.eigen import SOLVERS
from ihgmm.numerics.labels import ASSIGNMENTS
from ihgmm.numerics.missing import MISSING, Filler, Missing, learn_filler
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.whitening import NOISES, Whitener
from ihgmm.statistics.covariance import STRUCTURES
from ihgmm.statistics.outliers import OutlierRule, find_outliers
from ihgmm.statistics.selection import ClusterCount, resolve

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as managed
except ImportError:  # scikit-learn before 1.9
    managed = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""


F = TypeVar("F", bound=Callable[..., Any])


def with_callbacks(method: F) -> F:
    """Make a fit let its callbacks go, however it ends."""
    return method if managed is None else cast(F, managed(method))


class Clusterer(ClusterMixin, BaseEstimator):
    """A clusterer of dense or sparse rows, fitted whole or not at all."""

    # How each parameter is checked, whichever estimators have it.
    _checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {
        "n_clusters": check_count,
        "noise": partial(check_choice, choices=STRUCTURES),
        "recipe": lambda _, value: Recipe.of(value),
        "solver": partial(check_choice, choices=SOLVERS),
        "labels": partial(check_choice, choices=ASSIGNMENTS),
        "refine": check_flag,
        "whiten": partial(check_choice, choices=("auto", *NOISES, None)),
        "signed": check_flag,
        "missing": partial(check_choice, choices=MISSING),
        "max_samples": check_count,
        "n_init": partial(check_count, words=("auto",)),
        "max_iter": check_count,
        "tol": partial(check_number, above=0),
        "outliers": partial(check_number, above=0, most=0.5, words=("auto", None)),
        "verbose": check_verbose,
    }
    missing: Missing | None = None  # of estimators that have no such parameter
    # Types of fitted attributes say what files may hold.
    labels_: Annotated[np.ndarray, Domain("n", least=-1, below="k")]
    cluster_centers_: Annotated[np.ndarray, Domain("kp")]
    n_iter_: Count
    preparation_: tuple[Filler | Whitener, ...] = ()
    _fit: Callable[..., None]  # sets the attributes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "fit"
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to data, array-like or sparse of (n_samples, n_features).

        ``y`` is ignored. Returns the fitted estimator itself.
        """
        self._check_parameters()
        with self._all_or_nothing():
            self._fit(check_matrix(X, self, in_memory=True))
        return self

    def report(self, X: Any, path: Any = None, **options: Any) -> Any:
        """Write the clustering as one page of HTML that opens in any browser.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of the fit.
        path : str or path, optional
            The file to write, ending in .html. Without one the page is returned, and a
            notebook shows it.
        **options
            ``ids``, ``id_name``, ``feature_names``, ``title``, ``labels_true``,
            ``notes``, ``names`` of clusters and others, as
            :func:`ihgmm.report.write_report` takes them.

        Returns
        -------
        Path or Page
            The file, or the page where no path is given.
        """
        return made("report", self, X, path, **options)

    def _check_parameters(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if name in self._checks:
                self._checks[name](name, value)

    def _learn_preparation(self, X: Matrix, rng: np.random.Generator) -> Matrix:
        """Learn what is done to rows before all else, and return X after it."""
        self.preparation_ = (learn_filler(X),) if self.missing == "fit" else ()
        return self._prepared(X)

    def _prepared(self, X: Matrix) -> Matrix:
        """Return rows, new or old, as those of the fit were prepared."""
        for change in self.preparation_:
            X = change(X)
        return X

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore what was there before if the fit fails or is interrupted.

        The checks of the data record its features before anything is read. That must
        not pass for a model, nor mix with an earlier one.
        """
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise


class Weighted(Clusterer):
    """A clusterer of rows that may count more or less."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to data, array-like or sparse of (n_samples, n_features).

        Data on a device, on disk or in dask stay there, and results with a line for
        each row are arrays of the same kind. ``sample_weight``, of shape (n_samples,),
        says how much each row counts. ``y`` is ignored. Returns the fitted estimator
        itself.
        """
        self._check_parameters()
        with self._all_or_nothing():
            self._fit(check_matrix(X, self, missing=self.missing), sample_weight)
        return self


class InSteps(CallbackSupportMixin, Clusterer):
    """A clusterer that shows the steps of its fit and can count the clusters itself."""

    _checks: ClassVar = {
        **Clusterer._checks,
        "n_clusters": partial(check_count, words=("auto",)),
    }
    _fewest_steps: ClassVar[int]
    n_clusters: int | Literal["auto"]
    recipe: Recipe | str
    verbose: bool | int
    random_state: Any
    n_clusters_: Count
    selection_: Annotated[ClusterCount, OPTIONAL]
    scales_: Annotated[np.ndarray, Domain("n", unknown=True)]
    outliers: float | Literal["auto"] | None
    outlier_rule_: Annotated[OutlierRule, OPTIONAL]
    outlier_scores_: Annotated[np.ndarray, Domain("n", most=np.inf), OPTIONAL]
    outlier_threshold_: Annotated[float, Domain(most=np.inf), OPTIONAL]

    @property
    def sizes_(self) -> np.ndarray:
        """Scale times the length of the centre, for each row of the fit."""
        labels, scales = to_device(self.labels_, self.scales_), self.scales_
        # The scales of outliers, whose label is -1, are NaN.
        labels = clip(labels, 0, None)
        with np.errstate(over="ignore", under="ignore"):
            lengths = take_lines(row_lengths(self.cluster_centers_), labels)
            return cast_like(widen(scales) * lengths, scales)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to data, array-like or sparse of (n_samples, n_features).

        A torch tensor, a CuPy array or any other that follows the array API standard
        stays on its device, and results are arrays of the same kind. Zero rows get the
        label of the largest cluster, with a warning.

        ``sample_weight``, of shape (n_samples,), says how much each row counts, in
        eigenvectors, clusters, centres and numbers of clusters; only ratios matter.
        Rows of weight 0 get labels and have no part in the fit. A row counted twice
        differs from a row given twice: :doc:`/weights` says how. ``y`` is ignored.
        Returns the fitted estimator itself.
        """
        self._check_parameters()
        with (
            showing_passes(bool(self.verbose)),
            self._steps(X, y) as steps,
            self._all_or_nothing(),
        ):
            self._fit(X, steps, sample_weight)
        return self

    @contextmanager
    def _steps(self, X: Any, y: Any) -> Iterator[Steps]:
        if managed is None:
            yield Steps(self.verbose)
            return
        asked = (self.n_clusters == "auto") + bool(getattr(self, "refine", False))
        asked += self.outliers is not None
        task = self._init_callback_context(max_subtasks=self._fewest_steps + asked)
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        yield Steps(self.verbose, task, self)
        # The estimator has all its attributes by now: nothing to add for a copy of it.
        task.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes={}
        )

    def _begin(
        self, X: Any, steps: Steps, sample_weight: Any, *, refined: bool
    ) -> Begun:
        """Check the data, find the rows that count, and count the clusters."""
        rng = generator(self.random_state)
        with steps.step("check") as say:
            everything = check_matrix(X, self, missing=self.missing)
            n, p = everything.shape
            say(f"{n:,} rows, {p:,} features")
            data, counts = counted_rows(everything, sample_weight)
            names = getattr(self, "feature_names_in_", None)
            unobserved = warn_missing(data, names)
            data = self._learn_preparation(data, rng)
            warn_zero_rows(data, unobserved)
            everything = data if counts is None else self._prepared(everything)
        for name in ("selection_", *self._of_outliers):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.n_clusters == "auto":
            with steps.step("count") as say:
                k = self._count(data, rng, refined)
                say(f"{k} cluster{'s' * (k != 1)}")
        else:
            k = int(self.n_clusters)
        check_row_count(data.shape[0], k)
        check_live_rows(data, k)
        strange = None
        if self.outliers is not None:
            with steps.step("outliers") as say:
                strange, inside = self._find_outliers(data, everything, counts, k, rng)
                kept = data if inside.all() else only(data, np.flatnonzero(inside))
                say(f"{data.shape[0] - kept.shape[0]:,} rows")
                if kept is not data:
                    data = kept
                    counts = ~strange if counts is None else counts & ~strange
                    if self.n_clusters == "auto":
                        k = self._count(data, rng, refined)
            check_live_rows(data, k)
        self.n_clusters_ = k
        return Begun(data, everything, counts, strange, k, rng)

    def _count(self, data: Matrix, rng: np.random.Generator, refined: bool) -> int:
        signed = getattr(self, "signed", False)
        self.selection_ = resolve(
            data,
            Recipe.of(self.recipe).gram,
            rng,
            names=getattr(self, "feature_names_in_", None),
            refined=refined,
            signed=signed,
        )
        return max(self.selection_.n_clusters, 1)

    # What a fit has only where it looks for outliers.
    _of_outliers: ClassVar = ("outlier_rule_", "outlier_scores_", "outlier_threshold_")

    def _find_outliers(
        self,
        data: Matrix,
        everything: Matrix,
        counts: Tall | None,
        k: int,
        rng: np.random.Generator,
    ) -> tuple[Tall, np.ndarray]:
        """Tell which of all rows are outliers, and which rows that count are not."""
        assert self.outliers is not None
        signed = getattr(self, "signed", False)
        data, everything = self._before_whitening(data, everything)
        rule = find_outliers(data, k, self.outliers, signed=signed, rng=rng)
        scores = rule.scores(everything)
        self.outlier_rule_, self.outlier_threshold_ = rule, rule.threshold
        self.outlier_scores_ = everything.cast(scores)
        strange = scores > rule.threshold
        inside = ~to_host(strange)
        return strange, inside if counts is None else inside[to_host(counts)]

    def _is_outlier(self, X: Matrix) -> Tall | None:
        """Tell which rows are outliers; None where the fit did not look for any."""
        rule = getattr(self, "outlier_rule_", None)
        return None if rule is None else rule(*self._before_whitening(X))

    def _before_whitening(self, *prepared: Matrix) -> tuple[Matrix, ...]:
        """Return rows before their noise was made alike, which outliers show by."""
        if getattr(self, "whiten", None) is None:
            return prepared
        return tuple(cast(Scaled, X).matrix for X in prepared)


class Begun(NamedTuple):
    """What a fit begins with."""

    data: Matrix  # the rows that count
    everything: Matrix  # all rows
    counts: Tall | None  # for each row, whether it counts; None if all do
    strange: Tall | None  # for each row, whether it is an outlier; None if not asked
    n_clusters: int
    rng: np.random.Generator


def mark(values: Tall, strange: Tall | None, mark: float) -> Tall:
    """Return values of rows, with another one in the place of those of outliers."""
    if strange is None:
        return values
    xp, strange = namespace(values), to_device(strange, values)
    strange = strange if values.ndim == 1 else strange[:, None]
    return xp.where(strange, xp.full_like(values, mark), values)


class CenterClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """A clusterer that compares rows with centres: one output column per cluster."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    # What placing a row needs of the fit, which may go to other processes.
    _placing: ClassVar[tuple[str, ...]] = (
        "cluster_centers_",
        "n_features_in_",
        "preparation_",
    )

    _nearest: Callable[[Any], Tall]  # returns the label of each row

    def _labels_of(self, X: Any) -> Any:
        """Return the label of each row; of dask arrays when it is asked for."""
        check_is_fitted(self)
        rows = open_matrix(X, self, reset=False)
        return rows.map_rows(self._light()._nearest, np.intp)

    def _light(self) -> Self:
        """Return the estimator without what the fit knows of its own rows."""
        light = clone(self)
        for name in self._placing:
            if hasattr(self, name):
                setattr(light, name, getattr(self, name))
        return light

    def _check_new(self, X: Any) -> Matrix:
        check_is_fitted(self)
        data = check_matrix(X, self, reset=False, missing=self.missing)
        return self._prepared(data)


class CosineClusterer(CenterClusterer):
    """A clusterer that places new rows by their cosine with ``cluster_centers_``."""

    signed: bool = False  # whether opposite rows are of one cluster

    def transform(self, X: Any) -> np.ndarray:
        """Return the cosine of each row with each cluster centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old; also a torch tensor or another library's array.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Between -1 and 1, of X's library and on its device; zero for zero rows and
            for empty clusters.
        """
        return self._cosines(self._check_new(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster whose centre has the largest cosine with each row.

        Under noise that is the same in all directions this is the most likely
        cluster, whatever the row's scale. Zero rows get label 0, the largest cluster.
        Rows are given, and labels returned, as for :meth:`transform`.
        """
        return self._labels_of(X)

    def _nearest(self, X: Any) -> Any:
        cosines = self._nearness(self._check_new(X))
        empty = ~to_host(self.cluster_centers_).any(axis=1)
        if empty.any():
            cosines = cosines - cast_like(2 * empty, cosines)
        return namespace(cosines).argmax(cosines, axis=1)

    def _compared_centers(self) -> np.ndarray:
        """Return centres on the host, after what rows have gone through."""
        centers = as_matrix(to_host(self.cluster_centers_))
        return self._prepared(centers).toarray()

    def _cosines(self, X: Matrix) -> Any:
        cosines = X @ unit_rows(self._compared_centers()).T
        xp = namespace(cosines)
        norms = cast_like(xp.sqrt(X.sqnorms), cosines)
        norms = xp.where(norms == 0, xp.ones_like(norms), norms)
        return clip(cosines / norms[:, None], -1.0, 1.0)

    def _nearness(self, X: Matrix) -> Any:
        """Return cosines, or their sizes where opposite rows are of one cluster."""
        cosines = self._cosines(X)
        return namespace(cosines).abs(cosines) if self.signed else cosines

    def _largest_cosines(self, X: Matrix) -> Tall:
        cosines = self._nearness(X)
        return widen(namespace(cosines).max(cosines, axis=1))


class DistanceClusterer(CenterClusterer):
    """A clusterer that places new rows by their distance to ``cluster_centers_``."""

    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row to each cluster centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old; also a torch tensor or another library's array.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Of X's library and on its device.
        """
        return self._distances(self._check_new(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster whose centre is nearest to each row, new or old.

        Rows are given, and labels returned, as for :meth:`transform`.
        """
        return self._labels_of(X)

    def _nearest(self, X: Any) -> Tall:
        distances = self._distances(self._check_new(X))
        return namespace(distances).argmin(distances, axis=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest centre.

        Rows may be new or old, and count by their weights; ``y`` is ignored. More
        centres are nearer: to compare numbers of clusters, take
        :func:`ihgmm.metrics.stability_score` instead.
        """
        distances = self._distances(self._check_new(X))
        xp = namespace(distances)
        nearest = widen(xp.min(distances, axis=1))
        weights = to_device(check_weights(sample_weight, nearest.shape[0]), nearest)
        with np.errstate(over="ignore"):
            return -number(xp.sum(weights * nearest * nearest))

    def _distances(self, X: Matrix) -> Tall:
        """Return the distance of each row to each cluster centre."""
        centers = to_host(self.cluster_centers_)
        size = float(np.abs(centers).max())
        if size / X.unit > np.sqrt(float(np.finfo(X.dtype).max)) / 1e6:
            # Beside centres so large, in the unit of the rows squares would overflow.
            X = X.rescaled(max(X.unit / size, 1e-300))
        centers = (centers / X.unit).astype(X.dtype)
        work = partial(_distance_block, self._light(), as_matrix(centers))
        return X.sweep(work)[0][0] * float(X.unit)

    def _project(self, rows: Matrix) -> Tall:
        """Return rows in the space in which distances are taken."""
        return rows.rows(slice(None))


def _distance_block(
    model: DistanceClusterer, centers: Matrix, block: Matrix
) -> tuple[tuple[Tall], tuple[()]]:
    """Return distances of rows to centres, in the space of a model."""
    there = to_host(model._project(centers))
    parts = [
        distances(model._project(block.take(few)), there)
        for few in block.dense_ranges()
    ]
    return (stack(parts),), ()


@by_block
def distances(rows: Tall, centers: np.ndarray) -> Tall:
    """Return the Euclidean distance of each row to each of some centres."""
    wide = widen(rows)
    xp, there = namespace(wide), to_device(centers.astype(np.float64), wide)
    squares = row_dots(wide, wide)[:, None] + row_dots(there, there)
    squares = squares - 2 * wide @ there.T
    return cast_like(xp.sqrt(clip(squares, 0.0, None)), rows)
