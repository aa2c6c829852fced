"""What the stores of a loop function touch in each loop around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from intarsia.autoschedule.features.store_record import LoopAround, StoreRecord, store_records
from intarsia.autoschedule.features.touched_region import IndexForm, region_sizes, strides
from intarsia.ir import PrimFunc
from intarsia.ir.prim_func import Buffer, Scalar


@dataclass(frozen=True)
class BufferUse:
    """A buffer in one store statement.

    A buffer that is allocated inside loops is a new one in each of their iterations: `touched` counts their
    elements once an iteration, as if they stood side by side. `held` counts its memory.

    Attributes:
        buffer: The buffer.
        is_read: Whether it is read.
        is_written: Whether it is written.
        accesses: The indices of each access.
        loops: The loops around the statement, outermost first.
        own_loops: How many of these stand around its allocation.
    """

    buffer: Buffer
    is_read: bool
    is_written: bool
    accesses: tuple[tuple[IndexForm, ...], ...]
    loops: tuple[LoopAround, ...]
    own_loops: int

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return int(self.buffer.dtype.numpy.itemsize)

    @cached_property
    def regions(self) -> list[tuple[int, ...]]:
        """For each loop, and for one iteration of all, the extents of what is accessed inside it."""
        return region_sizes(self.buffer, self.accesses, self.loops)

    @cached_property
    def held(self) -> list[int]:
        """For each loop, and for one iteration of all, how many elements of memory are accessed inside it."""
        return [prod(region) for region in self.regions]

    @cached_property
    def touched(self) -> list[int]:
        """As `held`, with the elements of each iteration of the loops around the allocation."""
        extents = [loop.extent for loop in self.loops[: self.own_loops]]
        return [count * prod(extents[place:]) for place, count in enumerate(self.held)]

    def depends_on(self, place: int) -> bool:
        """Whether other iterations of a loop access other elements, or a buffer of their own."""
        return place < self.own_loops or self.moves_with(place)

    def moves_with(self, place: int) -> bool:
        """Whether an index has the counter of a loop."""
        return self._moving[place]

    @cached_property
    def _moving(self) -> list[bool]:
        """For each loop, whether an index has its counter."""
        forms = [form for access in self.accesses for form in access]
        return [
            any(form.factors[place] or (form.rest and loop.var in form.rest_vars) for form in forms)
            for place, loop in enumerate(self.loops)
        ]

    def step(self, place: int) -> float:
        """Elements from one iteration of a loop to the next, the least of those accesses that move."""
        lengths = strides(self.buffer.shape)
        steps = [
            sum(
                form.step(place, self.loops[place]) * length
                for form, length in zip(access, lengths, strict=True)
            )
            for access in self.accesses
        ]
        return min((step for step in steps if step), default=0)


@dataclass(frozen=True)
class StoreAnalysis:
    """A store with the buffers that it uses, in the order of the text, what it writes last.

    Attributes:
        record: The store.
        uses: Its buffers.
    """

    record: StoreRecord
    uses: tuple[BufferUse, ...]

    @property
    def loops(self) -> tuple[LoopAround, ...]:
        """The loops around it, outermost first."""
        return self.record.loops

    @cached_property
    def iterations(self) -> int:
        """How often it is carried out."""
        return prod(loop.extent for loop in self.loops)

    @cached_property
    def touched_bytes(self) -> list[int]:
        """For each loop, and for one iteration of all, the bytes of all buffers inside it."""
        places = range(len(self.loops) + 1)
        return [sum(use.touched[place] * use.element_bytes for use in self.uses) for place in places]

    @cached_property
    def held_bytes(self) -> list[int]:
        """As `touched_bytes`, of memory."""
        places = range(len(self.loops) + 1)
        return [sum(use.held[place] * use.element_bytes for use in self.uses) for place in places]

    @cached_property
    def written(self) -> BufferUse:
        """What it writes."""
        return next(use for use in self.uses if use.is_written)

    @cached_property
    def is_reduction(self) -> tuple[bool, ...]:
        """For each loop, whether all its iterations write the same element."""
        return tuple(not self.written.depends_on(place) for place in range(len(self.loops)))


def analysed_stores(function: PrimFunc) -> tuple[StoreAnalysis, ...]:
    """The stores of a loop function as `lower` makes it, in the order of its text."""
    return tuple(_analysis(record) for record in store_records(function))


def _analysis(record: StoreRecord) -> StoreAnalysis:
    found: dict[str, tuple[Buffer, list[Sequence[Scalar]], bool]] = {}
    for load in record.loads:
        found.setdefault(load.buffer.name, (load.buffer, [], True))[1].append(load.indices)
    written = record.buffer
    found.setdefault(written.name, (written, [], False))[1].append(record.indices)
    uses = []
    for name, (buffer, accesses, is_read) in found.items():
        forms = tuple(
            dict.fromkeys(
                tuple(IndexForm.of(index, record.loops) for index in indices) for indices in accesses
            )
        )
        own = len(record.allocated.get(name, ()))
        uses.append(BufferUse(buffer, is_read, name == written.name, forms, record.loops, own))
    return StoreAnalysis(record, tuple(uses))
