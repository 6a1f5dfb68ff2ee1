"""Thresholds that were chosen, and what they decide: one table for all layers.

A docstring names the command that checks a group. "By eye": a round number, taken after
a look at ``benchmarks/designs.py``; ``python benchmarks/policy.py`` halves and doubles.
Names that share a line have their meanings in the same order.
"""


class Small:
    """What counts as nothing. Theory: rounding of float64, and room below overflow."""

    ROUNDING = 1e-10  # share of a float64 sum that rounding may leave
    SINE = 1e-6  # squared sine below which two directions are one
    TIE = 1e-9  # share by which numbers that are one may differ
    HUGE = 1e100  # ratio of variances whose square is still a number
    TINY = 1e-300  # divides without overflow what is 0
    EXACT = 1e-12  # share of a whole that only an exact fit leaves
    SINGULAR = 1e-7  # distance from the singularity of a formula, not of its equations
    LOAD = 1e-6  # share of the rows of a cluster that have a cell: none of them


class Solving:
    """How directions are found, at what cost (benchmarks/run.py). By eye."""

    LAPACK = 15.0  # operations of a full solution, times n**3: it is far slower
    PRODUCTS = 3  # products with a block that a solution without the matrix takes
    OVERHEAD = 4e8  # operations that its other work is worth
    DENSE_ROWS = 2**12  # whose matrix is solved where no product shows the last pairs
    NEAR = 0.1  # of the last eigenvalue: a residual that a step may shrink
    SOME = 4  # times so many eigenpairs of a matrix: with fewer rows, all are quicker
    FEW_ROWS = 3  # times the width of a block: with fewer rows the matrix is solved
    FEATURES = 2  # times the width of a block: their Gram matrix costs half a product
    STEP = 4.0  # times what a step leaves of a residual, for what is not known of it
    BASIS, BASIS_ENTRIES = 2**9, 2**23  # columns and entries of a basis of some blocks
    BLOCKS = (4, 16)  # of it, at least and at most
    MOST_PRODUCTS = 100  # with a block, then the solver gives up: noise may need more
    READ_WHOLE = 2**24  # entries from which data are never read into memory whole
    LARGE = 10**7  # entries from which a product costs more than a sample of rows
    CONDITION = 1e-3  # of a block, below which it is made orthonormal once more
    ROUNDING, DEPENDENT = 20, 100  # of the top eigenvalue, in eps: errors; dependence
    DIGIT = 0.1  # where one digit is enough: of starts, and of pairs beyond clusters
    NO_DIRECTION = 1e-7  # of the largest singular value: rounding, and no direction
    ROWS_A_FEATURE, ONE_ROW_IN = 64, 16  # of a sample of rows to start from, at most


class Leading:
    """Which directions count in an embedding (``python benchmarks/designs.py``).

    Under the model shares beyond the clusters are a hundredth or less; where clusters
    have a shape, a half is common. docs/default.md has the reasons.
    """

    MOST_EXTRA = 20  # directions beyond those of clusters, and two more
    HIGH = 0.5  # of the last cluster's eigenvalue: the spectrum does not fall
    FAR = 4.0  # over the edge of noise that is alike in all directions
    ROWS_A_DIRECTION = 10  # at least, where noise has directions
    CUT = 0.05  # share of the height of the last cluster's eigenvalue without weight
    NOISY, NOISE = 0.1, 0.5  # share of rows that drown: leave them out; too many
    SMALLEST_GAP = 1e-2  # of the last eigenvalue: noise turns smaller gaps anyway
    LEAST_LENGTH = 1e-5  # of data along a direction, over the largest: less is rounding


class Labelling:
    """Rows to labels (``python benchmarks/clusters.py``). Round numbers."""

    ROWS, TRIAL_ROWS = 2**14, 2**12  # to learn labels from, and to try starts, at most
    ROWS_A_CLUSTER = 64  # or so many for each cluster, if that is more
    MERGED_ROWS, FEW_MERGED = 2**11, 2**8  # to merge, at most; where starts agree
    MERGED_ROWS_A_CLUSTER = 4  # at least, there
    GRAPH_ROWS, NEIGHBORS = 2_000, 10  # in a graph of neighbours, at most; of each row
    STEP, STEPS = 1e-7, 300  # gain of a step of k-means over squared rows; steps
    WIDEST = 3  # clusters that may be split when another is given up
    KMEANS_WORK = 2**23  # products of rows and centres in first steps of all starts
    KMEANS_STARTS = (10, 50)  # at least and at most
    ROUGH = 100  # steps of tied clusters that compete
    WORK, THREADS = 2**19, 2**24  # products in a step that pay on a device; on threads
    SAME_START = 0.99  # share of rows that two starts put together: they are one
    SAME_WORTH = 1e-6  # of log-likelihood a row: clusters as good as others
    AHEAD = 50  # last gains that clusters behind the best may still make
    PULL = 0.2  # share by which the covariance is pulled towards a sphere
    GAIN = 1e-4  # of log-likelihood a row that ends the rounds
    FLATTEST = 1e-6  # variance of a direction over the mean: less is rounding
    OPPOSITE = 0.9  # cosine of opposite rows over that of near ones, for lines
    LINE_GAIN = 0.4  # of lines over directions, a row, unless the mean is near 0
    NEAR_ZERO = 2.0  # standard errors
    LINE_ROWS, LINE_ANCHORS = 2**9, 16  # asked for lines; compared with, a cluster
    LINE_ROWS_A_CLUSTER = 16  # of these, at least: fewer often look like lines
    STARTS = 10  # of spherical k-means: one alone is up to 7% above the best inertia
    SEED_ROWS = 2**13  # among which these are looked for, at most
    SAME_END = 1.00001  # ratio of inertias that differ by rounding
    MANY_STARTS = 4_000_000  # entries up to which so many starts take seconds


class Teaching:
    """Labels of some rows that are known. ``python benchmarks/known.py`` has errors."""

    TRUST = 6.0  # log-odds of a known label against any other
    HALF = 3.0  # known rows a class that count as much as all other rows together


class Growing:
    """Models that grow (``python benchmarks/updates.py``). Round numbers."""

    DIRECTIONS = 64  # that are remembered, at least, or all features
    TOLERANCE = 0.1  # angle of the directions of some new rows
    MORE = 0.1  # new rows over those that clusters were learnt from: learn again
    STEPS, MOVED = 30, 0.01  # of clusters that move on; share that moves: start anew
    SETTLED = 0.05  # share that changes when clusters are looked for again, at most
    RARE = 0.01  # share of earlier rows that are as far from their cluster as far ones
    NOVEL, LEAST_NOVEL = 0.05, 5  # share and number of far rows: a new cluster
    EMPTIED, EXPECTED = 0.1, 50.0  # of expected rows come, of so many: it has emptied
    LEAST_UNIT = 1e-140  # of numbers whose squares are summed up; 1 over it is the most


class Batching:
    """Factors of batches (``python benchmarks/batches.py``). By eye."""

    ROUNDS, SETTLED = 5, 0.002  # of turns, at most, until so few labels change
    ROWS, NEW_ROWS = 2, 10  # of a cluster in a batch; of a new batch: fewer say nothing
    FLOOR = 0.1  # of the usual size of a column: smaller factors would blow up noise
    CLEAR = 2.0  # standard errors; with 3, two of five sets lose .16 and .09


class Filling:
    """Missing cells. ``python benchmarks/missing.py`` shows what they do.

    Scales that may be equal, and noise that is more even, brought errors of cells from
    1.6 to 0.7 of those of column means, over 16 designs and real sets. By eye, else.
    """

    RANKS = (1, 2, 3, 5, 8, 12, 20, 30)  # that are tried
    RANK_COST = 2**22  # rank squared times columns: 20,000 of these stop at rank 12
    ROWS, ENTRIES, LEAST_ROWS = 2_000, 2**21, 200  # to learn from, at most; at least
    ASKED = 0.1  # share of observed cells that choose the rank
    CLIP = 1.5  # medians from which rows count no more there
    LEAST_COLUMN = 0.3  # over the typical one: smaller columns count less
    FIRST_SPREAD, LEAST_SPREAD = 0.2, 0.05  # of log scales: to start; as good as equal
    CHOOSING = 2**16  # entries that choose the rank and whether scales differ
    SCALE_RANK = 5  # at most, in which it shows whether they do
    GUESSES, ROUNDS, LAST_ROUNDS = 6, 4, 4  # in each rank; for scales; at the end
    PRIOR_CELLS = 5.0  # that say the usual share of a column is noise
    LEAST_NOISE = 1e-6  # over the variance of a column
    EVEN = 0.1  # noise of a column over that of all, in units of columns, at least
    LARGEST, STEPS = 10, 25  # scale over the size of observed cells; steps between


class WildCells:
    """Cells that fit no row (``python benchmarks/outliers.py``). Round numbers."""

    ROWS = 1_000  # to learn from, at most
    CLIP, ROUGH_CLIP = 2.5, 1.5  # distances where cells count less; in regressions
    ROUNDS, RANK = 3, 10  # of medians and of robust fits; of the first, rough look
    LEAST_NOISE = 1e-2  # of a row or a column, over its size, in that look
    LEAST_LEVEL = 0.3  # of noise by medians, over that of cells not far off
    UPPER = 0.9  # quantile up to which no cell is wild
    EXPECTED = 0.05  # usual cells as far off as the limit, in all data
    STEEPEST = 1.5  # Weibull shape of distances, at most; 1.35 of Gaussian ones
    NORMAL_MEDIAN = 0.6745  # of the distance of a standard normal variable
    LEAST_RISE = 0.1  # of the logarithm of heights, from low to high cells
    ENTRIES = 2**21  # of columns that are regressed at a time


class Whitening:
    """Noise made alike. ``python benchmarks/counts.py`` shows what it does.

    Words of text gave a dispersion of 3 to 8, and labels by such ones were worse. Tails
    were of 9 and more where zeros hid cells of skewed patterns, and of 7 and less in
    shades, tf-idf, cut-off Gaussian noise and logarithms but for one. By eye, else.
    """

    DISPERSION = 0.3  # of counts, to start from: it tames columns that would rule
    LARGEST_SHARE = 0.5  # c / (1 + c) for the dispersion c, at most
    LARGEST_LEVERAGE = 0.9  # of a column in a fit: of more nothing is known
    LARGEST_PART = 0.25  # of a direction that one row may have
    LEAST_NOISE = 1e-3  # share of a row or column that a fit leaves, at least
    COUNT_RANK, RANK = 128, 64  # features or rows: a quarter, or half, is the rank
    ENTRIES, COUNTS = 2**22, 2**20  # to learn columns, and the dispersion, from
    ZEROS, MOST_ZEROS = 0.12, 0.9  # share that is many; more are tf-idf, if no counts
    COLUMNS = 16  # from which the noise of columns is learnt well enough
    TAIL = 8.0  # share of a row that one in a hundred entries has, over the median
    UNEQUAL = 1.25  # mean square of column means over the squared mean, of counts
    CENTRED = 0.1  # standard errors: means that are nearer to 0 were subtracted
    MEAN, DEVIATION, STANDARD = 0.1, 0.2, 0.8  # from 0 and 1, of columns: z-scores
    LEAST_ROWS = 500  # to learn from, if there are
    ROUNDS, ANGLE = 3, 3e-3  # of fits that learn columns; error of their directions
    GLANCE, LOOK = 2**10, 2**16  # entries that may show one below 0; what data are
    LARGEST_LOG = 50  # of a count; larger ratios of counts are rounded, too
    OFF_WHOLE = 0.02  # by which a ratio of counts is off a whole number, at most


class Doubt:
    """When a fit warns of its own labels (``python benchmarks/trust.py``).

    On 109 preparations of real sets 47 fits were above; 38 of these had more than a
    quarter of their labels wrong, and 3 fewer than a tenth.
    """

    ROWS, ROWS_A_CLUSTER = 1_000, 20  # to halve, at most, or so many for each cluster
    LEAST = 0.2  # probability of other labels, over that of a guess
    # A likelihood that moved more rows of spectral clusters than doubt explains: of 481
    # fits of IhGMM to designs and real sets 39 did; errors rose in 35 and fell in 3.
    MOVED, BEYOND = 0.1, 1.5  # share of rows, and share over the doubt
    # Whitening is advised where it takes doubt away. On 119 preparations it did so on
    # 4, and errors fell on all (``python benchmarks/counts.py`` has the designs).
    CALMER = 0.5  # of the doubt that it leaves, at most
    UNEQUAL = 5.0  # variances of columns within clusters, nine tenths over a tenth
    ZEROS = 0.1  # share of entries; with more, it spoilt pictures
    ENTRIES, LEAST_ROWS = 2**22, 100  # of the rows that are tried


class Weighting:
    """How rows count in a centre (``python benchmarks/inference.py``). By eye."""

    LEAST_ROWS = 10  # rows from which a cluster weights them by scale and noise
    ROWS_A_CLUSTER = 3  # of equal weight; a scale takes a centre of two others or more
    LEAST_VARIANCE = 1e-4  # of noise, over the mean: less does not weigh more


class Rounds:
    """Rounds of rows and centres (``python benchmarks/inference.py``). By eye."""

    SOFT = 30  # rounds of refinement in which rows count in several centres, at most
    MOVE = 1e-2  # change of a membership that counts as a move
    ROWS_PER_MOVE = 1_000  # soft rounds end when fewer than one row in these moves
    CIRCLE = 4  # earlier labels to compare with: circles are short
    FULL_STEPS = 20  # rounds of a mixture after which steps are halved
    SETTLING = 3  # rounds after which weights of rows with given memberships settle
    LEAST_ACCURACY = 1e-3  # squared cosine of a centre with the true one, at least


class TiedNoise:
    """One covariance of noise (``python benchmarks/inference.py``). By eye."""

    ROWS_A_DIRECTION, DIRECTIONS = 10, 50  # rows for each, at least; with own noise
    MARGIN = 1.05  # over the edge of noise: theory, two deviations with 300 rows
    TRIAL_ROWS, TRIAL_ROUNDS = 2**11, 10  # on which kinds of noise compete, at most
    COVARIANCES = 5  # times that labels may change the covariance
    SPARE, POWERS = 8, 6  # directions beyond those wanted, and products that find all
    ROUNDS, CHANGE = 100, 1e-4  # for the covariance, until it changes by less
    RIDGE = 1e-6  # least variance of a direction, in noise levels
    RATIO = 1e30  # noise beside a variance so much larger counts as none


class Scales:
    """Errors and the test of scales (``python benchmarks/inference.py``). By eye."""

    LEVEL = 0.05  # p-values below it mean that scales differ
    SLIGHT_SPREAD, WEAK_SPREAD = 0.05, 0.75  # less does not matter; more: no advice
    LARGEST_SHARE = 0.9  # of an entry in its row, of a row in its centre, at most
    ROWS = 2**17  # that show how noise is correlated: variances to half a percent
    UNLIKE = 1.5  # spread of a cluster, over that of all, that is told beside it
    FOLDS = 20  # without each of which the test looks again
    CORRELATED = 10  # rows for which it counts that noise is not: with fewer, it is
    PAIRED_ROWS, PAIRED_ENTRIES = 256, 2**22  # whose pairs show correlation


class Contrasts:
    """What sets clusters apart (``python benchmarks/markers.py``). Round numbers."""

    LEVEL = 0.05  # p-values below it, times the number of features, are no chance
    WEAK = 0.5  # noise levels that are worth a line
    RARE = 1.0  # noise levels that a word of half the other rows can be below them
    MOST = 20.0  # beyond them noise is next to nothing, as in constant columns
    LEAST_NOISE = 1e-8  # of a sum of squares, for columns without noise


class Outliers:
    """Rows that fit no cluster (``python benchmarks/outliers.py``). Round numbers."""

    ROUNDS = 6  # of fits without the outliers of the last one, at most
    ALONE = 0.02  # rows of clusters as strange, expected in all: less is an outlier
    TIMES, LAST_TIMES = 3, 1.5  # as many as clusters have: outliers, down to so many
    STRANGEST = 0.03  # share of the rows of clusters among which these are looked for
    CHANCE = 1e-3  # probability of so many by chance, at most
    JUMP = 8  # step of the noise, in mean excesses, that ordinary rows never make
    SHORT = 4  # rows as short as one in so many may be outliers at the start
    QUANTILES, SMOOTHING = 40, 4  # of a distribution; part of noise that smooths it
    RANGES, ROWS_A_RANGE = 8, 16  # of lengths, at most, and rows of each, at least
    PRIOR_ROWS = 5  # rows of all clusters that count with those of one
    LEAST_NOISE = 1e-4  # share of the squared length of a row that is noise, at least
    LEAST_LENGTH = 1e-3  # of the median row of a cluster, beside the largest noise


class Refitting:
    """Fits to halves of the rows, which judge labels (``python benchmarks/trust.py``).

    By eye, but for the belief: with 1 and 1/4 expected errors rank sets no better.
    """

    ROWS, SPLITS = 2_000, 3  # to draw, at most; times that they are halved
    ROWS_A_CLUSTER = 10  # with fewer, four fifths of the rows are fitted
    BELIEF = 0.5  # share of log-likelihoods that is believed
    SHORTEST = 0.1  # of the usual length: shorter rows are noise, all alike


class Counting:
    """How many clusters. Chosen to one digit on labelled sets and on designs.

    ``python benchmarks/count.py`` checks it. Log-odds of numbers that were fitted to 37
    sets were better on these, and worse on those kept aside (.42 listed, not .62).
    """

    ROWS = 2_000  # to draw, at most
    FEW_FEATURES = 20  # in so few, signs leave much of a pattern
    # Eigenvalues above noise
    MARGIN = 2.5  # deviations of the null from its mean to the edge
    ROUGH = 4  # times as many for one quick flip
    PRIOR_FLIPS = 4  # flips that the Tracy-Widom law counts for
    ROUNDING = 20  # eps of the largest eigenvalue that the edge is at least
    SMALL_ENTRIES, MIDDLE_ENTRIES = 2**20, 2**23  # of X; with more it is large
    FLIPS = (8, 3, 2)  # of small, middle and large data: they vary less there
    FLIP_STEPS = (60, 8, 5)  # of small data, of other, and for a first look at it
    FLIP_ACCURACY = 0.02  # of the top eigenvalue of a flip
    LARGEST_LEVERAGE = 0.9  # of a feature in what is taken out: of more nothing is left
    # The tree
    FEW_DIRECTIONS = 3  # of few features, at least, and those with an eigenvalue of
    STRONG = 0.2  # so much of the first
    LEAVES = (2, 3)  # for each direction that stands out, and more
    LEAST_LEAVES = (6, 16)  # of many features and of few
    ROWS_A_LEAF = 5  # at least
    HALVINGS, MANY_ROWS = (6, 2), 1_000  # two trees each; of many rows halves vary less
    AGREEMENT = 0.5  # of halves on a level
    LEVEL = 1.4  # sum of rise, drop and agreement of a level
    # The answer
    DROP_WEIGHT = 1.5  # of the drop, beside the rise; from 1 to 3 little changes
    MANY_PRICE, AGREEMENT_WORTH = 0.5, 0.35  # support: of e times as many; of agreement
    AT_RANK, AT_RANK_DROP = 0.35, 0.1  # support and drop at the rank: the model's
    GAP = 1.0  # standard errors, below which there may be one cluster
    # One is the answer below these, where one direction alone stands out.
    LEAST_GAP, AGREEMENT_OF_ONE = 0.25, 0.8  # of the best number
    LEAST_AGREEMENT = 0.2  # on any number; then it is sure
    HIGH, LOW = 1.6, 0.9  # support to rely on; below which four of five were wrong
    PLAUSIBLE = 5  # numbers to name, if it is not high
    MOVED = 0.1  # share of rows that a fit places elsewhere: it is worth a word


class Trust:
    """What to think of labels: verdicts, and the calibration of expected errors.

    Fitted to 62 preparations of 37 real sets and, at a third of the weight, to designs;
    ``python benchmarks/trust.py`` checks them on sets kept aside. Rows, instability or
    agreement beside the doubt make the curve no better.
    """

    CERTAIN = 0.9  # probability from which a label counts as certain
    WELL_SEPARATED, SEPARATED = 0.01, 0.18  # expected errors below which they are
    CHANCE = 0.5  # instability, over the error of a guess, that is no separation
    LEAST_ROWS = 3  # of a cluster; with fewer, halves cannot judge it
    LEAST_JUDGED = 10  # rows beside given ones; of fewer nothing is known
    SLOPE, SHIFT = 2.0, 2.75  # log-odds of errors with those of doubts, over chance
    UNKNOWN = 1e30  # temperature of memberships that say nothing
    MOST = 0.8  # error over that of chance where nothing is stable
    LEAST, LARGEST = (1.15, -0.9), (1.3, 3.2)  # the same at both ends: 4 of 5 sets
    ROWS = 0.5  # of the log-odds of a row with its lead
    MEAN_ROWS = 10_000  # rows that settle the mean certainty, about


class Cautions:
    """When a diagnosis says more than a verdict (``python benchmarks/trust.py``).

    Of shares in one column from .5 to .95, .8 lowered the mean error most.
    """

    AGREE, MORE = 0.9, 0.3  # share where halves agree; by which more than with labels
    ENTRIES = 2**22  # of rows in which columns are compared, at most
    RULING = 0.8  # share of the variance in one column (benchmarks/tables.py)
    HUGE = 5  # rows so many times as long as the median show no column
    LEAST_ROWS = 10  # below which nothing is said of columns
    NAMED = 3  # columns beside the first


class Columns:
    """Columns in different units (``python benchmarks/tables.py``).

    OFFSET was chosen on 77 labelled tables, and was the best of ten rules on 96 others.
    """

    DECIDES_ALONE = 3.0  # times the lower median deviation: a column decides alone
    OFFSET = 3.0  # deviations from zero to the mean of a column whose zero is no origin
    WIDE, FEW_OFFSETS = 100, 0.1  # columns of one kind; share of offsets to ignore
