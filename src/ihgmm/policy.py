"""Thresholds that were chosen, and what they decide: one table for all layers.

A class is a group of thresholds that one command chose or can check: its docstring says
which, and how sensitive answers are. "By eye" means that a round number was taken after
a look at the designs of ``benchmarks/designs.py``, and that no other was compared.
"""


class Small:
    """What counts as nothing. Theory: rounding of float64, and room below overflow."""

    ROUNDING = 1e-9  # share of a float64 sum that rounding may leave
    SINE = 1e-6  # squared sine below which two directions are one
    HUGE = 1e100  # ratio of variances whose square is still a number
    TINY = 1e-300  # divides without overflow what is 0
    ONE_ROW = 1e-12  # share of a centre that is left without its only row
    SINGULAR = 1e-7  # distance from the singularity of a formula, not of its equations
    LOAD = 1e-6  # share of the rows of a cluster that have a cell: none of them


class Weighting:
    """How rows count in the centre of their cluster. By eye.

    ``python benchmarks/accuracy.py scales`` checks errors of scales and centres.
    """

    LEAST_ROWS = 10  # rows from which a cluster weights them by scale and noise
    LEAST_SCALE = 0.1  # over the mean: smaller scales weigh as much
    LEAST_VARIANCE = 1e-4  # of noise, over the mean: less does not weigh more
    LENGTH_CHANGE = 1e-3  # of the largest: changes of lengths that end the iteration


class Scales:
    """Errors of scales and centres, and the test for individual scales.

    ``python benchmarks/inference.py intervals test`` checks coverage and size. The
    level is the usual one, the others were taken by eye.
    """

    LEVEL = 0.05  # p-values below it speak for individual scales
    LEVEL_QUANTILE = 1.645  # a standard normal variable exceeds it at that level
    SLIGHT_SPREAD = 0.05  # scales that differ by less do not matter
    WEAK_SPREAD = 1.0  # where only larger spreads would be found, nothing is advised
    LARGEST_SHARE = 0.9  # of an entry in its row, of a row in its centre, at most
    OWN_PART = 0.3  # part of a row in its centre that may show along another one
    OTHERS_PER_OWN = 8  # rows of other clusters to look at, for each own one
    OTHER_ROWS = 2**17  # and in all: their mean of t**2 is known to half a percent
    PRIOR_ROWS = 10  # the variance of a normal variable's square counts for so many
