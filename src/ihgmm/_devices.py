"""Arrays of other libraries, on whatever device they live.

Torch tensors, CuPy arrays and all that follow the array API standard. Their libraries
are recognised without being imported, and spoken to through ``array_api_compat``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "dtype_of",
    "is_device",
    "kind_of",
    "like",
    "moved",
    "namespace",
    "times",
    "to_host",
    "wide",
]

DeviceArray = Any
"""An array of a library other than NumPy."""


def is_device(a: Any) -> bool:
    """Tell whether ``a`` is an array of a library other than NumPy and SciPy."""
    if isinstance(a, (np.ndarray, np.generic)) or sp.issparse(a):
        return False
    if hasattr(a, "__array_namespace__"):
        return True
    names = (("torch", "Tensor"), ("cupy", "ndarray"))
    return any(isinstance(a, _type(*name)) for name in names)


def _type(module: str, name: str) -> Any:
    """Return a type of a module that has been imported already, or no type at all."""
    return getattr(sys.modules.get(module), name, ())


def kind_of(a: Any) -> str:
    """Return what to call an array of another library in a sentence."""
    device = getattr(a, "device", None)
    where = "" if device is None else f" on {device}"
    return f"{type(a).__module__.partition('.')[0]} array{where}"


def namespace(a: Any) -> Any:
    """Return the functions that go with ``a``: NumPy's, or the standard's."""
    return _compat(a).array_namespace(a) if is_device(a) else np


def _compat(a: DeviceArray) -> ModuleType:
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            f"X is a {kind_of(a)}, which takes the package array-api-compat: pip "
            "install array-api-compat. A NumPy copy of X needs nothing more."
        ) from error
    return array_api_compat


def dtype_of(a: Any) -> np.dtype:
    """Return float32 or float64, the type of ``a``, as NumPy calls it."""
    if not is_device(a):
        return np.dtype(a.dtype)
    narrow = a.dtype == namespace(a).float32
    return np.dtype(np.float32 if narrow else np.float64)


def to_host(a: Any) -> np.ndarray:
    """Return ``a`` as a NumPy array; waits for the device."""
    if not is_device(a):
        return np.asarray(a)
    if hasattr(a, "detach"):  # torch
        return np.asarray(a.detach().cpu().numpy())
    if isinstance(a, _type("cupy", "ndarray")):
        return np.asarray(a.get())
    host = namespace(a).__array_namespace_info__().default_device()
    return np.asarray(_compat(a).to_device(a, host))


def moved(a: Any, X: Any) -> Any:
    """Return ``a`` where X is, its type unchanged."""
    if not is_device(X) or is_device(a):
        return a
    xp = namespace(X)
    # Torch warns of arrays that are read-only.
    a = np.require(a, requirements=["C", "W"])
    dtype = _widest(X) if a.dtype == np.float64 else None
    return xp.asarray(a, dtype=dtype, device=_compat(X).device(X))


def like(a: Any, X: Any) -> Any:
    """Return ``a`` where X is and in X's type."""
    if not is_device(X):
        return a.astype(X.dtype, copy=False)
    if is_device(a):
        return namespace(X).astype(a, X.dtype, copy=False)
    return moved(a.astype(dtype_of(X), copy=False), X)


def wide(a: Any) -> Any:
    """Return ``a`` in float64, or in float32 on a device that has no other."""
    if not is_device(a):
        return a.astype(np.float64, copy=False)
    return namespace(a).astype(a, _widest(a), copy=False)


def _widest(a: DeviceArray) -> Any:
    xp = namespace(a)
    # Apple's GPUs know no float64.
    return xp.float32 if getattr(a.device, "type", "") == "mps" else xp.float64


def times(a: Any, factor: float) -> Any:
    """Return ``factor * a`` in the type of a."""
    if not is_device(a):
        return a * a.dtype.type(factor)
    return a * float(dtype_of(a).type(factor))
