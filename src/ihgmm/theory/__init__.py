"""The paper's definitions, lemmas and conditions, one function for each.

Sections, lemmas and tables are those of "Individual-heterogeneous sub-Gaussian mixture
models". The paper keeps observations in columns; here they are rows, so that its P is
the transpose of :func:`signal`. The names in the code follow the words of the package:

- definitions (sections 2 to 4): :func:`separation`, :func:`balance`,
  :func:`size_ratio`, :func:`scale_ratio`, :func:`condition_number`,
  :func:`weighted_sizes`, :func:`signal`, :func:`signal_singular_values`,
  :func:`signal_condition_number`, :func:`incoherence`, :func:`sub_gaussian_norm`;
- Lemma 1: :func:`ideal_embedding`, :func:`row_norm_bound`;
- assumptions and lemmas: :func:`entry_constants`, :func:`subspace_constant`,
  :func:`incoherence_bounds`, :func:`smallest_singular_value_bound`,
  :func:`signal_condition_number_bound`;
- Theorem 1, its proof and Corollary 1: :func:`model_parameters`,
  :func:`theorem_conditions`, :func:`perturbation_conditions`, :func:`error_bound`,
  :func:`explicit_error_bound`, :func:`kmeans_radius`, :func:`corollary_conditions`;
- the comparison table: :func:`thresholds`, :func:`cluster_limits`.
"""

from ihgmm.theory.bounds import (
    EntryConstants,
    entry_constants,
    incoherence_bounds,
    row_norm_bound,
    signal_condition_number_bound,
    smallest_singular_value_bound,
    subspace_constant,
)
from ihgmm.theory.comparison import (
    chen_threshold,
    cluster_limits,
    ihsc_threshold,
    loeffler_threshold,
    ndaoud_threshold,
    thresholds,
    zhang_threshold,
)
from ihgmm.theory.conditions import (
    CorollaryConditions,
    PerturbationConditions,
    TheoremConditions,
    corollary_conditions,
    perturbation_conditions,
    theorem_conditions,
)
from ihgmm.theory.errors import (
    ErrorTerms,
    error_bound,
    explicit_error_bound,
    kmeans_radius,
)
from ihgmm.theory.parameters import ModelParameters, model_parameters
from ihgmm.theory.quantities import (
    balance,
    condition_number,
    scale_ratio,
    separation,
    size_ratio,
    sub_gaussian_norm,
    weighted_sizes,
)
from ihgmm.theory.signals import (
    IdealEmbedding,
    Incoherence,
    ideal_embedding,
    incoherence,
    signal,
    signal_condition_number,
    signal_singular_values,
)

__all__ = [
    "CorollaryConditions",
    "EntryConstants",
    "ErrorTerms",
    "IdealEmbedding",
    "Incoherence",
    "ModelParameters",
    "PerturbationConditions",
    "TheoremConditions",
    "balance",
    "chen_threshold",
    "cluster_limits",
    "condition_number",
    "corollary_conditions",
    "entry_constants",
    "error_bound",
    "explicit_error_bound",
    "ideal_embedding",
    "ihsc_threshold",
    "incoherence",
    "incoherence_bounds",
    "kmeans_radius",
    "loeffler_threshold",
    "model_parameters",
    "ndaoud_threshold",
    "perturbation_conditions",
    "row_norm_bound",
    "scale_ratio",
    "separation",
    "signal",
    "signal_condition_number",
    "signal_condition_number_bound",
    "signal_singular_values",
    "size_ratio",
    "smallest_singular_value_bound",
    "sub_gaussian_norm",
    "subspace_constant",
    "theorem_conditions",
    "thresholds",
    "weighted_sizes",
    "zhang_threshold",
]
