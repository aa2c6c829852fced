"""Schedule searches of native kernels, with a log of their time, and calls of the kernels that they find."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from benchmarks.native_kernels import Run, bind_call, load_scheduled

from intarsia.autoschedule.cost_model import (
    CostModel,
    DraftModel,
    LearnedModel,
    Scores,
    boosted_tree_model,
    ridge_model,
)
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.measuring.pool_measurer import PoolMeasurer
from intarsia.autoschedule.policy import SketchPolicy, TuningOptions
from intarsia.autoschedule.task import HardwareParams, SearchTask, SpaceOptions
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.runner import Runner
from intarsia.measure.worker_calls import Built
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state, with_state
from intarsia.target import Target

MODELS: Mapping[str, Callable[[CostModel], LearnedModel]] = {
    "trees": boosted_tree_model,
    "ridge": ridge_model,
}


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a schedule search by native.

    Attributes:
        isa: Instruction set of the generated code.
        threads: Number of threads that run kernels, and of processes that build them.
        trials: Number of schedules that are measured.
        has_default: Whether the default schedule is measured first, and the micro-kernels of native's own
        rules
            are searched too. If not, only sketches in the manner of Ansor are searched.
        model: Key of the cost model in MODELS.
        round: Number of schedules that are measured between two updates of the cost model.
    """

    isa: Isa
    threads: int
    trials: int
    has_default: bool = True
    model: str = "trees"
    round: int = 64


@dataclass(frozen=True)
class SearchLog:
    """Log of a search.

    Attributes:
        points: Seconds since the start, and the cost in seconds, of each measured schedule; None for a
        failure. whole: Seconds from the start of the workers to the winner. build: Seconds spent waiting for
        builds, and for the reference result. measure: Seconds spent running candidates. search: Seconds spent
        on generating candidates. model: Seconds spent on training the cost model and on predictions, features
        included. failed: Number of failures by kind. winner: Transform steps of the winner as JSON, or the
        folder of its library; "" if every trial failed. race: Seconds spent on the interleaved re-measurement
        of the best candidates.
    """

    points: tuple[tuple[float, float | None], ...]
    whole: float
    build: float
    measure: float
    search: float
    model: float
    failed: Mapping[str, int]
    winner: str
    race: float = 0.0

    @property
    def best(self) -> float:
        """Lowest measured cost in seconds; inf if every trial failed."""
        return min((cost for _, cost in self.points if cost is not None), default=math.inf)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the log from the JSON form of `dataclasses.asdict`."""
        points = tuple((float(seconds), cost) for seconds, cost in data["points"])
        return cls(**{**data, "points": points})

    def reached(self, cost: float) -> tuple[int, float] | None:
        """Return the trials and seconds until a cost was reached, or None if it was not."""
        for trial, (seconds, measured) in enumerate(self.points, 1):
            if measured is not None and measured <= cost:
                return trial, seconds
        return None


@dataclass
class TimedMeasurer:
    """A measurer that logs time and results.

    Attributes:
        pool: Measurer that does the work.
        began: Start of the search in seconds since 1970.
        runner: Runner of `pool`.
        points: Points of the SearchLog.
        measuring: Seconds spent in `measure`.
        running: Seconds of `measuring` in which candidates ran.
        racing: Seconds spent in `remeasure`.
        failed: Number of failures by kind.
    """

    pool: PoolMeasurer
    began: float
    runner: TimedRunner
    points: list[tuple[float, float | None]] = field(default_factory=list)
    measuring: float = 0.0
    running: float = 0.0
    racing: float = 0.0
    failed: Counter[str] = field(default_factory=Counter)

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """See ScheduleMeasurer.measure."""
        begin = time.perf_counter()
        measurements = self.pool.measure(task, states)
        self.measuring += time.perf_counter() - begin
        self.running = sum(self.runner.seconds)
        self.failed.update(measurement.error.name for measurement in measurements if not measurement.is_ok)
        for measurement in measurements:
            self.points.append(
                (measurement.timestamp - self.began, measurement.cost if measurement.is_ok else None)
            )
        return measurements

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """See ScheduleMeasurer.remeasure; the last race does not count as trials."""
        begin = time.perf_counter()
        measurements = self.pool.remeasure(task, states)
        self.racing += time.perf_counter() - begin
        return measurements


@dataclass(frozen=True, slots=True)
class TimedRunner(Runner):
    """A runner that measures its own time.

    Attributes:
        seconds: Seconds of each run.
    """

    seconds: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, runner: Runner) -> Self:
        """Return a runner with the workers and limits of another."""
        return cls(runner.workers, runner.limits, runner.timings)

    def run(self, built: Built, timeout_s: float | None = None, best_seconds: float = math.inf) -> Outcome:
        """See Runner.run."""
        begin = time.perf_counter()
        outcome = Runner.run(self, built, timeout_s, best_seconds)
        self.seconds.append(time.perf_counter() - begin)
        return outcome


@dataclass(slots=True)
class TimedModel(LearnedModel):
    """A learned model that measures its own time.

    Attributes:
        seconds: Seconds spent on training and prediction, features included.
    """

    seconds: float = 0.0

    @classmethod
    def of(cls, model: LearnedModel) -> Self:
        """Return an untrained model of the same kind and options."""
        return cls(model.regressor, model.before, model.warm_up, model.growth, model.options)

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """See LearnedModel.update."""
        begin = time.perf_counter()
        LearnedModel.update(self, task, states, costs)
        self.seconds += time.perf_counter() - begin

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """See LearnedModel.predict."""
        begin = time.perf_counter()
        scores = LearnedModel.predict(self, task, states)
        self.seconds += time.perf_counter() - begin
        return scores


def search_schedule(
    dag: ComputeDAG, settings: SearchSettings, seed: int, workers: PoolMeasurer | None = None
) -> SearchLog:
    """Search a schedule of a DAG, with packed layouts of its constants.

    Args:
        dag: Declaration of the computation.
        settings: Settings of the search.
        seed: Random seed of the search.
        workers: Workers that measure; if None, new ones are started, and the time of that counts.
    """
    isa, threads = settings.isa, settings.threads
    hardware = HardwareParams.of_isa(isa, threads)
    plain_task = SearchTask.of_dag(dag, Target.for_toolchain("native", threads=threads), hardware)
    option = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    task = SearchTask(plain_task.dag, plain_task.target, hardware, plain_task.workload_key, option)
    draft = DraftModel(Machine.of_isa(isa, threads))
    model = TimedModel.of(MODELS[settings.model](draft))
    space = SpaceOptions(micro_kernels=isa) if settings.has_default else SpaceOptions()
    seeds = (default_state(dag, isa, threads),) if settings.has_default else ()
    began, start = time.time(), time.perf_counter()
    with nullcontext(workers) if workers else PoolMeasurer.open(isa, workers=threads) as pool:
        runner = TimedRunner.of(pool.testbed.runner)
        pool.testbed.runner = runner
        measurer = TimedMeasurer(pool, began, runner)
        policy = SketchPolicy(
            *(task, model, measurer), space=space, rng=Random(seed), seeds=seeds, draft=draft
        )
        best = policy.search(TuningOptions(settings.trials, num_measures_per_round=settings.round))
    whole = time.perf_counter() - start
    return SearchLog(
        tuple(measurer.points),
        whole,
        measurer.measuring - measurer.running,
        measurer.running,
        policy.search_seconds - model.seconds,
        model.seconds,
        dict(measurer.failed),
        "" if best is None else json.dumps([step_to_json(step) for step in best.transform_steps]),
        measurer.racing,
    )


def replay_winner(dag: ComputeDAG, winner: str) -> LoopState:
    """Return the loop state of the winner of a search."""
    return LoopState.replay(dag, map(step_from_json, json.loads(winner)))


def compile_schedule(
    dag: ComputeDAG, state: LoopState, settings: SearchSettings, inputs: Mapping[str, Any]
) -> tuple[Run, npt.NDArray[np.float32]]:
    """Compile the kernel of a loop state, and return a call of it with its result array."""
    chosen = with_state(dag, state)
    return bind_call(chosen, load_scheduled(chosen, settings.isa), inputs, settings.threads)
