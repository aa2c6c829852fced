"""Orders of channels in blocked tensors."""

from __future__ import annotations

import functools
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
    """The order of a blocked tensor's channels in memory.

    Each group of channels may begin with a new block, so that a grouped convolution works on whole blocks. A
    permutation of channels is another order of the same memory.

    Attributes:
        places: Channel at each position of all blocks; -1 for padding.
        lanes: Number of positions of a block.
    """

    places: tuple[int, ...]
    lanes: int

    @classmethod
    def natural(cls, channels: int, lanes: int) -> ChannelOrder:
        """Return the order of consecutive channels."""
        return cls.of_groups(channels, 1, lanes)

    @classmethod
    @functools.lru_cache(maxsize=256)  # a network has few, and plans compare with them at every convolution
    def of_groups(cls, channels: int, groups: int, lanes: int) -> ChannelOrder:
        """Return the order of consecutive channels in equal groups, each of which begins with a new block."""
        group_channels = channels // groups
        rest = (_NONE,) * (-group_channels % lanes)
        places = (
            place
            for first in range(0, channels, group_channels)
            for place in (*range(first, first + group_channels), *rest)
        )
        return cls(tuple(places), lanes)

    @classmethod
    def joined(cls, parts: Iterable[ChannelOrder]) -> ChannelOrder:
        """Return the order of the concatenation of tensors along channels."""
        orders = list(parts)
        places: list[int] = []
        first = 0
        for order in orders:
            places += [channel + first if channel >= 0 else _NONE for channel in order.places]
            first += order.channels
        return cls(tuple(places), orders[0].lanes)

    @cached_property
    def channels(self) -> int:
        """Number of channels."""
        return sum(1 for channel in self.places if channel >= 0)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.places) // self.lanes

    @cached_property
    def is_natural(self) -> bool:
        """Whether the channels are consecutive, with all padding at the end."""
        return self == ChannelOrder.natural(self.channels, self.lanes)

    @cached_property
    def groups(self) -> int | None:
        """Number of groups of consecutive channels of which each begins with a new block; None if not so."""
        padding = (number for number, channel in enumerate(self.places) if channel < 0)
        first_padding = next(padding, len(self.places))
        groups = self.channels // first_padding if first_padding else 0
        is_grouped = groups and self == ChannelOrder.of_groups(self.channels, groups, self.lanes)
        return groups if is_grouped else None

    @cached_property
    def place_of(self) -> tuple[int, ...]:
        """The position of each channel."""
        position_of = [0] * self.channels
        for position, channel in enumerate(self.places):
            if channel >= 0:
                position_of[channel] = position
        return tuple(position_of)

    def permuted(self, source: Sequence[int]) -> ChannelOrder:
        """Return the order of the same memory, with channel source[c] renamed to channel c."""
        named = {before: after for after, before in enumerate(source)}
        return ChannelOrder(tuple(named.get(channel, _NONE) for channel in self.places), self.lanes)

    def places_in(self, other: ChannelOrder) -> tuple[int, ...]:
        """Return the position in another order of the channel at each position; -1 for padding."""
        return tuple(other.place_of[channel] if channel >= 0 else _NONE for channel in self.places)

    def arranged(self, array: Array, axis: int) -> Array:
        """Return an array with its channels in this order, and zeros as padding.

        Args:
            array: Array with consecutive channels along an axis.
            axis: Number of that axis.
        """
        if self.places == tuple(range(array.shape[axis])):
            return array
        # The padding index -1 is the last element of the extended axis, which is zero.
        none = np.zeros_like(array, shape=(*array.shape[:axis], 1, *array.shape[axis + 1 :]))
        wide = np.concatenate([array, none], axis)
        ordered: Array = np.take(wide, np.array(self.places) % wide.shape[axis], axis)
        return ordered
