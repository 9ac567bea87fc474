"""What this machine has: GPUs, memory, cores, disk. Imports no torch; `nvidia-smi` is asked as a program.

>>> [gpu.name for gpu in find_gpus()]     # [] without one
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import psutil

NVIDIA_SMI_TIMEOUT_S = 20
"""The first call after a boot loads the driver, which takes seconds."""


class Gpu(NamedTuple):
    """One NVIDIA GPU."""

    name: str
    total_mib: int
    free_mib: int
    driver: str


def find_gpus() -> list[Gpu]:
    """The GPUs that a program started here would see; none where CUDA_VISIBLE_DEVICES is set to nothing."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1") or not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=name,memory.total,memory.free,driver_version"]
    try:
        done = subprocess.run(
            [*command, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=NVIDIA_SMI_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return read_gpus(done.stdout) if done.returncode == 0 else []


def read_gpus(table: str) -> list[Gpu]:
    """Read nvidia-smi's lines "NAME, TOTAL, FREE, DRIVER" in MiB; a GPU that does not tell its memory is left out."""
    gpus = []
    for line in table.splitlines():
        name, total, free, driver = ([part.strip() for part in line.rsplit(",", 3)] + [""] * 4)[:4]
        if total.isdigit() and free.isdigit():
            gpus.append(Gpu(name, int(total), int(free), driver))
    return gpus


def usable_cores() -> int:
    """The cores that this process may use, which a container or `taskset` can make fewer than there are."""
    return len(psutil.Process().cpu_affinity() or []) or os.cpu_count() or 1


def memory_gib() -> tuple[float, float]:
    """Memory (total, available now) in GiB, or what a container's limit leaves of it."""
    found = psutil.virtual_memory()
    total, available = found.total, found.available
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    try:
        allowed = int(limit.read_text())  # "max" where there is no limit
        total, available = min(total, allowed), min(available, max(allowed - int(used.read_text()), 0))
    except (OSError, ValueError):
        pass
    return total / 2**30, available / 2**30


def nearest_folder(folder: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    folder = folder.absolute()
    return next(each for each in (folder, *folder.parents) if each.exists())


def disk_free_gib(folder: Path) -> float:
    """Free disk space in GiB where `folder` lies, or will lie."""
    return shutil.disk_usage(nearest_folder(folder)).free / 2**30
