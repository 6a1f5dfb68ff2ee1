"""Estimators with scikit-learn's interface."""

from ihgmm.cluster.ihsc import IhSC
from ihgmm.cluster.psc import PSC
from ihgmm.cluster.spherical_kmeans import SphericalKMeans

__all__ = ["PSC", "IhSC", "SphericalKMeans"]
