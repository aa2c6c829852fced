"""Memory of a straight-line program on several devices: one arena on each.

A buffer that another device copies stays live until its owner has waited for a later step of that device.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from intarsia.runtime.buffers import COPIED_RESULT_BYTES, ShapeAndDType, buffer_bytes, known_slots, no_memory
from intarsia.runtime.devices.device import Buffer, Device
from intarsia.runtime.devices.schedule import DeviceSchedule, Turn
from intarsia.runtime.plan import Copy, PlanBlock, TensorInfo
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.arena import ArenaPlan, Lifetime, plan_arena_by_time


@dataclass(frozen=True, slots=True)
class DeviceBuffers:
    """Memory for one executable.

    Attributes:
        arenas: Block of each device that contains its lasting buffers.
        sizes: Size of each arena in bytes.
        lasting: Buffers by slot, the same on every call.
        fresh: Shape and dtype by slot of results that are computed in an array of the caller.
    """

    arenas: tuple[Buffer, ...]
    sizes: tuple[int, ...]
    lasting: dict[int, Buffer]
    fresh: dict[int, ShapeAndDType]


def allocate_on_devices(
    block: PlanBlock, schedule: DeviceSchedule, types: Sequence[TensorInfo | None], devices: Sequence[Device]
) -> DeviceBuffers:
    """Allocate buffers for all written slots of known shape; kernels allocate the values of the others.

    Raises:
        ExecutionError: They do not fit into memory.
    """
    forms = known_slots([turn.step for turns in schedule.turns for turn in turns], types)
    fresh = {
        slot: forms[slot]
        for slot in block.results
        if slot in forms
        and devices[block.slot_devices[slot]].kind == "cpu"
        and buffer_bytes(*forms[slot]) > COPIED_RESULT_BYTES
    }
    lifetimes = device_lifetimes(block, schedule, {slot: forms[slot] for slot in forms if slot not in fresh})
    arenas: list[Buffer] = []
    sizes: list[int] = []
    lasting: dict[int, Buffer] = {}
    for device, spans in zip(devices, lifetimes, strict=True):
        placed = plan_arena_by_time(list(spans.values()), ALIGNMENT)
        arena, buffers = device.worker.call(
            partial(_allocate_on, device, placed, [forms[slot] for slot in spans])
        )
        arenas.append(arena)
        sizes.append(placed.size)
        lasting.update(zip(spans, buffers, strict=True))
    return DeviceBuffers(tuple(arenas), tuple(sizes), lasting, fresh)


def _allocate_on(
    device: Device, placed: ArenaPlan, wanted: Sequence[ShapeAndDType]
) -> tuple[Buffer, list[Buffer]]:
    try:
        arena = device.allocate(placed.size)
    except MemoryError as error:
        raise no_memory(f"intermediate values on {device.name}", placed.size) from error
    return arena, [
        device.view(arena, offset, *form) for offset, form in zip(placed.offsets, wanted, strict=True)
    ]


def device_lifetimes(
    block: PlanBlock, schedule: DeviceSchedule, forms: Mapping[int, ShapeAndDType]
) -> tuple[dict[int, Lifetime], ...]:
    """Return, for each device, the live ranges of the slots that it writes and that need a buffer.

    Args:
        block: Block of a plan with devices.
        schedule: Turns of each device.
        forms: Shape and dtype of the slots that need a buffer.
    """
    spans: list[dict[int, tuple[int, int]]] = [{} for _ in schedule.turns]
    for device, turns in enumerate(schedule.turns):
        for number, turn in enumerate(turns, 1):
            for slot in turn.step.outputs:
                spans[device][slot] = number, number
    ends = [len(turns) + 1 for turns in schedule.turns]
    for reader, turns in enumerate(schedule.turns):
        for number, turn in enumerate(turns, 1):
            for slot in turn.step.inputs:
                owner = block.slot_devices[slot]
                if slot in spans[owner]:
                    is_remote = isinstance(turn.step, Copy)
                    last = _last_before(schedule.turns[owner], reader, number) if is_remote else number
                    first, before = spans[owner][slot]
                    spans[owner][slot] = first, max(before, last)
    for slot in block.results:
        ranges = spans[block.slot_devices[slot]]
        if slot in ranges:
            ranges[slot] = ranges[slot][0], ends[block.slot_devices[slot]]
    return tuple(
        {slot: Lifetime(buffer_bytes(*forms[slot]), *span) for slot, span in ranges.items() if slot in forms}
        for ranges in spans
    )


def _last_before(turns: Sequence[Turn], reader: int, number: int) -> int:
    """Return the last turn of a device during which the reader may still be running its turn `number`."""
    # The counts of completed turns only grow, so that a binary search finds the first later turn.
    return bisect_left(turns, number + 1, key=lambda turn: turn.complete[reader])
