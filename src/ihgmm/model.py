"""The old place of :mod:`ihgmm.statistics.model`."""

from ihgmm.statistics.model import NOISE_DISTRIBUTIONS as NOISES
from ihgmm.statistics.model import NOISE_STRUCTURES as STRUCTURES
from ihgmm.statistics.model import IhGMMSample, default_separation, make_ihgmm

__all__ = ["NOISES", "STRUCTURES", "IhGMMSample", "default_separation", "make_ihgmm"]
