"""Projected spectral clustering, the method for rows of equal scale."""

from typing import Any

from ihgmm.estimators.ihsc import IhSC
from ihgmm.numerics.missing import Missing


class PSC(IhSC):
    """Cluster rows by k-means after projecting them on their leading directions.

    Projected spectral clustering [1]_, the method of [2]_, projects on leading right
    singular vectors of X, without centring. It is made for classical mixtures, in which
    rows of one cluster have one scale, and is the paper's main competitor. It is
    :class:`~ihgmm.IhSC` with ``recipe="psc"``, and has its attributes and methods.
    ``IhSC(recipe=Recipe.of("psc", tol=1e-6))`` changes a setting.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters and of directions.
    missing, verbose, random_state
        As for :class:`~ihgmm.IhSC`.

    References
    ----------
    .. [1] A. Y. Zhang and H. H. Zhou (2024), Leave-one-out singular subspace
       perturbation analysis for spectral clustering. Annals of Statistics 52.
    .. [2] M. Löffler, A. Y. Zhang and H. H. Zhou (2021), Optimality of spectral
       clustering in the Gaussian mixture model. Annals of Statistics 49.

    Examples
    --------
    >>> from ihgmm import PSC, make_ihgmm
    >>> from ihgmm.metrics import exact_recovery
    >>> X, labels = make_ihgmm(300, 100, scale_ratio=1, random_state=0)
    >>> model = PSC(n_clusters=4, random_state=0).fit(X)
    >>> exact_recovery(labels, model.labels_)
    True
    """

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        missing: Missing = "error",
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        given: Any = {"verbose": verbose, "random_state": random_state}
        super().__init__(n_clusters, recipe="psc", missing=missing, **given)

    @property
    def partial_fit(self) -> Any:
        """Not to be had: a model of this recipe does not grow."""
        raise AttributeError("PSC cannot go on with more rows; fit it to all rows.")
