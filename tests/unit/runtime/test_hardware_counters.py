"""Hardware counters, with a fake of the system's events, and with events that every Linux has."""

from __future__ import annotations

import errno
import mmap
import platform

import pytest
from tests.fake_events import FakeEvents

from intarsia.runtime.hardware_counters import EVENTS, CounterEvent, HardwareCounters, LinuxEvents
from intarsia.support.errors import UsageError

CYCLES = EVENTS[:1]


def test_counts_are_summed_over_threads() -> None:
    system = FakeEvents(threads=(1, 2, 3))
    counters = HardwareCounters(CYCLES, system)
    assert counters.names == ("cycles",)
    system.work(1000)
    assert counters.read() == (3 * 1000 + 10 + 20 + 30,)
    counters.close()
    assert system.open_files == 0


def test_counts_are_scaled_where_the_counters_were_shared() -> None:
    system = FakeEvents(share=0.25)
    counters = HardwareCounters(CYCLES, system)
    system.work(990)
    assert counters.read() == (1000,)


def test_events_that_the_machine_lacks_are_left_out() -> None:
    system = FakeEvents(threads=(1, 2), refused={"cache misses": errno.ENOENT, "branch misses": errno.ENOENT})
    assert HardwareCounters(system=system).names == ("cycles", "instructions")
    assert system.open_files == 4


def test_threads_that_have_ended_are_left_out() -> None:
    system = FakeEvents(threads=(1, -7))
    HardwareCounters(CYCLES, system)
    assert system.open_files == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.EACCES, r"the system does not allow perf_event_open \(kernel.perf_event_paranoid is "),
        (errno.EPERM, "the system does not allow perf_event_open"),
        (errno.ENOENT, "this machine exposes no hardware counters, as many virtual machines"),
        (errno.ENOSYS, "perf_event_open fails: Function not implemented"),
    ],
)
def test_the_reason_is_said(code: int, reason: str) -> None:
    system = FakeEvents(refused={event.name: code for event in EVENTS})
    with pytest.raises(UsageError, match=f"^hardware counters cannot be read: {reason}"):
        HardwareCounters(system=system)
    assert system.open_files == 0


@pytest.mark.skipif(platform.system() != "Linux", reason="perf_event_open is of Linux")
def test_an_event_of_linux_itself() -> None:
    faults = CounterEvent("page faults", 1, 2)
    try:
        counters = HardwareCounters([faults], LinuxEvents())
    except UsageError as error:
        pytest.skip(str(error))
    (before,) = counters.read()
    memory = mmap.mmap(-1, 1 << 24)
    for start in range(0, len(memory), 4096):
        memory[start] = 1
    (after,) = counters.read()
    assert after > before  # its pages were touched for the first time
    counters.close()


@pytest.mark.skipif(platform.system() != "Linux", reason="perf_event_open is of Linux")
def test_the_time_of_a_thread_by_linux_itself() -> None:
    clock = CounterEvent("task clock", 1, 1)
    try:
        counters = HardwareCounters([clock], LinuxEvents())
    except UsageError as error:
        pytest.skip(str(error))
    (before,) = counters.read()
    total = sum(number * number for number in range(200_000))
    (after,) = counters.read()
    assert total > 0
    assert after - before > 100_000  # nanoseconds; the sum takes milliseconds
    counters.close()
