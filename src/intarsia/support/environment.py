"""The environment of a process that is started."""

from __future__ import annotations

import os
from typing import Final

COMPILE_PROCESSES: Final = "INTARSIA_COMPILE_PROCESSES"
"""Variable with the most processes that a build starts to compile kernels; 0 for none."""

PROGRAM_CACHE: Final = "INTARSIA_PROGRAM_CACHE"
"""Variable with the most MiB of compiled programs that builds by native keep on disk; 0 for none."""

MEMORY_AHEAD: Final = "INTARSIA_MEMORY_AHEAD"
"""Variable with the most MiB of pages that a process takes before a call needs them; 0 for none."""

CUDA_LIBRARY: Final = "INTARSIA_LIBCUDA"
"""Variable with the name or path of the CUDA driver's library, where it is not the usual one."""


def copy_environment() -> dict[str, str]:
    """Return the variables of this process, for the `env` of one that it starts.

    Without `env`, the new process reads the C library's table of variables while other threads go on. Where
    one of them sets a variable meanwhile, the table is moved, and the start fails with "Bad address".
    """
    # A variable may be gone since the names were listed.
    return {name: value for name in os.environ if (value := os.environ.get(name)) is not None}
