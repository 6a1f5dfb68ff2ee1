"""The parameters of the model, given the data and the labels."""

from ihgmm.estimation.estimates import Estimates, estimate_parameters

__all__ = ["Estimates", "estimate_parameters"]
