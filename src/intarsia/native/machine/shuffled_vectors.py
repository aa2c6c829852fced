"""How many vectors elements are shuffled out of, before loads lane by lane are faster."""

from __future__ import annotations

from typing import Final

_MOST_SHUFFLED: Final = 4
"""Maximum number of vectors with any lanes. Of more, each contains few of the elements."""
_LANES_OF_VECTOR: Final = 8 / 3
"""Number of lanes for each of more vectors: with 16 lanes, shuffles out of five and six vectors take 0.84 of
the time of loads lane by lane, out of seven 1.08 (Zen 5)."""
TRANSPOSED_BYTES: Final = (1, 2, 4)
"""Sizes of the elements of which squares are transposed in registers, in bytes."""


def most_shuffled_vectors(lanes: int) -> float:
    """Return the maximum number of vectors out of which one is shuffled.

    Args:
        lanes: Number of lanes of a vector.
    """
    return max(_MOST_SHUFFLED, lanes / _LANES_OF_VECTOR)
