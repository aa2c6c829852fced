"""What a calibration concludes from the times of probes, with a clock that the probes set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.fake_machine import HERTZ, FakeMachine, probe_rates

from intarsia.native.calibration import ProbeKind, calibrate
from intarsia.target.machine_families import FAMILIES

ZEN3 = FAMILIES["znver3"]
PER_CYCLE = probe_rates(ZEN3, 32, 2)
"""What the probes of a machine like the defaults of Zen 3 do in a cycle, on two cores."""


def measured(
    changes: Mapping[ProbeKind, float | None], cores: int = 2
) -> tuple[dict[str, float], dict[str, str]]:
    """Return what changes in Zen 3's model, and what is not measured."""
    rates = {kind: rate for kind, rate in {**PER_CYCLE, **changes}.items() if rate is not None}
    machine = FakeMachine(rates)
    result = calibrate(machine.probes(), ZEN3, 32, cores, machine.clock)
    assert result.hertz == pytest.approx(HERTZ)
    names = [name for name in result.measured if getattr(result.model, name) != getattr(ZEN3, name)]
    assert replace(result.model, **{name: getattr(ZEN3, name) for name in names}) == ZEN3
    return {name: getattr(result.model, name) for name in names}, dict(result.missing)


def test_a_machine_like_the_defaults_changes_nothing() -> None:
    assert measured({}) == ({}, {})


def test_noise_changes_nothing() -> None:
    noise = {
        ProbeKind.FIRST: 57.0,
        ProbeKind.MEMORY: 4.5,
        ProbeKind.CHAIN: 1 / 4.2,
        ProbeKind.PARALLEL: 1 / 2600,
    }
    assert measured(noise) == ({}, {})


def test_what_differs_is_rounded_to_two_digits() -> None:
    changes = {
        ProbeKind.CHAIN: 1 / 5.04,
        ProbeKind.SUMS: 1.01,
        ProbeKind.SECOND: 19.28,
        ProbeKind.BUSY_MEMORY: 4.246,
        ProbeKind.HUGE_PAGES: 2.0,
        ProbeKind.PARALLEL: 1 / 3234,
    }
    assert measured(changes) == (
        {
            "fma_latency": 5,
            "fma_bytes": 32,
            "second_bandwidth": 19.0,
            "busy_memory_bandwidth": 2.1,
            "huge_page_speedup": 2.0,
            "barrier_cycles": 1200,
        },
        {},
    )


@pytest.mark.parametrize(("vector_bytes", "pipes"), [(16, 4), (32, 2)])
def test_more_pipes_than_expected_show_in_narrow_vectors(vector_bytes: int, pipes: int) -> None:
    """Four pipes of 16 bytes, or two of 32, which vectors of 32 bytes cannot tell apart."""
    machine = FakeMachine(probe_rates(ZEN3, vector_bytes, 2))
    model = calibrate(machine.probes(), ZEN3, vector_bytes, 2, machine.clock).model
    assert model == replace(ZEN3, fma_pipes=pipes)
    assert model.independent_sums(vector_bytes) == 4 * pipes


def test_a_calibration_is_compared_with_the_one_before() -> None:
    machine = FakeMachine({**PER_CYCLE, ProbeKind.SECOND: 19.28})
    first = calibrate(machine.probes(), ZEN3, 32, 2, machine.clock).model
    machine = FakeMachine({**PER_CYCLE, ProbeKind.SECOND: 20.4})
    assert calibrate(machine.probes(), first, 32, 2, machine.clock).model == first


def test_values_of_all_cores_need_all_cores() -> None:
    busy = {ProbeKind.BUSY_TICK: 1.2, ProbeKind.BUSY_MEMORY: 2.0, ProbeKind.PARALLEL: 1 / 4100}
    changes, missing = measured(busy)
    assert changes == {}
    names = ("busy_third_bandwidth", "busy_memory_bandwidth", "barrier_cycles")
    assert missing == dict.fromkeys(names, "the other cores were busy")


def test_one_core_has_no_barrier() -> None:
    several = (ProbeKind.BUSY_TICK, ProbeKind.BUSY_THIRD, ProbeKind.BUSY_MEMORY, ProbeKind.SERIAL)
    changes, missing = measured(dict.fromkeys((*several, ProbeKind.PARALLEL)), cores=1)
    assert changes == {}
    assert set(missing.values()) == {"there is one core"}


def test_systems_without_huge_pages() -> None:
    _, missing = measured({ProbeKind.HUGE_PAGES: None})
    assert missing == {"huge_page_speedup": "the system has no huge pages"}


def test_a_small_shared_cache_is_not_read_by_all() -> None:
    _, missing = measured({ProbeKind.BUSY_THIRD: None})
    assert missing == {"busy_third_bandwidth": "the cache is too small"}


def test_it_ends_in_time_and_says_how_far_it_is() -> None:
    slow = FakeMachine(PER_CYCLE, cycles=1e8)
    rounds: list[tuple[int, int]] = []
    result = calibrate(slow.probes(), ZEN3, 32, 2, slow.clock, lambda *done: rounds.append(done))
    assert [done for done, _ in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[-1][0] == rounds[-1][1] < 100
    assert 7.0 <= result.seconds == slow.now < 13.0


def test_a_fast_machine_makes_no_more_rounds_than_enough() -> None:
    fast = FakeMachine(PER_CYCLE, cycles=10.0)
    rounds: list[tuple[int, int]] = []
    calibrate(fast.probes(), ZEN3, 32, 2, fast.clock, lambda *done: rounds.append(done))
    assert rounds[-1] == (100, 100)
