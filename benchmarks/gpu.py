"""Time IhSC and its peers on a CUDA device, on data made there.

    python benchmarks/gpu.py --save                 # all tables, about ten minutes
    python benchmarks/gpu.py dense --sizes 1000000x1000x20 200000x5000x10
    python benchmarks/gpu.py sparse --sizes 20000x2000x5 --device cpu  # to try it out

Needs torch and array-api-compat, and takes CuPy where it is installed. Sizes are rows,
features and clusters. Dense data follow the model: orthogonal centres of length 2,
scales from 1 to 20, noise of level 1, float32; the oracle knows the centres and takes
the largest product. Methods take turns on each draw, each twice: the second call
counts, when kernels are loaded and memory is at hand. Sparse rows have an entry in each
of many groups of columns, which in three of ten groups is in the column that their
cluster prefers.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from measure import Table, arguments, markdown, publish
from scipy.optimize import linear_sum_assignment
from torch import Tensor

import ihgmm
from ihgmm import IhGMM, IhSC

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


def make(n: int, p: int, k: int, device: str, seed: int = 0) -> tuple[Tensor, ...]:
    """Return dense data, their labels and the labels of the oracle."""
    rng = torch.Generator(device=device).manual_seed(seed)
    options = {"generator": rng, "device": device}
    directions, _ = torch.linalg.qr(torch.randn(p, k, **options))
    labels = torch.randint(k, (n,), **options)
    scales = 1 + 19 * torch.rand(n, **options)
    X = torch.empty(n, p, device=device)
    oracle_labels = torch.empty_like(labels)

    for start in range(0, n, max(1, BLOCK // p)):
        rows = slice(start, start + max(1, BLOCK // p))
        X[rows].normal_(generator=rng)
        X[rows] += (2 * scales[rows])[:, None] * directions.T[labels[rows]]
        oracle_labels[rows] = (X[rows] @ directions).argmax(1)

    return X, labels, oracle_labels


def make_sparse(n: int, p: int, k: int, device: str) -> tuple[Any, Tensor]:
    """Return the three arrays of CSR, and labels."""
    rng = torch.Generator(device=device).manual_seed(0)
    options = {"generator": rng, "device": device}
    groups = max(1, round(p * DENSITY))
    width = p // groups
    preferred = torch.randint(width, (k, groups), **options)
    labels = torch.randint(k, (n,), **options)
    columns = torch.randint(width, (n, groups), **options)
    is_preferred = torch.rand(n, groups, **options) < 0.3
    columns = torch.where(is_preferred, preferred[labels], columns)
    columns += width * torch.arange(groups, device=device)
    values = (1 + 19 * torch.rand(n, 1, **options)) * torch.rand(n, groups, **options)
    indptr = groups * torch.arange(n + 1, device=device)

    return (indptr, columns.ravel(), values.ravel()), labels


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds until the device has done some work, and its value."""
    wait = torch.cuda.synchronize if torch.cuda.is_initialized() else lambda: None
    wait()
    start = time.perf_counter()
    value = work()
    wait()

    return time.perf_counter() - start, value


def median_time(work: Callable[[], Any], rounds: int) -> float:
    """Return the median seconds of calls, after a first one that does not count."""
    work()
    return statistics.median(timed(work)[0] for _ in range(rounds))


def error(labels: Tensor, predicted: Any, k: int) -> float:
    """Return the share of labels that are wrong, counted on the device."""
    predicted = torch.as_tensor(predicted, device=labels.device)
    overlaps = torch.bincount(labels * k + predicted, minlength=k * k).reshape(k, k)
    overlaps = overlaps.cpu().numpy()
    return 1 - float(overlaps[linear_sum_assignment(-overlaps)].sum()) / len(labels)


def ihsc(X: Any, k: int, seed: int = 0) -> Any:
    return IhSC(k, random_state=seed).fit(X).labels_


def spherical(X: Tensor, k: int, seed: int) -> Tensor:
    """Lloyd's iterations by cosine, from a k-means++ start, in plain torch.

    With centres that are means of unit rows, the one that serves two clusters is short
    and attracts the noisy rows of all; unit centres do better.
    """
    rng = torch.Generator(device=X.device).manual_seed(seed)
    unit = torch.nn.functional.normalize(X)
    centers = unit[torch.randint(len(X), (1,), generator=rng, device=X.device)]
    distances = 1 - unit @ centers[0]

    while len(centers) < k:
        cumulative = distances.clamp(min=0).double().cumsum(0)
        drawn = torch.rand(1, generator=rng, device=X.device).double() * cumulative[-1]
        center = unit[torch.searchsorted(cumulative, drawn).clamp(max=len(X) - 1)]
        centers = torch.cat([centers, center])
        distances = torch.minimum(distances, 1 - unit @ center[0])

    for _ in range(100):
        labels = (unit @ centers.T).argmax(1)
        members = torch.nn.functional.one_hot(labels, k).to(X.dtype)
        updated = torch.nn.functional.normalize(members.T @ unit)
        shift = ((updated - centers) ** 2).sum()
        centers = updated
        if shift <= 1e-4:
            break

    return labels


METHODS = {"IhSC": ihsc, "spherical k-means, plain torch": spherical}


def shown(size: Size) -> str:
    return f"{size[0]:,} x {size[1]:,}, K {size[2]}"


def dense(sizes: list[Size], device: str, rounds: int) -> Table:
    yield ["Dense data: medians, least and most; means and largest"]
    yield ["data", "method", "seconds", "error beyond the oracle's", "oracle"]
    X = None

    for size in sizes:
        figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in METHODS}
        for seed in range(rounds):
            del X  # or there would be no memory for the next
            X, labels, oracle_labels = make(*size, device, seed)
            k = size[2]
            oracle = error(labels, oracle_labels, k)

            for name, method in METHODS.items():
                work = partial(method, X, k, seed)
                work()
                seconds, labels_of_method = timed(work)
                excess = error(labels, labels_of_method, k) - oracle
                figures[name].append((seconds, excess, oracle))
                del labels_of_method, work

        for name, draws in figures.items():
            times, errors, oracles = zip(*draws, strict=True)
            median = statistics.median(times)
            mean = statistics.mean(errors)
            yield [
                shown(size), name,
                f"{median:.4f} ({min(times):.4f} to {max(times):.4f})",
                f"{mean:+.4f} ({max(errors):+.4f})", f"{statistics.mean(oracles):.4f}",
            ]  # fmt: skip


def costs(sizes: list[Size]) -> Table:
    """Yield memory beyond X, launches and copies of fits on a CUDA device."""
    yield ["A fit"]
    yield ["data", "memory beyond X", "launches", "copies"]

    for size in sizes:
        X, _, _ = make(*size, "cuda")
        k = size[2]
        n_bytes = X.numel() * X.element_size()
        ihsc(X, k)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        bytes_before = torch.cuda.memory_allocated()
        ihsc(X, k)
        extra_bytes = torch.cuda.max_memory_allocated() - bytes_before
        with torch.profiler.profile() as profile:
            ihsc(X, k)
        counts = {event.key: event.count for event in profile.key_averages()}
        memory = f"{extra_bytes / 1e9:.2f} GB, {extra_bytes / n_bytes:.0%}"
        calls = (counts[name] for name in ("cudaLaunchKernel", "cudaMemcpyAsync"))
        yield [shown(size), memory, *calls]
        del X  # as above


CALLS: dict[str, Callable[[Any, Any, int], Any]] = {
    "IhGMM": lambda X, _, k: IhGMM(k, random_state=0).fit(X),
    "estimate_parameters": lambda X, y, _: ihgmm.estimate_parameters(X, y),
    "diagnose": lambda X, y, _: ihgmm.diagnose(X, y),
    "scale_heterogeneity_test": lambda X, y, _: ihgmm.scale_heterogeneity_test(X, y),
    "select_n_clusters": lambda X, *_: ihgmm.select_n_clusters(X, random_state=0),
}


def calls(size: Size, device: str, rounds: int) -> Table:
    """Yield what other calls take, in units of a fit."""
    X, _, _ = make(*size, device)
    k = size[2]
    labels = ihsc(X, k)
    fit = median_time(partial(ihsc, X, k), rounds)
    yield [f"{shown(size)}, in fits of {fit:.3f} s"]
    yield ["call", "fits"]
    for name, call in CALLS.items():
        seconds = median_time(partial(call, X, labels, k), rounds)
        yield [name, f"{seconds / fit:.1f}"]


def sparse_kinds(parts: Any, shape: tuple[int, int]) -> Iterator[tuple[str, Any]]:
    """Yield a sparse matrix in the ways that there are to hold it, the host's first."""
    indptr, indices, values = parts
    csr_parts = values, indices.int(), indptr.int()
    csr = partial(torch.sparse_csr_tensor, size=shape, check_invariants=False)
    host_parts = tuple(a.cpu().numpy() for a in csr_parts)
    yield "SciPy, on the host", sp.csr_array(host_parts, shape=shape)
    yield "torch, 64-bit indices", csr(indptr, indices, values)
    yield "torch, 32-bit indices", csr(*csr_parts[::-1])
    if values.device.type == "cuda" and find_spec("cupy"):
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        yield "CuPy", csr_matrix(tuple(map(cupy.from_dlpack, csr_parts)), shape=shape)


def sparse(size: Size, device: str, rounds: int) -> Table:
    parts, labels = make_sparse(*size, device)
    k = size[2]
    host_seconds = np.nan
    yield [f"{shown(size)}, {len(parts[2]) / 1e6:.1f} million entries"]
    yield ["X", "seconds", "x SciPy", "error"]

    for name, X in sparse_kinds(parts, size[:2]):
        work = partial(ihsc, X, k)
        rate = error(labels, work(), k)
        seconds = median_time(work, min(rounds, 3))
        host_seconds = seconds if np.isnan(host_seconds) else host_seconds
        yield [name, f"{seconds:.3f}", f"{seconds / host_seconds:.3f}", f"{rate:.5f}"]
        del X, work  # or there would be no memory for the next


def tables(name: str, sizes: list[Size], options: argparse.Namespace) -> list[Table]:
    if name == "dense":
        table = dense(sizes, options.device, options.rounds)
        return [table, costs(sizes)] if options.device == "cuda" else [table]

    make_table = {"calls": calls, "sparse": sparse}[name]
    return [make_table(size, options.device, options.rounds) for size in sizes]


def main() -> None:
    parser = arguments(__doc__, "gpu.md", SIZES, rounds=10)
    parser.add_argument("--sizes", nargs="+", help="as 1000000x1000x10")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    machine = torch.cuda.get_device_name() if options.device == "cuda" else ""

    sample, _, _ = make(50_000, 200, 10, options.device)
    first_seconds, _ = timed(partial(ihsc, sample, 10))
    text = "# Benchmark on a GPU\n\n`python benchmarks/gpu.py`. "
    text += f"The first fit of a process, 50,000 x 200: {first_seconds:.2f} s.\n"

    for name in options.names:
        names_of_sizes = options.sizes or SIZES[name]
        sizes = [tuple(map(int, size.split("x"))) for size in names_of_sizes]
        for table in tables(name, sizes, options):
            text += "\n" + markdown(table)

    publish(options, text, machine)


if __name__ == "__main__":
    main()
