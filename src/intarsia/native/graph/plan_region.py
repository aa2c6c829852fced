"""Planning of a function's kernels."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Constant, DType, Function, post_order
from intarsia.native.graph.bfloat_region import with_bfloat_steps
from intarsia.native.graph.block_region import with_block_steps
from intarsia.native.graph.blocked_steps import read_plain
from intarsia.native.graph.channel_shuffle import channel_shuffles
from intarsia.native.graph.convolution_algorithm import (
    BY_ESTIMATE,
    ConvolutionAlgorithms,
    transformable_shape,
)
from intarsia.native.graph.cut_values import cut_steps
from intarsia.native.graph.forward_convolutions import with_forward_convolutions
from intarsia.native.graph.fusion_groups import fusion_groups
from intarsia.native.graph.group_key import group_key
from intarsia.native.graph.joined_bytes import with_joined_bytes
from intarsia.native.graph.joined_values import joinable_steps, locate_in_whole
from intarsia.native.graph.kernel_decisions import NO_DECISIONS, KernelDecisions
from intarsia.native.graph.kernel_sequence import KernelSequence, PlannedGroup
from intarsia.native.graph.library_use import NO_LIBRARY, LibraryUse
from intarsia.native.graph.memory_plan import lifetimes
from intarsia.native.graph.quantised_region import with_integer_steps
from intarsia.native.graph.quantised_weights import ByteForms
from intarsia.native.graph.region_plan import RegionPlan, RuleGroup
from intarsia.native.graph.row_products import with_row_products
from intarsia.native.graph.shared_rows import with_shared_rows
from intarsia.native.graph.step_kind import step_kind
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.graph.weight_storage import WeightStorage, WeightStore
from intarsia.native.graph.wide_halves import few_rows, with_wide_halves
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.relative_costs import RelativeCosts, relative_costs
from intarsia.support.arena import plan_arena_by_size

_BFLOAT_SHARE: Final = 0.5
"""Share of the time of direct sums in float32 that sums of bfloat16 numbers take, by one instruction."""
_WIDENED_SHARE: Final = 0.6
"""The share that sums of bytes in 16 bits take. Measured are 0.68 to 0.75 (1x1 of 128 to 1,024 channels as
Zen 3, `benchmarks.integer_layers --avx2` on Zen 4); but transforms of many channels and few pixels take
longer than estimated, 1.0 for 0.64 (512 channels of 7x7)."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of the planner.

    Attributes:
        blocked: Whether convolutions, and pools and elementwise operators after them, work on tensors with
            channels in blocks of a vector. Their weights are packed in the plan.
        fused: Whether consecutive operators are fused into one kernel where possible.
        convolutions: Algorithms of convolutions that Winograd can compute.
        weights: Storage type of the weights of memory-bound matrix products.
        attention: Whether the products of attention and the softmax between them become one kernel, if
            `fused`.
        libraries: Products that a library computes; they are fused with nothing.
        decisions: Decisions on single fusion groups, in place of the rules.
        threads: Number of threads that will run the kernels, by which estimates share the memory.
        in_place: Whether Concat and Slice are computed in place where possible, without a kernel.
        narrows: Whether convolutions and products of float32 multiply bfloat16 numbers.
        has_channel_words: Whether convolutions of bytes on plain tensors are summed by words of channels.
        widens_halves: Whether convolutions and products of float16 are computed in float32.
    """

    blocked: bool = True
    fused: bool = True
    convolutions: ConvolutionAlgorithms = BY_ESTIMATE
    weights: WeightStorage = WeightStorage.F32
    attention: bool = True
    libraries: LibraryUse = NO_LIBRARY
    decisions: KernelDecisions = NO_DECISIONS
    threads: int = 1
    in_place: bool = True
    narrows: bool = False
    has_channel_words: bool = False
    widens_halves: bool = True


def plan_region(function: Function, isa: Isa, options: PlanOptions | None = None) -> RegionPlan:
    """Plan the kernels of a function whose operators all have native kernels.

    Linear in the function, but for the memory plan, and the packing of weights.

    Args:
        function: Typed function with static shapes; calls of operators, tuples, constants, lets, and
            composite functions called in place.
        isa: Instruction set that the kernels will run on.
        options: Options of the planner; defaults if not given.

    Raises:
        CompileError: A call has no native kernel; the message has the operator and the reason.
    """
    chosen = options or PlanOptions()
    alignment = max(isa.vector_bytes, isa.machine.line_bytes)
    lanes = _lanes(isa, chosen)
    stored = weight_bytes(function)
    costs = relative_costs(isa, chosen.threads, stored)
    of_bytes = _is_transformed(costs, chosen, _share_of_bytes(isa), 0.0 if isa.has_int8_dot else 1.0)
    of_pairs = _BFLOAT_SHARE if isa.has_bf16_dot else 1.0
    of_bfloats = _is_transformed(costs, chosen, of_pairs, of_pairs)
    given = with_joined_bytes(with_forward_convolutions(with_row_products(StraightLine.of(function))))
    blocks = with_block_steps(given, lanes, has_dot=isa.has_int8_dot)
    forms = ByteForms(lanes, isa.has_int8_dot, chosen.has_channel_words)
    integers = with_integer_steps(blocks, forms, of_bytes)
    wide = with_wide_halves(integers, few_rows(isa, stored)) if chosen.widens_halves else integers
    line = with_bfloat_steps(wide, lanes, of_bfloats, narrows=chosen.narrows, has_dot=isa.has_bf16_dot)
    sequence = _empty_sequence(line, isa, chosen, alignment, costs)
    rule_groups = _add_groups(sequence, line, chosen)
    results = sequence.plain_results(line.results)
    sequence.drop_unneeded(results)
    if chosen.threads > 1:
        sequence.kernels = with_shared_rows(
            sequence.kernels, sequence.values, sequence.joined, sequence.cut, isa, chosen.threads
        )
    arena, size = _arena(sequence, results, alignment)
    return RegionPlan(
        tuple(sequence.values), tuple(sequence.kernels), line.params, results, arena, size, rule_groups, costs
    )


def weight_bytes(function: Function) -> int:
    """Return the bytes of all constants of a function, each counted once."""
    constants = {expr for expr in post_order(function) if isinstance(expr, Constant)}
    return sum(constant.data.nbytes for constant in constants)


def _empty_sequence(
    line: StraightLine, isa: Isa, options: PlanOptions, alignment: int, costs: RelativeCosts
) -> KernelSequence:
    """Return a sequence without kernels for the values of a region."""
    lanes = _lanes(isa, options)
    return KernelSequence(
        list(line.values),
        lanes,
        alignment,
        options.convolutions,
        WeightStore(options.weights, isa.caches, costs),
        options.libraries,
        read_plain(line) if lanes else frozenset(),
        costs=costs,
    )


def _lanes(isa: Isa, options: PlanOptions) -> int:
    """Return the number of channels of a block; 0 to block nothing."""
    return isa.vector_bytes // DType.FLOAT32.numpy.itemsize if options.blocked else 0


def _share_of_bytes(isa: Isa) -> float:
    """Return the share of the time of direct sums in float32 that sums of bytes take; 0 for no transforms."""
    if isa.has_int8_dot:
        return 0.0
    return _WIDENED_SHARE if isa.architecture == "x86_64" else 1.0


def _is_transformed(
    costs: RelativeCosts, options: PlanOptions, share: float, grouped: float
) -> Callable[[Call], bool]:
    """Return the predicate of convolutions that Winograd's transforms compute faster than narrow numbers.

    Where one instruction sums products of bytes, integers are faster than any transform. Elsewhere transforms
    take 0.3 of the time of direct convolutions in float32 (AVX2, 64 to 128 channels).
    Transforms in float32 take 0.7 of the time of direct sums of bfloat16 numbers in one instruction where
    estimates make them 0.41 to 0.44 of that in float32, and 1.02 of it at 0.66 (Zen 5, 64 to 256 channels).

    Args:
        costs: Costs of the machine.
        options: Options of the planner.
        share: Share of the time of direct sums in float32 that narrow numbers take; 0 for none transformed.
        grouped: The share of convolutions of several groups.
    """

    def is_transformed(call: Call) -> bool:
        shape = transformable_shape(call) if share else None
        if shape is None:
            return False
        of_shape = share if shape.groups == 1 else grouped
        return options.convolutions.is_faster_in_floats(shape, costs, of_shape)

    return is_transformed


def _add_groups(sequence: KernelSequence, line: StraightLine, options: PlanOptions) -> dict[str, RuleGroup]:
    """Add a kernel for each fusion group, or compute it in place where it only joins, cuts or permutes.

    Returns:
        Groups of the fusion rules by their keys.
    """
    joined = joinable_steps(line) if options.in_place else frozenset()
    shuffles = channel_shuffles(line) if sequence.lanes else {}
    cut = cut_steps(line, sorted(joined)) if options.in_place else {}
    special = {line.steps[position].outputs[0]: position for position in (*joined, *cut, *shuffles)}
    called = [
        position
        for position, step in enumerate(line.steps)
        if options.libraries.product(step, line.values) is not None
    ]
    alone = {*special.values(), *called} if options.fused else range(len(line.steps))
    by_rule = fusion_groups(line, alone, attention=options.attention)
    keys = [group_key(steps, line.values) for steps in by_rule]
    for steps, group in _decided_groups(line, alone, options, by_rule, keys):
        position, in_place = special.get(steps[-1].outputs[0], -1), group.decision.in_place
        if in_place and position in joined and sequence.join_in_place(steps[-1]):
            continue
        if in_place and position in cut and sequence.cut_in_place(steps[-1], cut[position]):
            continue
        if not in_place or position not in shuffles or not sequence.permute_in_place(shuffles[position]):
            sequence.add(steps, group)
    return dict(zip(reversed(keys), map(_rule_group, reversed(by_rule)), strict=True))


def _decided_groups(
    line: StraightLine,
    alone: Container[int],
    options: PlanOptions,
    by_rule: Sequence[tuple[KernelStep, ...]],
    keys: Sequence[str],
) -> list[tuple[tuple[KernelStep, ...], PlannedGroup]]:
    """Return the fusion groups in an executable order, each with its keys and the decision on it.

    Args:
        line: The region.
        alone: Numbers of steps that are not fused.
        options: Options of the planner.
        by_rule: Groups without decisions.
        keys: Keys of these.
    """
    if not options.decisions.change_groups:
        groups = zip(by_rule, keys, strict=True)
        return [(steps, PlannedGroup(key, key, options.decisions.of(key))) for steps, key in groups]
    rule_keys = {number: key for steps, key in zip(by_rule, keys, strict=True) for number in _written(steps)}
    stored = _stored_steps(line, by_rule, keys, options.decisions)
    merged = _merged_steps(line, by_rule, keys, options.decisions)
    decided = []
    for steps in fusion_groups(line, alone, attention=options.attention, stored=stored, merged=merged):
        key, rule_key = group_key(steps, line.values), rule_keys[steps[-1].outputs[0]]
        decided.append((steps, PlannedGroup(key, rule_key, options.decisions.of(key))))
    return decided


def _stored_steps(
    line: StraightLine,
    groups: Sequence[Sequence[KernelStep]],
    keys: Sequence[str],
    decisions: KernelDecisions,
) -> frozenset[int]:
    """Return the numbers of the steps at which decisions end a kernel."""
    position_of = {step: position for position, step in enumerate(line.steps)}
    return frozenset(
        position_of[steps[border]]
        for steps, key in zip(groups, keys, strict=True)
        for border in decisions.of(key).borders
        if border < len(steps)
    )


def _merged_steps(
    line: StraightLine,
    groups: Sequence[Sequence[KernelStep]],
    keys: Sequence[str],
    decisions: KernelDecisions,
) -> frozenset[int]:
    """Return the numbers of the last steps of the groups that decisions merge with their readers."""
    position_of = {step: position for position, step in enumerate(line.steps)}
    merged = (steps for steps, key in zip(groups, keys, strict=True) if decisions.of(key).merge)
    return frozenset(position_of[steps[-1]] for steps in merged)


def _rule_group(steps: Sequence[KernelStep]) -> RuleGroup:
    anchors = tuple(position for position, step in enumerate(steps) if step_kind(step).has_loops)
    return RuleGroup(tuple(step.call for step in steps), anchors)


def _written(steps: Sequence[KernelStep]) -> list[int]:
    return [number for step in steps for number in step.outputs]


def _arena(
    sequence: KernelSequence, results: tuple[int, ...], alignment: int
) -> tuple[Mapping[int, int], int]:
    """Return the arena offsets of the values that kernels write, without results, and the arena's size."""
    values = sequence.values
    written = {number for kernel in sequence.kernels for number in kernel.outputs}
    computed = written | sequence.joined.keys() | sequence.cut.keys()
    returned = {values[number].same_as for number in results}
    part_offsets = sequence.part_offsets
    locations = {number: locate_in_whole(part_offsets, number) for number in sorted(computed - returned)}
    wholes = {number: whole for number, (whole, _) in locations.items()}
    alive = lifetimes(sequence.kernels, values, wholes)
    plan = plan_arena_by_size(list(alive.values()), alignment)
    offsets = dict(zip(alive, plan.offsets, strict=True))
    return {
        number: offsets[whole] + begin for number, (whole, begin) in locations.items() if whole in offsets
    }, plan.size
