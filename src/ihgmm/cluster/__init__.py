"""Estimators with scikit-learn's interface."""

from ihgmm.cluster.ihsc import IhSC
from ihgmm.cluster.psc import PSC
from ihgmm.cluster.sdp_kmeans import SDPKMeans
from ihgmm.cluster.spherical_kmeans import SphericalKMeans
from ihgmm.cluster.two_component import TwoComponentLloyd

__all__ = ["PSC", "IhSC", "SDPKMeans", "SphericalKMeans", "TwoComponentLloyd"]
