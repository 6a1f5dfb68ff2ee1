"""Time IhSC on a CUDA device, on data made there.

    python benchmarks/gpu.py                             # 1 and 10 million rows
    python benchmarks/gpu.py 1000000x1000 200000x5000 --clusters 20
    python benchmarks/gpu.py 1000000x200 --calls         # what else there is, in fits

Needs torch and array-api-compat. The data follow the model: orthogonal centres, scales
from 1 to 20, noise of standard deviation 1, float32. The oracle knows the centres and
gives each row to the one with the largest cosine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from on_torch import K, spherical

from ihgmm import (
    IhGMM,
    IhSC,
    diagnose,
    estimate_parameters,
    scale_heterogeneity_test,
    select_n_clusters,
)
from ihgmm.metrics import misclassification_rate

BLOCK = 2**26
"""Entries of X that are made at a time."""


def make(
    n: int, p: int, k: int, length: float, device: str, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the data, their labels and the labels of the oracle."""
    rng = torch.Generator(device=device).manual_seed(seed)
    random = {"generator": rng, "device": device}
    directions, _ = torch.linalg.qr(torch.randn(p, k, **random))
    labels = torch.randint(k, (n,), **random)
    scales = 1 + 19 * torch.rand(n, **random)
    X = torch.empty(n, p, device=device)
    best = torch.empty_like(labels)
    for start in range(0, n, max(1, BLOCK // p)):
        rows = slice(start, start + max(1, BLOCK // p))
        X[rows].normal_(generator=rng)
        X[rows] += (length * scales[rows])[:, None] * directions.T[labels[rows]]
        best[rows] = (X[rows] @ directions).argmax(1)
    return X, labels, best


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[[], Any], device: str, rounds: int = 5) -> float:
    """Return the median time of some work, the first round not counted."""
    times = []
    for _ in range(rounds + 1):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def products(X: torch.Tensor, device: str) -> tuple[float, float]:
    """Return the times of ``X @ W`` and ``X.T @ V`` for blocks of 16 columns."""
    V = torch.randn(X.shape[0], 16, device=device)
    W = torch.randn(X.shape[1], 16, device=device)
    return seconds(lambda: X @ W, device), seconds(lambda: X.T @ V, device)


def error(labels: torch.Tensor, found: torch.Tensor) -> float:
    return misclassification_rate(labels.cpu().numpy(), found.cpu().numpy())


def measure(n: int, p: int, k: int, length: float, device: str, rounds: int) -> None:
    X, labels, best = make(n, p, k, length, device)
    size = X.numel() * X.element_size()
    print(f"\n{n:,} x {p:,}, K {k}: {size / 1e9:.1f} GB of float32 on {X.device}")
    forth, back = products(X, device)
    print(f"one product, 16 columns: X @ W {forth:.4f} s, X.T @ V {back:.4f} s")
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    times = []
    for seed in range(rounds):
        model = None  # or the last one would count as memory of this fit
        wait(device)
        start = time.perf_counter()
        model = IhSC(k, random_state=seed).fit(X)
        wait(device)
        times.append(time.perf_counter() - start)
    shown = ", ".join(f"{t:.3f}" for t in times)
    print(f"IhSC.fit: {shown} s; median {statistics.median(times):.3f} s,", end=" ")
    print(f"{statistics.median(times) / (forth + back):.1f} pairs of products")
    if device == "cuda":
        peak = torch.cuda.max_memory_allocated() - before
        print(f"peak memory beyond X: {peak / 1e9:.2f} GB, {peak / size:.1%} of X")
    print(f"error {error(labels, model.labels_):.5f},", end=" ")
    print(f"of the oracle {error(labels, best):.5f}")
    if k == K:
        found = spherical(X, 0)
        plain = seconds(lambda: spherical(X, 0), device, rounds)
        ratio = statistics.median(times) / plain
        print(f"spherical k-means in plain torch: {plain:.3f} s,", end=" ")
        print(f"error {error(labels, found):.5f}; IhSC takes {ratio:.2f} of that")


CALLS: dict[str, Callable[[Any, Any, int], Any]] = {
    "IhSC(refine=True)": lambda X, _, k: IhSC(k, refine=True, random_state=0).fit(X),
    "IhGMM": lambda X, _, k: IhGMM(k, random_state=0).fit(X),
    "estimate_parameters": lambda X, labels, _: estimate_parameters(X, labels),
    "diagnose": lambda X, labels, _: diagnose(X, labels),
    "scale_heterogeneity_test": lambda X, labels, _: scale_heterogeneity_test(
        X, labels
    ),
    "select_n_clusters": lambda X, *_: select_n_clusters(X, random_state=0),
}


def others(n: int, p: int, k: int, length: float, device: str, rounds: int) -> None:
    """Print what other calls take, in units of a fit."""
    X, _, _ = make(n, p, k, length, device)
    labels = IhSC(k, random_state=0).fit(X).labels_
    fit = seconds(lambda: IhSC(k, random_state=0).fit(X), device, rounds)
    print(f"\n{n:,} x {p:,}, K {k}: a fit takes {fit:.4f} s")
    for name, call in CALLS.items():
        took = seconds(partial(call, X, labels, k), device, rounds)
        print(f"  {name:26} {took:.3f} s, {took / fit:.1f} fits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sizes", nargs="*", default=["1000000x1000", "10000000x1000"], help="rows x p"
    )
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--length", type=float, default=2.0, help="norm of a centre; noise is 1"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--calls", action="store_true", help="time other calls too")
    options = parser.parse_args()
    print(f"torch {torch.__version__}, numpy {np.__version__}", end=", ")
    cuda = options.device == "cuda"
    print(torch.cuda.get_device_name() if cuda else options.device)
    warm, _, _ = make(50_000, 200, options.clusters, 2.0, options.device)
    IhSC(options.clusters, random_state=0).fit(warm)
    for text in options.sizes:
        n, p = (int(part) for part in text.split("x"))
        work = others if options.calls else measure
        work(n, p, options.clusters, options.length, options.device, options.rounds)


if __name__ == "__main__":
    main()
