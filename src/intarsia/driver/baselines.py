"""Each toolchain alone: the candidates that every run measures, and that the result is never worse than."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.driver.entrant import Entrant
from intarsia.driver.records import Status
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.judge.definition_cost import is_small
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE
from intarsia.toolchain import installed_toolchains, toolchain, usable_toolchains


def baseline_targets(targets: Sequence[Target | str] | None, threads: int | None) -> tuple[Target, ...]:
    """The candidates' targets; without a request, those that are unusable here take part to say why.

    Raises:
        UsageError: There is none, or one names no toolchain.
    """
    if targets is None:
        chosen = [Target.for_toolchain(status.name) for status in installed_toolchains()]
    else:
        chosen = [item if isinstance(item, Target) else Target.parse(item) for item in targets]
    if not chosen:
        raise UsageError(
            "there is no target to tune for", help="pass at least one, or none for all toolchains"
        )
    unnamed = [str(target) for target in chosen if target.toolchain is None]
    if unnamed:
        raise UsageError(
            f"the target {unnamed[0]!r} names no toolchain", help='such as "cpu -toolchain=openvino"'
        )
    if threads is not None:
        chosen = [target.with_options(threads=threads) for target in chosen]
    return tuple(dict.fromkeys(chosen))


def baselines(workload: Workload, targets: Sequence[Target]) -> list[Entrant]:
    """The whole model on each target."""
    is_quick = is_small(workload.module)
    entrants = []
    for target in targets:
        refusal, status = "", Status.UNAVAILABLE
        try:
            toolchain(str(target.toolchain))
        except MissingToolchainError as error:
            refusal = f"{error.problem} ({error.help})" if error.help else error.problem
        if target.toolchain == REFERENCE and not is_quick and len(targets) > 1:
            refusal, status = "not tried: it takes far too long on a model of this size", Status.SLOW
        entrants.append(Entrant(whole_name(target), MeasureInput(workload, target, WHOLE), refusal, status))
    return entrants


def whole_name(target: Target) -> str:
    """What the whole model on a target is called: the toolchain, and the target's options if it has any."""
    options = " ".join(f"{key}={value}" for key, value in target.options)
    return f"{target.toolchain} {options}".strip()


def engines(targets: Sequence[Target]) -> list[Target]:
    """Those that can be given parts of a model; the reference is the last resort in any case."""
    usable = {each.name for each in usable_toolchains()} - {REFERENCE}
    return [target for target in targets if target.toolchain in usable]


def without_slower(targets: Sequence[Target], seconds: Callable[[Target], float]) -> list[Target]:
    """The targets, but of native with a book and without one only the faster.

    Args:
        targets: Who may run parts of a model.
        seconds: What the whole model takes on a target; infinite if it does not run.
    """
    best: dict[Target, Target] = {}
    for each in targets:
        plain = each.with_options(schedules=None)
        known = best.setdefault(plain, each)
        if seconds(each) < seconds(known):
            best[plain] = each
    return list(best.values())
