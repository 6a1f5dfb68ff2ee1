"""The old place of :mod:`ihgmm.numerics.two_component`."""

from ihgmm.numerics.two_component import TwoComponents, two_component_lloyd

__all__ = ["TwoComponents", "two_component_lloyd"]
