"""What each device does in which order, and for whom it waits: only where a value comes from another one.

Each device takes its steps in the order of the plan, so that no two can wait for each other.
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

    Turns are counted from 1 on each device; 0 is the moment at which it has put inputs into its memory.

    Attributes:
        step: What is done; a Copy is done by the device that it goes to.
        wait: The device and its turn that must be done before, for a Copy.
        is_awaited: Whether a device waits for this turn.
        known: For each device how many turns are surely done, with turn 0, when this step begins.
    """

    step: DeviceStep
    wait: tuple[int, int] | None
    is_awaited: bool
    known: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeviceSchedule:
    """The turns of each device.

    Attributes:
        turns: By device.
        input_is_awaited: For each device whether another one waits for its inputs.
    """

    turns: tuple[tuple[Turn, ...], ...]
    input_is_awaited: tuple[bool, ...]


def schedule(block: PlanBlock, steps: Sequence[DeviceStep], devices: int) -> DeviceSchedule:
    """Divide the steps of a block among the devices.

    What is known when a step begins follows from waiting alone, as in vector clocks (Mattern 1989): a device
    knows what it has done, and what those for whom it has waited knew.

    Args:
        block: Of a plan with devices.
        steps: Its steps, in an order in which they can be done one after the other.
        devices: How many there are.
    """
    writer: dict[int, tuple[int, int]] = {}  # slot -> device and turn
    waits: list[list[tuple[DeviceStep, tuple[int, int] | None, tuple[int, ...]]]] = [
        [] for _ in range(devices)
    ]
    clocks = [[0] * devices for _ in range(devices)]
    for device, clock in enumerate(clocks):
        clock[device] = 1  # its inputs
    awaited: set[tuple[int, int]] = set()
    for step in steps:
        own, mine = waits[step.device], clocks[step.device]
        wait = None
        if isinstance(step, Copy):
            wait = writer.get(step.source, (block.slot_devices[step.source], 0))
            awaited.add(wait)
            source, turn = wait
            theirs = waits[source][turn - 1][2] if turn else (0,) * devices
            mine[:] = map(max, mine, theirs)
            mine[source] = max(mine[source], turn + 1)
        own.append((step, wait, tuple(mine)))
        mine[step.device] = len(own) + 1
        for slot in step.outputs:
            writer[slot] = step.device, len(own)
    return DeviceSchedule(
        tuple(
            tuple(
                Turn(step, wait, (device, number) in awaited, known)
                for number, (step, wait, known) in enumerate(own, 1)
            )
            for device, own in enumerate(waits)
        ),
        tuple((device, 0) in awaited for device in range(devices)),
    )
