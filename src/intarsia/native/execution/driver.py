"""The compiled driver of this process, which runs tables of kernels and the threads of pools.

One object code fits every machine of an architecture. Artifacts contain it, so that they run without LLVM.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from intarsia.native.execution.driver_text import (
    END_LOOP_LOG,
    IDENTITY,
    IDENTITY_BYTES,
    PARALLEL_FOR,
    RUN_CALLS,
    START_LOOP_LOG,
    STOP_WORKERS,
    TIMESTAMP,
    WORKER,
    driver_identity,
    driver_text,
)
from intarsia.native.machine.isa import Isa, host_architecture
from intarsia.native.object_code.allowed_symbols import DRIVER_SYMBOLS
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.native.object_code.object_code import LoadedCode, load_object_code
from intarsia.support.errors import ArtifactError
from intarsia.support.forks import ForkSafeLock

_PLAIN: Final = {"x86_64": Isa("x86_64", "x86-64", ()), "aarch64": Isa("aarch64", "generic", ("neon",))}
_RUN: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_STOP: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_LOCK: Final = ForkSafeLock()


@dataclass(frozen=True, eq=False)
class Driver:
    """The driver, loaded into memory.

    Attributes:
        run_calls: Function `run_calls(table, count, runtime)` that takes addresses and releases the
            interpreter lock.
        stop_workers: Function that makes the workers of a pool record end.
        parallel_for: Address of the function that kernels call for parallel loops.
        worker: Address of the function that a worker thread runs.
        timestamp: Address of a kernel that writes the nanoseconds of CLOCK_MONOTONIC to an int64.
        start_loop_log: Address of a kernel from which on a log gets the parts of parallel loops.
        end_loop_log: Address of a kernel that ends this.
        code: The code itself, which stays loaded as long as this object lives.
    """

    run_calls: Callable[[int, int, int], None]
    stop_workers: Callable[[int], None]
    parallel_for: int
    worker: int
    timestamp: int
    start_loop_log: int
    end_loop_log: int
    code: LoadedCode


@functools.cache
def driver_object_code(architecture: str | None = None) -> bytes:
    """Generate the driver's object code, by default for this machine's architecture.

    Raises:
        CompileError: llvmlite is missing.
    """
    architecture = architecture or host_architecture()
    return generate_object_code(driver_text(architecture), _PLAIN[architecture])


_LOADED: Final[list[Driver]] = []


def process_driver(object_code: bytes | None = None) -> Driver:
    """Return the driver of this process; the first call loads it.

    Args:
        object_code: Object code of the driver, from an artifact, to load if none is loaded yet; compiled if
            not given.

    Raises:
        ArtifactError: The object code is damaged, for another machine, or of another version.
        CompileError: No object code is given, no driver is loaded yet, and llvmlite is missing.
    """
    if _LOADED:
        return _LOADED[0]
    with _LOCK:
        if not _LOADED:
            _LOADED.append(_load(driver_object_code() if object_code is None else object_code))
        return _LOADED[0]


def _load(object_code: bytes) -> Driver:
    code = load_object_code(object_code, allowed=DRIVER_SYMBOLS)
    symbols = code.addresses
    if IDENTITY not in symbols:
        raise ArtifactError("this object code is not the driver of native kernels")
    if ctypes.string_at(symbols[IDENTITY], IDENTITY_BYTES) != driver_identity(host_architecture()):
        raise ArtifactError(
            "this driver of native kernels belongs to another version of Intarsia",
            help="build the artifact again with this version",
        )
    run, stop = _RUN(symbols[RUN_CALLS]), _STOP(symbols[STOP_WORKERS])
    return Driver(
        run,
        stop,
        symbols[PARALLEL_FOR],
        symbols[WORKER],
        symbols[TIMESTAMP],
        symbols[START_LOOP_LOG],
        symbols[END_LOOP_LOG],
        code,
    )
