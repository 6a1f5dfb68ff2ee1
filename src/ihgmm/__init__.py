"""Clustering of observations that share a pattern but differ in scale."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ihgmm._public import (
        PSC,
        Biwhitener,
        IhGMM,
        IhSC,
        SDPKMeans,
        SphericalKMeans,
        TwoComponentLloyd,
        diagnose,
        estimate_parameters,
        make_ihgmm,
        open_data,
        scale_heterogeneity_test,
        select_n_clusters,
        with_missing,
    )

__version__ = version("ihgmm")
__all__ = [
    "PSC",
    "Biwhitener",
    "IhGMM",
    "IhSC",
    "SDPKMeans",
    "SphericalKMeans",
    "TwoComponentLloyd",
    "__version__",
    "diagnose",
    "estimate_parameters",
    "make_ihgmm",
    "open_data",
    "scale_heterogeneity_test",
    "select_n_clusters",
    "with_missing",
]


def __getattr__(name: str) -> Any:
    # All names come at once, with the first that is asked for: NumPy, SciPy and
    # scikit-learn take a second to import, which ``ihgmm --help`` can do without.
    if not name.startswith("__"):
        public = import_module("ihgmm._public")
        globals().update({each: getattr(public, each) for each in public.__all__})
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
