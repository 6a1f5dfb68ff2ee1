"""Arrays of any library: how they are recognised, and how they come to the host."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse as sp

Tall = Any
"""An array of n rows: of NumPy, of dask, or of another library on its device."""

AnyArray = Any
"""An array of any library and shape."""


def is_foreign(a: AnyArray) -> bool:
    """Tell whether ``a`` is an array of a library other than NumPy and SciPy."""
    if isinstance(a, (np.ndarray, np.generic)) or sp.issparse(a):
        return False

    if compat.is_torch_array(a) or compat.is_cupy_array(a):
        return True

    return hasattr(a, "__array_namespace__")


def is_lazy(a: AnyArray) -> bool:
    """Tell whether ``a`` is of dask, without the import of dask."""
    return type(a).__module__.partition(".")[0] == "dask"


def to_host(a: AnyArray) -> np.ndarray:
    """Return any array as a NumPy array; waits for the device or cluster."""
    if type(a) is np.ndarray:
        return a

    if is_lazy(a):
        from ihgmm.matrix.dask_blocks import compute  # only where there is dask

        (a,) = compute(a)

    if not is_foreign(a):
        return np.asarray(a)
    if hasattr(a, "detach"):  # torch
        return np.asarray(a.detach().to_dense().cpu().numpy())
    if compat.is_cupy_array(a):
        return np.asarray(a.get())

    # Any other library says which of its devices NumPy can read.
    info = compat.array_namespace(a).__array_namespace_info__()
    return np.asarray(compat.to_device(a, info.default_device()))
