"""Baselines: each toolchain alone, which every run measures, so that the result is never slower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from intarsia.collage.candidates.optimize_for import PREFIX, optimize_for
from intarsia.ir import IRModule, Op, TensorType, post_order
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.judge.accuracy import error_bound
from intarsia.measure.judge.definition_cost import is_small
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.native.machine.isa import Isa
from intarsia.support.errors import CompileError, MissingToolchainError, UsageError
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.target.reference import REFERENCE
from intarsia.toolchain import (
    Available,
    availability_on,
    cpu_toolchains,
    toolchain_for,
    usable_toolchains,
)
from intarsia.toolchain.native.batches.batch_source import ANY_SIZE, USUAL_SIZES_TEXT, prefers_any_size
from intarsia.toolchain.native.toolchain import Native
from intarsia.tune.choice import Choice
from intarsia.tune.contest.candidate_record import Status
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.passes.tune_pipeline import pipeline
from intarsia.tune.tuned_candidate import tuned_candidate

_PRECISION: Final = "inference_precision"
NARROW_OPTIONS: Final = {"openvino": _PRECISION, "native": "multiply_in"}
"""Options of toolchains by which they multiply float32 as bfloat16."""
_BF16: Final = frozenset({"avx512bf16", "amx-bf16", "bf16"})
"""Features of CPUs on which OpenVINO's default precision is bfloat16."""


def baseline_targets(
    targets: Sequence[Target | str] | Target | str | None, threads: int | None
) -> tuple[Target, ...]:
    """Return the targets of the baselines; by default also unusable toolchains, to report the reason.

    Raises:
        UsageError: There is no target, or one names no toolchain.
    """
    if targets is None:
        chosen = [Target.for_toolchain(name) for name in cpu_toolchains()]
    else:
        listed = [targets] if isinstance(targets, Target | str) else targets
        chosen = [item if isinstance(item, Target) else Target.of_text(item) for item in listed]
    if not chosen:
        raise UsageError(
            "the list of targets is empty", help="pass at least one target, or None for all toolchains"
        )
    unnamed = [str(target) for target in chosen if target.toolchain is None]
    if unnamed:
        raise UsageError(
            f"the target {unnamed[0]!r} names no toolchain",
            help='write for example "cpu -toolchain=openvino"',
        )
    if threads is not None:
        chosen = [target.with_options(threads=threads) for target in chosen]
    return tuple(dict.fromkeys(chosen))


def baselines(workload: Workload, targets: Sequence[Target]) -> list[Entrant]:
    """Return the entrants that run the whole model on each target.

    Where a toolchain's preamble changes the model, the changed model is an entrant as well.
    """
    is_quick = is_small(workload.module)
    entrants = []
    for target in targets:
        refusal, status = "", Status.UNAVAILABLE
        try:
            toolchain_for(target)
        except MissingToolchainError as error:
            refusal = f"{error.problem} ({error.help})" if error.help else error.problem
        if target.toolchain == REFERENCE and not is_quick and len(targets) > 1:
            refusal, status = "not tried: it takes far too long on a model of this size", Status.SLOW
        entrants.append(Entrant(whole_name(target), MeasureInput(workload, target, WHOLE), refusal, status))
        entrants += [] if refusal else [*_any_batch(workload, target), *_optimized(workload, target)]
    return entrants


def default_precision_entrants(workload: Workload, targets: Sequence[Target]) -> list[Entrant]:
    """Return OpenVINO in the precision that its users get, if errors beyond rounding are allowed.

    On a CPU with bfloat16 instructions its default is bfloat16, 1.7 to 2.5 times as fast as float32; whoever
    compares with OpenVINO as it comes compares with this. Native in the same precision stands beside it.
    """
    if error_bound(workload.module) is None or not has_bfloat16():
        return []
    usable = {status.name for status in usable_toolchains()}
    return [
        Entrant(
            f"{whole_name(target)} (default precision)" if option == _PRECISION else whole_name(narrow),
            MeasureInput(workload, narrow, WHOLE),
        )
        for target in targets
        for option in (NARROW_OPTIONS.get(str(target.toolchain)),)
        if target.kind == DeviceType.CPU.kind
        if option is not None and target.toolchain in usable and not target.option(option)
        for narrow in (target.with_options(**{option: "bfloat16"}),)
    ]


def has_bfloat16() -> bool:
    """Return whether this CPU has instructions for products of bfloat16 numbers."""
    try:
        return not _BF16.isdisjoint(Isa.host_without_compiler().features)
    except CompileError:  # no x86
        return False


def _any_batch(workload: Workload, target: Target) -> list[Entrant]:
    """Return native with the form of code for batches that it does not have by default.

    There is code that reads the size of the batch, and code for a few sizes. The former runs any size at
    once, the latter has code for exactly the sizes that are met most often: which one is faster depends on
    the model and on the sizes.
    """
    is_for_cpus = target.kind == DeviceType.CPU.kind
    if not is_for_cpus or target.toolchain != Native.name or target.option("batches") is not None:
        return []
    if not _has_any_batch(workload.module):
        return []
    operators = (node.name for node in post_order(workload.module["main"]) if isinstance(node, Op))
    other = target.with_options(batches=USUAL_SIZES_TEXT if prefers_any_size(operators) else ANY_SIZE)
    return [Entrant(whole_name(other), MeasureInput(workload, other, WHOLE))]


def _has_any_batch(module: IRModule) -> bool:
    """Return whether the first axis of a parameter, and no other one, is symbolic."""
    types = [param.checked_type for param in module["main"].params]
    shapes = [type_.shape for type_ in types if isinstance(type_, TensorType) and type_.shape is not None]
    inner = [dim for shape in shapes for dim in shape[1:]]
    first = [shape[0] for shape in shapes if shape]
    return all(isinstance(dim, int) for dim in inner) and not all(isinstance(dim, int) for dim in first)


def _optimized(workload: Workload, target: Target) -> list[Entrant]:
    """Return the model after the preamble of a target's toolchain as an entrant, if that changes it."""
    toolchain_name, mod = str(target.toolchain), workload.module
    after = optimize_for(mod, toolchain_name)
    if after is mod:
        return []
    name = f"{PREFIX}{toolchain_name}"
    candidate = tuned_candidate(((f"pipeline: {name}", Choice(pipeline, {"name": name})),), WHOLE)
    return [Entrant(f"{whole_name(target)} optimized", MeasureInput(workload, target, candidate))]


def whole_name(target: Target) -> str:
    """Return the name of the whole-program candidate of a target: its toolchain and its options."""
    options = " ".join(f"{key}={value}" for key, value in target.options)
    return f"{target.toolchain_text} {options}".strip()


def engines(targets: Sequence[Target]) -> list[Target]:
    """Return the targets that partitions can run on; the reference is always the fallback."""
    return [
        target
        for target in targets
        if target.toolchain not in {None, REFERENCE}
        and isinstance(availability_on(str(target.toolchain), target.kind), Available)
    ]


def without_slower(targets: Sequence[Target], seconds: Callable[[Target], float]) -> list[Target]:
    """Return the targets, with only the faster one of native with and without schedule records.

    Args:
        targets: Targets that may run partitions.
        seconds: Function from a target to the whole model's latency in seconds; infinite if it does not run.
    """
    best: dict[Target, Target] = {}
    for target in targets:
        plain = target.with_options(schedules=None)
        fastest = best.setdefault(plain, target)
        if seconds(target) < seconds(fastest):
            best[plain] = target
    return list(best.values())
