# ruff: noqa: E402
import os

# Each worker has a core of its own: threads of numerical libraries would only wait for
# each other. Set before NumPy is loaded; tests of threads ask for as many as they need.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

# A shell's background jobs ignore Ctrl-C, and would hand that on to the commands that
# tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
