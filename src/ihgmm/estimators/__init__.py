"""Estimators with scikit-learn's interface."""

from ihgmm.estimators.biwhitener import Biwhitener
from ihgmm.estimators.column_scaler import ColumnScaler
from ihgmm.estimators.ihgmm import IhGMM
from ihgmm.estimators.ihsc import IhSC
from ihgmm.estimators.spherical_kmeans import SphericalKMeans

__all__ = ["Biwhitener", "ColumnScaler", "IhGMM", "IhSC", "SphericalKMeans"]
