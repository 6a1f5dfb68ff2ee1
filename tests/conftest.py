from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

KINDS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
}


@pytest.fixture(params=list(KINDS))
def kind(request):
    """A way to store a matrix; every test that asks for it runs for each."""
    return KINDS[request.param]


@pytest.fixture(scope="session")
def root():
    return Path(__file__).parents[1]
