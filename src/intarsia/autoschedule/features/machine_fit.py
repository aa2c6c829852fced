"""How well the loops around a store fit a machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.store_analysis import BufferUse, StoreAnalysis
from intarsia.ir.prim_func import ForKind


@dataclass(frozen=True, slots=True)
class MachineFit:
    """What the draft score and the features of a machine are made of.

    Attributes:
        lanes: Elements of the buffer that is written in a vector register.
        vector_fit: The part of the lanes that is used, from 1 / lanes (no vectors) to 1.
        smooth_share: The part of the buffers whose vectors stand in memory as they are, or have one element.
        tile_vectors: Vectors of results that are updated between two iterations of the innermost reduction.
        loads: Vectors and single elements that are loaded for each of them.
        first_traffic: Bytes that come into the first cache, for each iteration.
        second_traffic: Bytes that come into the second cache, for each iteration.
        balance: The part of the threads that have work, from 1 / threads to 1.
        starts: How often threads are given work.
    """

    lanes: int
    vector_fit: float
    smooth_share: float
    tile_vectors: float
    loads: float
    first_traffic: float
    second_traffic: float
    balance: float
    starts: int


def machine_fit(store: StoreAnalysis, machine: Machine) -> MachineFit:
    """How well the loops around a store fit a machine."""
    lanes = max(1, machine.vector_bytes // store.written.element_bytes)
    vectorised = _places(store, ForKind.VECTORIZED)
    width = prod(store.loops[place].extent for place in vectorised)
    vectors = -(-width // lanes)
    used = min(lanes, max(width, 1))
    tile = _in_tile(store, store.written, vectorised, used)
    read = sum(_in_tile(store, use, vectorised, used) for use in store.uses if use is not store.written)
    return MachineFit(
        lanes,
        width / (vectors * lanes),
        _smooth_share(store, vectorised),
        tile,
        read / tile,
        _traffic(store, machine.first_cache),
        _traffic(store, machine.second_cache),
        _balance(store, machine.threads),
        _starts(store),
    )


def _places(store: StoreAnalysis, kind: ForKind) -> list[int]:
    return [place for place, loop in enumerate(store.loops) if loop.kind is kind]


def _smooth_share(store: StoreAnalysis, vectorised: list[int]) -> float:
    """1 if nothing is vectorised: elements one by one can stand anywhere."""
    if not vectorised:
        return 1.0
    return sum(_is_smooth(use, vectorised[-1]) for use in store.uses) / len(store.uses)


def _is_smooth(use: BufferUse, place: int) -> bool:
    return use.step(place) in {0, 1} if use.moves_with(place) else True


def _in_tile(store: StoreAnalysis, use: BufferUse, vectorised: list[int], used: int) -> float:
    """Vectors of a buffer inside the innermost reduction, single elements if it does not move with them.

    Without a reduction, of one vector of results. Loops that are vectorised end up inside all others.
    """
    reductions = [place for place, reduces in enumerate(store.is_reduction) if reduces]
    has_tile = bool(reductions) and store.written.is_read
    place = reductions[-1] + 1 if has_tile else len(store.loops)
    outside = prod(store.loops[each].extent for each in vectorised if each < place and use.moves_with(each))
    elements = use.held[place] * outside
    if not any(use.moves_with(each) for each in vectorised):
        return elements
    return max(1.0, elements / used)


def _traffic(store: StoreAnalysis, cache: int) -> float:
    """Bytes that a cache gets an iteration: what the outermost loops that fit touch, when it is first needed.

    A buffer that does not move with the loops around those stays where it is until one comes that moves it.
    """
    held = store.held_bytes
    place = next((place for place, size in enumerate(held) if size <= cache), len(held) - 1)
    total = 0
    for use in store.uses:
        begin = place
        while begin > 0 and not use.moves_with(begin - 1):
            begin -= 1
        total += use.held[place] * use.element_bytes * prod(loop.extent for loop in store.loops[:begin])
    return total / max(1, store.iterations)


def _balance(store: StoreAnalysis, threads: int) -> float:
    parallel = prod(store.loops[place].extent for place in _places(store, ForKind.PARALLEL)[:1])
    rounds = -(-parallel // threads)
    return parallel / (rounds * threads)


def _starts(store: StoreAnalysis) -> int:
    parallel = _places(store, ForKind.PARALLEL)
    return prod(loop.extent for loop in store.loops[: parallel[0]]) if parallel else 0
