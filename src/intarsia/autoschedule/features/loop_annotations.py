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
"""Where a loop stands, as the field names it."""
ANNOTATIONS: Final = (
    *(("vec", ForKind.VECTORIZED), ("unroll", ForKind.UNROLLED), ("parallel", ForKind.PARALLEL)),
)
"""Kinds of loops, and how the names of their features begin."""
_MIXED: Final = POSITIONS.index("kPosMixed")


def annotation_features(store: StoreAnalysis) -> list[float]:
    """For each kind of loop: how many, their product, the innermost one's extent, and where it stands."""
    return [value for _, kind in ANNOTATIONS for value in _of_kind(store, kind)]


def _of_kind(store: StoreAnalysis, kind: ForKind) -> list[float]:
    places = [place for place, loop in enumerate(store.loops) if loop.kind is kind]
    extents = [store.loops[place].extent for place in places]
    position = [0.0] * len(POSITIONS)
    position[_position(store, places)] = 1.0
    return [len(places), prod(extents) if extents else 0, extents[-1] if extents else 0, *position]


def _position(store: StoreAnalysis, places: list[int]) -> int:
    """Of the innermost of some loops, among all that are spatial or all that reduce as it does.

    Upstream says "none" or "mixed" only; here "mixed" says that some loops are spatial and some reduce.
    """
    if not places:
        return 0
    kinds = {store.is_reduction[place] for place in places}
    if len(kinds) > 1:
        return _MIXED
    (is_reduction,) = kinds
    alike = [place for place, other in enumerate(store.is_reduction) if other == is_reduction]
    first = 4 if is_reduction else 1
    if places[-1] == alike[-1]:
        return first
    return first + 2 if places[-1] == alike[0] else first + 1
