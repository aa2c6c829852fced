"""A folder for the files of one run; that of a run that was killed is removed by the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

PREFIX: Final = "intarsia-run-"

_LOCK: Final = "lock"
_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A new folder that belongs to this process.

    Its owner holds a lock (`flock`) on a file in it, which the kernel releases when the owner ends, however
    that happens. So abandoned folders are found without process ids, which are reused and differ between
    containers, and without clocks.

    Attributes:
        path: The folder.
        descriptor: File descriptor of the lock.
    """

    path: Path
    descriptor: int

    @classmethod
    def open(cls, parent: Path | None = None) -> Self:
        """Make a folder, and remove those of processes of the same user that have ended.

        Args:
            parent: Parent of the folder; default: the system's folder for temporary files.

        Raises:
            OSError: The folder cannot be made.
        """
        parent = parent or Path(tempfile.gettempdir())
        for path in parent.glob(f"{PREFIX}*"):
            _remove_if_abandoned(path)
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            with contextlib.suppress(
                FileNotFoundError, BlockingIOError
            ):  # it looked abandoned to another run
                return cls(path, _owned(path))

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        try:
            with contextlib.suppress(OSError):  # the next run tries again
                _remove(self.path)
        finally:
            os.close(self.descriptor)


def _owned(folder: Path) -> int:
    """The descriptor of the lock of a new folder.

    Raises:
        FileNotFoundError, BlockingIOError: Another process is removing the folder.
    """
    descriptor = os.open(folder / _LOCK, _FLAGS | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / _LOCK).stat()
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder with an unheld lock; files that cannot be removed now are left for the next run."""
    with contextlib.suppress(OSError):
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            return
        try:
            descriptor = os.open(folder / _LOCK, _FLAGS)
        except FileNotFoundError:  # its owner ended, or is, between making it and locking it
            folder.rmdir()
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        finally:
            os.close(descriptor)


def _remove(folder: Path) -> None:
    """The lock goes last: as long as it is there, another run can go on with removing."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)
    if [path.name for path in folder.iterdir()] == [_LOCK]:
        (folder / _LOCK).unlink()
        folder.rmdir()
