"""Memory of a straight-line program on several devices: one arena on each.

A buffer that another device copies is in use until its own device knows that the copy is done.
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
        arenas: The block of each device in which its lasting buffers lie.
        sizes: Bytes of each.
        lasting: Buffers by slot, the same on every call.
        fresh: Shape and dtype by slot of results that are computed in an array of the caller's own.
    """

    arenas: tuple[Buffer, ...]
    sizes: tuple[int, ...]
    lasting: dict[int, Buffer]
    fresh: dict[int, ShapeAndDType]


def allocate_on_devices(
    block: PlanBlock, plan: DeviceSchedule, types: Sequence[TensorInfo | None], devices: Sequence[Device]
) -> DeviceBuffers:
    """Buffers for all slots that are written and whose shape is known; the others kernels allocate.

    Raises:
        ExecutionError: They do not fit into memory.
    """
    known = known_slots([turn.step for turns in plan.turns for turn in turns], types)
    fresh = {
        slot: known[slot]
        for slot in block.results
        if slot in known
        and devices[block.slot_devices[slot]].kind == "cpu"
        and buffer_bytes(*known[slot]) > COPIED_RESULT_BYTES
    }
    lifetimes = device_lifetimes(block, plan, {slot: known[slot] for slot in known if slot not in fresh})
    arenas: list[Buffer] = []
    sizes: list[int] = []
    lasting: dict[int, Buffer] = {}
    for device, spans in zip(devices, lifetimes, strict=True):
        placed = plan_arena_by_time(list(spans.values()), ALIGNMENT)
        arena, buffers = device.worker.call(
            partial(_allocated, device, placed, [known[slot] for slot in spans])
        )
        arenas.append(arena)
        sizes.append(placed.size)
        lasting.update(zip(spans, buffers, strict=True))
    return DeviceBuffers(tuple(arenas), tuple(sizes), lasting, fresh)


def _allocated(
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
    block: PlanBlock, plan: DeviceSchedule, known: Mapping[int, ShapeAndDType]
) -> tuple[dict[int, Lifetime], ...]:
    """For each device the slots that it writes and whose form is known, with the turns that need them.

    Args:
        block: Of a plan with devices.
        plan: Who does what.
        known: Form of the slots that need a buffer.
    """
    spans: list[dict[int, tuple[int, int]]] = [{} for _ in plan.turns]
    for device, turns in enumerate(plan.turns):
        for number, turn in enumerate(turns, 1):
            for slot in turn.step.outputs:
                spans[device][slot] = number, number
    ends = [len(turns) + 1 for turns in plan.turns]
    for reader, turns in enumerate(plan.turns):
        for number, turn in enumerate(turns, 1):
            for slot in turn.step.inputs:
                owner = block.slot_devices[slot]
                if slot in spans[owner]:
                    is_remote = isinstance(turn.step, Copy)
                    last = _last_before(plan.turns[owner], reader, number) if is_remote else number
                    first, before = spans[owner][slot]
                    spans[owner][slot] = first, max(before, last)
    for slot in block.results:
        own = spans[block.slot_devices[slot]]
        if slot in own:
            own[slot] = own[slot][0], ends[block.slot_devices[slot]]
    return tuple(
        {slot: Lifetime(buffer_bytes(*known[slot]), *span) for slot, span in own.items() if slot in known}
        for own in spans
    )


def _last_before(turns: Sequence[Turn], reader: int, number: int) -> int:
    """The last turn during which the reader may still be in that turn of its own."""
    return bisect_left(turns, number + 1, key=lambda turn: turn.known[reader])
