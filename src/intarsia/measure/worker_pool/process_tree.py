"""Descendants, memory and memory limits of processes, from Linux's /proc and prctl."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

_HEADROOM = 256 << 20
"""Bytes that a process may map beyond twice its limit."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become the parent of all descendants that lose theirs (`PR_SET_CHILD_SUBREAPER`)."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends (`PR_SET_PDEATHSIG`); exits if it has ended already."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def children(pid: int) -> tuple[int, ...]:
    """Return the children of a process; none where it is gone or the kernel does not list them."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            pids += map(int, (thread / "children").read_text().split())
    return tuple(pids)


def kill_children() -> None:
    """Kill and reap all descendants of this process, which adopts orphans, so that none stays hidden."""
    while found := children(os.getpid()):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def process_bytes(pid: int) -> int:
    """Memory that a process holds: anonymous and shared pages, also swapped; not files. 0 if it is gone."""
    total = 0
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(("RssAnon:", "RssShmem:", "VmSwap:")):
                total += int(line.split()[1]) * 1024
    return total


def held_bytes(pid: int) -> int:
    """Memory that a process and its descendants hold, as `process_bytes` counts it."""
    total, todo = 0, [pid]
    while todo:
        process = todo.pop()
        todo += children(process)
        total += process_bytes(process)
    return total


def kernel_kills() -> int:
    """Return the number of processes that the kernel has killed because memory ran out.

    0 where it does not report them.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


@contextlib.contextmanager
def memory_limit(limit: int | None) -> Iterator[None]:
    """Let this process map twice the limit and some more, so that a single huge request fails at once.

    The limit itself is on memory in use, and the parent watches it. This one is on writable private mappings
    (`RLIMIT_DATA`), which libraries reserve more of than they use; `RLIMIT_AS` counts still more, such as
    the code of CUDA and mapped weights.
    """
    if limit is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    mapped = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    ceiling = mapped + 2 * limit + _HEADROOM
    if before[1] != resource.RLIM_INFINITY:
        ceiling = min(ceiling, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def be_first_victim() -> None:
    """Offer this process to the kernel when memory runs out, before the program that holds the results."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
