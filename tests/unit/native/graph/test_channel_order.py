"""Orders of channels in blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intarsia.native.graph.channel_order import ChannelOrder


def test_groups_begin_with_a_block() -> None:
    order = ChannelOrder.of_groups(6, 2, 4)
    assert order.places == (0, 1, 2, -1, 3, 4, 5, -1)
    assert (order.blocks, order.channels, order.is_natural) == (2, 6, False)
    assert order.place_of == (0, 1, 2, 4, 5, 6)
    assert ChannelOrder.natural(6, 4).places == (0, 1, 2, 3, 4, 5, -1, -1)
    assert ChannelOrder.of_groups(8, 2, 4) == ChannelOrder.natural(8, 4)


def test_groups_are_found_where_all_begin_with_a_block() -> None:
    assert ChannelOrder.of_groups(6, 2, 4).groups == 2
    assert ChannelOrder.natural(6, 4).groups == 1
    assert ChannelOrder.of_groups(8, 2, 4).groups == 1  # blocks are full
    assert ChannelOrder((0, -1, 1, 2), 4).groups is None
    assert ChannelOrder((1, 0, 2, -1), 4).groups is None
    assert ChannelOrder((-1, 0, 1, -1), 4).groups is None


def test_concat_keeps_the_order_of_its_parts() -> None:
    parts = [ChannelOrder.of_groups(4, 2, 4), ChannelOrder.natural(3, 4)]
    assert ChannelOrder.joined(parts).places == (0, 1, -1, -1, 2, 3, -1, -1, 4, 5, 6, -1)


@given(st.integers(1, 4), st.integers(1, 9), st.sampled_from([4, 8]))
def test_arrays_follow_the_order(groups: int, own: int, lanes: int) -> None:
    channels = groups * own
    order = ChannelOrder.of_groups(channels, groups, lanes)
    array = np.arange(1.0, 2 * channels + 1).reshape(2, channels)
    stored = order.arranged(array, 1)
    assert [stored[0, place] for place in order.place_of] == list(array[0])
    assert (stored == 0).sum() == 2 * (len(order.places) - channels)
    source = list(np.random.default_rng(own).permutation(channels))
    permuted = order.permuted([int(each) for each in source])
    assert [stored[1, place] for place in permuted.place_of] == list(array[1, source])
    moved = permuted.places_in(order)
    found = [0.0 if place < 0 else stored[0, place] for place in moved]
    assert found == list(permuted.arranged(array, 1)[0])
