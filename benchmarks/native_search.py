"""Searches for schedules of native kernels, with what they cost, and what they find as something to call."""

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
from benchmarks.native_kernels import Run, called, loaded

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
from intarsia.autoschedule.measuring.schedule_measurement import ScheduleMeasurement
from intarsia.autoschedule.policy import SketchPolicy, TuningOptions
from intarsia.autoschedule.task import HardwareParams, SearchTask, SpaceOptions
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
    """How native searches.

    Attributes:
        isa: What code may use.
        threads: That run kernels, and build them.
        trials: How many schedules are measured.
        has_default: Whether the default schedule is measured first, and what native's rules can make is
            searched. Without, there are the field's sketches only.
        model: One of MODELS.
        round: How many schedules are measured between two searches.
    """

    isa: Isa
    threads: int
    trials: int
    has_default: bool = True
    model: str = "trees"
    round: int = 64


@dataclass(frozen=True)
class SearchLog:
    """What a search did.

    Attributes:
        points: Seconds since its begin and the cost of each measured schedule, None of a failure.
        whole: Seconds, from starting workers to the winner.
        build: Seconds spent waiting for builds, and for the reference result.
        measure: Seconds spent running candidates.
        search: Seconds spent finding candidates.
        model: Seconds spent teaching the learned model and asking it, features included.
        failed: Failures by kind.
        winner: How to make the winner again: steps, or the folder of a library; "" if nothing works.
        race: Seconds spent on timing the best few once more, in turns.
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
        """The least cost measured; inf if nothing works."""
        return min((cost for _, cost in self.points if cost is not None), default=math.inf)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Self:
        """What `dataclasses.asdict` has made of one, by way of JSON."""
        points = tuple((float(seconds), cost) for seconds, cost in data["points"])
        return cls(**{**data, "points": points})

    def reached(self, cost: float) -> tuple[int, float] | None:
        """Trials and seconds until something at least as fast was measured; None if nothing was."""
        for trial, (seconds, found) in enumerate(self.points, 1):
            if found is not None and found <= cost:
                return trial, seconds
        return None


@dataclass
class TimedMeasurer:
    """A measurer that keeps what it is asked.

    Attributes:
        pool: Measures.
        began: When the search began, in seconds since 1970.
        points: As in SearchLog.
        measuring: Seconds inside of it.
        running: Those in which candidates run.
        racing: Those in which the best few run once more.
        failed: As in SearchLog.
    """

    pool: PoolMeasurer
    began: float
    points: list[tuple[float, float | None]] = field(default_factory=list)
    measuring: float = 0.0
    running: float = 0.0
    racing: float = 0.0
    failed: Counter[str] = field(default_factory=Counter)

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleMeasurement]:
        """See ScheduleMeasurer.measure."""
        begin = time.perf_counter()
        found = self.pool.measure(task, states)
        self.measuring += time.perf_counter() - begin
        self.running += sum(each.run_seconds for each in found)
        self.failed.update(each.error.name for each in found if not each.is_ok)
        for each in found:
            self.points.append((each.timestamp - self.began, each.cost if each.is_ok else None))
        return found

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleMeasurement]:
        """See ScheduleMeasurer.remeasure; the last race is no trial."""
        begin = time.perf_counter()
        found = self.pool.remeasure(task, states)
        self.racing += time.perf_counter() - begin
        return found


@dataclass(slots=True)
class TimedModel(LearnedModel):
    """A learned model with a clock.

    Attributes:
        seconds: Spent teaching it and asking it, features included.
    """

    seconds: float = 0.0

    @classmethod
    def of(cls, own: LearnedModel) -> Self:
        """With a clock, a model that knows nothing."""
        return cls(own.regressor, own.before, own.warm_up, own.growth, own.options)

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """See LearnedModel.update."""
        begin = time.perf_counter()
        LearnedModel.update(self, task, states, costs)
        self.seconds += time.perf_counter() - begin

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """See LearnedModel.predict."""
        begin = time.perf_counter()
        found = LearnedModel.predict(self, task, states)
        self.seconds += time.perf_counter() - begin
        return found


def searched(
    dag: ComputeDAG, settings: SearchSettings, seed: int, workers: PoolMeasurer | None = None
) -> SearchLog:
    """Search a schedule of a DAG, whose constants may be laid out as it wants.

    Args:
        dag: What is computed.
        settings: How.
        seed: Of the search.
        workers: That measure; new ones, which the clock sees start, if not given.
    """
    isa, threads = settings.isa, settings.threads
    hardware = HardwareParams.of_isa(isa, threads)
    own = SearchTask.of_dag(dag, Target.for_toolchain("native", threads=threads), hardware)
    option = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    task = SearchTask(own.dag, own.target, hardware, own.workload_key, option)
    draft = DraftModel(Machine.of_isa(isa, threads))
    model = TimedModel.of(MODELS[settings.model](draft))
    space = SpaceOptions(micro_kernels=isa) if settings.has_default else SpaceOptions()
    seeds = (default_state(dag, isa, threads),) if settings.has_default else ()
    began, start = time.time(), time.perf_counter()
    with nullcontext(workers) if workers else PoolMeasurer.open(isa, workers=threads) as pool:
        measurer = TimedMeasurer(pool, began)
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


def state_of(dag: ComputeDAG, winner: str) -> LoopState:
    """The schedule that a search kept."""
    return LoopState.replay(dag, map(step_from_json, json.loads(winner)))


def run_of(
    dag: ComputeDAG, state: LoopState, settings: SearchSettings, inputs: Mapping[str, Any]
) -> tuple[Run, npt.NDArray[np.float32]]:
    """A call of the kernel of a schedule, and where its result will be."""
    found = with_state(dag, state)
    return called(found, loaded(found, settings.isa), inputs, settings.threads)
