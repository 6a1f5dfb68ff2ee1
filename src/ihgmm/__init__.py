"""Clustering of observations that share a pattern but differ in scale."""

from importlib.metadata import version

from ihgmm.cluster import PSC, IhSC, SDPKMeans, SphericalKMeans, TwoComponentLloyd
from ihgmm.estimation import estimate_parameters
from ihgmm.mixture import IhGMM
from ihgmm.model import make_ihgmm
from ihgmm.statistics.diagnosis import diagnose
from ihgmm.statistics.scale_test import scale_heterogeneity_test
from ihgmm.statistics.selection import select_n_clusters

__version__ = version("ihgmm")
__all__ = [
    "PSC",
    "IhGMM",
    "IhSC",
    "SDPKMeans",
    "SphericalKMeans",
    "TwoComponentLloyd",
    "__version__",
    "diagnose",
    "estimate_parameters",
    "make_ihgmm",
    "scale_heterogeneity_test",
    "select_n_clusters",
]
