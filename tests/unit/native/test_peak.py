"""What multiply-adds in registers reach."""

from __future__ import annotations

import itertools

import pytest

from intarsia.native.machine.isa import Isa
from intarsia.native.peak import measured_peak

ISA = Isa.host()


def test_the_peak_is_operations_by_the_shortest_run() -> None:
    durations = itertools.chain([4.0, 3.0, 0.5], itertools.repeat(1.0))
    now = 0.0
    calls = itertools.count()

    def clock() -> float:
        nonlocal now
        now += next(durations) if next(calls) % 2 else 0.0
        return now

    chains = ISA.vector_registers - 4
    operations = 2 * (1 << 17) * chains * (ISA.vector_bytes // 4)
    assert measured_peak(ISA, 1, clock) == pytest.approx(operations / 0.5)


def test_the_peak_is_far_above_one_operation_a_nanosecond() -> None:
    assert measured_peak(ISA, 1) > 1e9
