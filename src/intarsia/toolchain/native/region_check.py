"""Whether the parts of a native region fit each other: it may come from a file that was changed.

What is checked is everything that Python does with a region before and beside its object code. Whether the
object code keeps to its parameters cannot be checked: it is trusted, or not loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.thread_pool import MOST_THREADS
from intarsia.support.errors import ArtifactError
from intarsia.support.machine_memory import machine_memory
from intarsia.toolchain.native.index_check import IndexCheck
from intarsia.toolchain.native.region import Argument, ArgumentKind, NativeRegion, RegionCall, RegionKernel

_MOST_SCRATCH_BYTES: Final = 1 << 30
"""Limit of the scratch memory of one thread; kernels plan it to stay within a level of caches."""
_WORDS: Final = frozenset({("int8", "int32"), ("uint8", "int32")})
_MOST_ALIGNMENT: Final = 4096


def check_region(region: NativeRegion) -> None:
    """Check that a region can be bound to memory and called.

    Raises:
        ArtifactError: A number in it is out of its range, or an argument does not fit its parameter.
    """
    if not 1 <= region.threads <= MOST_THREADS:
        raise _damaged(f"they are for {region.threads} threads")
    if region.arena_bytes > machine_memory():
        raise _damaged(f"their arena has {region.arena_bytes} bytes, more than this machine")
    for kernel in region.kernels:
        _check_kernel(kernel)
    for call in region.calls:
        _check_call(region, call)
    _check_copies(region)
    for counted in region.counted:
        result = region.results[_within(counted.position, region.results)]
        if not 1 <= counted.width <= math.prod(result.shape):
            raise _damaged(f"{result.name!r} has rows of {counted.width} numbers")
    for check in region.checks:
        _check_bounds(region, check)


def _check_bounds(region: NativeRegion, check: IndexCheck) -> None:
    for position in (check.smallest, check.largest):
        result = region.results[_within(position, region.results)]
        if result.shape != (len(check.limits),) or result.dtype.kind not in "iu":
            raise _damaged(f"{result.name!r} does not fit the {len(check.limits)} limits of {check.subject}")
    if region.hidden_results > len(region.results):
        raise _damaged(f"they have {len(region.checks)} checks of {len(region.results)} results")


def _check_kernel(kernel: RegionKernel) -> None:
    if kernel.scratch_bytes > _MOST_SCRATCH_BYTES:
        raise _damaged(f"a kernel needs {kernel.scratch_bytes} bytes of scratch memory")
    for parameter in kernel.parameters:
        alignment = parameter.alignment
        if not 1 <= alignment <= _MOST_ALIGNMENT or alignment & (alignment - 1):
            raise _damaged(f"a parameter is aligned to {alignment} bytes")


def _check_call(region: NativeRegion, call: RegionCall) -> None:
    parameters = region.kernels[_within(call.kernel, region.kernels)].parameters
    if len(parameters) != len(call.arguments):
        raise _damaged(f"a kernel of {len(parameters)} parameters has {len(call.arguments)} arguments")
    for argument, parameter in zip(call.arguments, parameters, strict=True):
        _check_argument(region, argument, parameter)


def _check_argument(region: NativeRegion, argument: Argument, parameter: ArrayParameter) -> None:
    size, number = math.prod(parameter.shape) * parameter.dtype.itemsize, argument.number
    match argument.kind:
        case ArgumentKind.ARENA:
            if number + size > region.arena_bytes or number % parameter.alignment:
                raise _damaged("an argument is outside the arena, or not aligned in it")
        case ArgumentKind.CONSTANT:
            array = region.constants[_within(number, region.constants)].array
            # A table has an item for each token, of which the parameter says the shape.
            is_whole = array.nbytes == size or (size > 0 and array.nbytes % size == 0 < array.nbytes)
            if parameter.is_written or not is_whole or array.dtype != parameter.dtype:
                raise _damaged("a constant does not fit the parameter that reads it")
        case ArgumentKind.SLOT:
            ports = (*region.params, *region.results)
            port = ports[_within(number, ports)]
            # Bytes may be read as words of four, whose products one instruction sums.
            has_words = (port.dtype.name, parameter.dtype.name) in _WORDS and not parameter.is_written
            if port.nbytes != size or (port.dtype != parameter.dtype and not has_words):
                raise _damaged(f"{port.name!r} does not fit the parameter that it is passed to")
            if parameter.is_written and number < len(region.params):
                raise _damaged(f"a kernel writes to the input {port.name!r}")


def _check_copies(region: NativeRegion) -> None:
    ports = (*region.params, *region.results)
    for position, origin in region.copies:
        result = region.results[_within(position, region.results)]
        match origin.kind:
            case ArgumentKind.CONSTANT:
                array = region.constants[_within(origin.number, region.constants)].array
                size, dtype = array.nbytes, array.dtype
            case ArgumentKind.SLOT:
                port = ports[_within(origin.number, ports)]
                size, dtype = port.nbytes, port.dtype
            case ArgumentKind.ARENA:
                raise _damaged("a result is copied from the arena")
        if (size, dtype) != (result.nbytes, result.dtype):
            raise _damaged(f"what is copied to {result.name!r} does not fit it")


def _within(number: int, items: Sequence[object]) -> int:
    if number >= len(items):
        raise _damaged(f"they refer to number {number} of {len(items)}")
    return number


def _damaged(problem: str) -> ArtifactError:
    return ArtifactError(f"damaged native kernels: {problem}")
