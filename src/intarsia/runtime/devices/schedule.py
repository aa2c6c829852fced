"""Divide the steps of a plan among its devices; a device waits only for a value of another one.

Each device runs its steps in the order of the plan, so that no two can deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.runtime.plan import Copy, PlanBlock, RunKernel

DeviceStep: TypeAlias = RunKernel | Copy


@dataclass(frozen=True, slots=True)
class Turn:
    """A step of one device.

    Turns are counted from 1 on each device; turn 0 is the copy of the inputs into its memory.

    Attributes:
        step: Step of the plan; the destination's device runs a Copy.
        wait: Device and turn that must be complete before a Copy; None for other steps.
        is_awaited: Whether another device waits for this turn.
        complete: Number of turns, turn 0 included, that each device has surely completed when this step
            begins.
    """

    step: DeviceStep
    wait: tuple[int, int] | None
    is_awaited: bool
    complete: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeviceSchedule:
    """The turns of each device.

    Attributes:
        turns: Turns of each device, in order.
        input_is_awaited: Whether another device waits for the inputs of each device.
    """

    turns: tuple[tuple[Turn, ...], ...]
    input_is_awaited: tuple[bool, ...]


def schedule(block: PlanBlock, steps: Sequence[DeviceStep], devices: int) -> DeviceSchedule:
    """Divide the steps of a block among the devices.

    The counts of completed turns follow from the waits alone, as in vector clocks (Mattern 1989): a device
    has the
    count of its own turns, and the maximum of the counts of all devices that it has waited for.

    Args:
        block: Block of a plan with devices.
        steps: Its steps, in an order in which they can be done one after the other.
        devices: Number of devices.
    """
    writer: dict[int, tuple[int, int]] = {}  # slot -> device and turn
    queues: list[list[tuple[DeviceStep, tuple[int, int] | None, tuple[int, ...]]]] = [
        [] for _ in range(devices)
    ]
    clocks = [[0] * devices for _ in range(devices)]
    for device, clock in enumerate(clocks):
        clock[device] = 1  # its inputs
    awaited: set[tuple[int, int]] = set()
    for step in steps:
        queue, clock = queues[step.device], clocks[step.device]
        wait = None
        if isinstance(step, Copy):
            wait = writer.get(step.source, (block.slot_devices[step.source], 0))
            awaited.add(wait)
            source, turn = wait
            source_clock = queues[source][turn - 1][2] if turn else (0,) * devices
            # Merge the clocks element by element, then count the awaited turn itself as complete.
            clock[:] = map(max, clock, source_clock)
            clock[source] = max(clock[source], turn + 1)
        queue.append((step, wait, tuple(clock)))
        clock[step.device] = len(queue) + 1
        for slot in step.outputs:
            writer[slot] = step.device, len(queue)
    return DeviceSchedule(
        tuple(
            tuple(
                Turn(step, wait, (device, number) in awaited, complete)
                for number, (step, wait, complete) in enumerate(queue, 1)
            )
            for device, queue in enumerate(queues)
        ),
        tuple((device, 0) in awaited for device in range(devices)),
    )
