"""Clustering of observations that share a pattern but differ in scale."""

from importlib.metadata import version

from ihgmm.cluster import PSC, IhSC, SDPKMeans, SphericalKMeans, TwoComponentLloyd
from ihgmm.model import make_ihgmm

__version__ = version("ihgmm")
__all__ = [
    "PSC",
    "IhSC",
    "SDPKMeans",
    "SphericalKMeans",
    "TwoComponentLloyd",
    "__version__",
    "make_ihgmm",
]
