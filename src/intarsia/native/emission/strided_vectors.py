"""Vectors of every second to sixth element, shuffled out of whole vectors.

Lane by lane, such a vector takes a load and an insertion for each element. Whole vectors that cover the
elements take as many loads as the elements lie apart, and a shuffle for each but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import shuffle_mask
from intarsia.native.machine.shuffled_vectors import most_shuffled_vectors

_FEWEST_LANES: Final = 4
"""Minimum number of lanes for which shuffles pay off."""


def is_shuffled(step: int, lanes: int) -> bool:
    """Return whether elements at some distance are shuffled out of whole vectors."""
    return 1 < step <= most_shuffled_vectors(lanes) and lanes >= _FEWEST_LANES


def part_offsets(step: int, lanes: int) -> list[int]:
    """Return the offsets of the whole vectors, counted in elements from the first lane's element.

    The last vector ends with the last element needed. A vector right behind the others would read more,
    perhaps beyond the buffer.

    Args:
        step: Distance of the elements.
        lanes: Number of elements of a vector.
    """
    return [min(number * lanes, (lanes - 1) * (step - 1)) for number in range(step)]


def part_masks(step: int, active: Sequence[bool]) -> list[tuple[int, tuple[bool, ...]]]:
    """Return the offset of each whole vector, and which of its elements active lanes need.

    Args:
        step: Distance of the elements.
        active: Whether each lane is active.
    """
    lanes = len(active)
    needed = {lane * step for lane in range(lanes) if active[lane]}
    return [
        (begin, tuple(begin + lane in needed for lane in range(lanes))) for begin in part_offsets(step, lanes)
    ]


def merge_parts(builder: Builder, kind: str, parts: Sequence[str], step: int, lanes: int) -> str:
    """Return the vector of every step-th element of whole vectors.

    Args:
        builder: Builder of the function.
        kind: LLVM type of a vector.
        parts: Whole vectors at `part_offsets`.
        step: Distance of the elements.
        lanes: Number of elements of a vector.
    """
    merged, offsets = parts[0], part_offsets(step, lanes)
    for number, (part, begin) in enumerate(zip(parts[1:], offsets[1:], strict=True), 1):
        places = [_place(lane, step, lanes, number, begin) for lane in range(lanes)]
        mask = shuffle_mask(tuple(places))
        merged = builder.pure(f"shufflevector {kind} {merged}, {kind} {part}, {mask}")
    return merged


def _place(lane: int, step: int, lanes: int, number: int, begin: int) -> int:
    """Return where the element of a lane is in two vectors: those merged so far, then part `number`."""
    offset = lane * step
    if offset < number * lanes:
        return offset if number == 1 else lane
    # Elements of later parts are merged later; until then their lanes may have anything.
    return lanes + offset - begin if offset - begin < lanes else 0
