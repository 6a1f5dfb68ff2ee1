"""How many clusters there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ihgmm._arrays import Array, is_sparse, n_entries, take_rows
from ihgmm._checks.data import check_data
from ihgmm._checks.parameters import check_choice, check_count, generator
from ihgmm._devices import namespace, to_host
from ihgmm._norms import column_sqnorms
from ihgmm._products import transposed_matmul
from ihgmm._threads import sized_threads
from ihgmm.eigen import EigenPairs
from ihgmm.flips import MEDIUM
from ihgmm.gram import GramKind, GramOperator
from ihgmm.selection.found import ClusterCount
from ihgmm.selection.parallel import count_above_noise
from ihgmm.selection.stability import FEW_FEATURES, stable_count
from ihgmm.selection.words import DOMINANT

__all__ = ["choose", "select_n_clusters"]

CountGram = Literal["auto", "hollow", "cosine"]
Method = Literal["auto", "parallel", "stability"]
COUNT_GRAMS: tuple[CountGram, ...] = ("auto", "hollow", "cosine")
METHODS: tuple[Method, ...] = ("auto", "parallel", "stability")

MOST_ENTRIES = 2**22
"""With many more rows than features, rows are drawn down to so many entries."""


def select_n_clusters(
    X: Any,
    *,
    max_clusters: int = 50,
    gram: CountGram = "auto",
    method: Method = "auto",
    n_flips: int | None = None,
    random_state: Any = None,
) -> ClusterCount:
    """Find the number of clusters.

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
        ``"parallel"`` counts the directions that stand out from noise. Trust it when
        the patterns are linearly independent and features are twice as many as
        clusters, or more; otherwise it is a lower bound. ``"stability"`` goes on to
        ask how many clusters those directions hold: the largest number that halves of
        the data agree on. Trust it when features are few or patterns are mixtures of
        each other; it wants clusters that hardly overlap. ``"auto"`` is stability in
        20 features or fewer, and parallel in more.
    n_flips : int, optional
        Sign-flipped copies to compare with. Default: 8, fewer on large data, where
        they cost more and vary less.
    random_state : int, RandomState, Generator or None
        Seed; the same seed gives the same answer.

    Returns
    -------
    ClusterCount
        ``n_clusters`` and the evidence; ``plot()`` draws it.

    Notes
    -----
    Random signs on the entries of X destroy a low-rank signal and leave symmetric
    independent noise as it was, with every row's own level. Eigenvalues of the Gram
    matrix of X above those of flipped copies are signal [1]_. The edge is the mean of
    the copies' *largest* eigenvalues plus 2.5 standard deviations, or 3 for the second
    look of ``gram="auto"``. What a strong signal leaves in the copies could hide a
    small cluster; so the directions found are taken out of X before it is flipped
    again, until no more are found. What the new flips do not confirm does not count.

    A cluster is invisible, to this and to any other spectral method, when its signal is
    lost in the noise, or when it has one row only. A pattern that lies in a single
    feature cannot be told from noise in that feature, so ``"parallel"`` finds too
    few clusters there, and with few features. Where rows are many more than
    features and X has more than 4 million entries, rows are drawn at random; clusters
    with few of those rows can be missed. From sparse data the directions are taken out
    at the stored entries.

    Stability is the prediction strength of [2]_, at least 0.9, of k-means on the unit
    rows of the leading eigenvectors. With 20 features or fewer, where flips tell
    little, all eigenvectors are used, times the root of their eigenvalue. Numbers from
    the rank (2 at least) upwards are tried, until eight in a row beyond the best one,
    and beyond the number of eigenvectors, are not stable; ``max_clusters`` and a
    quarter of the rows are the most. Two opposite sides count only if an eigenvalue
    stands out: noise that is larger in one feature has them too. Where no number is
    stable, the count is the rank, and ``summary`` says so.

    References
    ----------
    .. [1] D. Hong, Y. Sheng and E. Dobriban, Selecting the number of components in PCA
       via random signflips.
    .. [2] R. Tibshirani and G. Walther (2005), Cluster validation by prediction
       strength. Journal of Computational and Graphical Statistics 14(3), 511-528.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, labels = make_ihgmm(300, 100, 4, random_state=0)
    >>> found = select_n_clusters(X, random_state=0)
    >>> found.n_clusters
    4
    """
    most = check_count("max_clusters", max_clusters)
    check_choice("gram", gram, COUNT_GRAMS)
    check_choice("method", method, METHODS)
    if n_flips is not None:
        check_count("n_flips", n_flips)
    rng = generator(random_state)
    data = check_data(X, blocks=True, devices=True)
    found = choose(
        data.X,
        data.sqnorms,
        gram,
        rng,
        max_clusters=most,
        method=method,
        n_flips=n_flips,
    )
    edge = float(data.restore_squares(np.asarray(found.edge)))
    values = data.restore_squares(found.eigenvalues)
    if found.gram == "cosine" or edge == 0 or not np.isfinite(values).all():
        return found  # no squares, or squares that no float can hold
    null = data.restore_squares(found.null)
    return replace(found, eigenvalues=values, null=null, edge=edge)


def choose(
    X: Array,
    sqnorms: np.ndarray,
    gram: CountGram,
    rng: np.random.Generator,
    *,
    max_clusters: int = 50,
    method: Method = "auto",
    n_flips: int | None = None,
) -> ClusterCount:
    """Find the number of clusters in data that has been checked.

    ``X`` and ``sqnorms`` are those of :class:`ihgmm._checks.data.CheckedData`; the
    eigenvalues are in its units. See :func:`select_n_clusters`.
    """
    X, sqnorms = _fewer_rows(X, sqnorms, rng)
    with sized_threads(X):
        return _choose(X, sqnorms, gram, rng, max_clusters, method, n_flips)


def _choose(
    X: Array,
    sqnorms: np.ndarray,
    gram: CountGram,
    rng: np.random.Generator,
    max_clusters: int,
    method: Method,
    n_flips: int | None,
) -> ClusterCount:
    n, p = X.shape
    if method == "auto":
        method = "stability" if p <= FEW_FEATURES else "parallel"
    share, index, mean = _largest_column(X)
    kind: GramKind = "cosine" if gram == "cosine" else "hollow"
    found = ClusterCount(
        n_clusters=0,
        rank=0,
        eigenvalues=np.zeros(1),
        edge=0.0,
        null=np.zeros(0),
        method=method,
        gram=kind,
        n_rows=n,
        strengths={},
        largest_column=share,
        largest_index=index,
        largest_mean=mean,
        max_clusters=max_clusters,
        n_features=p,
    )
    most = min(max_clusters, n - 1, p)
    if most < 1 or not namespace(sqnorms).any(sqnorms):
        return found
    G = GramOperator.of(X, kind, sqnorms)
    pairs, rank, null, edge = count_above_noise(G, most, n_flips, rng)
    if gram == "auto" and rank < most and n_entries(X) <= MEDIUM:
        # Noisy rows can hide a cluster; among unit rows they are no louder than others.
        G = GramOperator.of(X, "cosine", sqnorms)
        cosine = count_above_noise(G, most, n_flips, rng, known=rank)
        if cosine[1] > rank:
            kind, (pairs, rank, null, edge) = "cosine", cosine
    if p == 1:
        rank = 1  # flips change nothing, and there is one direction to share
    count = rank
    strengths: dict[int, float] = {}
    if method == "stability" and (rank > 0 or p <= FEW_FEATURES):
        embedding = _embedding(pairs, rank, p)[to_host(sqnorms) > 0]
        count, strengths = stable_count(embedding, rank, max_clusters, rng)
    return replace(
        found,
        n_clusters=count,
        rank=rank,
        eigenvalues=pairs.values,
        edge=edge,
        null=null,
        gram=kind,
        strengths=strengths,
    )


def _largest_column(X: Array) -> tuple[float, int, float]:
    """Return the share of the longest column, which it is, and its mean's share."""
    n = X.shape[0]
    columns = column_sqnorms(X)
    index = int(columns.argmax())
    share = float(columns[index] / columns.sum()) if columns.any() else 0.0
    mean = 0.0
    if share > DOMINANT:  # else nobody asks, and this reads all data
        total = to_host(transposed_matmul(X, np.ones((n, 1))))[index, 0]
        mean = min(float(total) ** 2 / (n * float(columns[index])), 1.0)
    return share, index, mean


def _embedding(pairs: EigenPairs, rank: int, p: int) -> np.ndarray:
    """Return the rows whose directions are clustered for stability."""
    if p > FEW_FEATURES:
        return to_host(pairs.vectors[:, :rank])
    # Flips tell little about so few features: all of them, by what they weigh.
    weights = np.sqrt(np.maximum(pairs.values[:p], 0))
    return np.asarray(to_host(pairs.vectors[:, :p]) * weights)


def _fewer_rows(
    X: Array, sqnorms: np.ndarray, rng: np.random.Generator
) -> tuple[Array, np.ndarray]:
    """Draw rows where there are very many and many more than features."""
    n, p = X.shape
    rows = int(max(MOST_ENTRIES * (n / max(n_entries(X), 1)), 4 * p))
    if n <= 1.5 * rows:
        return X, sqnorms
    keep = np.sort(rng.choice(n, rows, replace=False, shuffle=False))
    X = take_rows(X.tocsr() if is_sparse(X) else X, keep)
    return X, take_rows(sqnorms, keep)
