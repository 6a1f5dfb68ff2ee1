"""How much memory there is for the data."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> float:
    """Return the bytes of memory that this process could have, as far as is known."""
    free = []
    try:
        info = Path("/proc/meminfo").read_text()
        free.append(int(info.partition("MemAvailable:")[2].split()[0]) * 1024)
    except (OSError, ValueError, IndexError):  # not on Linux
        if hasattr(os, "sysconf"):
            free.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:  # what a container may have
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        free.append(most - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # no container, or no limit
        pass
    return float(max(0, min(free, default=8e9)))  # of a small machine, if all is silent
