"""Facts about the CPU from the operating system's files: model, instruction sets, caches, usable cores.

Every function takes the root of the file system, so that tests can lay out a machine in a folder. The
functions only read files and start no process; a fact without a file is unknown ("", 0, empty).
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

_MACHINE: Final = Path("/")
"""The root of this machine, whose processor and caches are read once."""
_QUOTA_SECONDS: Final = 1.0
"""Seconds for which the quotas of cgroups are kept: they are in a dozen files, and change rarely."""
# Instruction sets that kernels depend on. Other CPU flags are no part of a machine's fingerprint.
_RELEVANT: Final = re.compile(
    r"ssse3|sse4_[12]|avx.*|amx.*|fma4?|f16c|bmi[12]|neon|asimd.+|fphp|i8mm|bf16|sve.*|sme[0-9]?|vfpv4"
)
# Linux on arm64 reports the 128-bit vector extension as asimd; 32-bit Arm, LLVM and engines call it neon.
_KERNEL_NAMES: Final = {"asimd": "neon"}
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_cpuinfo(root: Path) -> dict[str, str]:
    """Read the fields of the first processor in /proc/cpuinfo; empty without such a file."""
    return dict(_machine_cpuinfo() if root == _MACHINE else _cpuinfo(root))


@cache
def _machine_cpuinfo() -> dict[str, str]:
    return _cpuinfo(_MACHINE)


def _cpuinfo(root: Path) -> dict[str, str]:
    facts: dict[str, str] = {}
    try:
        with (root / "proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:  # the kernel writes the file as it is read: stop before the other processors
                name, colon, value = line.partition(":")
                if not colon and facts:
                    break
                facts[name.strip()] = value.strip()
    except OSError:
        return {}
    return facts


def cpu_model(cpuinfo: dict[str, str]) -> str:
    """Return the name and numbers of the CPU model."""
    # The name alone does not identify a CPU: hypervisors report one name for different models.
    name = cpuinfo.get("model name", "")
    keys = {"family": "cpu family", "model": "model", "stepping": "stepping"}
    if "CPU part" in cpuinfo:  # Arm
        keys = {"implementer": "CPU implementer", "part": "CPU part", "revision": "CPU revision"}
    numbers = " ".join(f"{label} {cpuinfo[key]}" for label, key in keys.items() if key in cpuinfo)
    return f"{name} ({numbers})" if name and numbers else name or numbers


def instruction_sets(cpuinfo: dict[str, str]) -> tuple[str, ...]:
    """Return the relevant instruction sets, sorted, by Linux's names (arm64's `asimd` as `neon`)."""
    flags = (cpuinfo.get("flags") or cpuinfo.get("Features") or "").split()
    names = (_KERNEL_NAMES.get(flag, flag) for flag in flags)
    return tuple(sorted({name for name in names if _RELEVANT.fullmatch(name)}))


def cache_bytes(root: Path) -> dict[tuple[int, str], int]:
    """Read the bytes of the first core's caches, by level and type ("Data", "Instruction", "Unified")."""
    return dict(_machine_cache_bytes() if root == _MACHINE else _cache_bytes(root))


@cache
def _machine_cache_bytes() -> dict[tuple[int, str], int]:
    return _cache_bytes(_MACHINE)


def _cache_bytes(root: Path) -> dict[tuple[int, str], int]:
    sizes = {}
    for folder in (root / "sys/devices/system/cpu/cpu0/cache").glob("index*"):
        level, kind, size = (_text(folder / name) for name in ("level", "type", "size"))
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if match and level.isdigit():
            sizes[int(level), kind] = int(match[1]) * _UNITS[match[2]]
    return sizes


def first_cache_ways(root: Path) -> int:
    """Return the number of lines in a set of the first core's first-level data cache; 0 if unknown."""
    return _first_cache_number(root, "ways_of_associativity")


def cache_line_bytes(root: Path) -> int:
    """Return the bytes of a line of the first core's first-level data cache; 0 if unknown."""
    return _first_cache_number(root, "coherency_line_size")


def _first_cache_number(root: Path, name: str) -> int:
    for folder in (root / "sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if _text(folder / "level") == "1" and _text(folder / "type") in {"Data", "Unified"}:
            number = _text(folder / name)
            return int(number) if number.isdigit() else 0
    return 0


def usable_cores(root: Path) -> int:
    """Count the logical cores that this process may use: its affinity, limited by the quotas of its cgroups.

    Each call reads the affinity again, so that `taskset` on a running process takes effect. The environment
    is ignored: set the option `-threads` of a target, not OMP_NUM_THREADS.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    if root != _MACHINE:
        return max(1, min([allowed, *_quotas(root)]))
    return max(1, min([allowed, *_machine_quotas(int(time.monotonic() / _QUOTA_SECONDS))]))


@lru_cache(maxsize=1)
def _machine_quotas(period: int) -> tuple[int, ...]:
    """Return the quotas of this machine, as read first in a period of `_QUOTA_SECONDS`."""
    del period  # the key of the cache
    return tuple(_quotas(_MACHINE))


def _quotas(root: Path) -> Iterator[int]:
    """Yield the cores that each cgroup (v1 and v2) of this process allows, rounded up."""
    for controllers, group in _control_groups(root):
        if not controllers:
            for folder in _with_parents(root / "sys/fs/cgroup", group):
                quota, _, period = _text(folder / "cpu.max").partition(" ")
                yield from _quota(quota, period)
        elif "cpu" in controllers.split(","):
            for mount in ("cpu", "cpu,cpuacct"):
                for folder in _with_parents(root / "sys/fs/cgroup" / mount, group):
                    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # a quota of -1 is none
                    yield from _quota(*(_text(folder / name) for name in names))


def _control_groups(root: Path) -> list[tuple[str, str]]:
    """Return the controllers ("" for cgroup v2) and path of each cgroup of this process.

    Within a container the path may be the host's, which is not mounted. So the list always includes the
    root, which is the container's cgroup.
    """
    lines = (line.split(":", 2) for line in _text(root / "proc/self/cgroup").splitlines())
    groups = [(fields[1], fields[2]) for fields in lines if len(fields) == 3]
    return [("", "/"), ("cpu", "/"), *groups]


def _with_parents(mount: Path, group: str) -> Iterator[Path]:
    """Yield the folders of a cgroup and of its ancestors: their quotas limit it as well."""
    parts = [part for part in group.split("/") if part not in ("", "..")]
    return (mount.joinpath(*parts[:count]) for count in range(len(parts) + 1))


def _quota(quota: str, period: str) -> Iterator[int]:
    if quota.isdigit() and period.isdigit() and int(period):
        yield math.ceil(int(quota) / int(period))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
