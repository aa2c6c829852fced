"""A program compiled in this process, by the first toolchain that can run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.whole_run import run_arrays
from intarsia.passes import partition_whole
from intarsia.passes.devices.without_devices import without_devices
from intarsia.support.errors import ExecutionError, IntarsiaError
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains
from intarsia.transform import PassContext

Array = npt.NDArray[Any]

PREFERRED: Final = ("onnxruntime", "openvino", "native", "reference")
"""Toolchains in the order in which they are tried: compiling takes native longest."""


ProgramRunner: TypeAlias = Callable[[Mapping[str, Array]], Sequence[Array]]
"""Function from arrays by parameter name to results, flat and in order."""


@contextmanager
def running_program(mod: IRModule, toolchains: Sequence[str] = PREFERRED) -> Iterator[ProgramRunner]:
    """Compile a program and yield a function that runs it; a toolchain that fails is replaced by the next.

    Args:
        mod: Program without marked toolchains.
        toolchains: Names of toolchains to try.

    Raises:
        ExecutionError: No toolchain runs it.
    """
    plain = without_devices(mod)  # results do not depend on devices, and one toolchain runs on one of them
    usable = {toolchain.name for toolchain in usable_toolchains()}
    waiting = [name for name in toolchains if name in usable]
    problems: list[str] = []
    executables: list[Any] = []

    def run(inputs: Mapping[str, Array]) -> Sequence[Array]:
        while waiting:
            try:
                if not executables:
                    with PassContext():
                        executables.append(build(partition_whole(plain, Target.for_toolchain(waiting[0]))))
                # Copies: an engine may give memory that it writes again in the next call.
                return [np.array(array) for array in run_arrays(executables[-1], inputs)]
            except IntarsiaError as error:
                problems.append(f"{waiting.pop(0)}: {error.problem}")
            # Engines are foreign code: they raise what they like, such as RuntimeError.
            except Exception as error:
                problems.append(f"{waiting.pop(0)}: {type(error).__name__}: {error}")
            _close(executables)
        raise ExecutionError(f"no toolchain runs the program: {'; '.join(problems) or 'none is usable'}")

    try:
        yield run
    finally:
        _close(executables)


def _close(executables: list[Any]) -> None:
    while executables:
        executables.pop().close()
