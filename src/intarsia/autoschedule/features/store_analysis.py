"""Memory that the stores of a loop function touch in each loop around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from intarsia.autoschedule.features.store_record import LoopAround, StoreRecord, collect_stores
from intarsia.autoschedule.features.touched_region import IndexForm, region_sizes, strides
from intarsia.ir import PrimFunc
from intarsia.ir.prim_func import Buffer, Scalar


@dataclass(frozen=True)
class BufferUse:
    """A buffer as one store statement uses it.

    A buffer that is allocated inside loops is a new one in each of their iterations: `touched` counts its
    elements once per iteration, as if the copies were side by side. `held` counts its memory once.

    Attributes:
        buffer: The buffer.
        is_read: Whether it is read.
        is_written: Whether it is written.
        accesses: Indices of each access.
        loops: Loops around the statement, outermost first.
        own_loops: Number of these loops that are around the allocation.
    """

    buffer: Buffer
    is_read: bool
    is_written: bool
    accesses: tuple[tuple[IndexForm, ...], ...]
    loops: tuple[LoopAround, ...]
    own_loops: int

    @property
    def element_bytes(self) -> int:
        """Bytes per element."""
        return int(self.buffer.dtype.numpy.itemsize)

    @cached_property
    def regions(self) -> list[tuple[int, ...]]:
        """Extents of the region accessed inside each loop, and last in one iteration of all loops."""
        return region_sizes(self.buffer, self.accesses, self.loops)

    @cached_property
    def held(self) -> list[int]:
        """Elements of memory accessed inside each loop, and last in one iteration of all loops."""
        return [prod(region) for region in self.regions]

    @cached_property
    def touched(self) -> list[int]:
        """As `held`, but elements count once per iteration of the loops around the allocation."""
        extents = [loop.extent for loop in self.loops[: self.own_loops]]
        return [count * prod(extents[depth:]) for depth, count in enumerate(self.held)]

    def depends_on(self, depth: int) -> bool:
        """Whether iterations of the loop at a depth access different elements, or separate allocations."""
        return depth < self.own_loops or self.moves_with(depth)

    def moves_with(self, depth: int) -> bool:
        """Whether an index contains the counter of the loop at a depth."""
        return self._moving[depth]

    @cached_property
    def _moving(self) -> list[bool]:
        """For each loop, whether an index contains its counter."""
        forms = [form for access in self.accesses for form in access]
        return [
            any(form.factors[depth] or (form.rest and loop.var in form.rest_vars) for form in forms)
            for depth, loop in enumerate(self.loops)
        ]

    def step(self, depth: int) -> float:
        """Return the elements between two iterations of a loop, the least over the accesses that move."""
        lengths = strides(self.buffer.shape)
        steps = [
            sum(
                form.step(depth, self.loops[depth]) * length
                for form, length in zip(access, lengths, strict=True)
            )
            for access in self.accesses
        ]
        return min((step for step in steps if step), default=0)


@dataclass(frozen=True)
class StoreAnalysis:
    """A store with the buffers that it uses, in textual order, the written one last.

    Attributes:
        record: Store with the loops around it.
        uses: Buffers of the store.
    """

    record: StoreRecord
    uses: tuple[BufferUse, ...]

    @property
    def loops(self) -> tuple[LoopAround, ...]:
        """Loops around the store, outermost first."""
        return self.record.loops

    @cached_property
    def iterations(self) -> int:
        """Number of executions of the store."""
        return prod(loop.extent for loop in self.loops)

    @cached_property
    def touched_bytes(self) -> list[int]:
        """Bytes touched inside each loop, and last in one iteration of all loops."""
        depths = range(len(self.loops) + 1)
        return [sum(use.touched[depth] * use.element_bytes for use in self.uses) for depth in depths]

    @cached_property
    def held_bytes(self) -> list[int]:
        """As `touched_bytes`, but bytes of memory (`BufferUse.held`)."""
        depths = range(len(self.loops) + 1)
        return [sum(use.held[depth] * use.element_bytes for use in self.uses) for depth in depths]

    @cached_property
    def written(self) -> BufferUse:
        """The written buffer."""
        return next(use for use in self.uses if use.is_written)

    @cached_property
    def is_reduction(self) -> tuple[bool, ...]:
        """For each loop, whether all its iterations write the same element."""
        return tuple(not self.written.depends_on(depth) for depth in range(len(self.loops)))


def analyse_stores(function: PrimFunc) -> tuple[StoreAnalysis, ...]:
    """Analyse the stores of a loop function as `lower` returns it, in textual order."""
    return tuple(_analyse(record) for record in collect_stores(function))


def _analyse(record: StoreRecord) -> StoreAnalysis:
    accessed: dict[str, tuple[Buffer, list[Sequence[Scalar]], bool]] = {}
    for load in record.loads:
        accessed.setdefault(load.buffer.name, (load.buffer, [], True))[1].append(load.indices)
    written = record.buffer
    accessed.setdefault(written.name, (written, [], False))[1].append(record.indices)
    uses = []
    for name, (buffer, accesses, is_read) in accessed.items():
        forms = tuple(
            dict.fromkeys(
                tuple(IndexForm.of(index, record.loops) for index in indices) for indices in accesses
            )
        )
        own_loops = len(record.allocated.get(name, ()))
        uses.append(BufferUse(buffer, is_read, name == written.name, forms, record.loops, own_loops))
    return StoreAnalysis(record, tuple(uses))
