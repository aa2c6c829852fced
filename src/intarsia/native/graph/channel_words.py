"""Words of neighbouring channels of a group, wherever the channels of a blocked tensor lie.

A word may begin at any channel of a block. It may hold channels of other groups, which have zero weights.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from intarsia.native.graph.channel_order import Array, ChannelOrder

_NONE: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class ChannelWords:
    """The words that a grouped convolution reads, equally many for each group.

    Attributes:
        places: Position, in all blocks, of the first channel of each word (groups, words).
        channels: Channel of the group at each number of each word (groups, words, numbers); -1 for others.
    """

    places: npt.NDArray[np.int32]
    channels: npt.NDArray[np.int32]

    def arranged(self, weight: Array) -> Array:
        """Return weights (M, C / groups, taps ...) with their channels in the order of the words' numbers."""
        groups = len(self.places)
        filters, _, *taps = weight.shape
        none = np.zeros_like(weight, shape=(filters, 1, *taps))
        wide = np.concatenate([weight, none], 1).reshape(groups, filters // groups, -1, *taps)
        by_group = [np.take(part, order.ravel(), 1) for part, order in zip(wide, self.channels, strict=True)]
        return np.concatenate(by_group)


@functools.lru_cache(maxsize=64)  # costs and kernels of a convolution need the same words
def channel_words(order: ChannelOrder, groups: int, numbers: int) -> ChannelWords:
    """Return the fewest words that hold the channels of each group.

    Args:
        order: Order of the channels in memory.
        groups: Number of groups of consecutive channels.
        numbers: Numbers of a word, at most the lanes of a block.
    """
    read = order.channels // groups
    of_groups = [
        _words(order, range(first, first + read), numbers) for first in range(0, order.channels, read)
    ]
    most = max(map(len, of_groups))
    places = np.zeros((groups, most), np.int32)
    channels = np.full((groups, most, numbers), _NONE, np.int32)
    for group, words in enumerate(of_groups):
        for position, word in enumerate(words):
            places[group, position] = word
            for number in range(numbers):
                channel = order.places[word + number] - group * read
                channels[group, position, number] = channel if 0 <= channel < read else _NONE
        places[group, len(words) :] = words[0]
    return ChannelWords(places, _without_repeats(channels))


def _words(order: ChannelOrder, channels: range, numbers: int) -> list[int]:
    """Return the positions of the words of some channels: one begins at the first channel without a word."""
    words: list[int] = []
    for position in sorted(order.place_of[channel] for channel in channels):
        if not words or position >= words[-1] + numbers:
            last_of_block = position // order.lanes * order.lanes + order.lanes - numbers
            words.append(min(position, last_of_block))
    return words


def _without_repeats(channels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return channels each of which counts in one word only, although a second word may reach it."""
    for of_group in channels:
        flat = of_group.reshape(-1)
        _, first = np.unique(flat, return_index=True)
        repeated = np.ones(len(flat), bool)
        repeated[first] = False
        flat[repeated] = _NONE
    return channels
