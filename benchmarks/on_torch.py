"""A torch tensor on the CPU or a CUDA device: IhSC and k-means in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from measure import measured, timed
from out_of_core import K, P

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

LENGTH = 2.0
"""Norm of a centre; noise has standard deviation 1 and scales are from 1 to 20."""

WARM = 50_000
"""Rows of a first fit that is not measured: it loads kernels and libraries."""


def ihsc(X: Any, seed: int) -> Any:
    return IhSC(K, random_state=seed).fit(X).labels_


def spherical(X: Any, seed: int, k: int = K, most: int = 100, tol: float = 1e-4) -> Any:
    """Lloyd's iterations by cosine, from a k-means++ start, in plain torch.

    With centres that are means of unit rows, the one that serves two clusters is short
    and attracts the noisy rows of all; unit centres do better.
    """
    import torch

    rng = torch.Generator(device=X.device).manual_seed(seed)
    unit = torch.nn.functional.normalize(X)
    centers = unit[torch.randint(len(X), (1,), generator=rng, device=X.device)]
    far = 1 - unit @ centers[0]
    while len(centers) < k:
        mass = far.clamp(min=0).double().cumsum(0)
        drawn = torch.rand(1, generator=rng, device=X.device).double() * mass[-1]
        new = unit[torch.searchsorted(mass, drawn).clamp(max=len(X) - 1)]
        centers, far = torch.cat([centers, new]), torch.minimum(far, 1 - unit @ new[0])
    for _ in range(most):
        labels = (unit @ centers.T).argmax(1)
        members = torch.nn.functional.one_hot(labels, k).to(X.dtype)
        moved = torch.nn.functional.normalize(members.T @ unit)
        shift, centers = ((moved - centers) ** 2).sum(), moved
        if shift <= tol:
            break
    return labels


def fast_kmeans(X: Any, seed: int) -> Any:
    import torch
    from fast_pytorch_kmeans import KMeans

    torch.manual_seed(seed)
    return KMeans(K, mode="cosine", init_method="kmeans++").fit_predict(
        torch.nn.functional.normalize(X)
    )


def ihsc_numpy(X: Any, seed: int) -> np.ndarray:
    return IhSC(K, random_state=seed).fit(X.numpy()).labels_


METHODS: dict[str, Callable[[Any, int], Any]] = {
    "IhSC on the tensor": ihsc,
    "spherical k-means, plain torch": spherical,
    "fast-pytorch-kmeans, cosine": fast_kmeans,
}
ON_CPU: dict[str, Callable[[Any, int], Any]] = {
    "IhSC on the same memory as a NumPy array": ihsc_numpy
}
PACKAGES = (
    "ihgmm", "numpy", "scikit-learn", "torch", "array-api-compat",
    "fast-pytorch-kmeans",
)  # fmt: skip
NOTE = (
    "The tensor is on its device when the clock starts and labels are when it stops; "
    "each time in a fresh process, after a smaller fit that loads what is loaded late. "
    "k-means++ starts, at most 100 iterations."
)


def methods(device: str) -> dict[str, Callable[[Any, int], Any]]:
    return METHODS | (ON_CPU if device == "cpu" else {})


def devices() -> list[str]:
    import torch

    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def named(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else ""


def measure(name: str, device: str, gigabytes: float, seed: int) -> dict[str, float]:
    import torch
    from gpu import make

    method = methods(device)[name]
    X, labels, best = make(int(gigabytes * 1e9 / 4 / P), P, K, LENGTH, device)
    work = measured if device == "cpu" else _on_device
    try:
        method(X[:WARM], seed)
        figures, found = work(lambda: method(X, seed))
    except torch.OutOfMemoryError as error:
        raise MemoryError from error
    truth = _host(labels)
    error = misclassification_rate(truth, _host(found))
    oracle = misclassification_rate(truth, _host(best))
    return figures | {"error": error, "oracle": oracle}


def _on_device(call: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Measure some work and the memory that torch takes on the device for it."""
    import torch

    def finished() -> Any:
        value = call()
        torch.cuda.synchronize()
        return value

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.cuda.synchronize()
    seconds, value = timed(finished)
    most = torch.cuda.max_memory_allocated()
    return {"seconds": seconds, "before": before / 1e9, "peak": most / 1e9}, value


def _host(labels: Any) -> np.ndarray:
    return np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)
