"""Names of the processes that hold leases, which show on the same machine whether a holder has ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from uuid import uuid4

_SEPARATOR: Final = "/"
_PARTS: Final = 5
_DEAD: Final = frozenset("ZXx")
"""States of processes that have ended, in /proc/PID/stat."""
_START_FIELD: Final = 19
"""Index of the start time among the fields of /proc/PID/stat behind the name, which may have blanks."""


def new_owner() -> str:
    """Return a name that no other holder has: machine, process, and a random part."""
    return _SEPARATOR.join((*_machine(), *_process(os.getpid()), uuid4().hex))


def has_ended(owner: str) -> bool:
    """Return whether a holder was a process of this machine that has ended; false if that cannot be seen."""
    parts = owner.split(_SEPARATOR)
    if len(parts) != _PARTS or not all(parts) or (parts[0], parts[1]) != _machine():
        return False
    pid, start = parts[2:4]
    return pid.isdecimal() and _process(int(pid)) != (pid, start)


def _machine() -> tuple[str, str]:
    """Return the boot and the process namespace; containers have namespaces of their own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return boot, str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:  # not Linux: then leases of the dead end by time only
        return "", ""


def _process(pid: int) -> tuple[str, str]:
    """Return the number of a process with its start time, as numbers are used again."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return str(pid), ""
    state, *fields = text.rpartition(")")[2].split()
    is_dead = state in _DEAD  # killed, but its parent has not looked at it yet
    return str(pid), "" if is_dead else fields[_START_FIELD - 1]
