"""Thresholds that were chosen, and what they decide: one table for all layers.

A docstring names the command that checks a group. "By eye": a round number, taken after
a look at ``benchmarks/designs.py``; ``python benchmarks/policy.py`` halves and doubles.
A comment goes on from the name: "rows a cluster: ...".
"""


class Small:
    """Numbers that are nothing beside others: rounding of float64, room to overflow."""

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
    WIDE = 4  # times as many features as rows: vectors are then as long as these
    STEP = 4.0  # times what a step leaves of a residual, for what is not known of it
    BASIS = 2**9  # columns of a basis of some blocks, at most
    BASIS_ENTRIES = 2**23  # entries of such a basis, at most
    BLOCKS = (4, 16)  # of such a basis, at least and at most
    MOST_PRODUCTS = 100  # with a block, then the solver gives up: noise may need more
    READ_WHOLE = 2**24  # entries from which data are never read into memory whole
    LARGE = 10**7  # entries from which a product costs more than a sample of rows
    CONDITION = 1e-3  # of a block, below which it is made orthonormal once more
    ROUNDING = 20  # eps of the top eigenvalue that errors are
    DEPENDENT = 100  # eps of the top eigenvalue below which columns are dependent
    DIGIT = 0.1  # where one digit is enough: of starts, and of pairs beyond clusters
    NO_DIRECTION = 1e-7  # of the largest singular value: rounding, and no direction
    ROWS_A_FEATURE = 64  # of a sample of rows to start from, at most
    ONE_ROW_IN = 16  # rows at most is in such a sample


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
    NOISY = 0.1  # share of rows that drown in noise from which they are left out
    NOISE = 0.5  # share of such rows that is too large to leave them out
    SMALLEST_GAP = 1e-2  # of the last eigenvalue: noise turns smaller gaps anyway
    LEAST_LENGTH = 1e-5  # of data along a direction, over the largest: less is rounding


class Labelling:
    """Rows to labels (``python benchmarks/clusters.py``). Round numbers."""

    ROWS = 2**14  # to learn labels from, at most
    TRIAL_ROWS = 2**12  # to try starts on, at most
    ROWS_A_CLUSTER = 64  # or so many for each cluster, if that is more
    MERGED_ROWS = (2**10, 2**11)  # to merge, at most: of few and of many clusters
    MERGED_ROWS_A_CLUSTER = 20  # or so many, between these
    FEW_MERGED = 2**8  # to merge where starts agree, at most
    FEW_MERGED_A_CLUSTER = 4  # at least, there
    STEP = 1e-7  # gain over squared rows of a step of k-means, at least
    STEPS = 300  # of k-means, at most
    WIDEST = 3  # clusters that may be split when another is given up
    KMEANS_WORK = 2**23  # products of rows and centres in first steps of all starts
    KMEANS_STARTS = (10, 50)  # at least and at most
    ROUGH = 100  # steps of tied clusters that compete
    WORK = 2**19  # products in a step that pay on a device
    THREADS = 2**24  # products in a step that pay on several threads
    SAME_START = 0.99  # share of rows that two starts put together: they are one
    SAME_WORTH = 1e-6  # of log-likelihood a row: clusters as good as others
    AHEAD = 50  # last gains that clusters behind the best may still make
    PULL = 0.2  # share by which the covariance is pulled towards a sphere
    GAIN = 1e-4  # of log-likelihood a row that ends the rounds
    FLATTEST = 1e-6  # variance of a direction over the mean: less is rounding
    OPPOSITE = 0.9  # cosine of opposite rows over that of near ones, for lines
    LINE_GAIN = 0.4  # of lines over directions, a row, unless the mean is near 0
    NEAR_ZERO = 2.0  # standard errors
    LINE_ROWS = 2**9  # that are asked whether clusters are lines
    LINE_ANCHORS = 16  # rows of a cluster that they are compared with
    LINE_ROWS_A_CLUSTER = 16  # that are asked, at least: fewer often look like lines
    STARTS = 10  # of spherical k-means: one alone is up to 7% above the best inertia
    SEED_ROWS = 2**13  # among which these are looked for, at most
    SAME_END = 1.00001  # ratio of inertias that differ by rounding
    MANY_STARTS = 4_000_000  # entries up to which so many starts take seconds


class Neighbors:
    """Neighbours that teach the rule (``python benchmarks/labelled.py``)."""

    LEAST_CLUSTERS = 4  # with fewer, as many sets get worse as better
    LEAST_ROWS = 150  # the same
    ROWS = 2**11  # that look for neighbours, at most
    ROWS_A_CLUSTER = 40  # or so many for each cluster, if that is more
    MOST_ROWS = 2**12  # and never more
    MOST = 10  # neighbours of a row
    LEAST = 3  # neighbours of a row of a small cluster
    PART_OF_CLUSTER = 4  # neighbours are one in so many rows of a cluster at most
    STEPS = 3  # of a walk
    PULL = 0.2  # share by which the covariance is pulled towards a sphere
    FLATTEST = 1e-9  # variance of a direction over the mean: less is rounding
    TIE = 1e-9  # of a row's largest similarity: so little does not tell rows apart
    SIMILARITIES = 2**20  # that are looked at at once
    ROWS_IN_PARTS = 2**8  # from which threads share the rows


class Roots:
    """Roots of data without negative entries (``python benchmarks/real.py``)."""

    NEGATIVE = 0.005  # share of entries that may be negative, of those that are not 0
    GLANCE = 50  # part of the rows that mostly shows that more are
    ZEROS = 0.5  # share of zeros from which roots are taken at once
    POWER = 0.75  # of the spread of columns among unit rows, by which they are divided
    LEAST_SPREAD = 0.05  # quantile of spreads: columns with less count by this one
    ROUNDING = 64  # roundings of a column's mean square: so little spread is none
    LEAST_ROWS = 50  # that compete: fewer do not show how clear clusters are
    CLEARER = 0.1  # of log-likelihood a row, by which clusters of roots are clearer
    ROWS = 2**10  # that compete, at most
    CANDIDATES = 4  # times as many rows as compete, of which these are taken
    ROWS_A_CLUSTER = 40  # or so many for each cluster, if that is more


class Teaching:
    """Labels of some rows that are known. ``python benchmarks/known.py`` has errors."""

    TRUST = 6.0  # log-odds of a known label against any other
    HALF = 3.0  # known rows a class that count as much as all other rows together
    AGREED = 0.8  # share of known rows with which plain clusters agree: no more weight
    PARTS = 3  # in which known rows are left out; of a class with so many, at least
    CLEARLY = 0.5  # deviations of chance by which another rule errs less often
    SPREADING = 0.9  # share of its class that a row takes from its neighbours
    SPREADING_STEPS = 50  # of classes, along links


class Growing:
    """Models that grow (``python benchmarks/updates.py``). Round numbers."""

    DIRECTIONS = 64  # that are remembered, at least, or all features
    TOLERANCE = 0.1  # angle of the directions of some new rows
    MORE = 0.1  # new rows over those that clusters were learnt from: learn again
    STEPS = 30  # of clusters that move on, at most
    MOVED = 0.01  # share of rows that still moves: start anew
    SETTLED = 0.05  # share that changes when clusters are looked for again, at most
    RARE = 0.01  # share of earlier rows that are as far from their cluster as far ones
    NOVEL = 0.05  # share of far rows that shows a new cluster
    LEAST_NOVEL = 5  # far rows that show a new cluster, at least
    EMPTIED = 0.1  # share of the expected rows that comes: the cluster has emptied
    EXPECTED = 50.0  # rows, at least, before a cluster counts as emptied
    LEAST_SHARE = 1e-3  # of a rooted row that is taken to be inside of directions
    LEAST_UNIT = 1e-140  # of numbers whose squares are summed up; 1 over it is the most


class Batching:
    """Factors of batches (``python benchmarks/batches.py``). By eye."""

    ROUNDS = 5  # of factors and labels in turn, at most
    SETTLED = 0.002  # share of labels that changes: they have settled
    ROWS = 4  # of a cluster in a batch; fewer say nothing
    NEW_ROWS = 10  # of a new batch; fewer say nothing
    FLOOR = 0.1  # of the usual size of a column: smaller factors would blow up noise
    CLEAR = 2.0  # standard errors; with 3, two of five sets lose .16 and .09
    MIXED = 0.9  # of near rows of other batches over what is expected: mixed
    TELLING = 0.1  # share of other batches that clusters have to have, to tell so
    COINCIDE = 0.4  # adjusted Rand index of clusters and batches, at most
    WALKS = 2  # by neighbours in every batch: in the embedding, and made round
    MATCHED = 0.4  # share of rows with mutual neighbours; with fewer factors are left
    MATCHED_NEW = 0.2  # the same of a new batch, of rows with any
    STAND_IN = 1e-3  # row of no shift in each batch, in weight


class Filling:
    """Missing cells. ``python benchmarks/missing.py`` shows what they do.

    Scales that may be equal, and noise that is more even, brought errors of cells from
    1.6 to 0.7 of those of column means, over 16 designs and real sets. By eye, else.
    """

    RANKS = (1, 2, 3, 5, 8, 12, 20, 30)  # that are tried
    RANK_COST = 2**22  # rank squared times columns: 20,000 of these stop at rank 12
    ROWS = 2_000  # to learn from, at most
    ENTRIES = 2**21  # to learn from, at most
    LEAST_ROWS = 200  # to learn from, if there are
    ASKED = 0.1  # share of observed cells that choose the rank
    CLIP = 1.5  # medians from which rows count no more there
    LEAST_COLUMN = 0.3  # over the typical one: smaller columns count less
    FIRST_SPREAD = 0.2  # of log scales, to start from
    LEAST_SPREAD = 0.05  # of log scales; less is as good as equal
    CHOOSING = 2**16  # entries that choose the rank and whether scales differ
    SCALE_RANK = 5  # at most, in which it shows whether they do
    GUESSES = 6  # rounds in each rank
    ROUNDS = 4  # rounds that decide whether scales differ
    LAST_ROUNDS = 4  # rounds at the end
    PRIOR_CELLS = 5.0  # that say the usual share of a column is noise
    LEAST_NOISE = 1e-6  # over the variance of a column
    EVEN = 0.1  # noise of a column over that of all, in units of columns, at least
    DONORS = 2**9  # rows that are kept to fill rows like them, at most
    DONOR_ENTRIES = 2**19  # of these rows, at most
    NEIGHBORS = 20  # donors of a row, of which the last has no weight
    OWN_WEIGHT = 0.1  # of the low-rank model among donors that say nothing of a cell
    LEAST_SHARE = 0.3  # of the way to donors; with less none are kept
    LARGEST = 10  # scale over the size of observed cells that is tried
    STEPS = 25  # between the scales that are tried


class WildCells:
    """Cells that fit no row (``python benchmarks/outliers.py``). Round numbers."""

    ROWS = 1_000  # to learn from, at most
    CLIP = 2.5  # distance from which cells count less
    ROUGH_CLIP = 1.5  # distance from which cells count less in regressions
    ROUNDS = 3  # of medians and of robust fits
    RANK = 10  # of the first, rough look
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
    COUNT_RANK = 128  # features or rows of counts, at most: a quarter is the rank
    RANK = 64  # features or rows of other data, at most: half of them is the rank
    ENTRIES = 2**22  # to learn columns from, at most
    COUNTS = 2**20  # entries to learn the dispersion from, at most
    ZEROS = 0.12  # share of entries that is many
    MOST_ZEROS = 0.9  # share of entries from which data that are no counts are tf-idf
    COLUMNS = 16  # from which the noise of columns is learnt well enough
    TAIL = 8.0  # share of a row that one in a hundred entries has, over the median
    UNEQUAL = 1.25  # mean square of column means over the squared mean, of counts
    CENTRED = 0.1  # standard errors: means that are nearer to 0 were subtracted
    MEAN = 0.1  # of a column of z-scores, from 0, at most
    DEVIATION = 0.2  # of a column of z-scores, from 1, at most
    STANDARD = 0.8  # share of such columns: data are z-scores
    LEAST_ROWS = 500  # to learn from, if there are
    ROUNDS = 3  # of fits that learn columns
    ANGLE = 3e-3  # error of the directions of these fits
    GLANCE = 2**10  # entries that may show one below 0
    LOOK = 2**16  # entries that show what data are
    LARGEST_LOG = 50  # of a count; larger ratios of counts are rounded, too
    OFF_WHOLE = 0.02  # by which a ratio of counts is off a whole number, at most


class Doubt:
    """When a fit warns of its own labels (``python benchmarks/trust.py``).

    On 109 preparations of real sets 47 fits were above; 38 of these had more than a
    quarter of their labels wrong, and 3 fewer than a tenth.
    """

    ROWS = 1_000  # to halve, at most
    ROWS_A_CLUSTER = 20  # or so many for each cluster, if that is more
    LEAST = 0.2  # probability of other labels, over that of a guess
    # A likelihood that moved more rows of spectral clusters than doubt explains: of 481
    # fits of IhGMM to designs and real sets 39 did; errors rose in 35 and fell in 3.
    MOVED = 0.1  # share of rows, at least
    BEYOND = 1.5  # share of rows over the doubt, at least
    # Whitening is advised where it takes doubt away. On 119 preparations it did so on
    # 4, and errors fell on all (``python benchmarks/counts.py`` has the designs).
    CALMER = 0.5  # of the doubt that it leaves, at most
    UNEQUAL = 5.0  # variances of columns within clusters, nine tenths over a tenth
    ZEROS = 0.1  # share of entries; with more, it spoilt pictures
    ENTRIES = 2**22  # of the rows that are tried, at most
    LEAST_ROWS = 100  # that are tried, if there are


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

    ROWS_A_DIRECTION = 10  # for each direction with a level of its own, at least
    DIRECTIONS = 50  # with a level of their own, at most
    MARGIN = 1.05  # over the edge of noise: theory, two deviations with 300 rows
    TRIAL_ROWS = 2**11  # on which kinds of noise compete, at most
    TRIAL_ROUNDS = 10  # in which kinds of noise compete, at most
    COVARIANCES = 5  # times that labels may change the covariance
    SPARE = 8  # directions beyond those wanted
    POWERS = 6  # products that find all of these
    ROUNDS = 100  # for the covariance, at most
    CHANGE = 1e-4  # of the covariance; with less it has settled
    RIDGE = 1e-6  # least variance of a direction, in noise levels
    RATIO = 1e30  # noise beside a variance so much larger counts as none


class Scales:
    """Errors and the test of scales (``python benchmarks/inference.py``). By eye."""

    LEVEL = 0.05  # p-values below it mean that scales differ
    SLIGHT_SPREAD = 0.05  # spread of scales below which it does not matter
    WEAK_SPREAD = 0.75  # spread of scales above which no advice is given
    LARGEST_SHARE = 0.9  # of an entry in its row, of a row in its centre, at most
    ROWS = 2**17  # that show how noise is correlated: variances to half a percent
    UNLIKE = 1.5  # spread of a cluster, over that of all, that is told beside it
    FOLDS = 20  # without each of which the test looks again
    CORRELATED = 10  # rows for which it counts that noise is not: with fewer, it is
    PAIRED_ROWS = 256  # whose pairs show correlation, at most
    PAIRED_ENTRIES = 2**22  # whose pairs show correlation, at most


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
    TIMES = 3  # times as many strange rows as clusters have: outliers begin there
    LAST_TIMES = 1.5  # times as many: outliers go on down to there
    STRANGEST = 0.03  # share of the rows of clusters among which these are looked for
    CHANCE = 1e-3  # probability of so many by chance, at most
    JUMP = 8  # step of the noise, in mean excesses, that ordinary rows never make
    SHORT = 4  # rows as short as one in so many may be outliers at the start
    QUANTILES = 40  # of a distribution
    SMOOTHING = 4  # part of noise that smooths a distribution: one in so many
    RANGES = 8  # of lengths, at most
    ROWS_A_RANGE = 16  # of lengths, at least
    PRIOR_ROWS = 5  # rows of all clusters that count with those of one
    LEAST_NOISE = 1e-4  # share of the squared length of a row that is noise, at least
    LEAST_LENGTH = 1e-3  # of the median row of a cluster, beside the largest noise


class Refitting:
    """Fits to halves of the rows, which judge labels (``python benchmarks/trust.py``).

    By eye, but for the belief: with 1 and 1/4 expected errors rank sets no better.
    """

    ROWS = 2_000  # to draw, at most
    SPLITS = 3  # times that rows are halved
    ROWS_A_CLUSTER = 10  # with fewer, four fifths of the rows are fitted
    BELIEF = 0.5  # share of log-likelihoods that is believed
    SHORTEST = 0.1  # of the usual length: shorter rows are noise, all alike


class Counting:
    """How many clusters (``python benchmarks/count.py``).

    Chosen to one digit with all labelled sets in view, also those held out, and on
    designs. With a resolution from .4 to .6, and gaps that count a quarter to a half,
    the number was right in .32 to .46 of 81 sets; the half and the third were taken
    since no number of classes pays much for another. Less resolution and more gaps find
    two clusters more often, and seven or more less often.
    """

    ROWS = 600  # to draw, at most
    ROWS_A_WANTED = 10  # to draw for each cluster that may be found, at least
    ROWS_A_CLUSTER = 8  # at least, on average
    STEP = 1.2  # from one number that is tried to the next, beyond the first
    COLUMNS = 2**7  # of the matrix of cosines that are computed at a time
    # The graph
    NEIGHBORS = 10  # of a row, at least
    ROWS_A_NEIGHBOR = 60  # one in so many of many rows
    # The score
    RESOLUTION = 0.5  # of the links that chance gives; 1 sees more parts
    GAPS = 1 / 3  # of the silhouette, beside links
    FAR = 0.15  # in score below the best: no larger number was best beyond
    FAR_IN_A_ROW = 3  # such numbers, after which none is tried
    # One cluster or several
    CLOUDS = 3  # without clusters, to compare with
    CLOUD_NUMBERS = (2, 3, 4, 6, 8)  # for which rows are compared with them
    LEAD = 0.06  # in modularity over all clouds, from which there are several
    CLEAR_LEAD = 0.12  # from which that is certain
    # How sure
    PROMINENT = 0.02  # rise in score over numbers between, of a peak beside the best
    MARGIN = 0.05  # in score over other peaks, with which a number is not doubtful
    LEAST_LEAD = 0.02  # in score over other numbers, with which one can be certain
    NEARLY_AS_GOOD = 0.15  # in score below the best: such a number is plausible, too
    NEARLY_THE_SAME = 0.25  # of a number: such a one says the same
    CLEAR_GAPS = 0.5  # silhouette of clusters with clear gaps


class Levels:
    """At which numbers a tree of clusters is stable. By eye, on designs."""

    ROWS = 2_000  # to draw, at most
    LEAVES = (2, 3)  # for each cluster that was counted, and more
    LEAST_LEAVES = 6  # of any tree
    ROWS_A_LEAF = 5  # at least
    HALVINGS = (6, 2)  # of few and of many rows, two trees each
    MANY_ROWS = 1_000  # whose halves vary less
    AGREEMENT = 0.5  # of halves on a level
    LEVEL = 1.4  # sum of rise, drop and agreement of a level
    DROP_WEIGHT = 1.5  # of the drop, beside the rise; from 1 to 3 little changes
    BEYOND = 1.6  # support of a level of more clusters than were counted


class Trust:
    """What to think of labels: verdicts, and the calibration of expected errors.

    Fitted to the ten and the development sets, of which each counts the same, and at a
    tenth of their weight to designs. Which figures count, and the shape of the range,
    were chosen with all sets in view (``python benchmarks/trust.py``). Over 20 random
    halves of the sets the rank correlation was .64 by the doubt alone, and .69 with the
    rows in a cluster. No third figure made errors better known. Tried were purity of
    neighbours, width of memberships, disagreement of refits or of k-means, numbers of
    clusters, features and rows, and clearness.
    """

    CERTAIN = 0.9  # probability from which a label counts as certain
    WELL_SEPARATED = 0.05  # expected error below which clusters are well separated
    SEPARATED = 0.25  # expected error below which labels are mostly reliable
    CHANCE = 0.5  # instability, over the error of a guess, that is no separation
    LEAST_ROWS = 3  # of a cluster; with fewer, halves cannot judge it
    LEAST_JUDGED = 10  # rows beside given ones; of fewer nothing is known
    ROWS_A_CLUSTER = 450  # more say nothing else: no data had more
    SLOPE = 1.3  # of log-odds of errors with those of doubts, over chance
    SHIFT = -0.7  # of the log-odds of errors where those of doubts are 0
    UNKNOWN = 1e30  # temperature of memberships that say nothing
    LEAST = 0.04  # error over that of chance where nothing is in doubt: of real data
    MOST = 0.76  # error over that of chance where nothing is stable
    LEAST_SHARE = 0.01  # of the way from LEAST to MOST: beyond, ranges stay as they are
    LOWER = (0.8, -2.3)  # slope and shift of the lower end of a range of errors
    UPPER = (0.2, 2.4, -0.5)  # the same of its upper end, and with the logarithm of K
    ROWS = 0.5  # of the log-odds of a row with its lead
    MEAN_ROWS = 10_000  # rows that settle the mean certainty, about


class Cautions:
    """When a diagnosis says more than a verdict (``python benchmarks/trust.py``).

    Of shares in one column from .5 to .95, .8 lowered the mean error most.
    """

    AGREE = 0.9  # share of rows on which halves agree, at least
    MORE = 0.3  # by which halves agree more with each other than with labels
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
    WIDE = 100  # columns from which most are of one kind
    FEW_OFFSETS = 0.1  # share of columns with an offset that is ignored among these
