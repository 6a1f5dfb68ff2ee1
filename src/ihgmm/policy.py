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
    EXACT = 1e-12  # share of a whole that only an exact fit leaves
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


class Rounds:
    """Rounds that compare rows with the centres of the others. By eye.

    ``python benchmarks/accuracy.py labels memberships`` checks labels and memberships.
    """

    SOFT = 30  # rounds of refinement in which rows count in several centres, at most
    MOVE = 1e-2  # change of a membership that counts as a move
    ROWS_PER_MOVE = 1_000  # soft rounds end when fewer than one row in these moves
    CIRCLE = 4  # earlier labels to compare with: circles are short
    FULL_STEPS = 20  # rounds of a mixture after which steps are halved
    SETTLING = 3  # rounds after which weights of rows with given memberships settle
    LEAST_ACCURACY = 1e-3  # squared cosine of a centre with the true one, at least


class TiedNoise:
    """One covariance of the noise for all clusters. By eye, but for the margin.

    ``python benchmarks/inference.py memberships criteria`` checks it.
    """

    ROWS_A_DIRECTION = 10  # rows for each direction in which noise has its own level
    DIRECTIONS = 50  # such directions, at most
    MARGIN = 1.05  # over the edge of noise: theory, two deviations with 300 rows
    COVARIANCES = 5  # times that labels may change the covariance
    SPARE = 8  # directions beyond those wanted, which speed up the others
    POWERS = 6  # products after which the last directions are near enough
    ROUNDS = 100  # of expectation and maximisation for the covariance, at most
    CHANGE = 1e-4  # of the covariance, in noise levels, that ends them
    RIDGE = 1e-6  # least variance of a direction, in noise levels
    RATIO = 1e30  # noise beside a variance so much larger counts as none


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


class Outliers:
    """Which rows fit no cluster. Round numbers.

    ``python benchmarks/outliers.py`` shows what they do with planted outliers, with
    noise of many kinds and on real sets.
    """

    ALONE = 0.02  # rows of clusters as strange, expected in all: less is an outlier
    TIMES = 3  # as many rows as clusters have, or more, are outliers together
    LAST_TIMES = 1.5  # down to where rows are no longer so many times as many
    STRANGEST = 0.03  # share of the rows of clusters among which these are looked for
    CHANCE = 1e-3  # probability of so many by chance, at most
    JUMP = 8  # step of the noise, in mean excesses, that ordinary rows never make
    SHORT = 4  # rows as short as one in so many may be outliers at the start
    QUANTILES = 40  # numbers that stand for a distribution
    SMOOTHING = 4  # part of the noise that smooths these
    RANGES = 8  # lengths at which the expected noise is known, at most
    ROWS_A_RANGE = 16  # rows for each of these, at least
    PRIOR_ROWS = 5  # rows of all clusters that count with those of one
    LEAST_NOISE = 1e-4  # share of the squared length of a row that is noise, at least
    LEAST_LENGTH = 1e-3  # of the median row of a cluster, beside the largest noise
