"""scikit-learn's own checks of the estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ihgmm import PSC, IhSC, SphericalKMeans


@pytest.mark.filterwarnings("ignore:.* rows are zero", "ignore:.* clusters were found")
@parametrize_with_checks([IhSC(), PSC(), SphericalKMeans()])
def test_estimator_checks(estimator, check):
    check(estimator)
