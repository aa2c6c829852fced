"""Searching a schedule of one task with what is usual."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Protocol

from intarsia.autoschedule.cost_model import CostModel, DraftModel, usual_model
from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.measuring import (
    OnMeasured,
    PoolMeasurer,
    RecordToFile,
    ScheduleMeasurer,
    load_records,
)
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.policy.sketch_policy import SketchPolicy
from intarsia.autoschedule.policy.tuning_options import TuningOptions
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state
from intarsia.support.errors import UsageError


class SearchPolicy(Protocol):
    """Searches schedules of one task (Ansor; seed ansor_minimum); for a task scheduler it is a TaskTuner."""

    @property
    def best_state(self) -> LoopState | None:
        """The schedule with the least measured cost; None while none works."""

    @property
    def best_cost(self) -> float:
        """Its cost in seconds; inf while none works."""

    @property
    def trials(self) -> int:
        """How many schedules were measured."""

    def search(self, options: TuningOptions) -> LoopState | None:
        """Search until the options end it; the best schedule, or None if none works."""

    def tune_round(self, n: int) -> Sequence[float]:
        """Measure up to `n` schedules; seconds of each, inf for a failure, none where nothing is left."""


def tune(
    task: SearchTask,
    options: TuningOptions,
    policy: SearchPolicy | None = None,
    *,
    log: Path | None = None,
    on_measured: Sequence[OnMeasured] = (),
    seed: int = 0,
) -> LoopState | None:
    """Search a schedule of a task on this machine (the field's SearchTask.tune).

    Args:
        task: What is searched.
        options: How much is spent.
        policy: What searches; else a `usual_policy` with worker processes.
        log: A v0.6 log that measurements are appended to. What it has of the task counts: it is not measured
            again, and its trials are part of those that may be spent.
        on_measured: Told of each measurement.
        seed: Of the usual policy.

    Returns:
        The best schedule; None if none works.

    Raises:
        UsageError: A policy is given and a log, or who is told: those are for the policy to have.
        DatabaseError: The log is damaged.
    """
    if policy is not None:
        if log is not None or on_measured:
            raise UsageError("a policy that is given has its own log and callbacks", help="give them to it")
        return policy.search(options)
    told = list(on_measured)
    if log is not None:
        told.append(RecordToFile(log))
    isa = Isa.host()
    with PoolMeasurer.open(isa, on_measured=told) as measurer:
        usual = usual_policy(task, measurer, isa, seed=seed)
        known = usual.preload(load_records(log)) if log is not None and log.exists() else 0
        return usual.search(options.after(known))


def usual_policy(
    task: SearchTask,
    measurer: ScheduleMeasurer,
    isa: Isa,
    options: PolicyOptions | None = None,
    space: SpaceOptions | None = None,
    model: CostModel | None = None,
    seed: int = 0,
) -> SketchPolicy:
    """The sketch policy with a learned model, a draft before it, and the default schedule as seed.

    Args:
        task: What is searched.
        measurer: Measures programs.
        isa: Of the machine that kernels run on.
        options: How it searches.
        space: What is searched; else with the micro-kernels of the machine.
        model: Ranks programs; else `usual_model`. Tasks of one model of a network share theirs.
        seed: Decides everything that is drawn.
    """
    threads = task.hardware.num_cores
    machine = Machine.of_isa(isa, threads)
    return SketchPolicy(
        task,
        usual_model(machine) if model is None else model,
        measurer,
        options,
        SpaceOptions(micro_kernels=isa) if space is None else space,
        Random(seed),  # noqa: S311 - a search, no secrets
        seeds=[default_state(task.dag, isa, threads)],
        draft=DraftModel(machine),
    )
