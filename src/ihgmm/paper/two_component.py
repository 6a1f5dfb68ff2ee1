"""Two clusters with opposite centres."""

from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks import check_matrix, warn_zero_rows
from ihgmm._progress import Steps
from ihgmm._warnings import ClusterCountWarning, warn
from ihgmm.estimators.base import atomic
from ihgmm.estimators.clusterer import DistanceClusterer, number_by_size
from ihgmm.matrix import HOST, Tall, to_host
from ihgmm.numerics.eigen import GramOperator, leading_eigenpairs


class TwoComponentLloyd(DistanceClusterer):
    """Split rows into two clusters whose centres are opposite.

    The method of [1]_: the signs of the top eigenvector of the hollow Gram matrix, then
    Lloyd's iteration ``signs = sign(G @ signs)``, until nothing changes. For two
    Gaussian clusters it finds all labels as soon as any method can.

    Parameters
    ----------
    max_iter : int, default=300
        Cap on the iterations after the spectral start.
    tol : float, default=1e-2
        Largest angle, in radians, between the computed and the true eigenvector.
    verbose
        As for :class:`~ihgmm.IhSC`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row: 0 for the larger one, 1 for the other.
    cluster_centers_ : ndarray of shape (2, n_features)
        ``theta`` and ``-theta``, theta being the mean of the rows after those of
        cluster 1 are multiplied by -1; zero rows are not counted.
    eigenvalues_ : ndarray of shape (1,)
        The largest eigenvalue of the hollow Gram matrix.
    n_iter_ : int
        Iterations after the spectral start; the last one changes nothing.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X had names.

    Notes
    -----
    The point half-way between the clusters has to be the origin: subtract the mean of X
    first where it is not. ``predict`` places rows by the sign of their inner product
    with ``theta``; rows on the border may differ from ``labels_``.

    References
    ----------
    .. [1] M. Ndaoud (2022), Sharp optimal recovery in the two component Gaussian
       mixture model. Annals of Statistics 50.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import TwoComponentLloyd, make_ihgmm
    >>> from ihgmm.metrics import exact_recovery
    >>> theta = np.full(400, 0.4)
    >>> X, y = make_ihgmm(100, centers=[theta, -theta], scale_ratio=1, random_state=0)
    >>> model = TwoComponentLloyd().fit(X)
    >>> exact_recovery(y, model.labels_)
    True
    """

    def __init__(
        self, *, max_iter: int = 300, tol: float = 1e-2, verbose: bool | int = False
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to data, array-like or sparse; ``y`` is ignored."""
        X = check_matrix(X, self).to_memory()
        warn_zero_rows(X)

        G = GramOperator.of(X)
        leading = leading_eigenpairs(G, 1, tol=self.tol)
        plus = G.A.dtype.type(1)
        start = np.where(leading.vectors[:, 0] < 0, -plus, plus)

        with Steps(self.verbose).step("iterations") as say:
            signs, self.n_iter_ = _iterate(G, start, self.max_iter)
            say(f"{self.n_iter_} iterations")

        codes = (signs < 0).astype(np.intp)
        labels, _ = number_by_size(X, codes, 2)
        self.labels_ = labels.astype(np.int32)
        n_nonzero = np.count_nonzero(X.sqnorms)
        if n_nonzero > 1 and not self.labels_.any():
            warn(
                f"All {n_nonzero} rows that are not zero are in one cluster, on one "
                "side of the origin. Subtract the mean of X, or use IhSC.",
                ClusterCountWarning,
            )

        signs_by_size = 1.0 - 2.0 * self.labels_[:, None]
        theta = X.adjoint(signs_by_size / n_nonzero).T
        self.cluster_centers_ = np.vstack([theta, -theta]) * theta.dtype.type(X.unit)
        self.eigenvalues_ = X.restore_squares(np.array([float(leading.values[0])]))
        return self

    def _place_rows(self, X: Any) -> Tall:
        center = HOST.unit_rows(to_host(self.cluster_centers_)[:1])
        return (self._check_new(X) @ center.T)[:, 0] < 0


def _iterate(
    G: GramOperator, signs: np.ndarray, max_iter: int
) -> tuple[np.ndarray, int]:
    """Update all signs at once until they stay; return them and the iterations.

    Not a plain loop to a fixed point: signs may go to and fro between two states.
    """
    previous = signs
    reason = f"Rows still change their cluster after {max_iter=} iterations"
    for n_iter in range(1, max_iter + 1):
        product = G @ signs
        # A row that the others do not pull either way stays where it is.
        updated = np.where(product == 0, signs, np.sign(product))
        if np.array_equal(updated, signs):
            return signs, n_iter

        if n_iter > 1 and np.array_equal(updated, previous):
            n_moving = int((updated != signs).sum())
            reason = (
                f"{n_moving} of {len(signs)} rows alternate between the two clusters"
            )
            signs = max(previous, signs, key=lambda s: float(s @ (G @ s)))
            break

        previous = signs
        signs = updated

    warn(
        f"{reason}. The clusters are hardly separated, or their centres are not "
        "opposite: subtract the mean of X, or use IhSC.",
        ConvergenceWarning,
    )
    return signs, n_iter
