"""How many clusters there are."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._arrays import Array, is_sparse, n_entries, take_rows
from ihgmm._checks.data import check_data
from ihgmm._checks.parameters import check_choice, check_count, generator
from ihgmm._devices import namespace, to_host
from ihgmm._norms import column_sqnorms
from ihgmm._threads import one_thread
from ihgmm.eigen import EigenPairs
from ihgmm.flips import MEDIUM
from ihgmm.gram import GramKind, GramOperator
from ihgmm.selection.found import ClusterCount
from ihgmm.selection.parallel import count_above_noise
from ihgmm.selection.stability import stable_count

__all__ = ["choose", "resolve", "select_n_clusters"]

SMALL = 2**22
"""Entries up to which one thread does best."""

CountGram = Literal["auto", "hollow", "cosine"]
Method = Literal["parallel", "stability"]
COUNT_GRAMS: tuple[CountGram, ...] = ("auto", "hollow", "cosine")
METHODS: tuple[Method, ...] = ("parallel", "stability")

MOST_ENTRIES = 2**22
"""With many more rows than features, rows are drawn down to so many entries."""

FEW_FEATURES = 10
"""Up to so many features, stability looks at all of them."""


def select_n_clusters(
    X: Any,
    *,
    max_clusters: int = 50,
    gram: CountGram = "auto",
    method: Method = "parallel",
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
    method : {"parallel", "stability"}
        ``"parallel"`` counts the directions that stand out from noise. Trust it when
        the patterns are linearly independent, which takes more features than clusters;
        otherwise it is a lower bound. ``"stability"`` goes on to ask how many clusters
        those directions hold: the largest number that halves of the data agree on.
        Trust it when features are few or patterns are mixtures of each other; it wants
        clusters that hardly overlap.
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
    few clusters there, and with very few features. Where rows are many more than
    features and X has more than 4 million entries, rows are drawn at random; clusters
    with few of those rows can be missed. From sparse data the directions are taken out
    at the stored entries.

    Stability is the prediction strength of [2]_, at least 0.9, of k-means on the unit
    rows of the leading eigenvectors. With ten features or fewer, where flips tell
    little, all eigenvectors are used, times the root of their eigenvalue.

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
    method: Method = "parallel",
    n_flips: int | None = None,
) -> ClusterCount:
    """Find the number of clusters in data that has been checked.

    ``X`` and ``sqnorms`` are those of :class:`ihgmm._checks.data.CheckedData`; the
    eigenvalues are in its units. See :func:`select_n_clusters`.
    """
    X, sqnorms = _fewer_rows(X, sqnorms, rng)
    # On small data the threads of BLAS cost more than they bring.
    with one_thread() if n_entries(X) < SMALL else nullcontext():
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
    columns = column_sqnorms(X)
    largest = float(columns.max() / columns.sum()) if columns.any() else 0.0
    kind: GramKind = "cosine" if gram == "cosine" else "hollow"
    G = GramOperator.of(X, kind, sqnorms)
    most = min(max_clusters, n - 1, p)
    if most < 1 or not namespace(sqnorms).any(sqnorms):
        none = np.zeros(0)
        return ClusterCount(
            0, 0, np.zeros(1), 0.0, none, method, kind, n, {}, 0.0, max_clusters, p
        )
    pairs, rank, null, edge = count_above_noise(G, most, n_flips, rng)
    if gram == "auto" and rank < most and n_entries(X) <= MEDIUM:
        # Noisy rows can hide a cluster; among unit rows they are no louder than others.
        G = GramOperator.of(X, "cosine", sqnorms)
        cosine = count_above_noise(G, most, n_flips, rng, known=rank)
        if cosine[1] > rank:
            kind, (pairs, rank, null, edge) = "cosine", cosine
    if p == 1:
        rank = 1  # flips change nothing, and there is one direction to share
    found = ClusterCount(
        rank,
        rank,
        pairs.values,
        edge,
        null,
        method,
        kind,
        n,
        {},
        largest,
        max_clusters,
        p,
    )
    if method == "parallel" or (rank == 0 and p > FEW_FEATURES):
        return found
    embedding = _embedding(pairs, rank, p)[to_host(sqnorms) > 0]
    count, strengths = stable_count(embedding, rank, max_clusters, rng)
    return replace(found, n_clusters=count, strengths=strengths)


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


def resolve(
    n_clusters: int | Literal["auto"],
    X: Array,
    sqnorms: np.ndarray,
    gram: str,
    rng: np.random.Generator,
) -> tuple[int, ClusterCount | None]:
    """Return the number of clusters of an estimator, counted if it is "auto"."""
    if n_clusters != "auto":
        return n_clusters, None
    found = choose(X, sqnorms, "cosine" if gram == "cosine" else "auto", rng)
    if found.n_clusters == 0:
        warnings.warn(
            f"{found.summary} All rows are put in one cluster; give n_clusters if you "
            "know better.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return max(found.n_clusters, 1), found
