"""Whether labels can be trusted: what the data say about a clustering."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.random import Generator

from ihgmm import _checks as checks
from ihgmm._display import Result
from ihgmm._parameters import check_choice, generator, usual_errors
from ihgmm.matrix import Groups, Matrix, RowSubset, Tall, to_host
from ihgmm.numerics.missing import MISSING_WAYS, Missing, learn_filler
from ihgmm.numerics.roots import RootColumns
from ihgmm.policy import Cautions, Trust
from ihgmm.statistics.calibration import certainty_shift, error_range, expected_error
from ihgmm.statistics.cautions import (
    Caution,
    OtherClusters,
    one_value_column,
    ruling_column,
    zero_rows,
)
from ihgmm.statistics.refits import Refits, refit_halves


class Verdict(StrEnum):
    """What to think of labels. A verdict is equal to its sentence, and shown as it."""

    ONE_CLUSTER = "one cluster: nothing to separate"
    GIVEN = "the labels are those given: the fit chose none"
    NOT_KNOWN = "too few rows to judge: nothing is known about these labels"
    WELL_SEPARATED = "well separated"
    SEPARATED = "mostly reliable"
    OVERLAPPING = "clusters overlap: expect many wrong labels"
    NO_SEPARATION = "no separation: do not trust these labels"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """What the data say about labels. ``print`` it for a summary in words."""

    n_samples: int  #: rows in clusters
    n_features: int
    n_clusters: int
    classes: np.ndarray  #: the label of each cluster, sorted
    sizes: np.ndarray  #: rows in each
    #: Share of rows whose label stays when fits to other halves of the rows label them;
    #: NaN with too few rows for a fit, as all that is made of it.
    stability: float
    cluster_stability: np.ndarray  #: the same of each cluster; NaN for one or two rows
    doubt: float  #: mean probability that these fits give to other labels
    #: Share of labels expected to differ from the classes you have in mind: on real
    #: data some do even where nothing is in doubt.
    expected_error: float
    error_range: tuple[float, float]  #: of that, in four of five real data sets
    certainty: np.ndarray  #: probability that the label of each row is right
    uncertain_share: float  #: share of rows with a certainty below ``certain_from``
    cautions: tuple[Caution, ...] = ()  #: what to look at, the most useful first
    certain_from: float = Trust.CERTAIN
    n_outliers: int = 0  #: rows in no cluster, which were left out
    #: Rows whose labels the fit was given: they are certain, and the other figures are
    #: of the other rows, judged without them; of all rows where all were given.
    n_given: int = 0
    largest_share: float = 1.0  #: of rows that were judged, in the largest cluster
    incomplete: bool = False  #: whether missing cells add to the expected error

    @property
    def verdict(self) -> Verdict:
        """The finding: equal to its sentence, such as "well separated"."""
        if self.n_clusters == 1:
            return Verdict.ONE_CLUSTER
        if self.n_given == self.n_samples:
            return Verdict.GIVEN
        if np.isnan(self.stability):
            return Verdict.NOT_KNOWN

        error_of_guess = 1 - self.largest_share  # if all were of the largest cluster
        if 1 - self.stability >= Trust.CHANCE * error_of_guess:
            return Verdict.NO_SEPARATION
        if self.expected_error < Trust.WELL_SEPARATED:
            return Verdict.WELL_SEPARATED
        if self.expected_error < Trust.SEPARATED:
            return Verdict.SEPARATED
        return Verdict.OVERLAPPING


@usual_errors()
def diagnose(
    X: Any, labels: Any, *, missing: Missing = "error", random_state: Any = 0
) -> Diagnosis:
    """Judge labels by the data: can they be trusted, and if not, why not.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data that were clustered, wherever they are.
    labels : array-like of shape (n_samples,), or fitted estimator
        The cluster of each row, of any kind, from any method. A fitted model, or a
        pipeline that ends with one, stands for its ``labels_``, and prepares X as in
        its fit. Outliers, -1 beside clusters numbered from 0, are left out: their
        certainty is NaN.
    missing : {"error", "fit"}, default="error"
        Whether to refuse missing cells, or fill them in as :class:`ihgmm.IhSC` does.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the halves that are fitted.

    Returns
    -------
    Diagnosis
        Figures, a verdict and cautions; ``print`` shows them in words.

    Notes
    -----
    Halves of at most 2,000 rows are clustered anew, and each fit labels rows that it
    did not see. They compare roots of rows if the model does, and for labels from
    elsewhere rows as they are. Labels that change are often wrong; those that stay need
    not be the classes you have in mind: see :doc:`/trust`.

    Examples
    --------
    >>> from ihgmm import diagnose, make_ihgmm
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> X[:9] = 0
    >>> diagnosis = diagnose(X, kinds)
    >>> diagnosis.verdict, diagnosis.stability, diagnosis.expected_error < 0.05
    ('well separated', 1.0, True)
    >>> diagnosis.cautions
    (The labels of 9 rows of zeros mean nothing.,)
    >>> diagnosis.cautions[0].n_rows
    9
    """
    rng = generator(random_state)
    check_choice("missing", missing, MISSING_WAYS)
    model = checks.last_step(None, labels)[1]

    X, labels = checks.data_and_labels(X, labels, whitened=True)
    data = checks.check_matrix(X, missing=missing)
    if missing == "fit":
        data = learn_filler(data)(data)
    classes, codes, is_outlier = checks.labelled_rows(labels, data)
    clustered = RowSubset.everything(data)
    if is_outlier is not None:
        clustered = RowSubset.where(data, ~is_outlier)

    clustered_data = clustered.matrix(data)
    given_rows = getattr(model, "known_rows_", ())
    is_given = np.isin(np.arange(data.shape[0]), given_rows)
    diagnosis = _diagnose(
        clustered_data,
        classes,
        codes=clustered_data.to_device(clustered.select(codes)),
        is_given=is_given[clustered.positions()],
        roots=checks.roots_of(model),
        is_of_ihsc=hasattr(model, "placement_"),
        rng=rng,
    )
    if is_outlier is None:
        return diagnosis

    not_known = data.ops.xp.full_like(data.ops.widen(is_outlier), np.nan)
    certainty = clustered.scatter(diagnosis.certainty, not_known)
    n_outliers = data.shape[0] - clustered_data.shape[0]
    return replace(diagnosis, certainty=certainty, n_outliers=n_outliers)


@dataclass(frozen=True, eq=False)
class _JudgedRows:
    """Rows whose labels are in question."""

    is_judged: Tall  # (n_samples,)
    n_rows: int
    clusters: Groups  # of all rows; those that are judged have weight 1, others 0


@dataclass(frozen=True, eq=False)
class _Judgement:
    """What fits to halves of the rows say of labels."""

    n_stable: np.ndarray  # (n_clusters,): judged rows whose label stays
    doubt: float
    expected_error: float
    certainty: Tall  # (n_samples,)


def _diagnose(
    X: Matrix,
    classes: np.ndarray,
    *,
    codes: Tall,
    is_given: np.ndarray,
    roots: RootColumns | None,
    is_of_ihsc: bool,
    rng: Generator,
) -> Diagnosis:
    """Diagnose labels of rows that are all in clusters.

    Parameters
    ----------
    X : Matrix of shape (n_samples, n_features)
    classes : ndarray of shape (n_clusters,)
        The label of each cluster.
    codes : array of shape (n_samples,)
        The cluster of each row, numbered from 0.
    is_given : ndarray of shape (n_samples,)
        Which rows have labels that the fit was given.
    roots : RootColumns or None
        How the fit took roots of rows, if it did: it is judged by fits that do so too.
    is_of_ihsc : bool
        Whether the labels are those of a fit of IhSC.
    rng : Generator
        Draws the halves.
    """
    k = len(classes)
    judged = _rows_to_judge(X, codes, k, is_given)

    # A few rows beside given ones say nothing.
    has_enough_rows = judged.n_rows >= Trust.LEAST_JUDGED or not is_given.any()
    refits = None
    if k > 1 and has_enough_rows:
        # Labels that were all given are judged by fits that do not know them.
        is_known = None if is_given.all() else is_given
        refits = refit_halves(X, codes, k, rng, is_given=is_known, roots=roots)

    if refits is None:
        judgement = _judgement_without_refits(X, k, judged.n_rows)
    else:
        judgement = _judge(X, refits, judged)
    if is_given.any():
        judgement = _with_given_labels(X, judgement, is_given)

    cluster_sizes = judged.clusters.sums(judged.clusters.weights)
    is_too_small = (cluster_sizes < Trust.LEAST_ROWS) & (k > 1)
    stable_shares = judgement.n_stable / np.maximum(cluster_sizes, 1)
    is_certain = judgement.certainty >= Trust.CERTAIN
    n_uncertain = checks.count_rows(X, judged.is_judged & ~is_certain)

    diagnosis = Diagnosis(
        n_samples=X.shape[0],
        n_features=X.shape[1],
        n_clusters=k,
        classes=classes,
        sizes=X.ops.groups(codes, k).sizes,
        stability=float(judgement.n_stable.sum() / judged.n_rows),
        cluster_stability=np.where(is_too_small, np.nan, stable_shares),
        doubt=judgement.doubt,
        expected_error=judgement.expected_error,
        error_range=error_range(judgement.expected_error, k),
        certainty=judgement.certainty,
        uncertain_share=n_uncertain / judged.n_rows,
        n_given=int(is_given.sum()),
        largest_share=float(cluster_sizes.max() / judged.n_rows),
        incomplete=refits is not None and refits.kept_certainty is not None,
    )
    candidates = (
        _other_clusters(diagnosis, refits, is_of_ihsc),
        one_value_column(X, codes, classes),
        # Roots weigh columns, so that none of them decides alone.
        ruling_column(X) if roots is None else None,
        zero_rows(X, is_given),
    )
    cautions = tuple(caution for caution in candidates if caution is not None)
    return replace(diagnosis, cautions=cautions)


def _rows_to_judge(X: Matrix, codes: Tall, k: int, is_given: np.ndarray) -> _JudgedRows:
    """Return the rows whose labels are in question.

    Rows of zeros show no pattern, and labels that were given are certain: these rows
    only count in the sizes of clusters. Where all labels were given they are judged.
    """
    is_nonzero = X.sqnorms > 0

    is_judged = is_nonzero & ~X.to_device(is_given)
    n_rows = checks.count_rows(X, is_judged)
    if n_rows == 0:
        checks.warn_zero_rows(X)
        is_judged = is_nonzero
        n_rows = checks.count_rows(X, is_judged)

    return _JudgedRows(
        is_judged=is_judged,
        n_rows=n_rows,
        clusters=X.ops.groups(codes, k, X.ops.widen(is_judged)),
    )


def _judgement_without_refits(X: Matrix, k: int, n_judged: int) -> _Judgement:
    """Judge rows of one cluster, where nothing is in doubt, or too few: all is NaN."""
    certainty = 1.0 if k == 1 else np.nan
    return _Judgement(
        n_stable=np.full(k, certainty * n_judged),
        doubt=0.0 * certainty,
        expected_error=0.0 * certainty,
        certainty=X.ops.xp.full_like(X.ops.widen(X.sqnorms), certainty),
    )


def _judge(X: Matrix, refits: Refits, judged: _JudgedRows) -> _Judgement:
    """Return what refits say of labels, and how certain each label is.

    Log-odds of a label rise with its lead, from where the mean probability of other
    labels is the expected error.
    """
    ops = X.ops
    xp = ops.xp
    k = len(judged.clusters.sizes)
    weights = judged.clusters.weights

    doubt = ops.number(xp.sum(refits.doubt * weights)) / judged.n_rows
    error = expected_error(doubt, judged.n_rows, k)

    log_odds = Trust.ROWS * refits.lead
    step = max(1, judged.n_rows // Trust.MEAN_ROWS)
    sample = to_host(ops.rows_where(log_odds, judged.is_judged)[::step])
    certainty = 1 / (1 + xp.exp(-log_odds - certainty_shift(sample, error)))
    certainty_by_chance = xp.full_like(certainty, 1 / k)
    certainty = xp.where(X.sqnorms > 0, certainty, certainty_by_chance)

    if refits.kept_certainty is not None:
        # Missing cells make no label less sure than one by chance.
        floor = xp.clip(certainty, None, 1 / k)
        certainty = xp.maximum(certainty * refits.kept_certainty, floor)
        error = 1 - ops.number(xp.sum(certainty * weights)) / judged.n_rows

    return _Judgement(
        n_stable=judged.clusters.sums(refits.stability * weights),
        doubt=doubt,
        expected_error=error,
        certainty=certainty,
    )


def _with_given_labels(
    X: Matrix, judgement: _Judgement, is_given: np.ndarray
) -> _Judgement:
    """Return a judgement in which labels that were given are certain."""
    certain = X.ops.xp.full_like(judgement.certainty, 1.0)
    certainty = X.ops.xp.where(X.to_device(is_given), certain, judgement.certainty)
    error = 0.0 if is_given.all() else judgement.expected_error
    return replace(judgement, certainty=certainty, expected_error=error)


def _other_clusters(
    diagnosis: Diagnosis, refits: Refits | None, is_of_ihsc: bool
) -> OtherClusters | None:
    """Return a caution if refits agree with each other far more than with labels."""
    if refits is None:
        return None

    least_agreement = max(Cautions.AGREE, diagnosis.stability + Cautions.MORE)
    if refits.agreement <= least_agreement:
        return None

    return OtherClusters(
        agreement=refits.agreement,
        stability=diagnosis.stability,
        is_by_chance=diagnosis.verdict is Verdict.NO_SEPARATION,
        is_of_ihsc=is_of_ihsc,
    )
