"""Two clusters with opposite centres: iterated signs of the hollow Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import warn
from ihgmm.matrix.tall import number_by_size
from ihgmm.numerics.eigen import Solver, leading_eigenpairs
from ihgmm.numerics.gram import GramOperator


@dataclass(frozen=True)
class TwoComponents:
    """The cluster of each row, and how it was found.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.numerics.two_component import two_component_lloyd
    >>> found = two_component_lloyd(np.array([[2.0, 0.1], [-2.0, 0.2], [3.0, 0.0]]))
    >>> found.labels, found.n_iter
    (array([0, 1, 0]), 1)
    """

    # 0 for the larger cluster, in a tie for that of the first row, and 1 for the other.
    # Zero rows are not counted and have label 0.
    labels: np.ndarray
    eigenvalue: float  # the largest of the hollow Gram matrix
    n_iter: int  # products of the hollow Gram matrix with signs


def two_component_lloyd(
    X: Any,
    *,
    solver: Solver = "auto",
    max_iter: int = 300,
    tol: float = 1e-2,
    rng: np.random.Generator | None = None,
) -> TwoComponents:
    """Split rows by sign: a spectral start, then ``signs = sign(G @ signs)``.

    The parameters are those of :class:`~ihgmm.TwoComponentLloyd`; X has been checked
    and is not all zero.

    Notes
    -----
    G is ``X @ X.T`` with a zero diagonal. The sign of ``(G @ signs)[i]`` is that of the
    inner product of row i with the centre estimated from all *other* rows. All signs
    are updated at once; ``signs_before @ G @ signs`` never decreases, so the iteration
    ends in a fixed point or alternates between two states. Then a warning says so, and
    the state that fits better is returned.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0, 0.1], [-2.0, 0.2], [1.0, -0.3], [3.0, 0.0]])
    >>> two_component_lloyd(X).labels
    array([0, 1, 0, 0])
    """
    G = GramOperator.of(X, "hollow")
    top = leading_eigenpairs(G, 1, solver=solver, tol=tol, rng=rng)
    one = G.dtype.type(1)
    signs = np.where(top.vectors[:, 0] < 0, -one, one)
    signs, n_iter = _iterate(G, signs, max_iter)
    live = G.A.sqnorms > 0
    labels = np.zeros(len(signs), dtype=np.intp)
    labels[live] = number_by_size((signs[live] < 0).astype(np.intp), 2)
    return TwoComponents(labels, float(top.values[0]), n_iter)


def _iterate(
    G: GramOperator, signs: np.ndarray, max_iter: int
) -> tuple[np.ndarray, int]:
    """Update all signs at once until they stay; return them and the iterations."""
    before = signs
    for n_iter in range(1, max_iter + 1):
        product = G @ signs
        # A row that the others do not pull either way stays where it is.
        updated = np.where(product == 0, signs, np.sign(product))
        if np.array_equal(updated, signs):
            return signs, n_iter
        if n_iter > 1 and np.array_equal(updated, before):
            moving = int((updated != signs).sum())
            _warn(f"{moving} of {len(signs)} rows alternate between the two clusters")
            fit = [float(s @ (G @ s)) for s in (before, signs)]
            return (before if fit[0] >= fit[1] else signs), n_iter
        before, signs = signs, updated
    _warn(f"Rows still change their cluster after max_iter={max_iter} iterations")
    return signs, max_iter


def _warn(what: str) -> None:
    warn(
        f"{what}. The clusters are hardly separated, or their centres are not "
        "opposite: subtract the mean of X, or use PSC or IhSC.",
        ConvergenceWarning,
    )
