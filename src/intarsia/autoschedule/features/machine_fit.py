"""How well the loops around a store fit a machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.store_analysis import BufferUse, StoreAnalysis
from intarsia.ir.prim_func import ForKind


@dataclass(frozen=True, slots=True)
class MachineFit:
    """Utilisation of a machine by the loops around a store, for the draft model and the machine features.

    Attributes:
        lanes: Elements of the written buffer per vector register.
        vector_fit: Used share of the lanes, from 1 / lanes (scalar) to 1.
        smooth_share: Share of the buffers that are accessed with unit stride or by a broadcast.
        tile_vectors: Accumulators, in vectors, that one step of the innermost reduction updates.
        loads: Vector and scalar loads per accumulator and step.
        first_traffic: Bytes filled into the L1 cache per iteration.
        second_traffic: Bytes filled into the L2 cache per iteration.
        balance: Share of the threads that have work, from 1 / threads to 1.
        starts: Number of parallel regions that are started.
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
    """Return how well the loops around a store fit a machine."""
    lanes = max(1, machine.vector_bytes // store.written.element_bytes)
    vectorised = _depths(store, ForKind.VECTORIZED)
    width = prod(store.loops[depth].extent for depth in vectorised)
    vectors = -(-width // lanes)
    used = min(lanes, max(width, 1))
    tile = _vectors_in_tile(store, store.written, vectorised, used)
    read = sum(
        _vectors_in_tile(store, use, vectorised, used) for use in store.uses if use is not store.written
    )
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


def _depths(store: StoreAnalysis, kind: ForKind) -> list[int]:
    return [depth for depth, loop in enumerate(store.loops) if loop.kind is kind]


def _smooth_share(store: StoreAnalysis, vectorised: list[int]) -> float:
    """Return the share of buffers accessed without gathers; 1 if nothing is vectorised."""
    if not vectorised:
        return 1.0
    return sum(_is_smooth(use, vectorised[-1]) for use in store.uses) / len(store.uses)


def _is_smooth(use: BufferUse, depth: int) -> bool:
    return use.step(depth) in {0, 1} if use.moves_with(depth) else True


def _vectors_in_tile(store: StoreAnalysis, use: BufferUse, vectorised: list[int], used: int) -> float:
    """Return the vectors of a buffer inside the innermost reduction, or its elements if they are broadcast.

    Without a reduction the tile is one vector of results. Vectorised loops end up inside all others.
    """
    reductions = [depth for depth, reduces in enumerate(store.is_reduction) if reduces]
    has_tile = bool(reductions) and store.written.is_read
    depth = reductions[-1] + 1 if has_tile else len(store.loops)
    outside = prod(
        store.loops[vector_depth].extent
        for vector_depth in vectorised
        if vector_depth < depth and use.moves_with(vector_depth)
    )
    elements = use.held[depth] * outside
    if not any(use.moves_with(vector_depth) for vector_depth in vectorised):
        return elements
    return max(1.0, elements / used)


def _traffic(store: StoreAnalysis, cache: int) -> float:
    """Return bytes filled into a cache per iteration: the footprint of the outermost loops that fit.

    A buffer that does not move with the loops around those is reused until a loop moves it.
    """
    held = store.held_bytes
    depth = next((depth for depth, size in enumerate(held) if size <= cache), len(held) - 1)
    total = 0
    for use in store.uses:
        outer = depth
        while outer > 0 and not use.moves_with(outer - 1):
            outer -= 1
        total += use.held[depth] * use.element_bytes * prod(loop.extent for loop in store.loops[:outer])
    return total / max(1, store.iterations)


def _balance(store: StoreAnalysis, threads: int) -> float:
    parallel = prod(store.loops[depth].extent for depth in _depths(store, ForKind.PARALLEL)[:1])
    rounds = -(-parallel // threads)
    return parallel / (rounds * threads)


def _starts(store: StoreAnalysis) -> int:
    parallel = _depths(store, ForKind.PARALLEL)
    return prod(loop.extent for loop in store.loops[: parallel[0]]) if parallel else 0
