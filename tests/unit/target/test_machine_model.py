"""The machine model: what follows from its values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel


def test_sums_cover_the_latency_of_all_pipes() -> None:
    assert MachineModel().independent_sums(32) == 8
    assert MachineModel(fma_latency=5).independent_sums(32) == 10


def test_a_wide_vector_takes_two_narrow_pipes() -> None:
    model = MachineModel(fma_pipes=2, fma_bytes=64)
    assert [model.fmas_per_cycle(width) for width in (16, 32, 64)] == [2, 2, 1]
    assert replace(model, fma_bytes=32).fmas_per_cycle(64) == 1, "a vector in two halves still counts as one"


def test_a_set_is_as_far_as_the_cache_divided_by_its_ways() -> None:
    assert MachineModel().set_bytes == 4096
    assert MachineModel(caches=CacheSizes(48 << 10), first_ways=12).set_bytes == 4096
    assert MachineModel(caches=CacheSizes(64 << 10), first_ways=4).set_bytes == 16384


def test_threads_share_the_memory() -> None:
    model = MachineModel(memory_bandwidth=8.0, busy_memory_bandwidth=2.0)
    assert model.memory_share(1, 16) == 8.0
    assert model.memory_share(2, 16) == 8.0
    assert model.memory_share(8, 16) == 4.0
    assert model.memory_share(16, 16) == 2.0
    assert model.memory_share(32, 16) == 2.0, "threads beyond the cores load no less each"


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_values_are_positive(value: float) -> None:
    with pytest.raises(ValueError, match="memory_bandwidth of a machine is"):
        MachineModel(memory_bandwidth=value)


def test_the_text_has_the_values_that_kernels_depend_on() -> None:
    model = MachineModel()
    assert str(model) == (
        "caches=32K/512K/8192K first_ways=8 line_bytes=64 page_bytes=4096 fma_latency=4 fma_pipes=2 "
        "fma_bytes=128 first_bandwidth=64 second_bandwidth=32 third_bandwidth=20 busy_third_bandwidth=14 "
        "memory_bandwidth=6 busy_memory_bandwidth=4.2 barrier_cycles=512"
    )
    assert str(replace(model, family="znver9", huge_page_speedup=1.5)) == str(model)
    assert str(replace(model, barrier_cycles=100)) != str(model)
