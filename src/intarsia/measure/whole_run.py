"""A whole program compiled for one toolchain and run once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import UnsupportedModelError
from intarsia.target import Target

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The result of compiling and running a whole program.

    Attributes:
        target: Target that it was compiled for.
        executable: The compiled program.
        outputs: Its results, flat and in order.
        compile_seconds: Time to compile.
        call_seconds: Time of the one call.
    """

    target: Target
    executable: Executable
    outputs: tuple[Array, ...]
    compile_seconds: float
    call_seconds: float


def run_whole(module: IRModule, target: Target, inputs: Mapping[str, Array]) -> WholeRun:
    """Compile a module as a whole, and run it.

    Args:
        module: Program without marked toolchains.
        target: Target that compiles and runs it.
        inputs: Arrays by parameter name.

    Raises:
        CompileError, MissingToolchainError: The toolchain refuses it, or is not usable here.
        ExecutionError: It failed while running.
        UnsupportedModelError: A result is a sequence or an absent optional.
    """
    start = time.perf_counter()
    executable = build(partition_whole(module, target))
    compiled = time.perf_counter()
    outputs = tuple(run_arrays(executable, inputs))
    return WholeRun(target, executable, outputs, compiled - start, time.perf_counter() - compiled)


def run_arrays(executable: Executable, inputs: Mapping[str, Array]) -> list[Array]:
    """Run a program and return its results, which must all be arrays.

    Raises:
        ExecutionError: A kernel failed.
        UnsupportedModelError: A result is a sequence or an absent optional.
    """
    results = executable.run_flat(**inputs)
    for info, value in zip(executable.outputs, results, strict=True):
        if not isinstance(value, np.ndarray):
            raise UnsupportedModelError(
                f"output {info.name!r} is a sequence or optional, which cannot be compared"
            )
    return [value for value in results if isinstance(value, np.ndarray)]
