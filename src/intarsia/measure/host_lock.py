"""One timing at a time on a host: a lock between all processes of a user."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from intarsia.support.errors import IntarsiaError

_POLL_S = 0.02
_held: set[int] = set()


@dataclass(eq=False)
class HostBusyError(IntarsiaError):
    """Another process keeps the host to itself for longer than the caller would wait."""


def host_lock_path() -> Path:
    """The file that is locked.

    It depends on neither TMPDIR, login session nor working folder: all processes of a user agree on it.
    """
    return Path(f"/tmp/intarsia-{os.getuid()}/timing.lock")  # noqa: S108 -- the folder's owner and mode are checked


@contextlib.contextmanager
def exclusive_host(
    *,
    path: Path | None = None,
    timeout_s: float | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Keep the host to oneself: one such block runs at a time among all threads and processes of a user.

    The kernel releases the lock (`flock`) when its holder ends, however that happens; a fork of the holder
    does not keep it. It is not re-entrant: a block within a block of the same thread waits for itself.

    Args:
        path: The file to lock, if not `host_lock_path()`.
        timeout_s: Seconds to wait, or None for as long as it takes.
        on_wait: Called once, with whom is waited for, if there is a wait.

    Raises:
        HostBusyError: The time is over.
        OSError: The file cannot be opened, or others can write to its folder.
    """
    path = path or host_lock_path()
    descriptor = _acquire(path, timeout_s, on_wait)
    try:
        yield
    finally:
        if descriptor in _held:  # not so in a fork made within the block
            _held.remove(descriptor)
            os.close(descriptor)


def _acquire(path: Path, timeout_s: float | None, on_wait: Callable[[str], None] | None) -> int:
    _make_private(path.parent)
    started = time.monotonic()
    while not isinstance(found := _try(path), int):
        if timeout_s is not None and time.monotonic() - started >= timeout_s:
            raise HostBusyError(
                f"{found} has kept the host to itself for {timeout_s:g} s",
                help=f"wait until it has ended, or end it; the lock is {path}",
            )
        if on_wait is not None:
            on_wait(f"waiting for {found}, which is timing on this host")
            on_wait = None
        time.sleep(_POLL_S)
    return found


def _try(path: Path) -> int | str:
    """The descriptor of the locked file, or who has locked it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            return f"process {holder}" if holder else "another process"
        if _is_still(path, descriptor):
            _held.add(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            return descriptor
        os.close(descriptor)  # the file was removed before it was locked: try the new one


def _make_private(folder: Path) -> None:
    """Make the folder, which nobody else may be able to write to."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise OSError(errno.EPERM, "others can write to the folder of the lock", str(folder))


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _let_go_in_child() -> None:
    """A forked child shares the lock as long as it keeps the descriptor."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_in_child)
