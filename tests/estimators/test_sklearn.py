"""scikit-learn's own checks of the estimators; none is expected to fail."""

from importlib.util import find_spec

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ihgmm import (
    PSC,
    Biwhitener,
    IhGMM,
    IhSC,
    SDPKMeans,
    SphericalKMeans,
    TwoComponentLloyd,
)

ESTIMATORS = [
    IhSC(),
    IhSC.paper(),
    IhGMM(),
    PSC(),
    Biwhitener(),
    SphericalKMeans(),
    TwoComponentLloyd(),
]
if find_spec("cvxpy") is not None:
    ESTIMATORS.append(SDPKMeans(2, tol=1e-2))  # coarse, and a third of the time


@pytest.mark.filterwarnings(
    "ignore:.* rows are zero",
    "ignore:.* clusters were found",
    "ignore:.* are in one cluster",
    "ignore:In .* of the rows noise outweighs",
    "ignore:.* alternate between the two clusters",
)
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
