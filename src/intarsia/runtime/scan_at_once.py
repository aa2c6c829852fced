"""Scans whose body is one kernel: all iterations in one call of the kernel.

Each iteration of the interpreter takes 36 us besides the kernel, which is more than a step of a small LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.runtime.kernel import AddressSeries, Array, RepeatableKernel, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.plan import Invoke, PlanBlock, Repeat, RunKernel
from intarsia.support.array_address import array_address

_FEWEST: Final = 2
"""Minimum number of iterations: a single one is a call like others."""


@dataclass(frozen=True, slots=True)
class KernelBody:
    """A block that does nothing but run one kernel, directly or by calls of other blocks.

    Attributes:
        kernel: Number of the kernel.
        inputs: For each input of the kernel the number of the block's parameter.
        results: For each result of the block the number of the kernel's result.
    """

    kernel: int
    inputs: tuple[int, ...]
    results: tuple[int, ...]


def kernel_body(blocks: Mapping[str, PlanBlock], name: str) -> KernelBody | None:
    """Return what a block runs; None if that is more or less than one kernel on its parameters.

    Args:
        blocks: Blocks of the plan, by name.
        name: Name of the block.
    """
    block, seen = blocks[name], {name}
    params = {slot: number for number, slot in enumerate(block.params)}
    wanted = block.results
    while len(block.steps) == 1:
        step = block.steps[0]
        if not isinstance(step, (RunKernel, Invoke)):
            return None
        if not set(step.inputs) <= params.keys() or not set(wanted) <= set(step.outputs):
            return None
        numbers = tuple(params[slot] for slot in step.inputs)
        results = tuple(step.outputs.index(slot) for slot in wanted)
        if isinstance(step, RunKernel):
            return KernelBody(step.kernel, numbers, results)
        if step.block in seen:
            return None
        block = blocks[step.block]
        seen.add(step.block)
        params = dict(zip(block.params, numbers, strict=True))
        wanted = tuple(block.results[number] for number in results)
    return None


@dataclass(slots=True)
class _Slices:
    """The slices of an array along its first axis, in the order in which iterations read or write them.

    Attributes:
        array: C-contiguous array.
        numbers: Number of the slice of each iteration.
    """

    array: Array
    numbers: npt.NDArray[np.int64]

    def series(self) -> AddressSeries:
        """Return the addresses of the slices."""
        example = self.array[0, ...]  # an array even if it has no axes
        return AddressSeries(example, array_address(self.array) + self.numbers * self.array.strides[0])


def run_scan_at_once(
    step: Repeat, body: KernelBody, kernels: Sequence[NamedKernel], values: list[Value]
) -> bool:
    """Run all iterations of a Scan in one call of a kernel, and write the results into the slots of the step.

    Args:
        step: The step; no Loop.
        body: Kernel that its block runs.
        kernels: Kernels of the plan.
        values: Slots of the activation that contains the step.

    Returns:
        Whether it was possible; if not, nothing has happened.

    Raises:
        ExecutionError: The kernel failed.
    """
    named = kernels[body.kernel]
    kernel = named.kernel
    forms = None
    if isinstance(kernel, RepeatableKernel) and not named.is_watched:
        forms = kernel.repeated_results()
    scanned = [_moved(values[slot], *axis) for slot, axis in zip(step.scanned, step.scan_axes, strict=True)]
    counts = {0 if slices is None else len(slices.numbers) for slices in scanned}
    if forms is None or len(counts) != 1 or min(counts) < _FEWEST:
        return False
    (count,) = counts
    results = _allocated(step, body, forms, count)
    states = [_contiguous(values[slot]) for slot in step.states]
    captured = [_contiguous(values[slot]) for slot in step.captured]
    series: list[AddressSeries | None] = []
    for state, number in zip(states, body.results, strict=False):
        series.append(_series_of_state(state, results[number].series()))
    series += [None if slices is None else slices.series() for slices in scanned]
    series += [
        None if array is None else AddressSeries(array, np.full(count, array_address(array), np.int64))
        for array in captured
    ]
    inputs = [item for number in body.inputs if (item := series[number]) is not None]
    if len(inputs) < len(body.inputs):
        return False
    named.repeat(count, inputs, [slices.series() for slices in results])
    written = [results[number] for number in body.results[: len(states)]]
    last = [np.array(slices.array[slices.numbers[-1]]) for slices in written]
    rows = [
        _stacked(results[number], *axis)
        for number, axis in zip(body.results[len(states) :], step.row_axes, strict=True)
    ]
    for slot, value in zip(step.outputs, [*last, *rows], strict=True):
        values[slot] = value
    return True


def _contiguous(value: Value) -> Array | None:
    """Return a C-contiguous, aligned array of a tensor; None for other values."""
    return np.require(value, requirements=["C", "A"]) if _is_tensor(value) else None


def _is_tensor(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind != "O"


def _moved(value: Value, axis: int, backward: bool) -> _Slices | None:
    """Return the slices of a scanned value; None if it has none."""
    if not isinstance(value, np.ndarray) or value.ndim <= axis or not value.size or not _is_tensor(value):
        return None
    array = np.require(np.moveaxis(value, axis, 0), requirements=["C", "A"])
    numbers = np.arange(len(array), dtype=np.int64)
    return _Slices(array, numbers[::-1] if backward else numbers)


def _allocated(
    step: Repeat, body: KernelBody, forms: Sequence[tuple[tuple[int, ...], np.dtype[Any]]], count: int
) -> list[_Slices]:
    """Return memory for each result of the kernel: all rows of a stack, or two of a state in turn."""
    stacked = body.results[len(step.states) :]
    numbers = np.arange(count, dtype=np.int64)
    results = []
    for number, (shape, dtype) in enumerate(forms):
        if number in stacked:
            backward = step.row_axes[stacked.index(number)][1]
            rows = np.empty((count, *shape), dtype)
            results.append(_Slices(rows, numbers[::-1] if backward else numbers))
        else:
            results.append(_Slices(np.empty((2, *shape), dtype), numbers % 2))
    return results


def _series_of_state(first: Array | None, written: AddressSeries) -> AddressSeries | None:
    """Return the places of a state: what is given before the first iteration, then what each has written."""
    if first is None or (first.shape, first.dtype) != (written.example.shape, written.example.dtype):
        return None
    return AddressSeries(first, np.concatenate([[array_address(first)], written.addresses[:-1]]))


def _stacked(rows: _Slices, axis: int, backward: bool) -> Array:
    """Return the rows along an axis, from the first or the last iteration on."""
    is_backward = bool(rows.numbers[0] > rows.numbers[-1])
    array = rows.array[::-1] if backward != is_backward else rows.array
    return np.ascontiguousarray(np.moveaxis(array, 0, axis))
