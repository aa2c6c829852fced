"""Costs of loads relative to the machine on which rules were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intarsia.native.machine.isa import Isa
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, relative_costs
from intarsia.target.machine_families import FAMILIES

ZEN3 = Isa("x86_64", "znver3", ("avx", "avx2", "fma"), machine=FAMILIES["znver3"])
SERVER = Isa(
    "x86_64", "sapphirerapids", ("avx", "avx512f", "fma"), cores=32, machine=FAMILIES["sapphirerapids"]
)


@pytest.mark.parametrize(("threads", "cores"), [(1, 1), (1, 2), (2, 2), (64, 64)])
def test_zen_3_is_the_reference(threads: int, cores: int) -> None:
    assert relative_costs(replace(ZEN3, cores=cores), threads) == REFERENCE_COSTS


def test_twice_the_multiply_adds_make_loads_cost_twice_as_many() -> None:
    costs = relative_costs(SERVER)
    assert costs.sums == 8
    assert costs.first == costs.second == 1.0, "its caches deliver twice as much as well"
    assert costs.memory == costs.third == 2.0


def test_half_the_bandwidth_makes_loads_cost_twice() -> None:
    slow = replace(ZEN3.machine, memory_bandwidth=ZEN3.machine.memory_bandwidth / 2, second_bandwidth=16.0)
    costs = relative_costs(replace(ZEN3, machine=slow))
    assert costs == REFERENCE_COSTS._replace(second=2.0, memory=2.0, weights=2.0)


def test_threads_share_the_memory() -> None:
    narrow = replace(ZEN3.machine, busy_memory_bandwidth=ZEN3.machine.busy_memory_bandwidth / 4)
    isa = replace(ZEN3, machine=narrow, cores=8)
    costs = [relative_costs(isa, threads).memory for threads in (1, 2, 8)]
    assert costs == [1.0, 1.0, 4.0]


def test_weights_that_the_last_cache_keeps_cost_its_loads() -> None:
    """The other half of the cache is for what transforms add to weights, and for values."""
    kept = SERVER.caches.third // 2
    assert relative_costs(SERVER).weights == relative_costs(SERVER).memory
    assert relative_costs(SERVER, 1, kept + 1).weights == relative_costs(SERVER).memory
    machine = SERVER.machine
    ratio = machine.memory_bandwidth / machine.third_bandwidth
    assert relative_costs(SERVER, 1, kept).weights == pytest.approx(2.0 * ratio)
