"""The least time of a kernel by operations and bytes."""

from dataclasses import replace

import pytest
from tests.scheduled_products import NATIVE, product

from intarsia.autoschedule.extraction import extract_tasks
from intarsia.native.machine.isa import Isa
from intarsia.native.roofline import Roofline

CALL = 5e-6


def test_the_slower_of_operations_and_bytes_bounds_a_kernel() -> None:
    (task,) = extract_tasks(product(), NATIVE)
    flop, moved = task.flop_count, task.bytes_moved
    assert Roofline(1e6, 1e12, moved).bound(flop, moved) == pytest.approx(CALL + flop / 1e6)
    memory = Roofline(1e15, 1e6, moved - 1)
    assert memory.bound(flop, moved) == pytest.approx(CALL + moved / 1e6)
    assert replace(memory, cached_bytes=moved).bound(flop, moved) == pytest.approx(CALL + moved / 4e6)


def test_this_machine_has_a_peak_and_a_bandwidth() -> None:
    roofline = Roofline.measured(Isa.host(), 1)
    assert roofline.peak > 1e8
    assert roofline.bandwidth > 1e7
    assert Roofline.measured(Isa.host(), 1) == roofline


def test_a_fast_shared_cache_lowers_the_bound_of_what_it_holds() -> None:
    isa = Isa.host()
    usual = Roofline.measured(isa, 1)
    fast = replace(isa.machine, third_bandwidth=2 * isa.machine.third_bandwidth)
    faster = Roofline.measured(replace(isa, machine=fast), 1)
    assert faster.cached_speedup == pytest.approx(2 * usual.cached_speedup)
    assert faster.seconds_of_bytes(usual.cached_bytes) < usual.seconds_of_bytes(usual.cached_bytes)
