"""What a step of the innermost reduction of a store does."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.store_analysis import BufferUse, StoreAnalysis
from intarsia.ir.prim_func import ForKind


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """A step: what is loaded for which results.

    Attributes:
        vectors: Of results, single ones if nothing is vectorised; 1 without a reduction.
        read_vectors: Vectors that are loaded as they stand in memory.
        read_elements: Elements that are loaded for all lanes, or one by one for each.
        is_scattered: Whether the lanes of results do not stand side by side.
        steps: How many steps of the reduction are written out.
        length: Steps of the whole reduction; 1 without one.
        is_kept: Whether results can stay in registers during the reduction: all loops over them are written
            out, and they fit.
    """

    vectors: float
    read_vectors: float
    read_elements: float
    is_scattered: bool
    steps: int
    length: int
    is_kept: bool

    @classmethod
    def of_store(cls, store: StoreAnalysis, machine: Machine, unroll: float) -> RegisterTile:
        """The tile of a store.

        Args:
            store: The store.
            machine: Its vectors and registers.
            unroll: The hint up to which size loops are unrolled.
        """
        vectorised = [place for place, loop in enumerate(store.loops) if loop.kind is ForKind.VECTORIZED]
        width = prod(store.loops[place].extent for place in vectorised)
        used = min(max(1, machine.vector_bytes // store.written.element_bytes), max(width, 1))
        reductions = [place for place, reduces in enumerate(store.is_reduction) if reduces]
        has_tile = bool(reductions) and store.written.is_read
        begin = reductions[-1] + 1 if has_tile else len(store.loops)
        vectors, elements = 0.0, 0.0
        for use in store.uses:
            if use is not store.written:
                count = _elements(store, use, begin, vectorised)
                is_whole = _moves(use, vectorised) and _is_smooth(use, vectorised)
                vectors += max(1.0, count / used) if is_whole else 0.0
                elements += 0.0 if is_whole else count
        written = _elements(store, store.written, begin, vectorised)
        results = max(1.0, written / used) if _moves(store.written, vectorised) else written
        inner = [loop.extent for loop in store.loops[begin:] if loop.kind in _COUNTED]
        return cls(
            results,
            vectors,
            elements,
            _moves(store.written, vectorised) and not _is_smooth(store.written, vectorised),
            _written_out(store, begin) if has_tile else 1,
            prod(store.loops[place].extent for place in reductions) if has_tile else 1,
            results <= machine.vector_registers and (not inner or prod(inner) <= unroll),
        )


_COUNTED = frozenset(ForKind) - {ForKind.VECTORIZED, ForKind.UNROLLED}
"""Kinds of loops that stay loops."""


def _elements(store: StoreAnalysis, use: BufferUse, begin: int, vectorised: list[int]) -> float:
    """What loops from `begin` on touch, and those that are vectorised, which end up inside all others."""
    outside = [place for place in vectorised if place < begin and use.moves_with(place)]
    return use.held[begin] * prod(store.loops[place].extent for place in outside)


def _moves(use: BufferUse, vectorised: list[int]) -> bool:
    return any(use.moves_with(place) for place in vectorised)


def _is_smooth(use: BufferUse, vectorised: list[int]) -> bool:
    place = vectorised[-1]
    return not use.moves_with(place) or use.step(place) in {0, 1}


def _written_out(store: StoreAnalysis, end: int) -> int:
    """How many steps of the innermost reductions are unrolled."""
    count = 1
    for place in reversed(range(end)):
        if store.loops[place].kind is not ForKind.UNROLLED or not store.is_reduction[place]:
            break
        count *= store.loops[place].extent
    return count
