"""Masks of lanes that are known when code is written."""

from __future__ import annotations

from math import prod

from intarsia.native.emission.affine import Affine
from intarsia.native.emission.arithmetic import constant_mask, mask_lanes
from intarsia.native.emission.state import FunctionState, MemoryPlace
from intarsia.native.emission.types import shuffle_mask


def ends_in_padding(state: FunctionState, place: MemoryPlace, flat: Affine) -> bool:
    """Whether the lanes that are off lie behind the last element, where they do no harm.

    A store of a whole vector is handed on to later loads at once; one with a mask has to reach the cache.
    """
    if state.mask is None or not place.is_padded or place.private_lanes or flat.terms or flat.lane != 1:
        return False
    known = mask_lanes(state.mask)
    if known is None:
        return False
    count = sum(known)
    return flat.const + count == prod(place.shape) and all(known[:count])


def pair_masks(on: tuple[bool, ...]) -> tuple[str, str, str]:
    """How every second element of the lanes that are on is read from two vectors.

    The second one begins at the last element of the first.

    Returns:
        The masks of both vectors, and which of their lanes make up the result.
    """
    lanes = len(on)
    offsets = {2 * lane for lane in range(lanes) if on[lane]}
    first, second = (
        constant_mask(tuple(begin + lane in offsets for lane in range(lanes))).text
        for begin in (0, lanes - 1)
    )
    return first, second, shuffle_mask(tuple(2 * n if 2 * n < lanes else 2 * n + 1 for n in range(lanes)))
