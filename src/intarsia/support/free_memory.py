"""The memory that this process can still take, within the limits of its control group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MEMINFO: Final = Path("/proc/meminfo")
_GROUP_OF_PROCESS: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")
_AVAILABLE: Final = re.compile(r"^MemAvailable: *(\d+) kB", re.MULTILINE)
_GROUP: Final = re.compile(r"^0::/?(.*)$", re.MULTILINE)


def free_memory() -> int:
    """Return the bytes that can be taken without swapping; 0 where the system does not report it.

    A container reports the memory of the whole machine, and kills what exceeds the limit of its group.
    """
    available = _AVAILABLE.search(_text(_MEMINFO))
    if available is None:
        return 0
    return max(0, min([int(available[1]) << 10, *_left_in_groups()]))


def _left_in_groups() -> Iterator[int]:
    """Yield what each control group of this process leaves, from its own to the outermost one."""
    group = _GROUP.search(_text(_GROUP_OF_PROCESS))
    folder = _GROUPS / (group[1] if group is not None else "")
    while folder.is_relative_to(_GROUPS):
        limit, used = (_text(folder / name).strip() for name in ("memory.max", "memory.current"))
        if limit.isdigit() and used.isdigit():
            yield int(limit) - int(used)
        folder = folder.parent


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
