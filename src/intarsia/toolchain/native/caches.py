"""Where native keeps what it has made and found, for all programs of a user."""

from __future__ import annotations

import os
from pathlib import Path

from intarsia.native.object_code.kernel_cache import KernelCache
from intarsia.support.user_folders import cache_folder


def kernel_cache() -> KernelCache:
    """Kernels by what they are made from."""
    return KernelCache(cache_folder(os.environ) / "kernels")


def schedule_folder() -> Path:
    """Folder of the schedule logs that targets name (`-schedules=DIGEST`)."""
    return cache_folder(os.environ) / "schedules"
