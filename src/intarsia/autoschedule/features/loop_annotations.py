"""Features of the loops that are vectorised, unrolled or parallel around a store."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.autoschedule.features.store_analysis import StoreAnalysis
from intarsia.ir.prim_func import ForKind

POSITIONS: Final = (
    *("kPosNone", "kPosInnerSpatial", "kPosMiddleSpatial", "kPosOuterSpatial"),
    *("kPosInnerReduce", "kPosMiddleReduce", "kPosOuterReduce", "kPosMixed"),
)
"""Positions of a loop, by Ansor's names."""
ANNOTATIONS: Final = (
    *(("vec", ForKind.VECTORIZED), ("unroll", ForKind.UNROLLED), ("parallel", ForKind.PARALLEL)),
)
"""Prefixes of feature names, with the loop kinds that they describe."""
_MIXED: Final = POSITIONS.index("kPosMixed")


def annotation_features(store: StoreAnalysis) -> list[float]:
    """Return for each loop kind: count, product of extents, innermost extent, and one-hot position."""
    return [value for _, kind in ANNOTATIONS for value in _kind_features(store, kind)]


def _kind_features(store: StoreAnalysis, kind: ForKind) -> list[float]:
    depths = [depth for depth, loop in enumerate(store.loops) if loop.kind is kind]
    extents = [store.loops[depth].extent for depth in depths]
    position = [0.0] * len(POSITIONS)
    position[_position(store, depths)] = 1.0
    return [len(depths), prod(extents) if extents else 0, extents[-1] if extents else 0, *position]


def _position(store: StoreAnalysis, depths: list[int]) -> int:
    """Return the position of the innermost of some loops among all spatial (or all reduction) loops.

    Upstream only has "none" and "mixed"; here "mixed" means that some loops are spatial and some reduce.
    """
    if not depths:
        return 0
    kinds = {store.is_reduction[depth] for depth in depths}
    if len(kinds) > 1:
        return _MIXED
    (is_reduction,) = kinds
    alike = [depth for depth, other in enumerate(store.is_reduction) if other == is_reduction]
    first = 4 if is_reduction else 1
    if depths[-1] == alike[-1]:
        return first
    return first + 2 if depths[-1] == alike[0] else first + 1
