"""Clustering of observations that share a pattern but differ in scale."""

from importlib.metadata import version

from ihgmm.estimators import (
    PSC,
    Biwhitener,
    IhGMM,
    IhSC,
    SDPKMeans,
    SphericalKMeans,
    TwoComponentLloyd,
)
from ihgmm.matrix.files import open_data
from ihgmm.matrix.masked import with_missing
from ihgmm.statistics.diagnosis import diagnose
from ihgmm.statistics.estimation import estimate_parameters
from ihgmm.statistics.model import make_ihgmm
from ihgmm.statistics.scale_test import scale_heterogeneity_test
from ihgmm.statistics.selection import select_n_clusters

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
