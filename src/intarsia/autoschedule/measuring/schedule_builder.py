"""Building schedules in worker processes."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from intarsia.autoschedule.measuring.build_schedule import BuildFunction, BuiltSchedule
from intarsia.autoschedule.measuring.measure_options import MeasureOptions
from intarsia.autoschedule.measuring.worker_failure import worker_failure
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.worker_pool import Task, WorkerPool
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.step_record import StepJson, step_to_json

KEPT_KERNELS: Final = 256
"""Kernels that are kept, because the best are measured again."""

Key: TypeAlias = tuple[Path, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Build:
    """A build under way."""

    key: Key
    future: Future[BuiltSchedule]
    start: float


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleBuilder:
    """Compiles schedules in workers, as many at a time as there are workers.

    Attributes:
        pool: Where they are built.
        function: What builds one: a function of a module.
        options: With the limits of a build.
        kept: The kernels that were made last.
    """

    pool: WorkerPool
    function: BuildFunction
    options: MeasureOptions
    kept: dict[Key, BuiltSchedule] = field(default_factory=dict)

    def build(self, path: Path, states: Sequence[LoopState]) -> list[BuiltSchedule]:
        """The kernels of states, in their order; those that were kept are not built again.

        Args:
            path: Folder of the task.
            states: With every split length chosen.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError: The workers were stopped, or do not start.
        """
        # What unrolls most takes longest: it comes first, so that no worker is left alone with it at the end.
        order = sorted(range(len(states)), key=lambda place: -_unrolled(states[place]))
        begun = {place: self._begin(path, states[place]) for place in order}
        in_order = (begun[place] for place in range(len(states)))
        return [self._finished(each) if isinstance(each, _Build) else each for each in in_order]

    def _begin(self, path: Path, state: LoopState) -> BuiltSchedule | _Build:
        steps = [step_to_json(step) for step in state.transform_steps]
        key = path, json.dumps(steps)
        known = self.kept.get(key)
        if known is not None:
            return known
        return _Build(key, self.pool.submit_task(self._task(path, steps)), time.monotonic())

    def _task(self, path: Path, steps: list[StepJson]) -> Task[BuiltSchedule]:
        limits = self.options
        arguments = (path, steps, limits.most_stores)
        seconds, memory = limits.build_seconds, limits.memory_bytes
        return Task(self.function, arguments, timeout_s=seconds, memory_bytes=memory)

    def _finished(self, begun: _Build) -> BuiltSchedule:
        failure = worker_failure(begun.future, MeasureError.BUILD_TIMEOUT)
        if failure is not None:
            return BuiltSchedule(failure, None, time.monotonic() - begun.start)
        built = begun.future.result()
        if built.kernel is not None:
            while len(self.kept) >= KEPT_KERNELS:
                del self.kept[next(iter(self.kept))]
            self.kept[begun.key] = built
        return built


def _unrolled(state: LoopState) -> int:
    return max((stage.auto_unroll_max_step for stage in state.stages), default=0)
