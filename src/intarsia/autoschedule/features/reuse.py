"""Reuse of the elements of a buffer by a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import prod

from intarsia.autoschedule.features.store_analysis import BufferUse, StoreAnalysis


class ReuseType(Enum):
    """Kinds of reuse, by Ansor's names."""

    LOOP_MULTIPLE_READ = "kLoopMultipleRead"
    SERIAL_MULTIPLE_READ_WRITE = "kSerialMultipleReadWrite"
    NONE = "kNoReuse"


@dataclass(frozen=True, slots=True)
class Reuse:
    """The innermost reuse of a buffer.

    Attributes:
        kind: Reuse by the iterations of a loop, or by another statement in it.
        distance_iterations: Iterations until an element is accessed again.
        distance_bytes: Bytes that are touched in between.
        count: Number of accesses to the same element.
    """

    kind: ReuseType = ReuseType.NONE
    distance_iterations: float = 0
    distance_bytes: float = 0
    count: float = 0


@dataclass(slots=True)
class LoopTouches:
    """Memory that the statements so far have touched in each loop, by its number.

    Attributes:
        total_bytes: Bytes of all buffers.
        elements: Elements of each buffer by name, a number per statement.
    """

    total_bytes: dict[int, int] = field(default_factory=dict)
    elements: dict[tuple[int, str], list[int]] = field(default_factory=dict)

    def add(self, store: StoreAnalysis) -> None:
        """Add a statement."""
        for depth, loop in enumerate(store.loops):
            total = self.total_bytes.get(loop.number, 0)
            self.total_bytes[loop.number] = total + store.touched_bytes[depth]
            for use in store.uses:
                counts = self.elements.setdefault((loop.number, use.buffer.name), [])
                counts.append(use.touched[depth])


def find_reuse(store: StoreAnalysis, use: BufferUse, touches: LoopTouches) -> Reuse:
    """Find the innermost reuse; `touches` includes this statement and those before it."""
    loops = store.loops
    for depth in range(len(loops) - 1, -1, -1):
        loop = loops[depth]
        if not use.depends_on(depth):
            inner = prod(other.extent for other in loops[depth + 1 :])
            if depth + 1 < len(loops):
                between = store.touched_bytes[depth + 1]
            else:
                between = sum(other.element_bytes for other in store.uses)
            return Reuse(ReuseType.LOOP_MULTIPLE_READ, inner, between, loop.extent)
        touched = touches.elements[loop.number, use.buffer.name]
        if len(touched) > 1:
            kind = ReuseType.SERIAL_MULTIPLE_READ_WRITE
            between = touches.total_bytes[loop.number]
            return Reuse(kind, min(touched) / loop.extent, between / loop.extent, len(touched) - 1)
    return Reuse()
