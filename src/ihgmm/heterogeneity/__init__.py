"""A test whether there are individual scales at all."""

from ihgmm.heterogeneity.scale_test import ScaleTest, scale_heterogeneity_test

__all__ = ["ScaleTest", "scale_heterogeneity_test"]
