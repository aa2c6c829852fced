"""Run a program without branches: a flat list of prepared kernel calls over lasting buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from intarsia.runtime.buffers import allocate, new_array
from intarsia.runtime.call_series import SeriesKernel
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.ownership import owned, shares_memory
from intarsia.runtime.plan import ExecutionPlan, RunKernel
from intarsia.support.result_memory import ResultMemory

_Positions: TypeAlias = list[tuple[list[Any], int]]
"""Positions of a slot's value in the prepared argument lists."""
_PreparedStep: TypeAlias = tuple[
    Callable[[Sequence[Value], Sequence[Array | None]], list[Value]],
    list[Any],
    list[Any],
    tuple[tuple[int, int], ...],
    bool,
]
"""A kernel, its inputs, its outputs, (position, slot) of those outputs that it allocates itself, and whether
these share no memory with anything."""


class StraightLine:
    """The runner of a plan with only RunKernel steps in "main".

    The argument lists of every kernel call are made once. Values that change from call to call (inputs, large
    results, values of unknown shape) are written into them. Buffers of known shape are the same on every
    call.

    Attributes:
        series: The only kernel, if calls can be run at once.
    """

    def __init__(
        self, plan: ExecutionPlan, kernels: Sequence[NamedKernel], constants: Sequence[Array]
    ) -> None:
        block = plan.blocks["main"]
        self.series = SeriesKernel.of(plan, kernels)
        steps = [step for step in block.steps if isinstance(step, RunKernel)]
        self._buffers = allocate(block, steps, plan.slot_types)
        self._result_slots = block.results
        self._results: list[Any] = [None] * len(block.results)
        self._positions: dict[int, _Positions] = {}
        self._plan_steps = [(step, kernels[step.kernel]) for step in steps]
        self._steps = [self._prepare_step(step, kernel) for step, kernel in self._plan_steps]
        for index, slot in enumerate(block.results):
            self._positions.setdefault(slot, []).append((self._results, index))
        self._kept = [constants[number] for _, number in block.constants]
        lasting = {**{slot: constants[number] for slot, number in block.constants}, **self._buffers.lasting}
        for slot, value in lasting.items():
            self._put(slot, value)
        self._lasting: dict[int, Value] = dict(lasting)
        self._param_slots = block.params
        self._params = [self._positions.get(slot, []) for slot in block.params]
        self._fresh = [
            (self._positions[slot], *form, ResultMemory()) for slot, form in self._buffers.fresh.items()
        ]
        unknown = [slot for _, _, _, outputs, _ in self._steps for _, slot in outputs]
        changing = [*block.params, *self._buffers.fresh, *unknown]
        self._changing = [position for slot in changing for position in self._positions.get(slot, [])]
        buffered = {*self._buffers.lasting, *self._buffers.fresh}
        self._has_static_results = not unknown and buffered.issuperset(block.results)
        new = [slot for _, _, _, outputs, is_new in self._steps for _, slot in outputs if is_new]
        self._has_own_results = buffered.union(new).issuperset(block.results)
        self._copied = [
            slot in self._buffers.lasting or slot in block.results[:index]
            for index, slot in enumerate(block.results)
        ]

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        """Run the program and return its results; they belong to the caller."""
        try:
            for positions, shape, dtype, memory in self._fresh:
                buffer = new_array(shape, dtype, memory)
                for target, index in positions:
                    target[index] = buffer
            self._run_steps(inputs)
            if self._has_own_results:
                return [
                    value.copy() if copied else value
                    for value, copied in zip(self._results, self._copied, strict=True)
                ]
            return owned(self._results, [self._buffers.arena, *inputs, *self._kept])
        finally:
            self._forget()

    def run_into(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> list[Value]:
        """Run with large results computed in the caller's buffers; the caller copies the others."""
        buffers: dict[int, Array] = {}
        for slot, output in zip(self._result_slots, outputs, strict=True):
            buffers.setdefault(slot, output)
        for slot in self._buffers.fresh:
            self._put(slot, buffers[slot])
        try:
            self._run_steps(inputs)
            return list(self._results)
        finally:
            self._forget()

    def bind(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> list[Callable[[], object]] | None:
        """Return functions that run the program in this order on arrays that stay where they are.

        Args:
            inputs: Inputs, as for `run`.
            outputs: An array for each result, of its element type and shape.

        Returns:
            The functions; None if a kernel allocates a result of its own.
        """
        if not self._has_static_results:
            return None
        results: dict[int, Array] = {}
        copies: list[Callable[[], object]] = []
        for slot, output in zip(self._result_slots, outputs, strict=True):
            if slot in results:
                copies.append(partial(np.copyto, output, results[slot]))
            else:
                results[slot] = output
        written = self._buffers.lasting | results
        read = self._lasting | dict(zip(self._param_slots, inputs, strict=True)) | results
        steps: list[Callable[[], object]] = [
            kernel.bind([read[slot] for slot in step.inputs], [written[slot] for slot in step.outputs])
            for step, kernel in self._plan_steps
        ]
        return steps + copies

    def _run_steps(self, inputs: Sequence[Value]) -> None:
        for positions, value in zip(self._params, inputs, strict=True):
            for target, index in positions:
                target[index] = value
        arena = (self._buffers.arena,)
        for run, arguments, outputs, unknown, is_new in self._steps:
            results = run(arguments, outputs)
            for position, slot in unknown:
                result = results[position]
                if not is_new and isinstance(result, np.ndarray) and shares_memory(result, arena):
                    # A view of a buffer in the arena, which a later step may overwrite.
                    result = result.copy()
                self._put(slot, result)

    def _forget(self) -> None:
        """Drop all references to the caller's arrays and to arrays of this call."""
        for target, index in self._changing:
            target[index] = None

    def _prepare_step(self, step: RunKernel, kernel: NamedKernel) -> _PreparedStep:
        arguments: list[Any] = [None] * len(step.inputs)
        outputs: list[Any] = [None] * len(step.outputs)
        for index, slot in enumerate(step.inputs):
            self._positions.setdefault(slot, []).append((arguments, index))
        unknown = []
        for index, slot in enumerate(step.outputs):
            if slot in self._buffers.lasting or slot in self._buffers.fresh:
                self._positions.setdefault(slot, []).append((outputs, index))
            else:
                unknown.append((index, slot))
        return kernel.run, arguments, outputs, tuple(unknown), kernel.has_new_results

    def _put(self, slot: int, value: Value) -> None:
        for target, index in self._positions.get(slot, ()):
            target[index] = value
