"""The old place of the conditions in :mod:`ihgmm.theory.theorem`."""

from ihgmm.theory.theorem import CorollaryConditions, corollary_conditions

__all__ = ["CorollaryConditions", "corollary_conditions"]
