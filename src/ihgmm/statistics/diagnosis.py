"""Whether labels can be trusted: what the data say about a clustering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks import (
    check_matrix,
    complete_matrix,
    data_and_labels,
    labelled_rows,
    warn_zero_rows,
)
from ihgmm._display import Result
from ihgmm._parameters import check_choice, check_number, generator
from ihgmm._warnings import ignored
from ihgmm.matrix import HOST, Matrix, Tall, only, to_host
from ihgmm.matrix.ops import Groups, sampled
from ihgmm.matrix.threads import sized_threads
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.eigen import leading_eigenpairs
from ihgmm.numerics.gram import GRAMS, GramKind, GramOperator
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.numerics.missing import MISSING, Missing, learn_filler
from ihgmm.numerics.recipe import DEFAULT, Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.policy import Cautions, Labelling, Trust
from ihgmm.statistics.estimation import Estimates, estimates_of_labels
from ihgmm.statistics.model import default_separation
from ihgmm.statistics.refits import Refits, noise_directions, refit_halves


class Verdict(StrEnum):
    """What to think of labels. A verdict is equal to its sentence, and shown as it."""

    ONE_CLUSTER = "one cluster: nothing to separate"
    WELL_SEPARATED = "well separated"
    SEPARATED = "separated, a few rows uncertain"
    OVERLAPPING = "clusters overlap: expect many wrong labels"
    NO_SEPARATION = "no separation: do not trust these labels"

    def __repr__(self) -> str:
        return repr(self.value)


class Edge(StrEnum):
    """How far the eigenvalues of clusters stand above the next one."""

    NONE = auto()
    SLIGHT = auto()
    CLEAR = auto()


class CautionKind(StrEnum):
    """What to look at; each with the names of its figures."""

    ZERO_ROWS = auto()  # rows
    HUGE_ROWS = auto()  # rows, share
    RULING_COLUMN = auto()  # column, share
    SHIFTED_COLUMN = auto()  # column, share
    FEW_ROWS = auto()  # rows, clusters
    FEWER_DIRECTIONS = auto()  # directions
    OTHER_ORDER = auto()
    OTHER_CLUSTERS = auto()  # agreement, share
    LARGE_CLUSTER = auto()  # share
    SHARED_NOISE = auto()  # directions, features
    PURE_NOISE = auto()
    SMALL_CLUSTER = auto()  # cluster, rows
    VAGUE_CLUSTER = auto()  # cluster, share
    PARALLEL_CLUSTERS = auto()  # clusters, cosine
    DISPUTED_ROWS = auto()  # share
    OTHER_SEEDS = auto()  # share, clusters
    NOT_POSITIVE = auto()  # number
    MORE_CLUSTERS = auto()  # number, share
    EQUAL_SCALES = auto()  # ratio


@dataclass(frozen=True)
class Caution(Result):
    """A reason to look twice, with the figures behind it. ``print`` it for a sentence.

    Examples
    --------
    >>> from ihgmm import diagnose, make_ihgmm
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> X[:, 0] *= 1000
    >>> caution = diagnose(X, kinds).cautions[0]
    >>> caution.kind.name, sorted(caution.figures)
    ('HUGE_ROWS', ['rows', 'share'])
    """

    kind: CautionKind
    figures: dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """What the data say about labels. ``print`` it for a summary in words.

    Attributes
    ----------
    n_samples, n_features, n_clusters : int
        Size of the data and number of clusters.
    classes, sizes : ndarray of shape (n_clusters,)
        The label of each cluster, sorted, and the rows in it.
    expected_error : float
        Share of labels that are expected to be wrong: the mean of ``1 - certainty``.
    uncertain_share, disputed_share : float
        Share of rows with a certainty below ``certain_from``, and of rows that fits to
        other rows would give another label.
    certainty : ndarray of shape (n_samples,)
        Probability that the label of each row is right, given all other rows.
    refit_error, agreement : float
        What the expected error is made from: the probability that fits to halves of
        the rows give to labels other than these, and the share of rows that two such
        fits, of separate halves, label alike. Both are NaN with too few rows for a fit.
    noise_directions : float
        Among how many equal and independent directions noise would be as spread as it
        is within these clusters; ``n_features`` where columns are independent.
    gram, eigenvalues : str and ndarray
        The Gram matrix, its ``n_clusters`` leading eigenvalues and the next, if any.
    eigenvalue_gap : float
        The last of the leading eigenvalues over the next one; ``inf`` if only the
        next one is not positive, 0 if neither is, NaN if there is no next one.
    separation : float
        Smallest distance between two centres as they appear in small rows, over the
        noise level; ``inf`` for one cluster or without noise.
    separation_ratio : float
        The separation over the threshold of the paper's Corollary 1, the constant C
        of :func:`ihgmm.make_ihgmm`.
    balance : float
        The smallest cluster over an even share of the rows, at most 1.
    scale_ratio : float
        Large scales (95% quantile) over small ones (5%) within clusters, less what
        noise adds to their spread.
    cosines : ndarray of shape (n_clusters, n_clusters)
        Cosines of the centres, less what noise takes off them.
    cautions : tuple of Caution
        What to look at, each with its kind and its figures.
    certain_from : float
        Probability from which the label of a row counts as certain: 0.9.
    n_outliers : int
        Rows that are in no cluster and were left out; ``n_samples`` are the others.

    Examples
    --------
    >>> from ihgmm import diagnose, make_ihgmm
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> diagnosis = diagnose(X, kinds)
    >>> diagnosis.verdict, diagnosis.expected_error < 0.01
    ('well separated', True)
    """

    n_samples: int
    n_features: int
    n_clusters: int
    classes: np.ndarray
    sizes: np.ndarray
    expected_error: float
    uncertain_share: float
    disputed_share: float
    certainty: np.ndarray
    refit_error: float
    agreement: float
    noise_directions: float
    gram: str
    eigenvalues: np.ndarray
    eigenvalue_gap: float
    separation: float
    separation_ratio: float
    balance: float
    scale_ratio: float
    cosines: np.ndarray
    cautions: tuple[Caution, ...] = ()
    certain_from: float = Trust.CERTAIN
    n_outliers: int = 0

    @property
    def verdict(self) -> Verdict:
        """The finding: equal to its sentence, such as "well separated"."""
        if self.n_clusters == 1:
            return Verdict.ONE_CLUSTER
        if np.isnan(self.refit_error):
            return Verdict.NO_SEPARATION
        guess = 1 - self.sizes.max() / self.sizes.sum()
        chance = 1 - self.agreement >= Trust.CHANCE * guess
        most = Trust.DOUBT_AT_CHANCE if chance else Trust.DOUBT
        if self.refit_error >= most * guess:
            return Verdict.NO_SEPARATION
        if self.expected_error < Trust.WELL_SEPARATED:
            return Verdict.WELL_SEPARATED
        if self.expected_error < Trust.SEPARATED:
            return Verdict.SEPARATED
        return Verdict.OVERLAPPING

    @property
    def has_few_features(self) -> bool:
        """Whether features are fewer than the paper's Corollary 1 asks for."""
        log_size = np.log(max(self.n_samples, self.n_features))
        return bool(self.n_features < self.n_clusters * log_size**2)

    @property
    def edge(self) -> Edge | None:
        """How far signal stands above noise at the gap; None without a gap."""
        if np.isnan(self.eigenvalue_gap):
            return None
        # Noise is on both sides of 0: an eigenvalue no larger than a negative one is
        # noise.
        last, after = np.abs(self.eigenvalues[self.n_clusters - 1 :])
        if _edge(last, after) is Edge.NONE:
            return Edge.NONE
        return _edge(self.eigenvalue_gap)

    def __repr__(self) -> str:
        return (
            f"Diagnosis({self.verdict!r}, n_clusters={self.n_clusters}, "
            f"expected_error={self.expected_error:.3g}, "
            f"eigenvalue_gap={self.eigenvalue_gap:.3g}, "
            f"separation_ratio={self.separation_ratio:.3g})"
        )


def diagnose(
    X: Any,
    labels: Any,
    *,
    gram: GramKind = "hetero",
    clip: float | None = DEFAULT.clip,
    estimates: Estimates | None = None,
    missing: Missing = "error",
    random_state: Any = 0,
) -> Diagnosis:
    """Judge labels by the data: can they be trusted, and if not, why not.

    Every method returns labels, also for noise. This function estimates how many are
    wrong without knowing the true ones, says how certain each label is, and names
    what in the data may mislead.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data that were clustered; also a torch tensor or another library's array,
        which stays on its device.
    labels : array-like of shape (n_samples,), or fitted estimator
        The cluster of each row: labels of any kind, from any method. A fitted model
        stands for its ``labels_``, and may also come first: ``diagnose(model, X)``. It
        fills missing cells, and whitens, as in its fit.
        Rows with -1, beside clusters numbered from 0, are outliers: they are counted
        and left out, and their certainty is NaN.
    gram : {"hetero", "hollow", "full", "cosine"}, default="hetero"
        The Gram matrix whose eigenvalues are looked at; give that of the fit.
    clip : float or None, default=1.5
        Where that matrix clips the lengths of rows; give that of the fit.
    estimates : Estimates, optional
        What :func:`ihgmm.estimate_parameters` returned for these labels, if it was
        asked already.
    missing : {"error", "fit"}, default="error"
        What to do with missing cells: refuse them, or fill them in as
        :class:`ihgmm.IhSC` does.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the halves that are fitted, and of the solver's start.

    Returns
    -------
    Diagnosis
        Figures, a verdict and cautions; ``print`` shows them in words.

    Notes
    -----
    Halves of the rows, at most 2,000 rows, are clustered anew with the defaults of
    :class:`ihgmm.IhSC`, and each fit judges the labels of rows that it did not see.
    Real data have structure inside clusters, and halves may agree on labels that are
    not the ones you look for. So the more the noise inside clusters is shared between
    columns, the less such an agreement counts. :doc:`/statistics` has the formula, and
    a table of expected and true errors on simulated and real data.

    The first verdicts stand for an expected error below 1%, below 15% and above; the
    last is for labels that a guess would match nearly as well. No figure can show that
    clear clusters are the classes you have in mind. The separation ratio is context and
    has no part in the verdict. Zero rows only count as rows of their cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import IhSC, diagnose, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> labels = IhSC(3, random_state=0).fit_predict(X)
    >>> diagnose(X, labels).verdict
    'well separated'
    >>> X, _ = make_ihgmm(300, 100, 3, separation=0.01, random_state=0)
    >>> labels = np.arange(300) % 3
    >>> diagnose(X, labels).verdict
    'no separation: do not trust these labels'
    """
    check_choice("gram", gram, GRAMS)
    check_number("clip", clip, above=0, words=(None,))
    rng = generator(random_state)
    check_choice("missing", missing, MISSING)
    model = X if hasattr(X, "placement_") else labels
    X, labels = data_and_labels(X, labels, whitened=True)
    data = check_matrix(X, missing=missing)
    if missing == "fit":
        data = learn_filler(data)(data)
    (n, p), ops, xp = data.shape, data.ops, data.ops.xp
    classes, codes, outliers = labelled_rows(labels, data)
    if outliers is not None:
        rows = np.flatnonzero(~to_host(outliers))
        inside = classes[to_host(ops.few_rows(codes, rows))]
        diagnosis = diagnose(
            only(data, rows), inside, gram=gram, clip=clip, random_state=rng
        )
        unknown = xp.full_like(ops.widen(outliers), np.nan)
        certainty = ops.place(diagnosis.certainty, ~outliers, unknown)
        diagnosis = replace(diagnosis, certainty=certainty, n_outliers=n - len(rows))
        return _with_seeds(diagnosis, model, data)
    live, k = data.sqnorms > 0, len(classes)
    n_live = int(ops.number(xp.count_nonzero(live)))
    if n_live == 0:
        warn_zero_rows(data)
    groups = ops.groups(codes, k)
    sizes = groups.sizes

    def mean(values: Tall) -> float:
        """Return the mean over rows that are not zero."""
        some = xp.where(live, ops.widen(values), xp.zeros_like(data.sqnorms))
        return ops.number(xp.sum(some)) / n_live if n_live else np.nan

    values = _eigenvalues(data, k, gram, clip, rng)
    shown = values[: k + 1]
    refits = refit_halves(data, codes, k, rng) if k > 1 else None
    directions = noise_directions(data, codes, k, rng)
    refit_error, certainty = np.nan, groups.spread(sizes / n)
    if refits is not None:
        refit_error = 1 - mean(refits.support)
        # Of the defaults of a fit, whatever matrix is to be shown.
        usual = values
        if gram != "hetero" or clip != DEFAULT.clip:
            usual = _eigenvalues(data, k, "hetero", DEFAULT.clip, rng)
        # Without noise beside the clusters there is no gap to speak of.
        gap = np.clip(np.nan_to_num(_gap(usual, k), nan=1.0), 1.0, Trust.LARGEST_GAP)
        evidence = directions * k**2 * gap
        certainty = _calibrated(data, refits, live, refit_error, k, evidence)
    separation, cosines, scale_ratio = _geometry(data, groups, estimates)
    theory = default_separation(n, p, k, 1.0)
    diagnosis = Diagnosis(
        n_samples=n,
        n_features=p,
        n_clusters=k,
        classes=classes,
        sizes=sizes,
        expected_error=1 - mean(certainty),
        uncertain_share=mean(certainty < Trust.CERTAIN),
        disputed_share=mean(refits.disputed) if refits else 0.0,
        certainty=certainty,
        refit_error=refit_error,
        agreement=refits.agreement if refits else np.nan,
        noise_directions=directions,
        gram=gram,
        eigenvalues=shown if gram == "cosine" else data.restore_squares(shown),
        eigenvalue_gap=_gap(values, k),
        separation=separation,
        separation_ratio=separation / theory if theory > 0 else np.inf,
        balance=float(k * sizes.min() / n),
        scale_ratio=scale_ratio,
        cosines=cosines,
    )
    cautions = tuple(_cautions(diagnosis, data, codes, values, refits, rng))
    return _with_seeds(replace(diagnosis, cautions=cautions), model, data)


def diagnose_fit(
    model: Any,
    X: Any,
    labels: Any,
    rows: np.ndarray | None = None,
    *,
    of_fit: bool = True,
    estimates: Estimates | None = None,
) -> Diagnosis:
    """Diagnose labels of a model on what it made them from.

    Missing cells are filled, and rows and columns whitened, as in the fit. Of huge rows
    nothing is said if the fit shortened them. ``rows`` are those that have ``labels``,
    all by default; ``estimates`` are of rows as they are, and serve where nothing was
    whitened.
    """
    gram: Any = getattr(model, "gram", "hollow")
    clip = None
    if hasattr(model, "recipe"):
        recipe = Recipe.of(model.recipe)
        gram = recipe.gram
        # A mixture only starts from rows that were shortened.
        clip = recipe.clip if hasattr(model, "placement_") else None
    elif type(model).__name__ == "SphericalKMeans":
        gram = "cosine"
    data = complete_matrix(X, model, of_fit=of_fit, whitened=True)
    if rows is not None and len(rows) < data.shape[0]:
        data = only(data, rows)
    if getattr(model, "whiten", None) is not None:
        estimates = None
    diagnosis = diagnose(data, labels, gram=gram, clip=clip, estimates=estimates)
    diagnosis = _with_seeds(diagnosis, model if of_fit else None, data)
    if clip is None:
        return diagnosis
    # The fit has shortened huge rows: there is nothing to do about them.
    cautions = (c for c in diagnosis.cautions if c.kind is not CautionKind.HUGE_ROWS)
    return replace(diagnosis, cautions=tuple(cautions))


def _with_seeds(diagnosis: Diagnosis, model: Any, data: Matrix) -> Diagnosis:
    """Add how many rows two other seeds label differently, if that is more than a few.

    Only models that start from eigenvectors are asked, by fits to the same rows: all,
    or as many as labels are learnt from.
    """
    k, n = diagnosis.n_clusters, data.shape[0]
    if not hasattr(model, "placement_") or k < 2 or k > n:
        return diagnosis
    if n > Labelling.ROWS:
        data = data.take(sampled(n, Labelling.ROWS, np.random.default_rng(0)))
    recipe, signed = Recipe.of(model.recipe), getattr(model, "signed", False)
    with ignored(ConvergenceWarning):
        one, other = (
            spectral_clustering(
                data, k, recipe, signed=signed, rng=np.random.default_rng(seed)
            ).labels
            for seed in (1, 2)
        )
    share = misclassification_rate(to_host(one), to_host(other))
    if share <= Cautions.DISPUTED:
        return diagnosis
    caution = Caution(CautionKind.OTHER_SEEDS, {"share": share, "clusters": k})
    return replace(diagnosis, cautions=(*diagnosis.cautions, caution))


def _calibrated(
    data: Matrix,
    refits: Refits,
    live: Tall,
    refit_error: float,
    k: int,
    evidence: float,
) -> Tall:
    """Return the probability that labels are right, from what fits to halves say.

    Log-odds of an error are those of the fits times a trust between 0 and 1, and a
    little more. Fits can be trusted where noise is spread over many directions, where
    the clusters' own directions stand out from all others, and where halves agree on
    many clusters, not on two.

    Rows of which all fits are sure differ by their position: those between two centres,
    such as sums of two kinds, are the less sure ones.
    """
    ops, xp, support = data.ops, data.ops.xp, refits.support
    n_live = int(ops.number(xp.count_nonzero(live)))
    trust = float(expit(Trust.SLOPE * np.log(evidence) - Trust.OFFSET))
    # Without any doubt among n rows, there may still be a quarter of a row.
    doubt = (refit_error * n_live + 0.25) / (n_live + 0.5)
    error = expit(trust * logit(doubt) + Trust.SHIFT)
    # Rows differ by less than the fits say; the mean is settled.
    surest, unsure = Trust.SUREST, Trust.CERTAIN
    sure = ops.clip(support, 1 - surest, surest)
    ranked = ops.clip((support - unsure) / (surest - unsure), 0.0, 1.0)
    apart = Trust.POSITION * refits.position * ranked
    scores = Trust.ROWS * trust * (xp.log(sure / (1 - sure)) + apart)
    step = max(1, support.shape[0] // Trust.MEAN_ROWS)
    some = to_host(scores[::step])[to_host(live[::step])]
    if len(some) == 0 or np.isnan(error):  # no row to judge by
        certainty = xp.full_like(support, 1 / k)
    else:
        shift = brentq(lambda shift: expit(-some - shift).mean() - error, -50.0, 50.0)
        certainty = 1 / (1 + xp.exp(-scores - float(shift)))
        certainty = xp.where(live, certainty, xp.full_like(certainty, 1 / k))
    return certainty if refits.kept is None else certainty * refits.kept


def _eigenvalues(
    data: Matrix, k: int, gram: GramKind, clip: float | None, rng: np.random.Generator
) -> np.ndarray:
    """Return the k leading eigenvalues and two more, or all there are."""
    G = GramOperator.of(data, gram, clip=clip)
    # Without clusters there is no gap to converge to, and that is the finding.
    with sized_threads(data.n_entries):
        # A diagonal adds about k / n to an eigenvalue, as a share: not worth its cost
        # where that is half a percent.
        if gram == "hetero" and data.shape[0] < 200 * k:
            # At the rank and to the accuracy of a fit: a diagonal imputed at a larger
            # rank takes up noise, and its eigenvalues are not those of the fit.
            G = impute_diagonal(G, k, tol=1e-2, quiet=True, rng=rng).gram
        # This accuracy of eigenvectors puts eigenvalues of noise, which are close to
        # each other, within a few percent, and others to many digits. Those still far
        # off after 12 products are tiny beside the others, which says enough.
        count = min(k + 2, G.shape[0])
        pairs = leading_eigenpairs(
            G, count, tol=5.0, max_products=12, quiet=True, rng=rng
        )
    return np.asarray(pairs.values, dtype=np.float64)


def _gap(values: np.ndarray, k: int) -> float:
    """Return the k-th eigenvalue over the next; NaN if there is no next one."""
    if len(values) <= k:
        return np.nan
    last, following = values[k - 1 : k + 1]
    if last <= 0:
        return 0.0
    return float(last / following) if following > 0 else np.inf


def _edge(first: float, second: float = 1.0) -> Edge:
    """Judge the drop from an eigenvalue to the next, or a ratio of the two."""
    if first < Cautions.NO_EDGE * second:
        return Edge.NONE
    return Edge.SLIGHT if first < Cautions.CLEAR_EDGE * second else Edge.CLEAR


def _geometry(
    data: Matrix, rows: Groups, fit: Estimates | None
) -> tuple[float, np.ndarray, float]:
    """Return the separation, cosines of centres and the ratio of scales, without noise.

    Inner products of two centres carry no noise on average, for they share no rows.
    Squared lengths do. What the noise levels leave of the squared row norms is that
    of the signal, ``scale**2`` times the squared length.
    """
    p, k, ops = data.shape[1], len(rows.sizes), data.ops
    if fit is None or len(fit.classes) != k:
        fit = estimates_of_labels(data, rows.labels, np.arange(k))
    scales = ops.widen(data.to_device(fit.scales))
    variances = (ops.widen(data.to_device(fit.noise_levels)) / data.unit) ** 2
    centers = to_host(fit.centers).astype(np.float64) / data.unit
    inner = centers @ centers.T
    signal = rows.sums(data.sqnorms - max(p - 1, 1) * variances)
    squares = HOST.ratio(signal, rows.sums(scales**2))
    squares = np.clip(squares, 0.0, np.diag(inner))
    excess = np.diag(inner) - squares
    np.fill_diagonal(inner, squares)

    def over(values: np.ndarray, by: np.ndarray) -> np.ndarray:
        """Divide; where by is 0, return ``inf`` unless the value is 0 too."""
        return np.where(values > 0, HOST.ratio(values, by, np.inf), 0.0)

    # The variance of a scale's error: noise of its row and of its centre.
    noise = rows.sums(variances) / rows.sizes
    error = over(noise * (1 + over(excess, squares)), squares)
    # A sample's variance is off by about this much; no spread is made out of that.
    error = error * (1 + 2 / np.sqrt(rows.sizes))
    spread = rows.sums((scales - 1) ** 2) / rows.sizes
    kept = np.sqrt(np.maximum(1 - over(error, spread), 0.0))
    live = data.sqnorms > 0
    scales = 1 + rows.spread(kept) * (scales - 1)
    # Quantiles, so that no single row decides. The smallest scale is where the line
    # through two of them comes to 0%.
    low, quarter, high = ops.quantiles(scales, live, [0.05, 0.25, 0.95])
    least = max(low - (quarter - low) * 0.05 / (0.25 - 0.05), low / 2)
    lengths = np.sqrt(np.outer(squares, squares))
    cosines = np.clip(HOST.ratio(inner, lengths), -1.0, 1.0)
    known = live & (rows.spread(rows.sizes) > 1)
    (typical,) = np.nan_to_num(ops.quantiles(variances, known, [0.5]))
    distance = np.inf  # between the closest centres, in noise levels
    if k > 1:
        apart = np.add.outer(squares, squares) - 2 * inner
        smallest = np.sqrt(max(apart[np.triu_indices(k, 1)].min(), 0.0))
        distance = float(over(smallest, np.sqrt(typical)))
    separation = least * distance if least > 0 else 0.0  # also without any noise
    if data.row_scale is not None:  # rows were made alike before they were judged
        scales = ops.ratio(scales, ops.xp.abs(ops.widen(data.row_scale)))
        scales = ops.ratio(scales, rows.spread(rows.sums(scales) / rows.sizes))
        low, high = ops.quantiles(scales, live, [0.05, 0.95])
    return separation, cosines, float(high / low) if low > 0 else np.inf


def _cautions(
    diagnosis: Diagnosis,
    data: Matrix,
    codes: Tall,
    values: np.ndarray,
    refits: Refits | None,
    rng: np.random.Generator,
) -> Iterator[Caution]:
    """Yield what to look at; ``values`` are the clusters' eigenvalues and two more."""
    k, ops, live = diagnosis.n_clusters, data.ops, data.sqnorms > 0
    n_live = int(ops.number(ops.xp.count_nonzero(live)))
    zero = data.shape[0] - n_live
    if zero:
        yield Caution(CautionKind.ZERO_ROWS, {"rows": zero})
    sizes = list(_sizes(data, rng))
    yield from sizes
    hopeless = diagnosis.verdict is Verdict.NO_SEPARATION
    if k > 1 and refits is None:
        yield Caution(CautionKind.FEW_ROWS, {"rows": n_live, "clusters": k})
    mean = ops.number(ops.xp.mean(data.sqnorms))
    directions = _directions(diagnosis, mean, values)
    fewer = Caution(CautionKind.FEWER_DIRECTIONS, {"directions": directions})
    # There are no more directions than features: a drop after the last of these is none
    # of clusters.
    gap = diagnosis.eigenvalue_gap if k < diagnosis.n_features else np.nan
    beyond = _gap(values, k + 1) if k + 1 < diagnosis.n_features else np.nan
    share = 1 / gap if gap > 0 else np.nan
    more = Caution(CautionKind.MORE_CLUSTERS, {"number": k, "share": share})
    # The second drop is where clusters end, unless the first is wide.
    second = beyond > Cautions.SECOND_DROP and gap < Cautions.WIDE_DROP
    level = _edge(gap) is Edge.NONE
    kept = 1 - diagnosis.disputed_share
    others = refits is not None and refits.agreement > kept + Cautions.OTHERS_AGREE
    guess = 1 - diagnosis.sizes.max() / diagnosis.sizes.sum()
    # Chance alone is as good; unless rows or columns led astray, rows were mixed up.
    if others and diagnosis.refit_error >= Cautions.MIXED_UP * guess and not sizes:
        yield Caution(CautionKind.OTHER_ORDER, {})
    elif others:
        figures = {"agreement": diagnosis.agreement, "share": kept}
        yield Caution(CautionKind.OTHER_CLUSTERS, figures)
    elif hopeless and directions:
        yield fewer
    elif hopeless and second and gap > 0:
        # Fits to halves merge other clusters, where there are more of them.
        yield more
    elif hopeless and refits is not None:
        yield Caution(CautionKind.PURE_NOISE, {})
    if refits is not None and diagnosis.verdict is not Verdict.WELL_SEPARATED:
        if k > 2 and refits.largest >= Cautions.LARGE_CLUSTER:
            yield Caution(CautionKind.LARGE_CLUSTER, {"share": refits.largest})
        most = min(diagnosis.n_features, diagnosis.n_samples)
        if diagnosis.noise_directions < most / Cautions.SHARED_NOISE:
            figures = {
                "directions": diagnosis.noise_directions,
                "features": diagnosis.n_features,
            }
            yield Caution(CautionKind.SHARED_NOISE, figures)
    smallest = int(diagnosis.sizes.argmin())
    rows = int(diagnosis.sizes[smallest])
    if k > 1 and (diagnosis.balance < Cautions.BALANCE or rows == 1):
        cluster = diagnosis.classes[smallest]
        yield Caution(CautionKind.SMALL_CLUSTER, {"cluster": cluster, "rows": rows})
    if hopeless:
        return
    if k > 1:
        yield from _overlaps(diagnosis, ops.groups(codes, k, ops.widen(live)))
        if not others and diagnosis.disputed_share > Cautions.DISPUTED:
            share = diagnosis.disputed_share
            yield Caution(CautionKind.DISPUTED_ROWS, {"share": share})
    if directions:
        yield fewer
    elif values[k - 1] <= 0:
        yield Caution(CautionKind.NOT_POSITIVE, {"number": k})
    # Two reasons of three: eigenvalues are level here, they drop after the next, and
    # these clusters do not overlap, as more would do the more.
    elif sum([diagnosis.verdict is not Verdict.OVERLAPPING, level, second]) > 1:
        yield more
    if diagnosis.scale_ratio < Cautions.EQUAL_SCALES:
        yield Caution(CautionKind.EQUAL_SCALES, {"ratio": diagnosis.scale_ratio})


def _sizes(data: Matrix, rng: np.random.Generator) -> Iterator[Caution]:
    """Yield cautions about rows and columns that hold most of the sum of squares."""
    (n, p), sqnorms, ops, xp = data.shape, data.sqnorms, data.ops, data.ops.xp
    live = sqnorms > 0
    n_live = int(ops.number(xp.count_nonzero(live)))
    (typical,) = ops.quantiles(sqnorms, live, [0.5])
    huge = sqnorms > Cautions.HUGE**2 * float(typical)
    theirs = ops.number(xp.sum(xp.where(huge, sqnorms, xp.zeros_like(sqnorms))))
    share = theirs / ops.number(xp.sum(sqnorms)) if n_live else 0.0
    if n >= Cautions.LEAST_ROWS and share >= Cautions.MOST:
        figures = {"rows": int(ops.number(xp.count_nonzero(huge))), "share": share}
        yield Caution(CautionKind.HUGE_ROWS, figures)
    if p == 1 or n_live < Cautions.LEAST_ROWS:
        return
    part = data.take(ops.draw_rows(live & ~huge, Cautions.COLUMN_ROWS, rng))
    squares = part.column_sqnorms()
    column = int(squares.argmax())
    share = float(squares[column] / squares.sum())
    if share < Cautions.MOST:
        return
    ones = part.cast(np.ones((part.shape[0], 1)))
    mean = float(to_host(part.adjoint(ones))[column, 0]) / part.shape[0]
    offset = mean**2 * part.shape[0] > Cautions.OFFSET * squares[column]
    kind = CautionKind.SHIFTED_COLUMN if offset else CautionKind.RULING_COLUMN
    name = data.names[column] if data.names else column
    yield Caution(kind, {"column": name, "share": share})


def _overlaps(diagnosis: Diagnosis, rows: Groups) -> Iterator[Caution]:
    """Yield cautions about clusters that are hardly apart; zero rows do not count."""
    classes, k = diagnosis.classes, diagnosis.n_clusters
    sizes = rows.sums(rows.weights)
    doubt = rows.sums(rows.counted(1 - diagnosis.certainty)) / np.maximum(sizes, 1)
    # A cluster of one row has nothing to be compared with; that is said already.
    doubt[sizes < 2] = 0.0
    worst = int(doubt.argmax())
    if doubt[worst] >= Cautions.VAGUE:
        figures = {"cluster": classes[worst], "share": float(doubt[worst])}
        yield Caution(CautionKind.VAGUE_CLUSTER, figures)
    pairs = combinations(range(k), 2)
    cosine, a, b = max((diagnosis.cosines[a, b], a, b) for a, b in pairs)
    if cosine >= Cautions.PARALLEL:
        figures = {"clusters": (classes[a], classes[b]), "cosine": float(cosine)}
        yield Caution(CautionKind.PARALLEL_CLUSTERS, figures)


def _directions(diagnosis: Diagnosis, sqnorm: float, values: np.ndarray) -> int:
    """Return how many eigenvalues, fewer than clusters, are above noise, or 0.

    Noise is level: from the drop to the one after the last cluster eigenvalues are
    alike. A zero diagonal moves all of them down, so they are first moved up again;
    else those near 0 would show drops that mean nothing.
    """
    k = diagnosis.n_clusters
    if len(values) <= k:
        return 0
    diagonal = {"full": 0.0, "cosine": 1.0}.get(diagnosis.gram, sqnorm)
    values = np.maximum(values + diagonal, 0.0)
    noise = values[k]
    if values[k - 1] > Cautions.LEVEL * noise:
        return 0
    # There are no more directions than features, with signal or without.
    for count in range(min(k, diagnosis.n_features) - 1, 0, -1):
        if values[count - 1] > Cautions.DROP * values[count]:
            return count if values[count] < Cautions.LEVEL_AFTER * noise else 0
    return 0
