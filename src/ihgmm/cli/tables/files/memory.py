"""How much memory data may take."""

from contextlib import suppress
from pathlib import Path

# Of a small machine, where the system does not say what is free.
USUAL_MEMORY = 8e9


def memory_for_data(gigabytes: float | None) -> int:
    """Return how many bytes the data may take; by default a quarter of what is free."""
    if gigabytes is None:
        # A fit and what it makes of the data take up to three times as much again.
        return int(free_memory() / 4)

    if not 0 <= gigabytes < float("inf"):
        raise ValueError(f"--memory {gigabytes:g}: give a number of GB from 0 on.")
    return int(1e9 * gigabytes)


def free_memory() -> float:
    """Return the bytes of memory that this process could have, as far as is known."""
    n_bytes = USUAL_MEMORY
    with suppress(OSError, ValueError, IndexError):  # as Linux tells it
        info = Path("/proc/meminfo").read_text()
        kilobytes = info.partition("MemAvailable:")[2].split()[0]
        n_bytes = 1024 * int(kilobytes)

    with suppress(OSError, ValueError):  # what a container may have
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        n_bytes = min(n_bytes, limit - used)

    return max(0.0, n_bytes)
