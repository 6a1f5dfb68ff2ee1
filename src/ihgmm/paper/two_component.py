"""Two clusters with opposite centres."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks import warn_zero_rows
from ihgmm._parameters import generator
from ihgmm._warnings import warn
from ihgmm.estimators.base import DistanceClusterer
from ihgmm.matrix import Matrix, Tall, namespace, to_host
from ihgmm.matrix.tall import unit_rows
from ihgmm.numerics.eigen import Solver
from ihgmm.numerics.two_component import two_component_lloyd


class TwoComponentLloyd(DistanceClusterer):
    """Split rows into two clusters whose centres are opposite.

    The method of [1]_: the signs of the top eigenvector of the hollow Gram matrix
    (inner products of rows, zero on the diagonal), then Lloyd's iteration in the form
    ``signs = sign(G @ signs)``, until nothing changes. For two Gaussian clusters with
    centres ``theta`` and ``-theta`` it finds all labels as soon as any method can,
    whatever the number of features. The Gram matrix is never formed.

    Parameters
    ----------
    solver : {"auto", "dense", "lanczos", "block"}, default="auto"
        How the eigenvector is found; see
        :func:`ihgmm.numerics.eigen.leading_eigenpairs`.
    max_iter : int, default=300
        Cap on the iterations after the spectral start.
    tol : float, default=1e-2
        Largest angle, in radians, between the computed and the true eigenvector.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same labels.

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

    See Also
    --------
    PSC : any number of clusters, with any centres.
    IhSC : any number of clusters, with rows that differ in scale.

    Notes
    -----
    The point half-way between the clusters has to be the origin. Where it is not, and
    the clusters are of about one size, subtract the mean of X first; otherwise use
    another method.

    ``predict`` places new rows by the sign of their inner product with ``theta``. On
    the rows of the fit it agrees with ``labels_`` but for rows on the border, since
    there a row has no say in the centre that places it. Zero rows of the fit get the
    label of the larger cluster, with a warning.

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
    >>> X, labels = make_ihgmm(
    ...     100, centers=[theta, -theta], scale_ratio=1, random_state=0
    ... )
    >>> model = TwoComponentLloyd(random_state=0).fit(X)
    >>> exact_recovery(labels, model.labels_)
    True
    """

    def __init__(
        self,
        *,
        solver: Solver = "auto",
        max_iter: int = 300,
        tol: float = 1e-2,
        random_state: Any = None,
    ) -> None:
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, X: Matrix) -> None:
        warn_zero_rows(X.sqnorms)
        found = two_component_lloyd(
            X,
            solver=self.solver,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=generator(self.random_state),
        )
        live = np.count_nonzero(X.sqnorms)
        if live > 1 and not found.labels.any():
            warn(
                f"All {live} rows that are not zero are in one cluster, on one side "
                "of the origin. Subtract the mean of X, or use PSC or IhSC.",
                ConvergenceWarning,
            )
        signs = 1.0 - 2.0 * found.labels
        theta = X.adjoint(signs[:, None] / live).T
        self.labels_ = found.labels
        self.cluster_centers_ = np.vstack([theta, -theta]) * theta.dtype.type(X.unit)
        self.eigenvalues_ = X.restore_squares(np.array([found.eigenvalue]))
        self.n_iter_ = found.n_iter

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster on whose side of the origin each row is.

        Rows at a right angle to the centres, zero rows among them, get label 0.
        """
        return self._labels_of(X)

    def _nearest(self, X: Any) -> Tall:
        center = unit_rows(to_host(self.cluster_centers_)[:1])
        side = (self._check_new(X) @ center.T)[:, 0] < 0
        return namespace(side).astype(side, namespace(side).int64)
