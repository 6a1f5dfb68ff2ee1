"""How many clusters there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks import check_matrix, counted_rows, hint_at_counts
from ihgmm._display import Result, made
from ihgmm._parameters import check_choice, check_count, generator
from ihgmm._warnings import warn
from ihgmm.matrix import Matrix, on_few_rows, only, to_host
from ihgmm.matrix.threads import sized_threads
from ihgmm.numerics.eigen import leading_eigenpairs
from ihgmm.numerics.flips import default_flips, is_kept, null_eigenvalues, residual_of
from ihgmm.numerics.gram import GramKind, GramOperator
from ihgmm.numerics.krylov import EigenPairs
from ihgmm.numerics.missing import MISSING, Missing, learn_filler
from ihgmm.numerics.recipe import DEFAULT
from ihgmm.numerics.whitening import NOISES, Noise, learn_whitener
from ihgmm.policy import Counting
from ihgmm.statistics.evidence import (
    Answer,
    Confidence,
    CountEvidence,
    Evidence,
    Side,
    gather_evidence,
    judge,
    stable_count,
)

CountGram = Literal["auto", "hollow", "cosine"]
Method = Literal["auto", "parallel", "stability"]
COUNT_GRAMS: tuple[CountGram, ...] = ("auto", "hollow", "cosine")
METHODS: tuple[Method, ...] = ("auto", "parallel", "stability")


@dataclass(frozen=True, eq=False, repr=False)
class ClusterCount(Result):
    """How many clusters were found, and on what evidence.

    Attributes
    ----------
    n_clusters : int
        The number of clusters; 1 when all rows share one direction or show no groups,
        0 when nothing stands out from noise. It is the first of ``plausible``, unless
        a column dominates.
    plausible : tuple of CountEvidence
        At most three numbers, the best first, each with what speaks for it. A method
        that looks from one side names one.
    confidence : Confidence
        How far the sides agree: ``HIGH``, ``LOW`` or ``NONE``, where it is not known.
    rank : int
        Eigenvalues above the edge: the number of linearly independent directions.
    eigenvalues : ndarray
        Leading eigenvalues of the Gram matrix, decreasing. Those below the edge are
        noise, and known roughly only.
    edge : float
        What an eigenvalue must exceed to count, once those above it are taken out.
        Like the eigenvalues it is in squared units of X, or without units for cosines.
        Where no float can hold squares of X, they are those of X over a power of two.
    null : ndarray
        The largest eigenvalue of each sign-flipped copy behind the edge.
    method, gram : str
        The method used, "combined", "parallel" or "stability", and the Gram matrix
        whose eigenvalues are shown, "hollow" or "cosine".
    n_rows, n_features : int
        Rows that were looked at, fewer than in X when there are very many; features.
    has_few_features : bool
        Whether features are so few, 20 at most, that random signs leave much of a
        pattern and can hide others.
    max_clusters : int
        The largest number that was looked for.
    largest_column, largest_index, largest_mean : float, int, float
        Share of the squared length of X in one column, which column that is, counted
        from 0, and the share of its squared length that is its mean, near 1 for an
        offset. Signs on a column that dominates leave nothing to compare with.
    largest_name : str or None
        The name of that column, if the columns of X have names.
    strengths : dict of int to float
        Prediction strength of each number of clusters tried; empty for "parallel",
        and where there is one direction only or no number could be tried.
    evidence : tuple of CountEvidence
        What was measured for each number tried; for "combined" only.
    required_strength : float
        Prediction strength from which a number of clusters counts as stable.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> count = select_n_clusters(X, random_state=0)
    >>> count.n_clusters, count.rank, count.confidence.value
    (3, 3, 'high')
    """

    n_clusters: int
    rank: int
    eigenvalues: np.ndarray
    edge: float
    null: np.ndarray
    method: str
    gram: str
    n_rows: int
    n_features: int
    has_few_features: bool
    max_clusters: int
    largest_column: float
    largest_index: int
    largest_mean: float
    strengths: dict[int, float] = field(default_factory=dict)
    required_strength: float = Counting.STABLE
    plausible: tuple[CountEvidence, ...] = ()
    confidence: Confidence = Confidence.LOW
    evidence: tuple[CountEvidence, ...] = ()
    largest_name: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether sides agree so far that the number can be relied on."""
        return self.confidence is Confidence.HIGH

    @property
    def is_doubtful(self) -> bool:
        """Whether what was asked does not settle the number.

        Of several sides, that they do not agree; of halves, that they agree on none.
        """
        if self.method == "stability":
            return bool(self.strengths) and not self.is_stable
        return self.method == "combined" and not self.is_known

    @property
    def is_capped(self) -> bool:
        """Whether the search stopped at ``max_clusters``; there may be more."""
        return self.n_clusters == self.max_clusters

    @property
    def is_stable(self) -> bool:
        """Whether halves of the data agree on the number."""
        return self.strengths.get(self.n_clusters, 0.0) >= self.required_strength

    @property
    def is_dominated(self) -> bool:
        """Whether one column holds so much of X that signs show nothing."""
        # More than half, and of very few columns one holds much in any case.
        return self.largest_column > 0.5 + 0.5 / self.n_features

    @property
    def is_offset(self) -> bool:
        """Whether that column dominates still when divided by its deviation."""
        # It then has length 1 / (1 - share of its mean) or more, each other one has 1.
        return (1 - self.largest_mean) * max(self.n_features - 1, 2) < 1

    def __repr__(self) -> str:
        return (
            f"ClusterCount(n_clusters={self.n_clusters}, rank={self.rank}, "
            f"edge={self.edge:.4g}, method={self.method!r}, gram={self.gram!r}, "
            f"plausible={[number.n_clusters for number in self.plausible]}, "
            f"confidence={self.confidence.value!r})"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the eigenvalues and the band of the null; return the matplotlib axes.

        A new figure, made where no axes are given, shows beside them what speaks for
        each number: :func:`ihgmm.plotting.plot_evidence`.
        """
        return made("plot", self, ax=ax)


def select_n_clusters(
    X: Any,
    *,
    max_clusters: int = 50,
    gram: CountGram = "auto",
    method: Method = "auto",
    whiten: Noise | Literal["auto"] | None = None,
    missing: Missing = "error",
    sample_weight: Any = None,
    random_state: Any = None,
) -> ClusterCount:
    """Find the number of clusters.

    No single rule finds the number of clusters in real data. So several criteria are
    weighed, and the result names up to three plausible numbers and says how far to
    rely on the first.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; also a torch tensor or another library's array, on its device.
    max_clusters : int
        The largest number to look for.
    gram : {"auto", "hollow", "cosine"}
        The similarity of rows, as in :class:`ihgmm.IhSC`. ``"auto"`` counts in the
        hollow Gram matrix and then, in up to 8 million entries, looks whether the
        cosines show more.
    method : {"auto", "parallel", "stability"}
        ``"auto"`` weighs several criteria, see the notes, and names the plausible
        numbers. ``"parallel"`` counts the directions that stand out from noise: the
        quickest, and right when the noise of entries is independent and the patterns
        are linearly independent. ``"stability"`` asks how many clusters those
        directions hold: the largest number, from the rank upwards, that halves of the
        data agree on.
    whiten : {"auto", "counts", "learned"} or None
        How noise is made alike in rows and columns first, as in :class:`ihgmm.IhSC`;
        ``"counts"`` for counts.
    missing : {"error", "fit"}
        What to do with missing cells: refuse them, or fill them in as
        :class:`ihgmm.IhSC` does.
    sample_weight : array-like of shape (n_samples,), optional
        How much each row counts. Rows are then drawn by their weights, as many as
        these are worth: (sum of weights)² over the sum of squared weights.
    random_state : int, RandomState, Generator or None
        Seed; the same seed gives the same answer.

    Returns
    -------
    ClusterCount
        ``n_clusters`` and the evidence; ``plot()`` draws it.

    Notes
    -----
    Random signs on the entries of X destroy a low-rank signal and leave symmetric
    independent noise as it was. Eigenvalues of the Gram matrix of X above those of
    flipped copies are signal [1]_. The directions found are removed from X before it is
    flipped again, so that a strong signal does not hide a small cluster.

    Directions are not yet clusters. ``method="auto"`` therefore judges numbers from 2
    upwards by three more criteria, in the two spaces in which :class:`ihgmm.IhSC`
    clusters: how much better k-means fits the directions of rows than those of noise
    with the same spread (a gap statistic [3]_ on the sphere); the prediction strength
    of halves of the rows [2]_; and the likelihood of a mixture with one shared
    covariance, minus twice the penalty of BIC. Their support is added up. On real data
    they seldom all agree: ``plausible`` has up to three numbers, and ``confidence``
    says how far to rely on the first.

    A cluster is invisible to every spectral method if its signal is lost in the noise,
    or if it has only one row. If there are many more rows than features and X has more
    than 4 million entries, rows are drawn at random, and clusters with few of those
    rows can be missed. :doc:`/statistics` has the details.

    References
    ----------
    .. [1] D. Hong, Y. Sheng and E. Dobriban, Selecting the number of components in PCA
       via random signflips.
    .. [2] R. Tibshirani and G. Walther (2005), Cluster validation by prediction
       strength. Journal of Computational and Graphical Statistics 14(3), 511-528.
    .. [3] R. Tibshirani, G. Walther and T. Hastie (2001), Estimating the number of
       clusters in a data set via the gap statistic. Journal of the Royal Statistical
       Society B 63(2), 411-423.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, labels = make_ihgmm(300, 100, 4, random_state=0)
    >>> found = select_n_clusters(X, random_state=0)
    >>> found.n_clusters, found.confidence.value
    (4, 'high')
    """
    most = check_count("max_clusters", max_clusters)
    check_choice("gram", gram, COUNT_GRAMS)
    check_choice("method", method, METHODS)
    check_choice("missing", missing, MISSING)
    check_choice("whiten", whiten, ("auto", *NOISES, None))
    rng = generator(random_state)
    checked = check_matrix(X, missing=missing)
    data, _ = counted_rows(checked, sample_weight)
    if missing == "fit":
        data = learn_filler(data)(data)
    if whiten is None:
        hint_at_counts(data)
    else:
        data = learn_whitener(data, whiten, rng)(data)
    options = {"names": checked.names, "max_clusters": most, "method": method}
    return count_clusters(data, gram, rng, **options)


def resolve(
    X: Matrix,
    gram: str,
    rng: np.random.Generator,
    *,
    names: Sequence[str] | None = None,
    refined: bool = False,
    signed: bool = False,
) -> ClusterCount:
    """Count the clusters of an estimator that was asked to, with warnings.

    ``names`` are those of the features, if they have some. ``refined`` means that its
    labels do not rest on the eigenvectors of ``gram`` alone. With ``signed``, opposite
    rows are of one cluster: directions are counted, since all other evidence is for
    clusters that lie on one side.
    """
    method: Method = "parallel" if signed else "auto"
    kind: CountGram = "cosine" if gram == "cosine" else "auto"
    count = count_clusters(X, kind, rng, names=names, method=method)
    # Shortened rows and a filled-in diagonal, as by default, hide nothing.
    hidden = count.gram == "cosine" and gram in ("hollow", "full") and not refined
    for text in made("doubts", count, gram if hidden else None):
        warn(text, ConvergenceWarning)
    return count


def count_clusters(
    X: Matrix,
    gram: CountGram,
    rng: np.random.Generator,
    *,
    names: Sequence[str] | None = None,
    max_clusters: int = 50,
    method: Method = "auto",
    max_entries: int = Counting.ENTRIES,
) -> ClusterCount:
    """Find the number of clusters in data that has been checked.

    Where rows are many more than features, so many are drawn that about ``max_entries``
    are left. See :func:`select_n_clusters`.
    """
    if X.weights is not None:
        # As many rows as their weights are worth; a row is drawn once at most.
        shares = to_host(X.weights) / to_host(X.weights).sum()
        size = max(1, int(1 / np.square(shares).sum()))
        drawn = np.sort(rng.choice(len(shares), size, replace=False, p=shares))
        X = only(X, drawn).weighted(None)
    work = partial(_count, rng, gram, max_clusters, method)
    rows = _rows_to_count(X, max_entries, rng)
    if rows is None:
        count, _ = work(X)
    else:
        count, used = on_few_rows(X, rows, work)
        # Another process may have it.
        rng.bit_generator.state = used.bit_generator.state
    if names is None:
        return count
    return replace(count, largest_name=str(names[count.largest_index]))


def _rows_to_count(
    X: Matrix, max_entries: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Draw rows where there are very many and many more than features; else None."""
    n, p = X.shape
    rows = int(max(max_entries * (n / max(X.n_entries, 1)), 4 * p))
    if n > 1.5 * rows:
        return np.sort(rng.choice(n, rows, replace=False, shuffle=False))
    # So little is gone through many times: not on many workers.
    small = X.distributed and X.n_entries <= 1.5 * max_entries
    return np.arange(n) if small else None


def _count(
    rng: np.random.Generator,
    gram: CountGram,
    max_clusters: int,
    method: Method,
    X: Matrix,
) -> tuple[ClusterCount, np.random.Generator]:
    """Count the clusters of all rows; return the generator too."""
    n, p = X.shape
    most = min(max_clusters, n - 1, p)
    few = p <= Counting.FEW_FEATURES
    kind: GramKind = "cosine" if gram == "cosine" else "hollow"
    with sized_threads(X.n_entries):
        facts = {
            "method": "combined" if method == "auto" else method,
            "n_rows": n,
            "n_features": p,
            "has_few_features": few,
            "max_clusters": max_clusters,
            **_largest_column(X),
        }
        if most < 1 or not X.ops.number(X.ops.xp.any(X.sqnorms > 0)):
            nothing = (0, 0, np.zeros(1), 0.0, np.zeros(0))
            return ClusterCount(*nothing, gram=kind, **facts), rng
        G = GramOperator.of(X, kind)
        least = p + 1 if few else 11  # stability looks at all of few features
        spectrum = count_above_noise(G, most, rng, least=least)
        # A second look at large data would cost too much.
        if gram == "auto" and spectrum.rank < most and is_kept(X):
            # Noisy rows can hide a cluster; as unit rows they are not louder.
            G, known = GramOperator.of(X, "cosine"), spectrum.rank
            cosine = count_above_noise(G, most, rng, least=least, known=known)
            if cosine.rank > known:
                kind, spectrum = "cosine", cosine
        pairs, rank, null, edge = spectrum
        if p == 1:
            rank = 1  # flips change nothing, and there is one direction to share
        strengths: dict[int, float] = {}
        if method == "auto":
            evidence = _evidence(X, kind, rank, max_clusters, rng)
            answer = judge(evidence, rank, few_features=few)
            strengths = {e.n_clusters: e.strength for e in answer.evidence}
        elif method == "stability" and (rank > 0 or few):
            vectors = to_host(pairs.vectors[:, : p if few else rank])
            if few:  # flips show little here: all directions, by what they weigh
                vectors = vectors * np.sqrt(np.maximum(pairs.values[:p], 0))
            vectors = vectors[to_host(X.sqnorms) > 0]
            stable, strengths = stable_count(vectors, rank, max_clusters, rng)
            answer = Answer.from_one_side(stable, Side.HALVES)
        else:
            answer = Answer.from_one_side(rank, Side.DIRECTIONS)
    values, squares = pairs.values, X.restore_squares(pairs.values)
    own_edge = float(X.restore_squares(np.asarray(edge)))
    # Unless these are no squares of X, or squares that no float can hold.
    if kind != "cosine" and own_edge != 0 and np.isfinite(squares).all():
        values, edge, null = squares, own_edge, X.restore_squares(null)
    count = ClusterCount(
        answer.n_clusters,
        rank,
        values,
        edge,
        null,
        gram=kind,
        strengths=strengths,
        plausible=answer.plausible,
        confidence=answer.confidence,
        evidence=answer.evidence,
        **facts,
    )
    if method == "auto" and rank == 0 and count.is_dominated:
        # Rows differ in one column and in nothing else that can be seen.
        count = replace(count, n_clusters=0, confidence=Confidence.NONE)
    return count, rng


def _evidence(
    X: Matrix, kind: GramKind, rank: int, max_clusters: int, rng: np.random.Generator
) -> Evidence | None:
    """Look at few rows from all sides, at so many draws of them as there are rows for.

    One draw of 20,000 rows says 5 clusters and the next one 6, where both are
    plausible; the mean of three seldom does, and it shows that they disagree.
    """
    live = np.flatnonzero(to_host(X.sqnorms) > 0)
    size = int(np.clip(Counting.ROWS_A_DIRECTION * rank, *Counting.DRAW_ROWS))
    n_draws = min(Counting.DRAWS, max(1, len(live) // size))
    if len(live) > size:
        live = np.sort(rng.choice(live, n_draws * size, replace=False))
    drawn = X if len(live) == X.shape[0] else X.by_rows().take(live)
    parts = [drawn]
    if n_draws > 1:
        order = rng.permutation(len(live)).reshape(n_draws, size)
        parts = [drawn.take(np.sort(rows)) for rows in order]
    # Rows as the default of IhSC takes them, unless cosines show more.
    clip = None if kind == "cosine" else DEFAULT.clip
    grams = [GramOperator.of(part, kind, clip=clip) for part in parts]
    return gather_evidence(grams, rank, max_clusters, rng)


def _largest_column(X: Matrix) -> dict[str, Any]:
    """Return the share of the longest column, which it is, and its mean's share."""
    n = X.shape[0]
    columns = X.column_sqnorms()
    index = int(columns.argmax())
    share = float(columns[index] / columns.sum()) if columns.any() else 0.0
    mean = 0.0
    if share > 0.5:  # else it does not dominate, and this reads all data
        total = to_host(X.adjoint(np.ones((n, 1))))[index, 0]
        mean = min(float(total) ** 2 / (n * float(columns[index])), 1.0)
    return {"largest_column": share, "largest_index": index, "largest_mean": mean}


class Spectrum(NamedTuple):
    """Eigenpairs, how many are above the edge, the null eigenvalues and the edge."""

    pairs: EigenPairs
    rank: int
    null: np.ndarray
    edge: float


def count_above_noise(
    G: GramOperator,
    most: int,
    rng: np.random.Generator,
    *,
    least: int = 11,
    known: int | None = None,
) -> Spectrum:
    """Count eigenvalues above the edge of flipped data, taking strong ones out first.

    ``least`` eigenpairs are returned, if there are. Where another Gram matrix has shown
    directions already, ``known`` says how many: the count starts from there, and ends
    at the first flip that reaches the next.
    """
    margin = Counting.MARGIN if known is None else Counting.SECOND_MARGIN
    rank = start = known or 0
    pairs = _eigenpairs(G, min(max(least, start + 6), most + 1, G.shape[0]), rng)
    while True:
        above = rank
        residual = residual_of(G.A, pairs.vectors[:, :rank])
        # A first rough look is enough when components stand out clearly.
        for rough in (True, False) if rank == start else (False,):
            flips = 1 if rough else default_flips(G.A)
            null = np.array(null_eigenvalues(residual, flips, rng, rough=rough))
            edge = _edge(G, null, margin * (Counting.ROUGH if rough else 1))
            rounding = Counting.ROUNDING * float(np.finfo(G.dtype).eps)
            edge = max(edge, rounding * pairs.values[0])
            # If all eigenpairs are above the edge, look at more.
            while pairs.values[-1] > edge and len(pairs.values) <= most:
                pairs = _eigenpairs(G, min(2 * len(pairs.values) + 5, most + 1), rng)
            above = min(int((pairs.values > edge).sum()), most)
            # Noise hardly ever exceeds the edge if a copy of it is larger still.
            if above > rank or (known is not None and pairs.values[rank] <= null.max()):
                break
        if above <= rank or above == most:
            break
        rank = above
    # What new flips do not confirm does not count.
    return Spectrum(pairs, max(above, start), null, edge)


def _eigenpairs(G: GramOperator, k: int, rng: np.random.Generator) -> EigenPairs:
    # Noise has no gap to resolve, and a percent of its eigenvalues is enough: that is
    # what residuals of five percent give.
    return leading_eigenpairs(G, k, tol=5.0, signal_only=True, quiet=True, rng=rng)


def _edge(G: GramOperator, null: np.ndarray, margin: float) -> float:
    """Put the edge some standard deviations above the mean of the null eigenvalues.

    Few flips say little about the deviation; what the Tracy-Widom law says of the top
    eigenvalue of white noise counts for a few. Rows of unequal norm count for fewer.
    """
    prior, tracy_widom_deviation = Counting.PRIOR_FLIPS, 1.268
    p = G.A.shape[1]
    sqnorms = to_host(G.A.sqnorms)
    n = sqnorms.sum() ** 2 / np.square(sqnorms).sum()
    root = np.sqrt(n) + np.sqrt(p)
    scale = root * (1 / np.sqrt(n) + 1 / np.sqrt(p)) ** (1 / 3)
    expected = tracy_widom_deviation * scale / (root**2 - p) * null.mean()
    squares = prior * expected**2 + ((null - null.mean()) ** 2).sum()
    deviation = np.sqrt(squares / (prior + len(null) - 1))
    return float(null.mean() + margin * deviation * np.sqrt(1 + 1 / len(null)))
