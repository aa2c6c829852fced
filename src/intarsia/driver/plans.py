"""Plans in a tuning run: one that was kept takes part, and the winner is kept as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from intarsia.collage.placement.plan import Plan
from intarsia.driver.baselines import whole_name
from intarsia.driver.entrant import Entrant, candidate_key
from intarsia.driver.partition import SearchedPartitions, placement_entrant
from intarsia.ir import IRModule
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.support.errors import UsageError
from intarsia.target import Host


def refuse_choices(plan: Path | None, **choices: object) -> None:
    """A locked run carries a plan out as it is: it needs one, and nothing is left to choose.

    Args:
        plan: The file of the plan.
        choices: What was asked for by name; None for what was not.

    Raises:
        UsageError: There is no plan, or something was asked for.
    """
    if plan is None:
        raise UsageError("a locked run needs a plan", help="give the file of one: --plan FILE")
    asked = [name for name, choice in choices.items() if choice is not None]
    if asked:
        raise UsageError(
            f"a locked run takes no {asked[0]}: the plan says all of it",
            help="leave that out, or run without --locked to search again",
        )


def kept_plan(
    path: Path | None,
    module: IRModule,
    host: Host,
    on_note: Callable[[str], None] | None,
    *,
    must_exist: bool = False,
) -> Plan | None:
    """The plan of a file, if there is one; it fits the program, and its toolchains are usable here.

    Args:
        path: The file.
        module: The program.
        host: This machine.
        on_note: Told if the plan was made on another machine.
        must_exist: Whether it is an error if there is none.

    Raises:
        PlanError: It is damaged, or for another program; or it is missing.
        MissingToolchainError: It needs a toolchain that is not usable here.
    """
    if path is None or not (must_exist or path.exists()):
        return None
    plan = Plan.read(path)
    plan.check(module, str(path))
    if plan.host_digest != host.digest and on_note is not None:
        on_note(f"the plan {path} was made on another machine, or with other toolchains ({plan.cpu})")
    return plan


def plan_entrant(workload: Workload, plan: Plan, others: Sequence[Entrant]) -> Entrant | None:
    """A plan as a candidate for the whole model; None if one of the others is the same program."""
    if plan.whole is not None:
        name = f"{whole_name(plan.whole)}{' tuned' if plan.decisions else ''}"
        entrant = Entrant(name, MeasureInput(workload, plan.whole, plan.candidate))
    else:
        placed = placement_entrant(workload, plan.placement, [each.name for each in others])
        entrant = replace(placed, input=replace(placed.input, candidate=plan.candidate))
    is_known = any(candidate_key(each.input) == entrant.key for each in others)
    return None if is_known else entrant


def winning_plan(
    winner: Entrant, model: str, host: Host, seconds: float | None, searched: SearchedPartitions | None
) -> Plan:
    """The winner as a plan.

    Args:
        winner: Who won.
        model: Name of the model.
        host: This machine.
        seconds: What the whole took.
        searched: What the search has found, if there was one.
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
