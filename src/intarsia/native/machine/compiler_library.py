"""LLVM in this process: loaded on first use, and set up once, before any code is generated."""

from __future__ import annotations

import functools
import platform
from typing import Any

from intarsia.support.errors import CompileError
from intarsia.support.forks import ForkSafeLock

_LOCK = ForkSafeLock()


def compiler_library() -> Any:
    """Return `llvmlite.binding`, ready to generate code for this machine.

    Options of LLVM apply to the whole process, and are set here, before any target machine exists. Loop
    strength reduction is switched off: it takes most of the time of code generation and undoes addresses that
    are already good. So is the machine combiner: it reorders sums of integers in unrolled tiles, of which
    then more are alive than there are registers (12 of 12 sums were spilled in products of bytes on AVX2).

    Raises:
        CompileError: llvmlite is not installed, or its library does not load.
    """
    with _LOCK:
        return _set_up()


@functools.cache
def _set_up() -> Any:
    try:
        from llvmlite import binding
    except (ImportError, OSError) as error:
        raise CompileError(
            f"no native code can be generated: llvmlite does not load ({error})",
            help='install it with: pip install "intarsia[native]"',
        ) from error
    binding.set_option("intarsia", "-disable-lsr")
    if platform.machine() == "x86_64":  # LLVM ends the process if its library does not have an option
        binding.set_option("intarsia", "-x86-machine-combiner=0")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding
