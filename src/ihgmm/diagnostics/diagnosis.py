"""Whether labels can be trusted: what the data say about a fit, in plain words."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks.data import CheckedData, check_data
from ihgmm._checks.parameters import check_choice, generator
from ihgmm._checks.rows import check_labels, warn_zero_rows
from ihgmm._devices import moved, to_host
from ihgmm._threads import sized_threads
from ihgmm.diagnostics.cautions import cautions
from ihgmm.diagnostics.geometry import center_figures
from ihgmm.diagnostics.verdict import SURE, Diagnosis, Verdict, eigenvalue_gap
from ihgmm.eigen import leading_eigenpairs
from ihgmm.em import evaluate_mixture
from ihgmm.gram import GRAMS, GramKind, GramOperator
from ihgmm.hetero import impute_diagonal
from ihgmm.memberships import indicators
from ihgmm.theory.conditions import CorollaryConditions, corollary_conditions

__all__ = ["Diagnosis", "Verdict", "diagnose"]

NOISE_TOL = 5.0
"""Accuracy of the eigenvectors: so little puts eigenvalues of noise, which are close to
each other, within a few percent, and others to many digits."""

MOST_PRODUCTS = 12
"""Products that eigenvalues are worth: those still far off then are tiny beside the
others, which says enough."""


def diagnose(
    X: Any, labels: Any, *, gram: GramKind = "hollow", random_state: Any = 0
) -> Diagnosis:
    """Judge labels by the data: can they be trusted, and if not, why not.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data that was clustered; also a torch tensor or another library's array,
        which stays on its device.
    labels : array-like of shape (n_samples,)
        The cluster of each row: labels of any kind, from any method, such as
        ``labels_`` of :class:`ihgmm.IhSC`.
    gram : {"hollow", "full", "cosine", "hetero"}, default="hollow"
        The Gram matrix whose eigenvalues are looked at; give that of the fit.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the eigenvalue solver's start. Nothing else is random.

    Returns
    -------
    Diagnosis
        Figures, a verdict and warnings; ``print`` shows them in words.

    Notes
    -----
    The verdict rests on the *expected error*. Each row is compared with the centres
    that the other rows give (:func:`ihgmm.em.evaluate_mixture`); its certainty is the
    probability of its own label, and the mean of ``1 - certainty`` estimates the share
    of wrong labels. On data from the model it is rather too large than too small. Over
    the true share it is 1.1 to 3.2 (10% and 90% quantiles; median 1.8) where that is
    0.5% to 2%, 0.8 to 2.0 (median 1.3) at 2% to 5%, and about 0.9 to 1.7 up to 25%.
    Beyond that it is too small, since labels found in noise fit that noise, but not
    small: noise alone is told from weak clusters, now and then not with fewer than a
    hundred rows. The words stand for a share of wrong labels below 0.5%, 5%, 25% and
    above.

    All this trusts the model: noise of the same size and independent in all features.
    Real data have noise that features share. Then evidence is counted more than once,
    certainties are too high and the expected error too low, sometimes by far. A bad
    verdict is to be believed, a good one is not proof.

    The separation is a distance of centres in units of noise. Scales and centres are
    known up to a factor; the theory wants the smallest scale to be about 1, so a centre
    is multiplied by the smallest scale, as the 5% and 25% quantiles of all scales
    suggest it. What noise adds to the squared length of centres and to the spread of
    scales is taken off. At the separation ratio 1 the paper's sufficient condition
    begins to hold, up to unknown constants. Rows larger than the smallest are easier:
    with scales that differ a lot, most labels are right far below 1. So it is context
    and has no part in the verdict. On simulated data it is within 20% of the constant C
    where scales differ little, within a factor of 2 where they differ 20-fold.

    Zero rows show no pattern. They count in the sizes only.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.diagnostics.diagnosis import diagnose
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> labels = IhSC(3, random_state=0).fit_predict(X)
    >>> diagnose(X, labels).verdict
    'well separated'
    >>> X, _ = make_ihgmm(300, 100, 3, separation=0.01, random_state=0)
    >>> labels = IhSC(3, random_state=0).fit_predict(X)
    >>> diagnose(X, labels).verdict
    'no separation: do not trust these labels'
    """
    check_choice("gram", gram, GRAMS)
    rng = generator(random_state)
    data = check_data(X, blocks=True, devices=True)
    sqnorms = to_host(data.sqnorms)
    n, p = data.X.shape
    array = check_labels("labels", labels)
    if len(array) != n:
        raise ValueError(
            f"labels has {len(array)} entries and X has {n} rows; give one label for "
            "each row of X."
        )
    if not sqnorms.any():
        warn_zero_rows(sqnorms)
    classes, codes = np.unique(array, return_inverse=True)
    codes = np.ravel(codes)
    k = len(classes)
    sizes = np.bincount(codes)
    live = sqnorms > 0
    values = _eigenvalues(data, k, gram, rng)
    shown = values[: k + 1]
    if gram != "cosine":
        shown = data.restore_squares(shown)
    memberships = evaluate_mixture(
        data.X, indicators(codes, k), sqnorms, "individual"
    ).memberships
    certainty = memberships[np.arange(n), codes]
    centers = center_figures(replace(data, sqnorms=sqnorms), codes, k)
    conditions = _conditions(n, p, k, centers.separation)
    disputed = memberships.argmax(axis=1) != codes
    found = Diagnosis(
        n_samples=n,
        n_features=p,
        n_clusters=k,
        classes=classes,
        sizes=sizes,
        expected_error=float(1 - certainty[live].mean()),
        uncertain_share=float((certainty[live] < SURE).mean()),
        disputed_share=float(disputed[live].mean()),
        certainty=certainty,
        gram=gram,
        eigenvalues=shown,
        eigenvalue_gap=eigenvalue_gap(values, k),
        separation=centers.separation,
        separation_ratio=conditions.separation if conditions else np.inf,
        balance=float(k * sizes.min() / n),
        scale_ratio=centers.scale_ratio,
        cosines=centers.cosines,
        conditions=conditions,
        warnings=(),
    )
    said = cautions(found, codes, sqnorms, values)
    return replace(found, certainty=moved(certainty, data.X), warnings=said)


def _eigenvalues(
    data: CheckedData, k: int, gram: GramKind, rng: np.random.Generator
) -> np.ndarray:
    """Return the k leading eigenvalues and two more, or all there are."""
    G = GramOperator.of(data.X, gram, data.sqnorms)
    count = min(k + 2, G.shape[0])
    with sized_threads(data.X), warnings.catch_warnings():
        # Without clusters there is no gap to converge to, and that is the finding.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if gram == "hetero":
            pairs = impute_diagonal(G, count, tol=NOISE_TOL, rng=rng).pairs
        else:
            pairs = leading_eigenpairs(
                G, count, tol=NOISE_TOL, max_products=MOST_PRODUCTS, rng=rng
            )
    return np.asarray(pairs.values, dtype=np.float64)


def _conditions(
    n: int, p: int, k: int, separation: float
) -> CorollaryConditions | None:
    if max(n, p) < 2:
        return None
    finite = np.isfinite(separation)
    found = corollary_conditions(n, p, k, separation if finite else 0.0)
    return found if finite else replace(found, separation=float("inf"))
