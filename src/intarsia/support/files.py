"""Atomic writes: a reader never sees half of a file."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intarsia.support.errors import OutputError

_HELP = {
    errno.EACCES: "choose a folder that you may write to",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.ENOSPC: "free some space or choose another disk, then run the same command again",
    errno.EDQUOT: "your quota is used up: free some space, then run the same command again",
    errno.ENOENT: "create the folder first",
    errno.ENOTDIR: "a part of the path is a file: choose another folder",
    errno.EPERM: "choose a folder that you may write to",
    errno.EFBIG: "the file would be larger than this disk or your limit allows: choose another disk",
}


def output_error(path: Path, error: OSError) -> OutputError:
    """Return the error for a failed write to `path`, with the reason and advice."""
    reason = (error.strerror or str(error)).lower()
    return OutputError(f"cannot write {path}: {reason}", help=_HELP.get(error.errno or 0, ""))


def is_out_of_space(error: OutputError) -> bool:
    """Whether further writes to the same disk would fail too: it is full, over its quota or read-only."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; the file or folder written there replaces `path` at the end.

    On any exception, Ctrl-C included, the temporary is removed and `path` is as it was. A folder cannot be
    replaced in one step: for a moment the old one is aside, and on an exception it is moved back.

    Raises:
        OutputError: The file system refused (read-only, full, missing folder), or `path` is a device.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OutputError(
            f"cannot write {path}: it is neither a file nor a folder", help="choose another name"
        )
    try:
        # Beside the target, not in /tmp: a rename is atomic only within one file system.
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise output_error(path, error) from error
    aside = folder / f"{path.name}.old"
    try:
        temporary = folder / path.name
        try:
            yield temporary
            if path.is_dir() and not path.is_symlink():
                path.rename(aside)
            temporary.replace(path)
        except OSError as error:
            raise output_error(path, error) from error
    finally:
        # First: if it fails or is interrupted, the temporary folder with the only copy of the old one stays.
        _put_back(aside, path)
        shutil.rmtree(folder, ignore_errors=True)


def _put_back(aside: Path, path: Path) -> None:
    """Move the old folder back if the new one did not replace it."""
    if not aside.exists() or os.path.lexists(path):
        return
    try:
        aside.rename(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(
            f"cannot write {path}, and cannot move the old one back: {reason}",
            help=f"the old one is whole: move it from {aside} to {path}",
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically.

    Raises:
        OutputError: The file system refused.
    """
    with write_atomically(path) as temporary:
        temporary.write_text(text)


def folder_size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(Path(root, name).stat().st_size for root, _, names in os.walk(path) for name in names)
