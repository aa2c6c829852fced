from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fake_clock import FakeClock

from intarsia.measure.timing import timing
from intarsia.measure.timing.cache_flush import UNKNOWN_CACHE_BYTES, CacheFlush, cache_flush_of_this_machine
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy, take_sample, time_function
from intarsia.target import Host

MS = 1_000_000
POLICY = TimingPolicy(
    warmup_seconds=0.0, warmup_calls=1, repeats=10, min_repeat_seconds=0.01, max_seconds=1e3, flush_cache=True
)


class FakeFlush:
    """A flush that takes 70 ms and counts how often it is called."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock, self.calls = clock, 0

    def __call__(self) -> None:
        self.calls += 1
        self.clock.advance(70 * MS)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def flush(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> FakeFlush:
    fake = FakeFlush(clock)
    monkeypatch.setattr(timing, "cache_flush_of_this_machine", lambda: fake)
    return fake


def host(l1d: int, l2: int, l3: int) -> Host:
    return replace(Host.detect(), l1d_bytes=l1d, l2_bytes=l2, l3_bytes=l3)


def test_the_flush_is_called_once_per_repetition_and_not_timed(clock: FakeClock, flush: FakeFlush) -> None:
    found = time_function(clock.taking(3 * MS), POLICY, clock)
    assert found.samples == (0.003,) * 10
    assert found.calls == 10  # one a sample: the others of a group would find the caches full
    assert flush.calls == 10


def test_each_candidate_is_flushed_before_each_of_its_repetitions(clock: FakeClock, flush: FakeFlush) -> None:
    candidates = {"a": clock.taking(MS), "b": clock.taking(2 * MS)}
    found = time_interleaved(candidates, POLICY, clock)
    assert flush.calls == 2 * found.rounds == 20
    assert (found.timings["a"].samples, found.timings["b"].samples) == ((0.001,) * 10, (0.002,) * 10)


def test_nothing_is_flushed_unless_asked_for(clock: FakeClock, flush: FakeFlush) -> None:
    time_function(clock.taking(3 * MS), replace(POLICY, flush_cache=False), clock)
    assert flush.calls == 0


def test_a_flush_may_be_given(clock: FakeClock, flush: FakeFlush) -> None:
    given = FakeFlush(clock)
    assert take_sample(clock.taking(3 * MS), 5, POLICY, clock, given).seconds == pytest.approx(0.003)
    assert (given.calls, flush.calls) == (1, 0)


def test_flushing_counts_towards_the_budget(clock: FakeClock, flush: FakeFlush) -> None:
    policy = replace(POLICY, min_repeats=1, max_seconds=0.3)
    assert (
        len(time_function(clock.taking(5 * MS), policy, clock).samples) == 3
    )  # 5 + 3 * 75 ms; 305 with a 4th
    assert flush.calls == 3


@pytest.mark.parametrize(
    ("sizes", "buffer_bytes"),
    [
        ((32 << 10, 1 << 20, 8 << 20), 16 << 20),
        ((32 << 10, 1 << 20, 0), 2 << 20),
        ((0, 0, 0), 2 * UNKNOWN_CACHE_BYTES),
    ],
)
def test_the_buffer_is_twice_the_last_level(sizes: tuple[int, int, int], buffer_bytes: int) -> None:
    assert CacheFlush.of_host(host(*sizes)).buffer_bytes == buffer_bytes


def test_every_byte_of_the_buffer_is_written() -> None:
    flush = CacheFlush(1001)
    assert flush.buffer_bytes == 2008  # whole words
    flush()
    flush()
    assert flush._buffer.tolist() == [2] * 251


def test_a_cache_of_no_size() -> None:
    with pytest.raises(ValueError, match=r"^a cache of 0 bytes cannot be flushed$"):
        CacheFlush(0)


def test_this_machine_has_one_flush() -> None:
    flush = cache_flush_of_this_machine()
    assert flush is cache_flush_of_this_machine()
    assert isinstance(flush, CacheFlush)
    found = Host.detect()
    assert flush.buffer_bytes >= 2 * max(found.l2_bytes, found.l3_bytes)
