"""The settings of a spectral method as one value."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from ihgmm._parameters import check_choice, check_count, check_flag, check_number
from ihgmm.numerics.embedding import SPACES, Space
from ihgmm.numerics.krylov import ORDERS, Order
from ihgmm.numerics.labels import ASSIGNMENTS, Assignment


@dataclass(frozen=True)
class Recipe:
    """The settings of a spectral method: from inner products of rows to labels.

    Estimators take a recipe by its name, ``IhSC(4, recipe="paper")``, or one that you
    make. ``"default"`` has the defaults below; ``"paper"`` is Algorithm 1 of the paper;
    ``"psc"`` is projected spectral clustering, for rows of equal scale.

    Parameters
    ----------
    rows : {"unit", "given"}, default="unit"
        Whether rows are brought to unit length first, or taken as they are.
    diagonal : {"full", "zero"}, default="full"
        Whether the Gram matrix has inner products of rows with themselves on its
        diagonal, or zeros, as in the paper, since noise adds up there. On unit rows
        these are all 1, and zeros would not change the eigenvectors.
    order : {"algebraic", "magnitude"}, default="algebraic"
        Which eigenvalues lead where the diagonal is zero: the largest, or those of
        largest absolute value. The signal has positive ones.
    n_components : int, "auto" or None, default="auto"
        How many eigenvectors are used to compare rows. None: as many as clusters, as in
        the paper. "auto": up to K + min(K, 20) + 2, since real data also vary inside,
        and more where eigenvalues stay high. Those beyond K count by how far their
        eigenvalues are above the last; under the model that is next to nothing.
    space : {"auto", "eigenvectors", "projected"}, default="auto"
        Whether rows are compared in the eigenvectors, as in the paper, or in these
        times the root of their eigenvalue: the rows projected on leading directions.
        "auto" takes the space in which clusters add more to the likelihood.
    unit_norm : bool, default=True
        Whether embedded rows are scaled to unit norm, which removes their scale.
    tol : float, default=1e-2
        Largest angle, in radians, between the computed and the true leading subspace.
        Noise in the data turns that subspace by more.
    labels : {"tied", "kmeans"}, default="tied"
        How embedded rows become labels: by Gaussian clusters that share one covariance,
        so that clusters may be longer in some directions, or as in the paper.
    n_init : int or "auto", default="auto"
        Starts of k-means, where ``labels="kmeans"``. "auto" are as many as are cheap,
        from 10 to 50.
    max_iter : int, default=300
        Cap on the iterations of one run of k-means or of a mixture.
    placement : {"embedding", "cosine"}, default="embedding"
        How ``predict`` labels rows: as the fit labelled its own, so that
        ``predict(X) == labels_``; or by the largest cosine with ``cluster_centers_``.

    Examples
    --------
    >>> from ihgmm import IhSC, Recipe
    >>> Recipe(space="projected", labels="kmeans")
    Recipe(space='projected', labels='kmeans')
    >>> IhSC(4, recipe=Recipe(n_components=10))
    IhSC(n_clusters=4, recipe=Recipe(n_components=10))
    >>> Recipe.of("paper", order="magnitude").labels
    'kmeans'
    """

    rows: Literal["unit", "given"] = "unit"
    diagonal: Literal["full", "zero"] = "full"
    order: Order = "algebraic"
    n_components: int | Literal["auto"] | None = "auto"
    space: Space | Literal["auto"] = "auto"
    unit_norm: bool = True
    tol: float = 1e-2
    labels: Assignment = "tied"
    n_init: int | Literal["auto"] = "auto"
    max_iter: int = 300
    placement: Literal["embedding", "cosine"] = "embedding"

    def __post_init__(self) -> None:
        check_choice("rows", self.rows, ("unit", "given"))
        check_choice("diagonal", self.diagonal, ("full", "zero"))
        check_choice("order", self.order, ORDERS)
        check_count("n_components", self.n_components, words=("auto", None))
        check_choice("space", self.space, ("auto", *SPACES))
        check_flag("unit_norm", self.unit_norm)
        check_number("tol", self.tol, above=0)
        check_choice("labels", self.labels, ASSIGNMENTS)
        check_count("n_init", self.n_init, words=("auto",))
        check_count("max_iter", self.max_iter)
        check_choice("placement", self.placement, ("embedding", "cosine"))

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Recipe({', '.join(changed)})"

    @classmethod
    def of(cls, recipe: Recipe | str, **changes: Any) -> Recipe:
        """Return a recipe, given itself or by its name, with some settings changed."""
        if not isinstance(recipe, Recipe):
            if not isinstance(recipe, str):
                raise TypeError(
                    f"recipe={recipe!r} is a {type(recipe).__name__}; give a Recipe or "
                    "the name of one, such as 'paper'."
                )
            check_choice("recipe", recipe, tuple(RECIPES))
            recipe = RECIPES[recipe]
        return replace(recipe, **changes) if changes else recipe


DEFAULT = Recipe()
PAPER = Recipe(
    rows="given",
    diagonal="zero",
    n_components=None,
    space="eigenvectors",
    labels="kmeans",
)
PSC = replace(PAPER, diagonal="full", space="projected", unit_norm=False)
RECIPES = {"default": DEFAULT, "paper": PAPER, "psc": PSC}
