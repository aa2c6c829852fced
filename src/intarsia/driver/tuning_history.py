"""The winners of earlier runs, which a run without a budget applies without measuring candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from intarsia.collage.placement.partitioned import partitioned
from intarsia.collage.placement.placement import KIND
from intarsia.collage.placement.plan import Plan
from intarsia.driver.accuracy import Accuracy
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.prediction import keep_trace, predict
from intarsia.tune.trace import Trace
from intarsia.tune.tuned_candidate import decisions_of, tuned_candidate

PREDICTION_SECONDS: Final = 60.0
"""Seconds from which the patience with building and verifying a predicted program follows."""

_WHOLE: Final = "PartitionWhole"
_PLACEMENT: Final = "placement"


def refuse_searches(plan: Path | None, **choices: object) -> None:
    """Refuse options of searches in a run without a budget.

    Args:
        plan: File of a plan, or None.
        choices: Requested options by name; None for those that were not requested.

    Raises:
        UsageError: A plan is given, or an option was requested.
    """
    requested = [name for name, choice in {"plan": plan, **choices}.items() if choice is not None]
    if requested:
        raise UsageError(
            f"a budget of 0 searches nothing, so that it takes no {requested[0]}",
            help="give a budget, or drop that option",
        )


@dataclass(frozen=True, slots=True)
class TuningHistory:
    """The best programs of earlier runs.

    Attributes:
        database: Database of the runs, or None.
        host: This machine.
        targets: Targets that runs may choose from.
        accuracy: Accuracy that runs must keep.
    """

    database: Database | None
    host: Host
    targets: Sequence[Target]
    accuracy: Accuracy

    def keep(self, mod: IRModule, plan: Plan) -> None:
        """Store the winner of a run, unless an earlier winner was at least as fast.

        Args:
            mod: The model.
            plan: The winner, with its latency.

        Raises:
            DatabaseError: It cannot be stored.
        """
        if self.database is not None and plan.measured_seconds is not None:
            keep_trace(trace_of(mod, plan), self._scope, self.host, self.database)

    def plan_of(self, mod: IRModule, on_note: Callable[[str], object]) -> Plan:
        """Return the best decisions for a model of this structure, as a plan.

        Args:
            mod: The model.
            on_note: Function that is called with a sentence on what is applied.

        Raises:
            UsageError: No earlier run has tuned a model of this structure for these targets.
        """
        trace = Trace(mod) if self.database is None else predict(mod, self._scope, self.host, self.database)
        if not trace.steps:
            raise UsageError(
                "no earlier run has tuned a model of this structure for these targets on this machine",
                help="tune it once with a budget and a database",
            )
        on_note(f"applying {trace.size} decisions of an earlier run; nothing is searched")
        return plan_of_trace(trace, str(mod.attrs.get("name", "model")), self.host)

    @property
    def _scope(self) -> str:
        return "; ".join((*map(str, self.targets), repr(self.accuracy)))


def trace_of(mod: IRModule, plan: Plan) -> Trace:
    """Return a plan as a trace whose last decision is the placement.

    Args:
        mod: The model.
        plan: Plan of the model.
    """
    trace = Trace(mod)
    for text, choice in plan.decisions:
        name, _, decision = text.partition(": ")
        trace.add(Instruction(name, {decision: choice}), decision)
    if plan.whole is not None:
        placing = Choice(_WHOLE, {"target": str(plan.whole)})
        trace.add(Instruction(_PLACEMENT, {plan.summary: placing}), plan.summary)
    elif plan.placement.partitions:
        placing = Choice(partitioned, {"partitions": plan.placement.candidate.trace})
        trace.add(Instruction(_PLACEMENT, {plan.summary: placing}), plan.summary)
    trace.perf = plan.measured_seconds
    return trace


def plan_of_trace(trace: Trace, model: str, host: Host) -> Plan:
    """Return a trace that `trace_of` made as a plan of its program.

    Args:
        trace: The trace.
        model: Name of the model.
        host: This machine.
    """
    decisions = decisions_of(trace)
    base, target = AS_IT_IS, REFERENCE_TARGET
    if trace.steps[-1].instruction.name == _PLACEMENT:
        placing = trace.steps[-1].instruction.choice(trace.steps[-1].decision)
        decisions = decisions[:-1]
        if placing.transform == _WHOLE:
            base, target = WHOLE, Target.parse(str(placing.args["target"]))
        else:
            base = Candidate(KIND, placing.args["partitions"])
    return Plan.of_candidate(
        trace.in_mod,
        tuned_candidate(decisions, base),
        target,
        model=model,
        host=host,
        measured_seconds=trace.perf,
    )
