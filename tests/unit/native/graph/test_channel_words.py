"""Words of neighbouring channels hold each channel of a group once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.channel_words import channel_words


@st.composite
def orders(draw: st.DrawFn) -> tuple[ChannelOrder, int]:
    """An order of channels, perhaps behind a shuffle, and the groups that read them."""
    groups, width = draw(st.integers(1, 5)), draw(st.integers(1, 20))
    channels, lanes = groups * width, draw(st.sampled_from([4, 8, 16]))
    order = ChannelOrder.of_groups(channels, draw(st.sampled_from([1, groups])), lanes)
    if draw(st.booleans()):
        order = order.permuted(draw(st.permutations(range(channels))))
    return order, groups


@given(orders(), st.sampled_from([2, 4]))
def test_each_channel_of_a_group_is_in_one_word(drawn: tuple[ChannelOrder, int], numbers: int) -> None:
    order, groups = drawn
    words, read = channel_words(order, groups, numbers), order.channels // groups
    for group in range(groups):
        held = [channel for channel in words.channels[group].ravel() if channel >= 0]
        assert sorted(held) == list(range(read))
        for place, channels in zip(words.places[group], words.channels[group], strict=True):
            assert place // order.lanes == (place + numbers - 1) // order.lanes, "words lie in one block"
            for number, channel in enumerate(channels):
                assert channel < 0 or order.places[place + number] == group * read + channel


@given(orders(), st.sampled_from([2, 4]), st.integers(0, 99))
def test_weights_follow_the_words(drawn: tuple[ChannelOrder, int], numbers: int, seed: int) -> None:
    """Sums over words are those over the channels of each group, whatever lies between these."""
    order, groups = drawn
    words, random = channel_words(order, groups, numbers), np.random.default_rng(seed)
    read = order.channels // groups
    weight = random.integers(-9, 9, (3 * groups, read, 1, 1))
    stored = random.integers(-9, 9, len(order.places))
    plain = stored[list(order.place_of)].reshape(groups, read)
    exact = [weight[f, :, 0, 0] @ plain[f // 3] for f in range(3 * groups)]
    arranged = words.arranged(weight)[:, :, 0, 0]
    seen = stored[words.places[..., None] + np.arange(numbers)].reshape(groups, -1)
    assert [arranged[f] @ seen[f // 3] for f in range(3 * groups)] == exact


def test_words_may_begin_at_odd_channels() -> None:
    order = ChannelOrder.natural(16, 16)
    assert channel_words(order, 2, 2).places.tolist() == [[0, 2, 4, 6], [8, 10, 12, 14]]
    of_three = channel_words(ChannelOrder.natural(15, 16), 5, 2)
    assert of_three.places.tolist() == [[0, 2], [3, 5], [6, 8], [9, 11], [12, 14]]
    assert of_three.channels[1].tolist() == [[0, 1], [2, -1]]
    assert channel_words(ChannelOrder.natural(15, 16), 5, 4).places.tolist() == [[0], [3], [6], [9], [12]]
