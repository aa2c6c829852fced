"""Build schedules in worker processes."""

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
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.workers import TaskLimits, Workers
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.step_record import step_to_json

KEPT_KERNELS: Final = 256
"""Number of kernels that are kept, because the best schedules are measured again."""

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
        workers: Worker processes that build.
        function: Function of a module that builds a schedule.
        options: Options, with the limits of a build.
        kept: Kernels that were built last.
    """

    workers: Workers
    function: BuildFunction
    options: MeasureOptions
    kept: dict[Key, BuiltSchedule] = field(default_factory=dict)

    def build(self, path: Path, states: Sequence[LoopState]) -> list[BuiltSchedule]:
        """Return the kernels of states, in their order; kernels that were kept are not built again.

        Args:
            path: Folder of the task.
            states: States with every split length chosen.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError: The workers were stopped, or do not start.
        """
        # The state that unrolls most takes longest: it comes first, so that no worker ends alone with it.
        order = sorted(range(len(states)), key=lambda index: -_unrolled(states[index]))
        begun = {index: self._begin(path, states[index]) for index in order}
        in_order = (begun[index] for index in range(len(states)))
        return [self._finish(build) if isinstance(build, _Build) else build for build in in_order]

    def _begin(self, path: Path, state: LoopState) -> BuiltSchedule | _Build:
        steps = [step_to_json(step) for step in state.transform_steps]
        key = path, json.dumps(steps)
        kept = self.kept.get(key)
        if kept is not None:
            return kept
        limits = TaskLimits(self.options.build_seconds, self.options.memory_bytes)
        arguments = (path, steps, self.options.most_stores)
        return _Build(key, self.workers.start_build(self.function, arguments, limits), time.monotonic())

    def _finish(self, begun: _Build) -> BuiltSchedule:
        built = self.workers.built(begun.future)
        if isinstance(built, Outcome):
            return BuiltSchedule(built, None, time.monotonic() - begun.start)
        if built.kernel is not None:
            while len(self.kept) >= KEPT_KERNELS:
                del self.kept[next(iter(self.kept))]
            self.kept[begun.key] = built
        return built


def _unrolled(state: LoopState) -> int:
    return max((stage.auto_unroll_max_step for stage in state.stages), default=0)
