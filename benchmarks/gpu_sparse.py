"""Time IhSC on sparse data on a CUDA device, against scipy on the host beside it.

    python benchmarks/gpu_sparse.py                              # 200 million entries
    python benchmarks/gpu_sparse.py 100000x5000 --density 0.02 --clusters 5
    python benchmarks/gpu_sparse.py 20000x2000 --device cpu      # to try it out

Needs torch; CuPy is timed where it is installed. Each row has one entry, or none, in
each of many groups of columns, and some of these are in the one column that its cluster
prefers there. Groups differ in width, so that columns are common or rare. Rows have
scales from 1 to 20. First the products are timed, those with the transposed matrix in
each way that there is, then fits.
"""

from __future__ import annotations

import argparse
import operator
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from gpu import seconds, wait

from ihgmm import IhSC
from ihgmm.matrix import as_matrix, to_host
from ihgmm.metrics import misclassification_rate

Csr = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # indptr, indices, values


def make(
    n: int, p: int, k: int, density: float, device: str, seed: int = 0
) -> tuple[Csr, torch.Tensor]:
    """Return rows of clusters as the three arrays of CSR, and the labels."""
    rng = torch.Generator(device=device).manual_seed(seed)
    random = {"generator": rng, "device": device}
    # Rows have three quarters of the groups on average.
    groups = max(1, round(p * density / 0.75))
    edges = torch.linspace(0, 1, groups + 1, device=device) ** 1.5
    edges = (edges * (p - groups)).long() + torch.arange(groups + 1, device=device)
    starts, widths = edges[:-1], edges.diff()
    preferred = (torch.rand(k, groups, **random) * widths).long()
    labels = torch.randint(k, (n,), **random)
    parts, sizes = [], []
    for start in range(0, n, 2**24 // groups):
        own = labels[start : start + 2**24 // groups]
        shape = (len(own), groups)
        columns = (torch.rand(*shape, **random) * widths).long()
        likes = torch.rand(*shape, **random) < 0.3
        columns = starts + torch.where(likes, preferred[own], columns)
        scales = 1 + 19 * torch.rand(len(own), 1, **random)
        values = scales * (0.5 + torch.rand(*shape, **random))
        rates = 0.5 + 0.5 * torch.rand(len(own), 1, **random)
        there = torch.rand(*shape, **random) < rates
        parts.append((columns[there].int(), values[there]))
        sizes.append(there.sum(1))
    indptr = torch.zeros(n + 1, dtype=torch.int64, device=device)
    indptr[1:] = torch.cat(sizes).cumsum(0)
    indices, values = (torch.cat(each) for each in zip(*parts, strict=True))
    return (indptr.int(), indices, values), labels


# The three kinds of sparse matrices


def in_torch(parts: Csr, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    indptr, indices, values = parts
    return torch.sparse_csr_tensor(
        indptr.to(dtype), indices.to(dtype), values, shape, check_invariants=False
    )


def in_scipy(parts: Csr, shape: tuple[int, int]) -> sp.csr_array:
    indptr, indices, values = (a.cpu().numpy() for a in parts)
    return sp.csr_array((values, indices, indptr), shape=shape)


def in_cupy(parts: Csr, shape: tuple[int, int]) -> Any:
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    indptr, indices, values = (cupy.from_dlpack(a) for a in parts)
    return csr_matrix((values, indices, indptr), shape=shape)


# Ways to multiply by the transposed matrix: each gets ready, and returns the product


def as_it_is(X: Any) -> Callable[[Any], Any]:
    """The library's own: cuSPARSE by CuPy, a conversion each time by torch."""
    transposed = X.t() if hasattr(X, "t") else X.T
    return lambda V: transposed @ V


def copied(X: Any) -> Callable[[Any], Any]:
    """A transposed copy, by the library."""
    copy = X.t().to_sparse_csr() if hasattr(X, "t") else X.T.tocsr()
    return lambda V: copy @ V


def copied_in_blocks(
    X: torch.Tensor, n_entries: int = 2**23
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Transposed copies of blocks of rows, which need little memory to be made.

    Rows count from the first one of their block, so that 32 bits will do.
    """
    matrix: Any = as_matrix(X)
    p, blocks = X.shape[1], []
    n, step = X.shape[0], max(1, n_entries * X.shape[0] // matrix.n_entries)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        part = matrix.take(rows)
        columns, order = torch.sort(part.indices.int())
        owners = part.places(slice(0, part.n_entries)).int()[order]
        ends = torch.arange(p + 1, dtype=torch.int32, device=columns.device)
        indptr = torch.searchsorted(columns, ends).int()
        block = torch.sparse_csr_tensor(
            indptr, owners, part.values[order], (p, part.shape[0]),
            check_invariants=False,
        )  # fmt: skip
        blocks.append((rows, block))

    def product(V: torch.Tensor) -> torch.Tensor:
        total = V.new_zeros((p, V.shape[1]))
        for rows, block in blocks:
            total += block @ V[rows]
        return total

    return product


def by_kernel(X: Any) -> Callable[[Any], Any]:
    """The package's way: a kernel that adds up the products of entries in place."""
    return as_matrix(X).adjoint


TORCH_WAYS = (as_it_is, copied, copied_in_blocks, by_kernel)
CUPY_WAYS = (as_it_is, copied, by_kernel)


# Figures


class TorchMemory:
    """The most memory that torch takes on a device beyond what it has now."""

    def __enter__(self) -> TorchMemory:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self.before = torch.cuda.memory_allocated()
        return self

    def __exit__(self, *_: object) -> None:
        torch.cuda.synchronize()

    @property
    def peak(self) -> int:
        return torch.cuda.max_memory_allocated() - self.before


class CupyMemory:
    """The same of CuPy, counted at each allocation."""

    def __enter__(self) -> CupyMemory:
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()
        self.now = self.peak = 0
        memory = self

        class Hook(cupy.cuda.MemoryHook):
            name = "Peak"

            def malloc_postprocess(self, **given: Any) -> None:
                memory.now += given["mem_size"]
                memory.peak = max(memory.peak, memory.now)

            def free_postprocess(self, **given: Any) -> None:
                memory.now -= given["mem_size"]

        self.hook = Hook()
        self.hook.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        torch.cuda.synchronize()
        self.hook.__exit__(*error)


class NoMemory:
    """Nothing is counted on the host."""

    peak = 0

    def __enter__(self) -> NoMemory:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def memory_of(library: str, device: str) -> Any:
    if device == "cpu":
        return NoMemory()
    return CupyMemory() if library == "CuPy" else TorchMemory()


def dense(library: str, n: int, width: int, device: str) -> Any:
    values = torch.randn(n, width, device=device)
    if library != "CuPy":
        return values
    import cupy

    return cupy.from_dlpack(values)


def products(library: str, X: Any, size: int, device: str) -> None:
    """Print the times of products with 16 and 32 columns."""
    n, p = X.shape
    widths = (16, 32)
    forth = [dense(library, p, width, device) for width in widths]
    back = [dense(library, n, width, device) for width in widths]
    times = [seconds(partial(operator.matmul, X, W), device) for W in forth]
    print("  X @ W" + " " * 24 + "  ".join(f"{1e3 * t:8.2f} ms" for t in times))
    wanted = None
    for way in CUPY_WAYS if library == "CuPy" else TORCH_WAYS:
        try:
            wait(device)
            start = time.perf_counter()
            with memory_of(library, device) as making:
                product = way(X)
            wait(device)
            made = time.perf_counter() - start
            with memory_of(library, device) as using:
                first = product(back[0])
                times = [seconds(partial(product, V), device, 3) for V in back]
            wanted = first if wanted is None else wanted
            wrong = float(abs(first - wanted).max() / abs(wanted).max())
        except Exception as error:  # one way that fails must not end the others
            print(f"  {way.__name__:<18} failed: {type(error).__name__}: {error}")
            continue
        shown = "  ".join(f"{1e3 * t:8.2f} ms" for t in times)
        share = ", ".join(f"{m.peak / size:.2f}" for m in (making, using))
        print(
            f"  X.T @ V, {way.__name__:<18}    {shown}   ready in {1e3 * made:.0f} ms, "
            f"memory {share} X, error {wrong:.0e}"
        )
        del product, first


def fits(
    name: str, X: Any, size: int, k: int, device: str, rounds: int
) -> tuple[float, np.ndarray]:
    """Print the times of fits; return the median and the labels of the first seed."""
    times, labels = [], None
    on_host = name == "scipy"
    memory = NoMemory() if on_host else memory_of(name.split()[0], device)
    with memory:
        for seed in range(rounds):
            wait(device)
            start = time.perf_counter()
            model = IhSC(k, random_state=seed).fit(X)
            wait(device)
            times.append(time.perf_counter() - start)
            labels = to_host(model.labels_) if labels is None else labels
    shown = ", ".join(f"{t:.3f}" for t in times)
    text = f"IhSC.fit, {name}: {shown} s"
    if memory.peak:
        text += f"; beyond X {memory.peak / 1e9:.2f} GB, {memory.peak / size:.2f} X"
    print(text)
    return statistics.median(times), labels


def measure(text: str, options: argparse.Namespace) -> None:
    n, p = shape = tuple(int(part) for part in text.split("x"))
    k, device = options.clusters, options.device
    parts, truth = make(n, p, k, options.density, device)
    n_entries = len(parts[2])
    print(f"\n{n:,} x {p:,}, K {k}: {n_entries / 1e6:.1f} million entries, float32")
    torch_types = {"int64": torch.int64, "int32": torch.int32}
    kinds: dict[str, Callable[[], Any]] = {
        f"torch {name}": partial(in_torch, parts, shape, dtype)
        for name, dtype in torch_types.items()
    }
    if device == "cuda" and has_cupy():
        kinds["CuPy"] = partial(in_cupy, parts, shape)
    found = {}
    for name, kind in kinds.items():
        X = kind()
        size = n_entries * (12 if "int64" in name else 8)
        print(f"{name}: X has {size / 1e9:.2f} GB; products with 16 and 32 columns")
        products(name.split()[0], X, size, device)
        IhSC(k, random_state=0).fit(X)  # loads what is loaded late
        found[name] = fits(name, X, size, k, device, options.rounds)
        del X
    if options.host_rounds:
        X = in_scipy(parts, shape)
        host, wanted = fits("scipy", X, 0, k, device, options.host_rounds)
        rate = misclassification_rate(truth.cpu().numpy(), wanted)
        print(f"error of scipy {rate:.5f}")
        for name, (median, labels) in found.items():
            other = np.count_nonzero(labels != wanted)
            print(f"{name}: {host / median:.1f} x faster, {other} labels differ")


def has_cupy() -> bool:
    try:
        import cupy  # noqa: F401
    except ImportError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=["1000000x20000"], help="rows x p")
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--host-rounds", type=int, default=2, help="0: no scipy")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    print(f"torch {torch.__version__}, numpy {np.__version__}", end=", ")
    cuda = options.device == "cuda"
    print(torch.cuda.get_device_name() if cuda else options.device)
    for text in options.sizes:
        measure(text, options)


if __name__ == "__main__":
    main()
