"""Folders of files by key, of which the least recently used go when they take too much room."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from intarsia.support.files import output_error, write_atomically

_KEPT_SHARE: Final = 0.8
"""Share of the limit that a cleanup leaves, so that the next one is not due at once."""
_ABANDONED_SECONDS: Final = 3600.0
"""Age in seconds from which a temporary folder counts as left by a killed process."""


class FileCache:
    """A folder with files by key; several processes may use it at once.

    Files are written whole or not at all. When they exceed the limit, the least recently used are removed.

    Args:
        folder: Folder of the files; the first write creates it.
        suffix: End of their names, such as ".kernel".
        limit: Maximum size of all files, in bytes.
    """

    _unseen: ClassVar[dict[Path, int]] = {}
    """Bytes that this process has written to each folder since it last looked through it."""

    def __init__(self, folder: Path, suffix: str, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._suffix = suffix

    def path(self, key: str) -> Path:
        """Return where the file of a key is, if there is one.

        Raises:
            ValueError: It is no key: keys consist of letters and digits.
        """
        if not key.isalnum():
            raise ValueError(f"not a key: {key!r}")
        return self.folder / key[:2] / f"{key}{self._suffix}"

    def mark_used(self, key: str) -> None:
        """Take a file for used now; does nothing where that is not allowed."""
        with contextlib.suppress(OSError):  # removed by another process, or a folder that we may only read
            os.utime(self.path(key))

    def remove(self, key: str) -> None:
        """Remove a file, such as a damaged one; does nothing where that is not allowed."""
        with contextlib.suppress(OSError):
            self.path(key).unlink()

    def write(self, key: str, parts: Iterable[bytes | memoryview]) -> None:
        """Write a file, and remove old ones if all exceed the limit.

        Args:
            key: Its key.
            parts: Its content, in order.

        Raises:
            OutputError: The file system refused.
        """
        path, size = self.path(key), 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(path.parent, error) from error
        with write_atomically(path) as temporary, temporary.open("wb") as stream:
            for part in parts:
                size += stream.write(part)
        unseen = self._unseen.get(self.folder, self.limit) + size
        is_due = unseen > self.limit // 16  # other processes write too
        self._unseen[self.folder] = 0 if is_due else unseen
        if is_due:
            self._shrink()

    def _shrink(self) -> None:
        """Remove the least recently used files, and temporary folders of killed processes."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in entries:
            if total <= self.limit * _KEPT_SHARE:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """Yield time of last use (ns), size (bytes) and path of each file."""
        for path in self.folder.glob("*/*"):
            try:
                facts = path.stat()
                if path.name.endswith(self._suffix) and not path.name.startswith("."):
                    yield facts.st_mtime_ns, facts.st_size, path
                elif path.is_dir() and facts.st_mtime < time.time() - _ABANDONED_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                continue  # removed by another process
