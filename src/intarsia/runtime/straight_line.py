"""Running a program without branches: a flat list of prepared kernel calls over lasting buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from intarsia.runtime.buffers import allocate, new_array
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.ownership import owned, shares_memory
from intarsia.runtime.plan import ExecutionPlan, RunKernel

_Places: TypeAlias = list[tuple[list[Any], int]]
"""Where a slot's value is needed: positions in the prepared argument lists."""
_PreparedStep: TypeAlias = tuple[
    Callable[[Sequence[Value], Sequence[Array | None]], list[Value]],
    list[Any],
    list[Any],
    tuple[tuple[int, int], ...],
]
"""A kernel, its inputs, its outputs, and (position, slot) of those outputs that it allocates itself."""


class StraightLine:
    """The runner of a plan whose "main" has only RunKernel steps.

    Every kernel call has its argument lists from the start; what changes from call to call (inputs, large
    results, values of unknown shape) is written into them. Buffers of known shape are always the same.
    """

    def __init__(
        self, plan: ExecutionPlan, kernels: Sequence[NamedKernel], constants: Sequence[Array]
    ) -> None:
        block = plan.blocks["main"]
        steps = [step for step in block.steps if isinstance(step, RunKernel)]
        self._buffers = allocate(block, steps, plan.slot_types)
        self._result_slots = block.results
        self._results: list[Any] = [None] * len(block.results)
        self._places: dict[int, _Places] = {}
        self._steps = [self._prepared(step, kernels[step.kernel]) for step in steps]
        for index, slot in enumerate(block.results):
            self._places.setdefault(slot, []).append((self._results, index))
        self._kept = [constants[number] for _, number in block.constants]
        lasting = {**{slot: constants[number] for slot, number in block.constants}, **self._buffers.lasting}
        for slot, value in lasting.items():
            self._put(slot, value)
        self._params = [self._places.get(slot, []) for slot in block.params]
        self._fresh = [(self._places[slot], *wanted) for slot, wanted in self._buffers.fresh.items()]
        unknown = [slot for _, _, _, outputs in self._steps for _, slot in outputs]
        changing = [*block.params, *self._buffers.fresh, *unknown]
        self._changing = [place for slot in changing for place in self._places.get(slot, [])]
        known = {*self._buffers.lasting, *self._buffers.fresh}
        self._all_known = not unknown and known.issuperset(block.results)
        self._copied = [
            slot in self._buffers.lasting or slot in block.results[:index]
            for index, slot in enumerate(block.results)
        ]

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        """Results of the program; they belong to the caller."""
        try:
            for places, shape, dtype in self._fresh:
                buffer = new_array(shape, dtype)
                for target, index in places:
                    target[index] = buffer
            self._run_steps(inputs)
            if self._all_known:
                return [
                    value.copy() if copied else value
                    for value, copied in zip(self._results, self._copied, strict=True)
                ]
            return owned(self._results, [self._buffers.arena, *inputs, *self._kept])
        finally:
            self._forget()

    def run_into(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> list[Value]:
        """As `run`, with large results computed in the caller's buffers; the rest is to be copied."""
        own: dict[int, Array] = {}
        for slot, output in zip(self._result_slots, outputs, strict=True):
            own.setdefault(slot, output)
        for slot in self._buffers.fresh:
            self._put(slot, own[slot])
        try:
            self._run_steps(inputs)
            return list(self._results)
        finally:
            self._forget()

    def _run_steps(self, inputs: Sequence[Value]) -> None:
        for places, value in zip(self._params, inputs, strict=True):
            for target, index in places:
                target[index] = value
        for run, arguments, outputs, unknown in self._steps:
            results = run(arguments, outputs)
            for position, slot in unknown:
                found = results[position]
                if isinstance(found, np.ndarray) and shares_memory(found, (self._buffers.arena,)):
                    found = found.copy()  # a view of a buffer, whose bytes will be another buffer's
                self._put(slot, found)

    def _forget(self) -> None:
        """Hold nothing of the caller's, and nothing that was allocated for this call only."""
        for target, index in self._changing:
            target[index] = None

    def _prepared(self, step: RunKernel, kernel: NamedKernel) -> _PreparedStep:
        arguments: list[Any] = [None] * len(step.inputs)
        outputs: list[Any] = [None] * len(step.outputs)
        for index, slot in enumerate(step.inputs):
            self._places.setdefault(slot, []).append((arguments, index))
        unknown = []
        for index, slot in enumerate(step.outputs):
            if slot in self._buffers.lasting or slot in self._buffers.fresh:
                self._places.setdefault(slot, []).append((outputs, index))
            else:
                unknown.append((index, slot))
        return kernel.run, arguments, outputs, tuple(unknown)

    def _put(self, slot: int, value: Value) -> None:
        for target, index in self._places.get(slot, ()):
            target[index] = value
