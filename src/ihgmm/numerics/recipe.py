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

    Estimators take a recipe, or its name: ``"default"`` has the defaults below,
    ``"paper"`` is Algorithm 1 of the paper, ``"psc"`` is projected spectral clustering,
    for rows of equal scale.

    Parameters
    ----------
    rows : {"unit", "given"}, default="unit"
        Whether rows are brought to unit length first, or taken as they are.
    diagonal : {"full", "zero"}, default="full"
        Whether the diagonal of the Gram matrix stays, or is zero as in the paper, since
        noise adds up there. On unit rows it makes no difference.
    order : {"algebraic", "magnitude"}, default="algebraic"
        Which eigenvalues lead where the diagonal is zero: the largest, as those of the
        signal, or those of largest absolute value.
    n_components : int, "auto" or None, default="auto"
        How many eigenvectors are used to compare rows. None: as many as clusters, as in
        the paper. "auto": up to K + min(K, 20) + 2, and more where eigenvalues stay
        high. Those beyond K count by how far their eigenvalues are above the last.
    space : {"auto", "eigenvectors", "projected"}, default="auto"
        Whether rows are compared in the eigenvectors, as in the paper, or projected on
        leading directions. "auto" takes what shows clusters better.
    unit_norm : bool, default=True
        Whether embedded rows are scaled to unit norm, which removes their scale.
    tol : float, default=1e-2
        Largest angle, in radians, between the computed and the true leading subspace.
    labels : {"tied", "kmeans"}, default="tied"
        How embedded rows become labels: by Gaussian clusters that share one covariance,
        so that clusters may be longer in some directions; or as in the paper.
    neighbors : bool, default=True
        Whether neighbours teach the rule of tied clusters: rows move towards theirs
        while clusters are learnt. From 4 clusters and 150 rows on.
    n_init : int or "auto", default="auto"
        Starts of k-means. "auto" are as many as are cheap, from 10 to 50.
    max_iter : int, default=300
        Cap on the iterations of one run of k-means or of a mixture.
    placement : {"embedding", "cosine"}, default="embedding"
        How ``predict`` labels rows: as the fit labelled its own, or by the largest
        cosine with ``cluster_centers_``.

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
    neighbors: bool = True
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
        check_flag("neighbors", self.neighbors)
        check_count("n_init", self.n_init, words=("auto",))
        check_count("max_iter", self.max_iter)
        check_choice("placement", self.placement, ("embedding", "cosine"))

    def __repr__(self) -> str:
        changed_settings = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                changed_settings.append(f"{field.name}={value!r}")

        return f"Recipe({', '.join(changed_settings)})"

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


#: The method of the package.
DEFAULT = Recipe()
#: Algorithm 1 of the paper, to the letter.
PAPER = Recipe(
    rows="given",
    diagonal="zero",
    n_components=None,
    space="eigenvectors",
    labels="kmeans",
)
#: Projected spectral clustering, for rows of equal scale.
PSC = replace(PAPER, diagonal="full", space="projected", unit_norm=False)

RECIPES = {"default": DEFAULT, "paper": PAPER, "psc": PSC}
