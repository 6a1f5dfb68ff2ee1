"""The paper's definitions, lemmas and conditions, one function for each.

Sections, lemmas and tables are those of "Individual-heterogeneous sub-Gaussian mixture
models": definitions and Lemma 1 in ``definitions``; assumptions, Lemmas 2 to 4, Theorem
1 and Corollary 1 in ``theorem``; the table of other methods in ``comparison``; what is
possible at best, which is not in the paper, in ``limit``. The paper keeps
observations in columns; here they are rows, so that its P is the transpose of
:func:`signal`.

Functions of a model take its ``centers``, one in each row, the ``scales`` of its rows,
positive, and their ``labels``: whole numbers, the row of ``centers`` that each belongs
to, or labels of any kind where no centres are asked for. Functions of the theorem take
``parameters``, as :func:`model_parameters` computes them, and thresholds the numbers
n (at least 2), p and K. Where the text has a slip or a bound can be sharper, the page
:doc:`theory </theory>` says so, function by function.
"""

from ihgmm.paper.theory.comparison import (
    chen_threshold,
    cluster_limits,
    ihsc_threshold,
    loeffler_threshold,
    ndaoud_threshold,
    thresholds,
    zhang_threshold,
)
from ihgmm.paper.theory.definitions import (
    IdealEmbedding,
    Incoherence,
    ModelParameters,
    balance,
    condition_number,
    ideal_embedding,
    incoherence,
    model_parameters,
    scale_ratio,
    separation,
    signal,
    signal_condition_number,
    signal_singular_values,
    size_ratio,
    sub_gaussian_norm,
    weighted_sizes,
)
from ihgmm.paper.theory.limit import exact_recovery_limit, oracle_errors
from ihgmm.paper.theory.theorem import (
    EntryConstants,
    ErrorTerms,
    PerturbationConditions,
    TheoremConditions,
    entry_constants,
    error_bound,
    explicit_error_bound,
    incoherence_bounds,
    kmeans_radius,
    perturbation_conditions,
    row_norm_bound,
    signal_condition_number_bound,
    smallest_singular_value_bound,
    subspace_constant,
    theorem_conditions,
)
from ihgmm.statistics.model import CorollaryConditions, corollary_conditions

__all__ = [
    "CorollaryConditions", "EntryConstants", "ErrorTerms", "IdealEmbedding",
    "Incoherence", "ModelParameters", "PerturbationConditions", "TheoremConditions",
    "balance", "chen_threshold", "cluster_limits", "condition_number",
    "corollary_conditions", "entry_constants", "error_bound", "exact_recovery_limit",
    "explicit_error_bound", "ideal_embedding", "ihsc_threshold", "incoherence",
    "incoherence_bounds", "kmeans_radius", "loeffler_threshold", "model_parameters",
    "ndaoud_threshold", "oracle_errors", "perturbation_conditions", "row_norm_bound",
    "scale_ratio", "separation", "signal", "signal_condition_number",
    "signal_condition_number_bound", "signal_singular_values", "size_ratio",
    "smallest_singular_value_bound", "sub_gaussian_norm", "subspace_constant",
    "theorem_conditions", "thresholds", "weighted_sizes", "zhang_threshold",
]  # fmt: skip
