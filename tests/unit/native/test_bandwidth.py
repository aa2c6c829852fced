"""What reading memory from its begin to its end reaches."""

from __future__ import annotations

import itertools

import pytest

from intarsia.native.bandwidth import measured_bandwidth
from intarsia.native.machine.isa import Isa

ISA = Isa.host()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2], ids=lambda count: f"threads-{count}")
def test_the_bandwidth_is_bytes_by_the_shortest_run(threads: int) -> None:
    durations = itertools.chain([4.0, 3.0, 0.5], itertools.repeat(1.0))
    now = 0.0
    calls = itertools.count()

    def clock() -> float:
        nonlocal now
        now += next(durations) if next(calls) % 2 else 0.0
        return now

    assert measured_bandwidth(ISA, threads, clock) == pytest.approx((1 << 28) / 0.5)


@pytest.mark.slow
def test_memory_is_read_faster_than_a_byte_in_ten_nanoseconds() -> None:
    assert measured_bandwidth(ISA, 1) > 1e8
