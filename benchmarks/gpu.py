"""Time IhSC and its peers on a CUDA device, on data made there.

    python benchmarks/gpu.py --save                 # all tables, about ten minutes
    python benchmarks/gpu.py dense --sizes 1000000x1000x20 200000x5000x10
    python benchmarks/gpu.py sparse --sizes 20000x2000x5 --device cpu  # to try it out
    IHGMM_BEFORE=old/src python benchmarks/gpu.py   # beside another version

Needs torch and array-api-compat, and takes flash-kmeans and CuPy where they are
installed. Sizes are rows, features and clusters. Dense data follow the model:
orthogonal centres of length 2, scales from 1 to 20, noise of level 1, float32; the
oracle knows the centres and takes the largest product. Methods take turns on each draw,
each twice: the second call counts, when kernels are loaded and memory is at hand.
Sparse rows have an entry in each of many groups of columns, which in three of ten
groups is in the column that their cluster prefers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from measure import markdown, names_asked, save
from methods import before_environment, has_before
from scipy.optimize import linear_sum_assignment

from ihgmm import (
    IhGMM,
    IhSC,
    diagnose,
    estimate_parameters,
    scale_heterogeneity_test,
    select_n_clusters,
)

SIZES = {
    "dense": [
        "1000000x1000x10", "1000000x1000x50", "1000000x1000x100", "1000000x200x10",
        "100000x100x10", "10000000x1000x10", "10000000x1000x50",
    ],
    "calls": ["1000000x200x10"],
    "sparse": ["1000000x20000x10"],
}  # fmt: skip
DENSITY = 0.01
BLOCK = 2**26  # entries of X that are made at a time
Size = tuple[int, int, int]
Table = list[list[str]]


def make(
    n: int, p: int, k: int, device: str, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return dense data, their labels and the labels of the oracle."""
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
        X[rows] += (2 * scales[rows])[:, None] * directions.T[labels[rows]]
        best[rows] = (X[rows] @ directions).argmax(1)
    return X, labels, best


def make_sparse(n: int, p: int, k: int, device: str) -> tuple[Any, torch.Tensor]:
    """Return the three arrays of CSR, and labels."""
    rng = torch.Generator(device=device).manual_seed(0)
    random = {"generator": rng, "device": device}
    groups = max(1, round(p * DENSITY))
    width = p // groups
    preferred = torch.randint(width, (k, groups), **random)
    labels = torch.randint(k, (n,), **random)
    columns = torch.randint(width, (n, groups), **random)
    liked = torch.rand(n, groups, **random) < 0.3
    columns = torch.where(liked, preferred[labels], columns)
    columns += width * torch.arange(groups, device=device)
    values = (1 + 19 * torch.rand(n, 1, **random)) * torch.rand(n, groups, **random)
    indptr = groups * torch.arange(n + 1, device=device)
    return (indptr, columns.ravel(), values.ravel()), labels


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed_on(device: str, work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds until the device has done some work, and its value."""
    wait(device)
    start = time.perf_counter()
    value = work()
    wait(device)
    return time.perf_counter() - start, value


def error(labels: torch.Tensor, found: Any, k: int) -> float:
    """Return the share of labels that are wrong, counted on the device."""
    found = torch.as_tensor(found, device=labels.device)
    common = torch.bincount(labels * k + found, minlength=k * k).reshape(k, k)
    common = common.cpu().numpy()
    return 1 - float(common[linear_sum_assignment(-common)].sum()) / len(labels)


# -- methods ---------------------------------------------------------------------------


def ihsc(X: Any, k: int, seed: int = 0) -> Any:
    return IhSC(k, random_state=seed).fit(X).labels_


def spherical(X: torch.Tensor, k: int, seed: int) -> torch.Tensor:
    """Lloyd's iterations by cosine, from a k-means++ start, in plain torch.

    With centres that are means of unit rows, the one that serves two clusters is short
    and attracts the noisy rows of all; unit centres do better.
    """
    rng = torch.Generator(device=X.device).manual_seed(seed)
    unit = torch.nn.functional.normalize(X)
    centers = unit[torch.randint(len(X), (1,), generator=rng, device=X.device)]
    far = 1 - unit @ centers[0]
    while len(centers) < k:
        mass = far.clamp(min=0).double().cumsum(0)
        drawn = torch.rand(1, generator=rng, device=X.device).double() * mass[-1]
        new = unit[torch.searchsorted(mass, drawn).clamp(max=len(X) - 1)]
        centers, far = torch.cat([centers, new]), torch.minimum(far, 1 - unit @ new[0])
    for _ in range(100):
        labels = (unit @ centers.T).argmax(1)
        members = torch.nn.functional.one_hot(labels, k).to(X.dtype)
        updated = torch.nn.functional.normalize(members.T @ unit)
        shift, centers = ((updated - centers) ** 2).sum(), updated
        if shift <= 1e-4:
            break
    return labels


def flash(X: torch.Tensor, k: int, seed: int) -> torch.Tensor:
    from flash_kmeans import batch_kmeans_Cosine

    torch.manual_seed(seed)
    return batch_kmeans_Cosine(X[None], k, max_iters=100, tol=1e-4)[0][0]


METHODS: dict[str, Callable[[Any, int, int], Any]] = {
    "IhSC": ihsc,
    "spherical k-means, plain torch": spherical,
}
if find_spec("flash_kmeans"):
    METHODS["flash-kmeans, cosine"] = flash


# -- tables ----------------------------------------------------------------------------


def compare(
    size: Size, names: list[str], device: str, rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Return times of methods and their errors beyond the oracle's, by draw."""
    n, p, k = size
    figures: dict[str, dict[str, list[float]]] = {
        name: {"seconds": [], "errors": [], "oracle": []} for name in names
    }
    X = None
    for seed in range(rounds):
        del X  # or there would be no memory for the next
        X, labels, best = make(n, p, k, device, seed)
        oracle = error(labels, best, k)
        for name in names:
            work = partial(METHODS[name], X, k, seed)
            work()
            seconds, found = timed_on(device, work)
            figures[name]["seconds"].append(seconds)
            figures[name]["errors"].append(error(labels, found, k) - oracle)
            figures[name]["oracle"].append(oracle)
            del found, work
    return figures


def before(size: Size, device: str, rounds: int) -> dict[str, list[float]]:
    """Return the same figures of IhSC in another version, in a process of its own."""
    given = json.dumps([size, ["IhSC"], device, rounds])
    done = subprocess.run(
        [sys.executable, __file__, "--process", given],
        env=before_environment(), stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)["IhSC"]


def cost(size: Size) -> list[str]:
    """Return memory beyond X, launches and copies of a fit on a CUDA device."""
    X, _, _ = make(*size, "cuda")
    k, n_bytes = size[2], X.numel() * X.element_size()
    ihsc(X, k)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    ihsc(X, k)
    beyond = torch.cuda.max_memory_allocated() - held
    with torch.profiler.profile() as profile:
        ihsc(X, k)
    counts = {event.key: event.count for event in profile.key_averages()}
    calls = (str(counts[name]) for name in ("cudaLaunchKernel", "cudaMemcpyAsync"))
    return [f"{beyond / 1e9:.2f} GB, {beyond / n_bytes:.0%}", *calls]


def shown(size: Size) -> str:
    return f"{size[0]:,} x {size[1]:,}, K {size[2]}"


def dense(sizes: list[Size], device: str, rounds: int) -> list[Table]:
    head = ["data", "method", "seconds", "error beyond the oracle's", "oracle"]
    table: Table = [["Dense data: medians, least and most; means and largest"], head]
    costs: Table = [["A fit"], ["data", "memory beyond X", "launches", "copies"]]
    for size in sizes:
        figures = {"before": before(size, device, rounds)} if has_before() else {}
        figures |= compare(size, list(METHODS), device, rounds)
        for name, each in figures.items():
            times, errors = each["seconds"], each["errors"]
            median, mean = statistics.median(times), statistics.mean(errors)
            table.append([
                shown(size), name,
                f"{median:.4f} ({min(times):.4f} to {max(times):.4f})",
                f"{mean:+.4f} ({max(errors):+.4f})",
                f"{statistics.mean(each['oracle']):.4f}",
            ])  # fmt: skip
            print(*table[-1], sep=" | ", flush=True)
        if device == "cuda":
            costs.append([shown(size), *cost(size)])
    return [table, costs] if device == "cuda" else [table]


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


def calls(sizes: list[Size], device: str, rounds: int) -> list[Table]:
    """Return what other calls take, in units of a fit."""
    tables = []
    for size in sizes:
        X, _, _ = make(*size, device)
        k, labels = size[2], ihsc(X, size[2])

        def median(work: Callable[[], Any]) -> float:
            work()
            return statistics.median(timed_on(device, work)[0] for _ in range(rounds))

        fit = median(partial(ihsc, X, k))
        table: Table = [[f"{shown(size)}, in fits of {fit:.3f} s"], ["call", "fits"]]
        for name, call in CALLS.items():
            table.append([name, f"{median(partial(call, X, labels, k)) / fit:.1f}"])
            print(*table[-1], sep=" | ", flush=True)
        tables.append(table)
    return tables


def sparse_kinds(parts: Any, shape: tuple[int, int]) -> dict[str, Callable[[], Any]]:
    """Return the ways to hold a sparse matrix, the host's first."""
    indptr, indices, values = parts

    def in_torch(dtype: torch.dtype) -> torch.Tensor:
        arrays = (indptr.to(dtype), indices.to(dtype), values)
        return torch.sparse_csr_tensor(*arrays, shape, check_invariants=False)

    def in_scipy() -> sp.csr_array:
        arrays = (a.cpu().numpy() for a in (values, indices.int(), indptr.int()))
        return sp.csr_array(tuple(arrays), shape=shape)

    def in_cupy() -> Any:
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        arrays = (cupy.from_dlpack(a) for a in (values, indices.int(), indptr.int()))
        return csr_matrix(tuple(arrays), shape=shape)

    kinds = {
        "SciPy, on the host": in_scipy,
        "torch, 64-bit indices": partial(in_torch, torch.int64),
        "torch, 32-bit indices": partial(in_torch, torch.int32),
    }
    if values.device.type == "cuda" and find_spec("cupy"):
        kinds["CuPy"] = in_cupy
    return kinds


def sparse(sizes: list[Size], device: str, rounds: int) -> list[Table]:
    tables = []
    for n, p, k in sizes:
        parts, labels = make_sparse(n, p, k, device)
        title = f"{shown((n, p, k))}, {len(parts[2]) / 1e6:.1f} million entries"
        table: Table = [[title], ["X", "seconds", "x SciPy", "error"]]
        host = np.nan
        for name, make_matrix in sparse_kinds(parts, (n, p)).items():
            X = make_matrix()
            work = partial(ihsc, X, k)
            found = work()
            few = range(min(rounds, 3))
            median = statistics.median(timed_on(device, work)[0] for _ in few)
            host = median if np.isnan(host) else host
            rate = error(labels, found, k)
            cells = (f"{median:.3f}", f"{median / host:.3f}", f"{rate:.5f}")
            table.append([name, *cells])
            print(*table[-1], sep=" | ", flush=True)
            del X, work, found
        tables.append(table)
    return tables


TABLES = {"dense": dense, "calls": calls, "sparse": sparse}


def main() -> None:
    if sys.argv[1:2] == ["--process"]:
        print(json.dumps(compare(*json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help=", ".join(TABLES))
    parser.add_argument("--sizes", nargs="+", help="as 1000000x1000x10")
    parser.add_argument("--rounds", type=int, default=10, help="draws, or calls")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--save", action="store_true", help="to gpu.md")
    options = parser.parse_args()
    cuda = options.device == "cuda"
    machine = torch.cuda.get_device_name() if cuda else ""
    warm, _, _ = make(50_000, 200, 10, options.device)
    first, _ = timed_on(options.device, partial(ihsc, warm, 10))
    text = "# Benchmark on a GPU\n\n`python benchmarks/gpu.py`. "
    text += f"The first fit of a process, 50,000 x 200: {first:.2f} s.\n"
    for name in names_asked(parser, options.tables, TABLES):
        sizes = [
            tuple(map(int, size.split("x"))) for size in options.sizes or SIZES[name]
        ]
        for table in TABLES[name](sizes, options.device, options.rounds):
            text += "\n" + markdown(table)
    print(text)
    if options.save:
        save("gpu.md", text, machine)


if __name__ == "__main__":
    main()
