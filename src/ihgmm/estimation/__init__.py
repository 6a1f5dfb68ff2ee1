"""The parameters of the model, given the data and the labels."""

from ihgmm.estimation.estimates import Estimates, estimate_parameters
from ihgmm.estimation.telling import TellingFeatures, telling_features

__all__ = ["Estimates", "TellingFeatures", "estimate_parameters", "telling_features"]
