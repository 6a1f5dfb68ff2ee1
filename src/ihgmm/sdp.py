"""The old place of :mod:`ihgmm.numerics.sdp`."""

from ihgmm.numerics.sdp import SDPSolution, sdp_kmeans

__all__ = ["SDPSolution", "sdp_kmeans"]
