"""What a tuning run is to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from intarsia.driver.accuracy import Accuracy
from intarsia.driver.budget import parse_budget
from intarsia.driver.dynamic_mode import DynamicMode, read_dynamic
from intarsia.driver.error_budget import CalibrationArgument, ErrorBudget, check_quantisation
from intarsia.driver.plans import refuse_choices
from intarsia.driver.progress import Progress
from intarsia.driver.stream_search.objective import LoadOptions, Objective
from intarsia.driver.tuning_history import refuse_searches
from intarsia.measure.sizes.dim_sizes import SizesArgument
from intarsia.support.callbacks import never, silent
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.quantise.metrics import Metric

STREAM_SHARE: Final = 0.3
"""Share of the budget for measurements under load, if the objective needs them."""


@dataclass(frozen=True, slots=True)
class RunCallbacks:
    """What a tuning run calls while it goes on.

    Attributes:
        on_progress: Function that is called with each progress event.
        on_note: Function that is called with sentences for people.
        should_stop: Function that returns true to end the run with the measurements so far.
    """

    on_progress: Callable[[Progress], object] = silent
    on_note: Callable[[str], None] = silent
    should_stop: Callable[[], bool] = never


@dataclass(frozen=True, slots=True, eq=False)
class TuneOptions:
    """The options of a tuning run, as `intarsia.tune` describes them, without the model and the places.

    Attributes:
        budget: Wall time of the run, in seconds or as text.
        trials: Maximum number of measured candidates, or None.
        targets: Targets to compare; None for all.
        shapes: Shapes of inputs, by name.
        dims: Sizes of symbolic dimensions, by name.
        inputs: Input arrays, by name.
        name: Name of the model in tables and reports; "" for that of its file or graph.
        seed: Random seed.
        threads: Number of threads of each candidate, or None.
        partitions: Whether different toolchains may run parts.
        exact: Whether sums must be computed directly.
        tolerance: Largest allowed error of an output, or None.
        calibration: Input sets to quantise by, or None.
        max_drop: Largest allowed drop of the metric, or None.
        metric: Name of the metric, or a function.
        front: Whether the result has the front of latency and error, and programs with some layers in wider
            types take part in any case.
        pipeline: Name of a pipeline of tuning passes, or None.
        passes: Tuning passes in place of a pipeline, or None.
        schedules: Whether schedules are searched; None to search where it can pay.
        schedule_trials: Maximum number of measured schedules, or None.
        until_proven: Whether the search goes on until nothing is left to try.
        dynamic: Mode of specializing for sizes of symbolic dimensions.
        plan: Plan file, or None.
        locked: Whether to build the plan as it is.
        load: Objective, and the load that it is measured under.

    Raises:
        UsageError: The budget or the mode cannot be read, or options contradict each other.
    """

    budget: str | float = "60s"
    trials: int | None = None
    targets: Sequence[Target | str] | Target | str | None = None
    shapes: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    dims: Mapping[str, SizesArgument] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    seed: int = 0
    threads: int | None = None
    partitions: bool = True
    exact: bool = False
    tolerance: float | None = None
    calibration: CalibrationArgument | None = None
    max_drop: float | None = None
    metric: str | Metric = "top-1"
    front: bool = False
    pipeline: str | None = None
    passes: Sequence[Pass | str] | None = None
    schedules: bool | None = None
    schedule_trials: int | None = None
    until_proven: bool = False
    dynamic: DynamicMode | str = DynamicMode.EAGER
    plan: Path | None = None
    locked: bool = False
    load: LoadOptions = field(default_factory=LoadOptions)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dynamic", self.mode)
        check_quantisation(self.calibration, self.tolerance, self.max_drop, self.metric, exact=self.exact)
        searches = self.schedules or None, self.schedule_trials
        if self.seconds == 0:
            refuse_searches(self.plan, trials=self.trials, schedules=searches[0], schedule_trials=searches[1])
        if self.locked:
            refuse_choices(
                self.plan,
                targets=self.targets,
                threads=self.threads,
                trials=self.trials,
                pipeline=self.pipeline,
                passes=self.passes,
                schedules=self.schedules if self.schedule_trials is None else True,
                exact=self.exact or None,
            )

    @property
    def seconds(self) -> float:
        """The budget in seconds."""
        return parse_budget(self.budget)

    @property
    def stream_seconds(self) -> float:
        """The part of the budget for measurements under load."""
        is_loaded = self.load.objective is not Objective.LATENCY and not self.locked
        return self.seconds * STREAM_SHARE if is_loaded else 0.0

    @property
    def mode(self) -> DynamicMode:
        """The mode of specializing for sizes."""
        return read_dynamic(self.dynamic)

    @property
    def accuracy(self) -> Accuracy:
        """The required accuracy."""
        return Accuracy(self.exact, self.tolerance)

    @property
    def error_budget(self) -> ErrorBudget:
        """How much worse than float32 a program in integers may be."""
        return ErrorBudget(self.tolerance, self.max_drop, self.metric)

    @property
    def quantises(self) -> bool:
        """Whether programs in integers take part, if there are calibration inputs."""
        return not self.locked and self.seconds > 0

    @property
    def requests_schedules(self) -> bool:
        """Whether a search of all schedules is requested, with a part of the budget."""
        return bool(self.schedules) or self.schedule_trials is not None
