"""Whether labels can be trusted: what the data say about a clustering."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.special import expit, logit

from ihgmm import _checks as checks
from ihgmm._display import Result
from ihgmm._parameters import check_choice, generator, usual_errors
from ihgmm.matrix import HOST, Matrix, Tall, to_host
from ihgmm.numerics.missing import MISSING_WAYS, Missing, learn_filler
from ihgmm.numerics.rules import LinearRule
from ihgmm.policy import Cautions, Columns, Refitting, Small, Trust
from ihgmm.statistics.missing_cells import filled_cells
from ihgmm.statistics.refits import Refits, refit_halves


class Verdict(StrEnum):
    """What to think of labels. A verdict is equal to its sentence, and shown as it."""

    ONE_CLUSTER = "one cluster: nothing to separate"
    GIVEN = "the labels are those given: the fit chose none"
    NOT_KNOWN = "too few rows to judge: nothing is known about these labels"
    WELL_SEPARATED = "well separated"
    SEPARATED = "separated: expect some wrong labels"
    OVERLAPPING = "clusters overlap: expect many wrong labels"
    NO_SEPARATION = "no separation: do not trust these labels"

    def __repr__(self) -> str:
        return repr(self.value)


class CautionKind(StrEnum):
    """What to look at; each with the names of its figures."""

    OTHER_CLUSTERS = auto()  # agreement, share, by_chance, fitted
    ONE_VALUE = auto()  # column, others: more of them, clusters: with own values
    RULING_COLUMN = auto()  # column, share
    ZERO_ROWS = auto()  # rows, unobserved where some are


@dataclass(frozen=True, repr=False)
class Caution(Result):
    """A reason to look twice, with its figures; ``print`` it for a sentence."""

    kind: CautionKind
    figures: dict[str, Any]


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
    #: Share of labels expected to differ from the classes you have in mind.
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
        guess = 1 - self.largest_share  # errors, if all were of the largest cluster
        if 1 - self.stability >= Trust.CHANCE * guess:
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
    did not see. Labels that change are often wrong; those that stay need not be the
    classes you have in mind: see :doc:`/trust`.

    Examples
    --------
    >>> from ihgmm import diagnose, make_ihgmm
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> X[:9] = 0
    >>> diagnosis = diagnose(X, kinds)
    >>> diagnosis.verdict, diagnosis.stability, diagnosis.expected_error < 0.01
    ('well separated', 1.0, True)
    >>> diagnosis.cautions[0].kind.name, diagnosis.cautions[0].figures
    ('ZERO_ROWS', {'rows': 9})
    """
    rng = generator(random_state)
    check_choice("missing", missing, MISSING_WAYS)
    model = checks.last_step(None, labels)[1]
    fitted = hasattr(model, "placement_")  # by IhSC
    X, labels = checks.data_and_labels(X, labels, whitened=True)
    data = checks.check_matrix(X, missing=missing)
    if missing == "fit":
        data = learn_filler(data)(data)
    classes, codes, outliers = checks.labelled_rows(labels, data)
    given = np.isin(np.arange(data.shape[0]), getattr(model, "known_rows_", ()))
    if outliers is None:
        return _diagnose(data, classes, codes, given, rng, fitted)
    ops, rows = data.ops, np.flatnonzero(~to_host(outliers))
    inside = data.to_device(to_host(ops.take_rows(codes, rows))), given[rows]
    diagnosis = _diagnose(data.keep_rows(rows), classes, *inside, rng, fitted)
    unknown = ops.xp.full_like(ops.widen(outliers), np.nan)
    certainty = ops.place(diagnosis.certainty, ~outliers, unknown)
    return replace(diagnosis, certainty=certainty, n_outliers=data.shape[0] - len(rows))


def _diagnose(
    X: Matrix,
    classes: np.ndarray,
    codes: Tall,
    given: np.ndarray,
    rng: Generator,
    fitted: bool,
) -> Diagnosis:
    """Diagnose labels of rows that are all in clusters."""
    (n, p), k, ops, xp = X.shape, len(classes), X.ops, X.ops.xp
    live, known = X.sqnorms > 0, X.to_device(given)
    # Zero rows show no pattern: they only count as rows of their cluster.
    judged = live & ~known
    n_judged = checks.count_rows(X, judged)
    if n_judged == 0:
        checks.warn_zero_rows(X)
        judged, n_judged = live, checks.count_rows(X, live)
    groups = ops.groups(codes, k, ops.widen(judged))
    taught_by = None if given.all() else given
    # A few rows beside given ones say nothing.
    enough = k > 1 and (n_judged >= Trust.LEAST_JUDGED or not given.any())
    refits = refit_halves(X, codes, k, rng, given=taught_by) if enough else None
    # Of one cluster nothing is in doubt, and of too few rows nothing is known.
    one = 1.0 if k == 1 else np.nan
    stays, doubt, error = np.full(k, one * n_judged), 0.0 * one, 0.0 * one
    certainty = xp.full_like(ops.widen(live), one)
    if refits is not None:
        stays = groups.sums(refits.stays * groups.weights)
        doubt = ops.number(xp.sum(refits.doubt * groups.weights)) / n_judged
        error = expected_error(doubt, n_judged, k)
        # Log-odds rise with the lead, such that these rows have a mean of 1 - error.
        scores, step = Trust.ROWS * refits.lead, max(1, n_judged // Trust.MEAN_ROWS)
        some = to_host(ops.rows_where(scores, judged)[::step])
        shift = brentq(lambda shift: expit(-some - shift).mean() - error, -99.0, 99.0)
        certainty = 1 / (1 + xp.exp(-scores - float(shift)))
        certainty = xp.where(live, certainty, xp.full_like(certainty, 1 / k))
        if refits.kept is not None:
            # No label is less sure than one by chance for that.
            least = xp.clip(certainty, None, 1 / k)
            certainty = xp.maximum(certainty * refits.kept, least)
            error = 1 - ops.number(xp.sum(certainty * groups.weights)) / n_judged
    if given.any():
        certainty = xp.where(known, xp.full_like(certainty, 1.0), certainty)
        error = 0.0 if given.all() else error
    counts = groups.sums(groups.weights)
    few = (counts < Trust.LEAST_ROWS) & (k > 1)
    uncertain = checks.count_rows(X, judged & ~(certainty >= Trust.CERTAIN))
    by_cluster = np.where(few, np.nan, stays / np.maximum(counts, 1))
    size = n, p, k, classes, ops.groups(codes, k).sizes
    halves = float(stays.sum() / n_judged), by_cluster, doubt
    ends, rows = error_range(error, k), (certainty, uncertain / n_judged)
    diagnosis = Diagnosis(*size, *halves, error, ends, *rows)
    largest = float(counts.max() / n_judged)
    diagnosis = replace(diagnosis, n_given=int(given.sum()), largest_share=largest)
    if refits is not None and refits.kept is not None:
        diagnosis = replace(diagnosis, incomplete=True)
    cautions = _cautions(diagnosis, X, codes, given, refits, fitted)
    return replace(diagnosis, cautions=tuple(cautions))


def expected_error(doubt: float, n: int, k: int) -> float:
    """Return the share of labels, of n rows in k clusters, expected to be wrong."""
    # Without any doubt among n rows, there may still be a quarter of a row.
    doubt, chance = (doubt * n + 0.25) / (n + 0.5), 1 - 1 / k
    odds = logit(min(doubt / chance, 0.99))
    return float(Trust.MOST * chance * expit(Trust.SLOPE * odds + Trust.SHIFT))


def membership_temperature(rows: np.ndarray, rule: LinearRule, error: float) -> float:
    """Return by what to divide log-odds such that memberships are not too sure.

    Other clusters then have a mean membership of the expected error in these rows.
    """

    def surplus(heat: float) -> float:
        shares = rule.memberships(HOST, rows, np.exp(heat))
        return float((1 - shares.max(axis=1)).mean() - error)

    if surplus(0.0) >= 0:
        return 1.0
    return float(np.exp(brentq(surplus, 0.0, 99.0, xtol=0.05)))


def error_range(error: float, k: int) -> tuple[float, float]:
    """Return the ends of the range that goes with an expected error."""
    if k == 1:
        return 0.0, 0.0
    chance = 1 - 1 / k
    odds = logit(min(error / chance / Trust.MOST, 0.99)) - Trust.SHIFT  # of the doubt
    low, high = (
        chance * expit(slope * odds / Trust.SLOPE + shift)
        for slope, shift in (Trust.LEAST, Trust.LARGEST)
    )
    return float(min(low, error)), float(max(high, error))


def _cautions(
    diagnosis: Diagnosis,
    data: Matrix,
    codes: Tall,
    given: np.ndarray,
    refits: Refits | None,
    fitted: bool,
) -> Iterator[Caution]:
    """Yield what to look at, the most useful first."""
    agreement, share = 0.0 if refits is None else refits.agreement, diagnosis.stability
    if agreement > max(Cautions.AGREE, share + Cautions.MORE):
        hopeless = diagnosis.verdict is Verdict.NO_SEPARATION
        figures = {"agreement": agreement, "share": share, "by_chance": hopeless}
        yield Caution(CautionKind.OTHER_CLUSTERS, figures | {"fitted": fitted})
    names = data.names or range(data.shape[1])
    columns, apart = _columns_of_one_value(data, codes)
    if len(columns):
        column, *others = (names[j] for j in columns)
        own: Any = {"clusters": diagnosis.classes[apart].tolist()}
        named = {"column": column, "others": others}
        yield Caution(CautionKind.ONE_VALUE, named | own)
    ruling = ruling_column(data)
    if ruling is not None:
        figures = {"column": names[ruling[0]], "share": ruling[1]}
        yield Caution(CautionKind.RULING_COLUMN, figures)
    # A label that was given means something, whatever the row.
    zero = checks.count_rows(data, (data.sqnorms == 0) & ~data.to_device(given))
    if zero:
        unobserved = int((filled_cells(data) == data.shape[1])[~given].sum())
        some = {"unobserved": unobserved} if unobserved else {}
        yield Caution(CautionKind.ZERO_ROWS, {"rows": zero, **some})


def _columns_of_one_value(data: Matrix, codes: Tall) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that vary between clusters and within none of them.

    First comes one that has its own value in most clusters; these are returned too.
    """
    rows = _some_rows(data, data.sqnorms > 0)
    part, own = data.take(rows), to_host(data.ops.take_rows(codes, rows))
    present, own, sizes = np.unique(own, return_inverse=True, return_counts=True)
    sums = to_host(part.adjoint(part.cast(np.eye(len(sizes))[own]))).astype(float)
    squares = to_host(part.column_sqnorms())
    within = squares - (sums**2 / sizes).sum(axis=1)
    found = np.flatnonzero((within <= Small.EXACT * squares) & (squares > 0))
    # Small clusters have one value by chance, such as a word of a few like rows.
    means = sums[found] / sizes
    usual = np.median(means[:, own], axis=1, keepdims=True)
    others = (~np.isclose(means, usual)) @ sizes
    enough = len(rows) >= Cautions.LEAST_ROWS * len(sizes)
    telling = enough & (others >= Cautions.LEAST_ROWS)
    found, means = found[telling], means[telling]
    alone = np.isclose(means[:, :, None], means[:, None, :]).sum(axis=2) == 1
    order = np.argsort(-alone.sum(axis=1), kind="stable")
    return found[order], present[alone[order[0]]] if len(order) else present[:0]


def _some_rows(data: Matrix, where: Tall) -> Any:
    """Draw rows in which columns are compared."""
    most = min(Refitting.ROWS, max(Cautions.ENTRIES // data.shape[1], 1))
    return data.ops.draw_rows(where, most, np.random.default_rng(0))


def decides_alone(deviations: np.ndarray) -> np.ndarray:
    """Tell which columns decide alone: those that vary several times more than most."""
    return np.asarray(deviations > Columns.DECIDES_ALONE * lower_median(deviations))


def lower_median(values: np.ndarray) -> float:
    """Return the median, or the lower of the two in the middle."""
    return float(np.sort(values)[(len(values) - 1) // 2])


def ruling_column(data: Matrix) -> tuple[int, float] | None:
    """Return the column that would decide clusters alone, and its share of variance."""
    ops, sqnorms, live = data.ops, data.sqnorms, data.sqnorms > 0
    # A few huge rows would show their own columns.
    some = ops.rows_where(sqnorms, live)
    (median,) = ops.in_order(some, np.array([some.shape[0] // 2]))
    usual = live & (sqnorms <= Cautions.HUGE**2 * float(median))
    part = data.take(_some_rows(data, usual))
    n = part.shape[0]
    if n < Cautions.LEAST_ROWS:
        return None
    squares = to_host(part.column_sqnorms()) / n
    means = to_host(part.adjoint(part.cast(np.ones((n, 1)))))[:, 0].astype(float) / n
    variances = squares - means**2
    variances[variances <= Small.ROUNDING * squares] = 0.0
    # True and false have no unit, and are not compared with.
    measured = (variances > 0) & (squares * data.unit != means)
    if not measured.any():
        return None
    column = int(np.where(measured, variances, 0.0).argmax())
    share = float(variances[column] / variances.sum())
    is_wide = decides_alone(np.sqrt(variances[measured])).any()
    return (column, share) if is_wide and share > Cautions.RULING else None
