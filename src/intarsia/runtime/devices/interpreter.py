"""Run a program with branches and calls on several devices, one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import ClassVar

from intarsia.runtime.devices.device import Buffer, Device
from intarsia.runtime.interpreter import Activation, Interpreter
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.ownership import owned
from intarsia.runtime.plan import Copy, ExecutionPlan, PlanBlock, RunKernel
from intarsia.runtime.timeline import Recorder


class DeviceInterpreter(Interpreter):
    """The runner of any plan with devices; values are buffers of the devices of their slots.

    Args:
        plan: The plan.
        kernels: Compiled functions, by the numbers that the plan uses.
        constants: Arrays that the plan's blocks read directly; they are put on their devices once.
        devices: Devices of the plan, in its order.
        recorder: Recorder of the start and end of each step, if given.
    """

    _has_devices: ClassVar[bool] = True

    def __init__(
        self,
        plan: ExecutionPlan,
        kernels: Sequence[NamedKernel],
        constants: Sequence[Array],
        devices: Sequence[Device],
        recorder: Recorder | None = None,
    ) -> None:
        self._devices, self._recorder, self._main = devices, recorder, plan.blocks["main"]
        super().__init__(plan, kernels, constants)
        self._host_constants = list(constants)

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        """Run the program and return its results; they belong to the caller."""
        return owned(self.run_into(inputs, ()), [*inputs, *self._host_constants])

    def run_into(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> list[Value]:
        """Run the program and return its results, which the caller has yet to copy into its buffers."""
        placed = [
            self._put(self._main, slot, value) for slot, value in zip(self._main.params, inputs, strict=True)
        ]
        results = super().run_into(placed, outputs)
        return [
            self._device(self._main, slot).get(value)
            for slot, value in zip(self._main.results, results, strict=True)
        ]

    def _put(self, block: PlanBlock, slot: int, value: Value) -> Buffer:
        device = self._device(block, slot)
        return device.worker.call(partial(device.put, value))

    def _device(self, block: PlanBlock, slot: int) -> Device:
        return self._devices[block.slot_devices[slot]]

    def _run_kernel(self, step: RunKernel, values: list[Value]) -> None:
        device = self._devices[step.device]
        arguments = [values[slot] for slot in step.inputs]
        work = partial(device.run, self._kernels[step.kernel], arguments, [None] * len(step.outputs))
        if self._recorder is None:
            results = device.worker.call(work)
        else:
            with self._recorder.step(step):
                results = device.worker.call(work)
                device.worker.call(device.synchronize)
        for slot, value in zip(step.outputs, results, strict=True):
            values[slot] = value

    def _copy(self, step: Copy, activation: Activation) -> None:
        number = activation.prepared.block.slot_devices[step.source]
        source, device, values = self._devices[number], self._devices[step.device], activation.values
        # The value must be complete before another device's thread reads it.
        source.worker.call(source.synchronize)
        work = partial(device.receive, source, values[step.source], None)
        with nullcontext() if self._recorder is None else self._recorder.step(step, number):
            values[step.destination] = device.worker.call(work)
            # The source may use the memory again as soon as nothing refers to it: the copy must have read it.
            device.worker.call(device.synchronize)

    def _condition(self, slot: int, activation: Activation) -> Value:
        return self._device(activation.prepared.block, slot).get(activation.values[slot])
