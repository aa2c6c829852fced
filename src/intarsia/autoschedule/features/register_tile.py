"""The register tile of a store: loads and results of a step of its innermost reduction."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.store_analysis import BufferUse, StoreAnalysis
from intarsia.ir.prim_func import ForKind


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """Loads and results of one reduction step.

    Attributes:
        vectors: Vectors of results (scalars if nothing is vectorised); 1 without a reduction.
        read_vectors: Vector loads with unit stride.
        read_elements: Scalar loads, by broadcasts or gathers.
        is_scattered: Whether the lanes of results are not contiguous in memory.
        steps: Unrolled steps of the reduction (K-unroll).
        length: Steps of the whole reduction; 1 without a reduction.
        is_kept: Whether results stay in registers during the reduction: all loops over them are unrolled,
            and they fit.
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
        """Return the register tile of a store.

        Args:
            store: Analysed store.
            machine: Machine, for its vector width and registers.
            unroll: Value of the pragma `auto_unroll_max_step`.
        """
        vectorised = [depth for depth, loop in enumerate(store.loops) if loop.kind is ForKind.VECTORIZED]
        width = prod(store.loops[depth].extent for depth in vectorised)
        used = min(max(1, machine.vector_bytes // store.written.element_bytes), max(width, 1))
        reductions = [depth for depth, reduces in enumerate(store.is_reduction) if reduces]
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
            _unrolled_steps(store, begin) if has_tile else 1,
            prod(store.loops[depth].extent for depth in reductions) if has_tile else 1,
            results <= machine.vector_registers and (not inner or prod(inner) <= unroll),
        )


_COUNTED = frozenset(ForKind) - {ForKind.VECTORIZED, ForKind.UNROLLED}
"""Kinds of loops that are not vectorised or unrolled."""


def _elements(store: StoreAnalysis, use: BufferUse, begin: int, vectorised: list[int]) -> float:
    """Return the elements touched by the loops from `begin` on and by vectorised ones (innermost later)."""
    outside = [depth for depth in vectorised if depth < begin and use.moves_with(depth)]
    return use.held[begin] * prod(store.loops[depth].extent for depth in outside)


def _moves(use: BufferUse, vectorised: list[int]) -> bool:
    return any(use.moves_with(depth) for depth in vectorised)


def _is_smooth(use: BufferUse, vectorised: list[int]) -> bool:
    depth = vectorised[-1]
    return not use.moves_with(depth) or use.step(depth) in {0, 1}


def _unrolled_steps(store: StoreAnalysis, end: int) -> int:
    """Return the number of unrolled steps of the innermost reductions."""
    count = 1
    for depth in reversed(range(end)):
        if store.loops[depth].kind is not ForKind.UNROLLED or not store.is_reduction[depth]:
            break
        count *= store.loops[depth].extent
    return count
