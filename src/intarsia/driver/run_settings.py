"""What a run of `tune` decides on, and its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.collage.placement.plan import Plan
from intarsia.driver.dynamic_mode import DynamicMode
from intarsia.measure.measure_input import Workload
from intarsia.target import Target
from intarsia.transform import Pass


@dataclass(frozen=True, slots=True, eq=False)
class RunSettings:
    """The question of a run: by these a finished run is found again.

    Attributes:
        workload: The model, with its inputs and the pass settings of the run.
        targets: Targets of the baselines.
        seconds: Wall time of the run, from its start; each toolchain alone is measured in any case.
        trials: Maximum number of measured candidates, or None.
        seed: Random seed of the evolution and of the order in the race.
        searches: Whether partitions are searched.
        passes: Tuning passes that run before the search for partitions; other passes are just applied.
        plan: Plan of an earlier run, or None.
        proves: Whether the search goes on until nothing is left to try, however little is expected of it.
        schedule_seconds: Seconds of a requested search of schedules, which come on top of `seconds`.
        dynamic: Mode of specializing the program for sizes of symbolic dimensions.
        front: Whether the result has the front of latency and error, for which candidates are raced anew.
    """

    workload: Workload
    targets: Sequence[Target]
    seconds: float
    trials: int | None
    seed: int
    searches: bool
    passes: Sequence[Pass]
    plan: Plan | None
    proves: bool = False
    schedule_seconds: float = 0.0
    dynamic: DynamicMode = DynamicMode.EAGER
    front: bool = False

    @property
    def most_trials(self) -> float:
        """Maximum number of measured candidates; infinite without one."""
        return math.inf if self.trials is None else self.trials

    @property
    def can_search(self) -> bool:
        """Whether anything is decided beside the choice of a toolchain."""
        return bool(self.seconds and (self.searches or self.passes))

    @property
    def specializes(self) -> bool:
        """Whether the program gets variants for sizes of symbolic dimensions."""
        is_named = any(item.is_named for item in self.workload.samples)
        return self.dynamic is not DynamicMode.NONE and is_named
