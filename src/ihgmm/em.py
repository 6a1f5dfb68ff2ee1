"""Old path and old signature, until imports elsewhere are rewritten."""
# ruff: noqa: F401
# mypy: implicit-reexport, allow-untyped-defs

from typing import Any

from ihgmm.statistics import likelihood
from ihgmm.statistics.likelihood import Mixture, evaluate_mixture, fit_mixture


def joint_log_likelihood(
    found: Any, sqnorms: Any, n_features: int, shares: Any, variances: Any
) -> Any:
    """Return the log-likelihood of each row together with each cluster."""
    return likelihood.joint_log_likelihood(found, shares, variances)
