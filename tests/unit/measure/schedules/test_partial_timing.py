"""Estimates of long calls from parts of their loops."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from types import SimpleNamespace
from typing import cast

import pytest

from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.schedules.loaded_schedule import LoadedSchedule
from intarsia.measure.schedules.partial_timing import estimate_whole
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.native.execution.partial_loops import PartialLoops
from intarsia.native.execution.thread_pool import ThreadPool

TIMING = KernelTiming(TimingPolicy(min_repeats=3, max_seconds=0.01), clear_ratio=1.5)


class Loaded:
    """A schedule whose whole takes some seconds, in equal iterations of one parallel loop."""

    def __init__(self, *seconds: float, ratio: float | None = None, is_divisible: bool = True) -> None:
        self.now, self.parts = 0.0, list[int]()
        self._seconds: Iterator[float] = iter(seconds)
        self._ratio = ratio
        self._task = SimpleNamespace(is_divisible=is_divisible, pool=ThreadPool(1))

    def estimate(self, best: float) -> float:
        loaded = SimpleNamespace(task=self._task, call_part=self._call_part)
        return estimate_whole(cast("LoadedSchedule", loaded), best, TIMING, lambda: self.now)

    def _call_part(self, part: PartialLoops) -> None:
        self.parts.append(part.parts)
        part.ratio = part.parts if self._ratio is None else self._ratio
        self.now += next(self._seconds) / part.parts


def test_what_is_clearly_slower_in_two_parts_is_estimated() -> None:
    slow = Loaded(0.4, 0.2)
    assert slow.estimate(0.05) == pytest.approx(0.2)
    assert slow.parts == [25, 25]


def test_one_part_that_was_disturbed_does_not_decide() -> None:
    disturbed = Loaded(0.4, 0.06)
    assert disturbed.estimate(0.05) == 0.0
    fast = Loaded(0.04)
    assert (fast.estimate(0.05), len(fast.parts)) == (0.0, 1)


def test_loops_that_cannot_be_divided_are_not_estimated() -> None:
    assert Loaded(0.4, ratio=inf).estimate(0.05) == 0.0
    alone = Loaded(0.4, 0.4, ratio=1.0)
    assert alone.estimate(0.05) == 0.0
    indices = Loaded(is_divisible=False)
    assert (indices.estimate(0.05), indices.parts) == (0.0, [])


@pytest.mark.parametrize("best", [inf, 0.009])
def test_short_calls_and_first_schedules_run_as_a_whole(best: float) -> None:
    loaded = Loaded()
    assert (loaded.estimate(best), loaded.parts) == (0.0, [])
