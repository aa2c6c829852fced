"""Where native keeps what it has made and found, for all programs of a user."""

from __future__ import annotations

import os
from pathlib import Path

from intarsia.native.object_code.kernel_cache import KernelCache


def kernel_cache() -> KernelCache:
    """Kernels by what they are made from."""
    return KernelCache(_folder() / "kernels")


def schedule_folder() -> Path:
    """Folder of the schedule logs that targets name (`-schedules=DIGEST`)."""
    return _folder() / "schedules"


def _folder() -> Path:
    """The user's own cache, in the folder of the XDG base directory specification."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # the specification says to ignore a relative one
        folder = Path.home() / ".cache"
    return folder / "intarsia"
