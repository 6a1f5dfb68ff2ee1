"""Time IhSC and its peers on a CUDA device, on data made there.

    python benchmarks/gpu.py                             # seven sizes, a few minutes
    python benchmarks/gpu.py 1000000x1000 200000x5000 --clusters 20
    python benchmarks/gpu.py 1000000x200 --calls         # what else there is, in fits

Needs torch and array-api-compat, and takes flash-kmeans where it is installed. The data
follow the model: orthogonal centres, scales from 1 to 20, noise of standard deviation
1, float32. The oracle knows the centres and gives each row to the one with the largest
cosine. Methods take turns on each draw of the data, each twice: the second call counts,
when kernels are loaded and memory is at hand.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from on_torch import spherical
from scipy.optimize import linear_sum_assignment

from ihgmm import (
    IhGMM,
    IhSC,
    diagnose,
    estimate_parameters,
    scale_heterogeneity_test,
    select_n_clusters,
)

SIZES = (
    (1_000_000, 1_000, 10),
    (1_000_000, 1_000, 50),
    (1_000_000, 1_000, 100),
    (1_000_000, 200, 10),
    (100_000, 100, 10),
    (10_000_000, 1_000, 10),
    (10_000_000, 1_000, 50),
)

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


def error(labels: torch.Tensor, found: torch.Tensor, k: int) -> float:
    """Return the share of labels that are wrong, counted on the device."""
    found = torch.as_tensor(found, device=labels.device)
    common = torch.bincount(labels * k + found, minlength=k * k).reshape(k, k)
    common = common.cpu().numpy()
    return 1 - float(common[linear_sum_assignment(-common)].sum()) / len(labels)


def flash(X: torch.Tensor, seed: int, k: int) -> torch.Tensor:
    from flash_kmeans import batch_kmeans_Cosine

    torch.manual_seed(seed)
    return batch_kmeans_Cosine(X[None], k, max_iters=100, tol=1e-4)[0][0]


METHODS: dict[str, Callable[[torch.Tensor, int, int], Any]] = {
    "IhSC": lambda X, seed, k: IhSC(k, random_state=seed).fit(X).labels_,
    "spherical k-means, plain torch": spherical,
}
if find_spec("flash_kmeans"):
    METHODS["flash-kmeans, cosine"] = flash


def measure(n: int, p: int, k: int, length: float, device: str, rounds: int) -> None:
    """Print times and errors of all methods, and the memory and launches of IhSC."""
    times: dict[str, list[float]] = {name: [] for name in METHODS}
    errors: dict[str, list[float]] = {name: [] for name in METHODS}
    X = None
    for seed in range(rounds):
        del X  # or there would be no memory for the next
        X, labels, best = make(n, p, k, length, device, seed)
        oracle = error(labels, best, k)
        for name, method in METHODS.items():
            method(X, seed, k)
            wait(device)
            start = time.perf_counter()
            found = method(X, seed, k)
            wait(device)
            times[name].append(time.perf_counter() - start)
            errors[name].append(error(labels, found, k) - oracle)
            del found
    for name in METHODS:
        took, beyond = times[name], errors[name]
        print(
            f"| {n:,} x {p:,}, K {k} | {name} | {statistics.median(took):.4f} "
            f"({min(took):.4f} to {max(took):.4f}) | {statistics.mean(beyond):+.4f} "
            f"({max(beyond):+.4f}) | {oracle:.4f} |",
            flush=True,
        )
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        IhSC(k, random_state=0).fit(X)
        peak = torch.cuda.max_memory_allocated() - before
        size = X.numel() * X.element_size()
        print(f"IhSC takes {peak / 1e9:.2f} GB beyond X, {peak / size:.1%}", end="; ")
        with torch.profiler.profile() as profile:
            IhSC(k, random_state=0).fit(X)
        counts = {event.key: event.count for event in profile.key_averages()}
        launches, copies = counts["cudaLaunchKernel"], counts["cudaMemcpyAsync"]
        print(f"{launches} launches and {copies} copies", flush=True)


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
    parser.add_argument("sizes", nargs="*", help="rows x p, as 1000000x1000")
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--length", type=float, default=2.0, help="norm of a centre; noise is 1"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--calls", action="store_true", help="time other calls too")
    options = parser.parse_args()
    print(f"torch {torch.__version__}, numpy {np.__version__}", end=", ")
    cuda = options.device == "cuda"
    print(torch.cuda.get_device_name() if cuda else options.device)
    sizes = SIZES
    if options.sizes:
        asked = (map(int, text.split("x")) for text in options.sizes)
        sizes = tuple((n, p, options.clusters) for n, p in asked)
    warm, _, _ = make(50_000, 200, options.clusters, 2.0, options.device)
    start = time.perf_counter()
    IhSC(options.clusters, random_state=0).fit(warm)
    wait(options.device)
    first = time.perf_counter() - start
    print(f"the first fit of the process, 50,000 x 200: {first:.2f} s")
    if not options.calls:
        print("| | method | seconds | error beyond the oracle's | oracle |")
        print("|---|---|---:|---:|---:|")
    for n, p, k in sizes:
        work = others if options.calls else measure
        work(n, p, k, options.length, options.device, options.rounds)


if __name__ == "__main__":
    main()
