"""Which channel lies where in a blocked tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_NONE = -1


@dataclass(frozen=True)
class ChannelOrder:
    """The channels of a blocked tensor as they lie in memory.

    Groups of channels may begin with a block each, so that a grouped convolution works on whole blocks. And a
    permutation of channels is another order of the same memory.

    Attributes:
        places: The channel at each place of each block; -1 where a place only fills the block.
        lanes: How many places a block has.
    """

    places: tuple[int, ...]
    lanes: int

    @classmethod
    def natural(cls, channels: int, lanes: int) -> ChannelOrder:
        """One channel after the other."""
        return cls.of_groups(channels, 1, lanes)

    @classmethod
    def of_groups(cls, channels: int, groups: int, lanes: int) -> ChannelOrder:
        """One channel after the other; each of so many equal groups begins with a block."""
        own = channels // groups
        rest = (_NONE,) * (-own % lanes)
        places = (place for first in range(0, channels, own) for place in (*range(first, first + own), *rest))
        return cls(tuple(places), lanes)

    @classmethod
    def joined(cls, parts: Iterable[ChannelOrder]) -> ChannelOrder:
        """Of tensors, one after the other as Concat puts them together."""
        found = list(parts)
        places: list[int] = []
        first = 0
        for part in found:
            places += [channel + first if channel >= 0 else _NONE for channel in part.places]
            first += part.channels
        return cls(tuple(places), found[0].lanes)

    @cached_property
    def channels(self) -> int:
        """How many channels there are."""
        return sum(1 for channel in self.places if channel >= 0)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.places) // self.lanes

    @cached_property
    def is_natural(self) -> bool:
        """Whether one channel comes after the other, and the rest after them."""
        return self == ChannelOrder.natural(self.channels, self.lanes)

    @cached_property
    def place_of(self) -> tuple[int, ...]:
        """The place of each channel."""
        found = [0] * self.channels
        for place, channel in enumerate(self.places):
            if channel >= 0:
                found[channel] = place
        return tuple(found)

    def permuted(self, source: Sequence[int]) -> ChannelOrder:
        """The same memory for a tensor whose channel c is this one's channel source[c]."""
        named = {before: after for after, before in enumerate(source)}
        return ChannelOrder(tuple(named.get(channel, _NONE) for channel in self.places), self.lanes)

    def places_in(self, other: ChannelOrder) -> tuple[int, ...]:
        """For each place here, where its channel lies in another order; -1 if it has none."""
        return tuple(other.place_of[channel] if channel >= 0 else _NONE for channel in self.places)

    def arranged(self, array: Array, axis: int) -> Array:
        """An array with its channels as they lie here, and zeros at other places.

        Args:
            array: With the channels one after the other along an axis.
            axis: This one.
        """
        if self.places == tuple(range(array.shape[axis])):
            return array
        none = np.zeros_like(array, shape=(*array.shape[:axis], 1, *array.shape[axis + 1 :]))
        wide = np.concatenate([array, none], axis)
        found: Array = np.take(wide, np.array(self.places) % wide.shape[axis], axis)
        return found
