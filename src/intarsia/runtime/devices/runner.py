"""Run a program without branches on several devices, each in its own thread."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Final

import numpy as np

from intarsia.runtime.buffers import new_array
from intarsia.runtime.devices.device import Buffer, Device
from intarsia.runtime.devices.device_buffers import allocate_on_devices
from intarsia.runtime.devices.progress import Progress
from intarsia.runtime.devices.schedule import DeviceStep, Turn, schedule
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.ownership import owned
from intarsia.runtime.plan import Copy, ExecutionPlan, RunKernel
from intarsia.runtime.timeline import Recorder
from intarsia.support.result_memory import ResultMemory

_ATTENTION_S: Final = 0.2
"""Seconds between two checks of the caller's thread for an interrupt."""


class DeviceRunner:
    """The runner of a plan with devices and only RunKernel and Copy steps in "main".

    A device waits for another one only to copy a value from it. The first error, or an interrupt of the
    caller,
    stops all devices after their current step, and is raised once they have stopped.

    Args:
        plan: The plan.
        kernels: Compiled functions, by the numbers that the plan uses.
        constants: Arrays that the plan's blocks read directly; they are put on their devices once.
        devices: Devices of the plan, in its order.
        recorder: Recorder of the start and end of each step, if given.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        kernels: Sequence[NamedKernel],
        constants: Sequence[Array],
        devices: Sequence[Device],
        recorder: Recorder | None = None,
    ) -> None:
        block = plan.blocks["main"]
        steps: list[DeviceStep] = [step for step in block.steps if isinstance(step, (RunKernel, Copy))]
        self._block, self._kernels, self._devices, self._recorder = block, kernels, devices, recorder
        self._schedule = schedule(block, steps, len(devices))
        buffers = allocate_on_devices(block, self._schedule, plan.slot_types, devices)
        self._fresh = {slot: (*form, ResultMemory()) for slot, form in buffers.fresh.items()}
        self.arena_sizes = buffers.sizes
        arenas = [arena for arena in buffers.arenas if isinstance(arena, np.ndarray)]
        self._kept: list[Value] = [*arenas, *(constants[number] for _, number in block.constants)]
        self._lasting: list[Buffer] = [None] * block.slots
        for slot, buffer in buffers.lasting.items():
            self._lasting[slot] = buffer
        for slot, number in block.constants:
            device = devices[block.slot_devices[slot]]
            self._lasting[slot] = device.worker.call(partial(device.put, constants[number]))

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        """Run the program and return its results; they belong to the caller."""
        slots = list(self._lasting)
        for slot, (shape, dtype, memory) in self._fresh.items():
            slots[slot] = self._device_of(slot).adopt(new_array(shape, dtype, memory))
        self._execute(slots, inputs)
        results = [self._device_of(slot).get(slots[slot]) for slot in self._block.results]
        return owned(results, [*inputs, *self._kept])

    def run_into(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> list[Value]:
        """Run with large results computed in the caller's buffers; the caller copies the others."""
        slots = list(self._lasting)
        results = self._block.results
        # Reversed: where a slot is returned twice, the first buffer wins, and the second is filled by a copy.
        for slot, output in zip(reversed(results), reversed(outputs), strict=True):
            if slot in self._fresh:
                slots[slot] = self._device_of(slot).adopt(output)
        self._execute(slots, inputs)
        return [self._device_of(slot).get(slots[slot]) for slot in results]

    def _device_of(self, slot: int) -> Device:
        return self._devices[self._block.slot_devices[slot]]

    def _execute(self, slots: list[Buffer], inputs: Sequence[Value]) -> None:
        progress = Progress(len(self._devices))
        futures: list[Future[None]] = []
        try:
            for number, device in enumerate(self._devices):
                futures.append(device.worker.submit(partial(self._work, number, slots, inputs, progress)))
            while wait(futures, _ATTENTION_S).not_done:  # the signal of a Ctrl-C may reach another thread
                pass
        except BaseException as interrupt:  # Ctrl-C: the devices must not go on with what is freed
            progress.stop(interrupt)
            wait(futures)
            raise
        if progress.error is not None:
            raise progress.error

    def _work(self, number: int, slots: list[Buffer], inputs: Sequence[Value], progress: Progress) -> None:
        """Run all turns of one device, in its thread."""
        device, plan = self._devices[number], self._schedule
        with progress.stopping():
            for slot, value in zip(self._block.params, inputs, strict=True):
                if self._block.slot_devices[slot] == number:
                    slots[slot] = device.put(value)
            if plan.input_is_awaited[number]:
                device.synchronize()
                progress.announce(number, 0)
            for index, turn in enumerate(plan.turns[number], 1):
                if turn.wait is not None:
                    progress.wait_for(*turn.wait)
                progress.check()
                self._take(device, turn, slots)
                if turn.is_awaited:
                    device.synchronize()
                    progress.announce(number, index)
            device.synchronize()

    def _take(self, device: Device, turn: Turn, slots: list[Buffer]) -> None:
        if self._recorder is None:
            self._do(device, turn.step, slots)
            return
        with self._recorder.step(turn.step):
            self._do(device, turn.step, slots)
            device.synchronize()

    def _do(self, device: Device, step: DeviceStep, slots: list[Buffer]) -> None:
        if isinstance(step, Copy):
            source = self._device_of(step.source)
            slots[step.destination] = device.receive(source, slots[step.source], slots[step.destination])
            return
        arguments = [slots[slot] for slot in step.inputs]
        outputs = [slots[slot] for slot in step.outputs]
        results = device.run(self._kernels[step.kernel], arguments, outputs)
        for slot, value in zip(step.outputs, results, strict=True):
            slots[slot] = value
