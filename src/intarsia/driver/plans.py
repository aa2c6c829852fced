"""Plans in a tuning run: a stored plan is a candidate, and the winner is stored as a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from intarsia.collage.placement.plan import Plan
from intarsia.collage.placement.uncovered import calls_text, uncovered_calls
from intarsia.collage.search_by_measured_sums import SearchedPartitions
from intarsia.driver.baselines import whole_name
from intarsia.ir import IRModule
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.support.errors import UsageError
from intarsia.support.free_names import free_name
from intarsia.target import Host
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.tune.contest.entrant import Entrant, candidate_key


def refuse_choices(plan: Path | None, **choices: object) -> None:
    """Refuse options that contradict a locked run, which builds a plan without any choice.

    Args:
        plan: The file of the plan.
        choices: Requested options by name; None for those that were not requested.

    Raises:
        UsageError: There is no plan, or an option was requested.
    """
    if plan is None:
        raise UsageError("a locked run needs a plan", help="pass the file of a plan: --plan FILE")
    requested = [name for name, choice in choices.items() if choice is not None]
    if requested:
        raise UsageError(
            f"a locked run takes no {requested[0]}: the plan fixes it",
            help="drop that option, or run without --locked to search again",
        )


def read_plan(
    path: Path | None,
    module: IRModule,
    host: Host,
    on_note: Callable[[str], None] | None,
    *,
    must_exist: bool = False,
) -> Plan | None:
    """Read the plan of a file, if it exists, and check that it fits the program and this machine.

    Args:
        path: File of the plan, or None.
        module: The program.
        host: This machine.
        on_note: Function that is called with notes: the plan is from another machine, or leaves operators to
            the reference.
        must_exist: Whether a missing file is an error.

    Raises:
        PlanError: The plan is damaged, for another program, or missing.
        MissingToolchainError: The plan needs a toolchain that is not usable here.
    """
    if path is None or not (must_exist or path.exists()):
        return None
    plan = Plan.read(path)
    plan.check(module, str(path))
    if plan.host_digest != host.digest and on_note is not None:
        on_note(f"the plan {path} was made on another machine, or with other toolchains ({plan.cpu})")
    left = uncovered_calls(module, plan.candidate) if plan.whole is None and on_note is not None else ()
    if left and on_note is not None:
        on_note(f"the plan {path} has no toolchain for {calls_text(left)}, which the reference runs, slowly")
    return plan


def plan_entrant(workload: Workload, plan: Plan, others: Sequence[Entrant]) -> Entrant | None:
    """Return a plan as an entrant; None if one of the others is the same program."""
    if plan.whole is not None:
        name = f"{whole_name(plan.whole)}{' tuned' if plan.decisions else ''}"
        entrant = Entrant(name, MeasureInput(workload, plan.whole, plan.candidate))
    else:
        name = free_name(plan.placement.summary, [other.name for other in others], " ({})", 2)
        entrant = Entrant(name, MeasureInput(workload, REFERENCE_TARGET, plan.candidate))
    is_known = any(candidate_key(other.input) == entrant.key for other in others)
    return None if is_known else entrant


def winning_plan(
    winner: Entrant, model: str, host: Host, seconds: float | None, searched: SearchedPartitions | None
) -> Plan:
    """Return the winner as a plan.

    Args:
        winner: Winner of the contest.
        model: Name of the model.
        host: This machine.
        seconds: Measured latency of the winner, if there is one.
        searched: Result of the search for partitions, if there was one.
    """
    item = winner.input
    return Plan.of_candidate(
        item.workload.module,
        item.candidate,
        item.target,
        model=model,
        host=host,
        predicted_seconds=None if searched is None else searched.predicted_seconds(item.candidate),
        measured_seconds=seconds,
    )
