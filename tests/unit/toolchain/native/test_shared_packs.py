"""Equal packs of one weight are one array, as long as it is used."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
from tests.decoders import GPT2, cached_program

from intarsia import build
from intarsia.native.packing import Packing, Part
from intarsia.passes import SpecializeCache
from intarsia.toolchain.native import shared_packs
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.shared_packs import packed_weight

TILES = Packing("weight", (256, 128), (Part(1, 4), Part(0, 256), Part(1, 32)))


def test_equal_packs_of_one_weight_are_one_array() -> None:
    weight = np.arange(256 * 128, dtype=np.float32).reshape(256, 128)
    first = packed_weight(weight, TILES)
    np.testing.assert_array_equal(first.reshape(-1), TILES.pack(weight).reshape(-1))
    assert packed_weight(weight[:], TILES) is first
    other = Packing("of another name", TILES.shape, TILES.parts)
    assert packed_weight(weight, other) is first
    rows = Packing("weight", (256, 128), (Part(0, 4), Part(1, 128), Part(0, 64)))
    assert packed_weight(weight, rows) is not first


def test_other_weights_in_the_same_memory_are_packed_anew() -> None:
    memory = bytearray(256 * 128 * 4)
    weight = np.frombuffer(memory, np.float32).reshape(256, 128)
    weight[...] = 1
    first = packed_weight(weight, TILES)
    del weight
    gc.collect()
    again = np.frombuffer(memory, np.float32).reshape(256, 128)
    again[...] = 2
    second = packed_weight(again, TILES)
    assert first.max() == 1
    assert second.min() == 2


def test_packs_that_nothing_uses_are_forgotten() -> None:
    weight = np.ones((256, 128), np.float32)
    before = len(shared_packs._packs)
    pack = packed_weight(weight, TILES)
    assert len(shared_packs._packs) == before + 1
    del pack
    gc.collect()
    assert len(shared_packs._packs) == before


def test_small_weights_are_packed_each_time() -> None:
    weight = np.ones((16, 8), np.float32)
    tiles = Packing("weight", (16, 8), (Part(1, 2), Part(0, 16), Part(1, 4)))
    assert packed_weight(weight, tiles) is not packed_weight(weight, tiles)


def test_variants_for_two_capacities_share_their_packs() -> None:
    size = replace(GPT2, width=128, hidden=256, vocabulary=197)
    cached = cached_program(size, (8, 16), (1,), is_simplified=True)
    with build(SpecializeCache("cpu -toolchain=native", ("batch_size=1",))(cached)) as exe:
        kernels = [kernel for kernel in exe.kernels if isinstance(kernel, NativeKernel)]
        packs = [
            {
                constant.array.ctypes.data
                for constant in kernel._open_region().constants
                if constant.packing is not None and constant.array.nbytes >= 1 << 16
            }
            for kernel in kernels
        ]
    assert len(packs) == 2
    assert len(packs[0]) == 4 * size.layers + 1
    assert packs[0] == packs[1]
