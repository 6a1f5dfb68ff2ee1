"""Labels by the graph of nearest neighbours, for clusters of any shape."""

import numpy as np

from ihgmm.matrix import HOST
from ihgmm.numerics.kmeans import kmeans_rule
from ihgmm.numerics.krylov import leading_pairs
from ihgmm.numerics.rules import NeighborRule
from ihgmm.policy import Labelling


def neighbor_rule(rows: np.ndarray, k: int) -> NeighborRule:
    """Cut the graph of nearest neighbours into k clusters; neighbours give labels.

    The cut is by the leading eigenvectors of ``D^-1/2 A D^-1/2``, where A counts the
    links of two rows and D has its row sums.
    """
    from sklearn.neighbors import kneighbors_graph  # few fits need it

    n = len(rows)
    n_neighbors = min(Labelling.NEIGHBORS, n - 1)
    if n <= k or n_neighbors < 1:  # too few for a graph to be cut
        return NeighborRule(rows=rows, labels=np.arange(n) % k, n_neighbors=1)

    links = kneighbors_graph(rows, n_neighbors).toarray()  # (n, n)
    links += links.T
    root_degrees = np.sqrt(links.sum(axis=1))[:, None]

    # Solved, since pieces of a graph share an eigenvalue: iterations would miss some.
    _, eigenvectors = leading_pairs(links / (root_degrees * root_degrees.T), k)
    vectors = HOST.unit_rows(eigenvectors)

    cut = kmeans_rule(vectors, k, np.ones(n)).rule
    labels = np.asarray(cut(HOST, vectors))
    return NeighborRule(rows=rows, labels=labels, n_neighbors=n_neighbors)
