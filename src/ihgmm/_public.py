"""The public names of the package, in one import."""

from ihgmm._warnings import (
    ClusterCountWarning,
    DriftWarning,
    PreparationWarning,
    UnstableLabelsWarning,
)
from ihgmm.estimators import Biwhitener, ColumnScaler, IhGMM, IhSC, SphericalKMeans
from ihgmm.matrix.formats import open_data
from ihgmm.numerics.recipe import Recipe
from ihgmm.paper.sdp import SDPKMeans
from ihgmm.paper.two_component import TwoComponentLloyd
from ihgmm.statistics.contrasts import top_features
from ihgmm.statistics.diagnosis import diagnose
from ihgmm.statistics.estimation import estimate_parameters
from ihgmm.statistics.model import make_ihgmm
from ihgmm.statistics.scale_heterogeneity import scale_heterogeneity_test
from ihgmm.statistics.selection import select_n_clusters
from ihgmm.statistics.tree_building import cluster_tree
from ihgmm.statistics.typical_rows import typical_rows

__all__ = [
    "Biwhitener",
    "ClusterCountWarning",
    "ColumnScaler",
    "DriftWarning",
    "IhGMM",
    "IhSC",
    "PreparationWarning",
    "Recipe",
    "SDPKMeans",
    "SphericalKMeans",
    "TwoComponentLloyd",
    "UnstableLabelsWarning",
    "cluster_tree",
    "diagnose",
    "estimate_parameters",
    "make_ihgmm",
    "open_data",
    "scale_heterogeneity_test",
    "select_n_clusters",
    "top_features",
    "typical_rows",
]
