"""The schedule search of one task with default components."""

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
from intarsia.autoschedule.policy.gpu_policy import gpu_policy
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.policy.sketch_policy import SketchPolicy
from intarsia.autoschedule.policy.tuning_options import TuningOptions
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.autoschedule.task.facts_here import facts_here
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state
from intarsia.support.errors import UsageError


class SearchPolicy(Protocol):
    """Searches schedules of one task (Ansor; seed ansor_minimum); implements TaskTuner for the scheduler."""

    @property
    def best_state(self) -> LoopState | None:
        """Schedule with the least measured cost; None while none works."""

    @property
    def best_cost(self) -> float:
        """Cost of the best schedule in seconds; inf while none works."""

    @property
    def trials(self) -> int:
        """Number of measured schedules."""

    def search(self, options: TuningOptions) -> LoopState | None:
        """Search until the options end it; return the best schedule, or None if none works."""

    def tune_round(self, n: int) -> Sequence[float]:
        """Measure up to `n` schedules; return the seconds of each, inf for a failure."""


def tune(
    task: SearchTask,
    options: TuningOptions,
    policy: SearchPolicy | None = None,
    *,
    log: Path | None = None,
    on_measured: Sequence[OnMeasured] = (),
    seed: int = 0,
) -> LoopState | None:
    """Search a schedule of a task on this machine, or on its GPU (SearchTask.tune of TVM).

    Args:
        task: Search task.
        options: Limits of trials and time.
        policy: Search policy; None for a `usual_policy` or `gpu_policy` with worker processes.
        log: A v0.6 log that measurements are appended to. Its records of the task count: they are not
            measured
            again, and are deducted from the trials.
        on_measured: Callbacks that are called with each round's measurements.
        seed: Random seed of the usual policy.

    Returns:
        The best schedule; None if none works.

    Raises:
        UsageError: A policy is given together with a log or callbacks, which belong to the policy.
        DatabaseError: The log is damaged.
    """
    if policy is not None:
        if log is not None or on_measured:
            raise UsageError(
                "a log or callbacks were given beside a policy", help="pass them to the policy instead"
            )
        return policy.search(options)
    callbacks = list(on_measured)
    if log is not None:
        callbacks.append(RecordToFile(log))
    isa = Isa.host()
    with PoolMeasurer.open(isa, on_measured=callbacks) as measurer:
        default_policy = (
            gpu_policy(task, measurer, facts_here(), seed=seed, on_confirmed=callbacks)
            if task.hardware.is_gpu
            else usual_policy(task, measurer, isa, seed=seed, on_confirmed=callbacks)
        )
        preloaded = default_policy.preload(load_records(log)) if log is not None and log.exists() else 0
        return default_policy.search(options.after(preloaded))


def usual_policy(
    task: SearchTask,
    measurer: ScheduleMeasurer,
    isa: Isa,
    options: PolicyOptions | None = None,
    space: SpaceOptions | None = None,
    model: CostModel | None = None,
    seed: int = 0,
    on_confirmed: Sequence[OnMeasured] = (),
) -> SketchPolicy:
    """Create a sketch policy with a learned model, a draft model, and the default schedule as its seed.

    Args:
        task: Search task.
        measurer: Measurer of schedules.
        isa: Instruction set of the machine that runs the kernels.
        options: Options of the policy.
        space: Limits of the space; None for the default limits with micro-kernels.
        model: Cost model; None for `usual_model`. Tasks of one network share their model.
        seed: Random seed of the search.
        on_confirmed: Callbacks that are called with the finalists' measurements, the winner's marked.
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
        on_confirmed=on_confirmed,
        draft=DraftModel(machine),
    )
