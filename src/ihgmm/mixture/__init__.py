"""Mixtures fitted by likelihood, with scikit-learn's interface."""

from ihgmm.mixture.ihgmm import IhGMM

__all__ = ["IhGMM"]
