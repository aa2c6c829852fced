"""One timing at a time on a host, and no build beside it: a lock between all processes of a user."""

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
"""Seconds between two attempts to lock a file."""

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
        on_wait: Called once, with the process that holds the host, if there is a wait.

    Raises:
        HostBusyError: The time is over.
        OSError: The file cannot be opened, or others can write to its folder.
    """
    with _locked(fcntl.LOCK_EX, path, timeout_s, on_wait):
        yield


@contextlib.contextmanager
def shared_host(
    *,
    path: Path | None = None,
    timeout_s: float | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Share the host: several such blocks run at a time, none during a timing.

    A block that begins while another process waits for exclusive use runs after it. Arguments and errors
    are those of `exclusive_host`.
    """
    with _locked(fcntl.LOCK_SH, path, timeout_s, on_wait):
        yield


@contextlib.contextmanager
def _locked(
    mode: int, path: Path | None, timeout_s: float | None, on_wait: Callable[[str], None] | None
) -> Iterator[None]:
    path = path or host_lock_path()
    _make_private(path.parent)
    wait = _Wait(path, timeout_s, on_wait)
    with _holding(wait.until_locked(path.with_name(f"{path.name}.next"), fcntl.LOCK_EX)):
        descriptor = wait.until_locked(path, mode)
    with _holding(descriptor):
        yield


@contextlib.contextmanager
def _holding(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        if descriptor in _held:  # not so in a fork made within the block
            _held.remove(descriptor)
            os.close(descriptor)


class _Wait:
    """One wait for the host.

    The waiting process holds a second lock, which later ones wait for. Otherwise a process that runs
    candidate
    after candidate would starve the others, which poll only now and then.
    """

    def __init__(self, path: Path, timeout_s: float | None, on_wait: Callable[[str], None] | None) -> None:
        self._path, self._timeout_s, self._on_wait = path, timeout_s, on_wait
        self._started = time.monotonic()

    def until_locked(self, file: Path, mode: int) -> int:
        while (descriptor := _try(file, mode)) is None:
            if self._timeout_s is not None and time.monotonic() - self._started >= self._timeout_s:
                raise HostBusyError(
                    f"{_holder(file)} has kept the host to itself for {self._timeout_s:g} s",
                    help=f"wait until it has ended, or end it; the lock is {self._path}",
                )
            if self._on_wait is not None:
                self._on_wait(f"waiting for {_holder(file)}, which builds or times on this host")
                self._on_wait = None
            time.sleep(_POLL_S)
        return descriptor


def _holder(file: Path) -> str:
    """Return the process that has locked a file, either the holder of the host or the next in line."""
    with contextlib.suppress(OSError):
        if holder := file.read_text(errors="replace").strip():
            return f"process {holder[:32]}"
    return "another process"


def _try(path: Path, mode: int) -> int | None:
    """The descriptor of the locked file, or None if another one has locked it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_still(path, descriptor):
            _held.add(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            return descriptor
        os.close(descriptor)  # the file was removed before it was locked: try the new one


def _make_private(folder: Path) -> None:
    """Make the folder, and check that only this user can write to it."""
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
