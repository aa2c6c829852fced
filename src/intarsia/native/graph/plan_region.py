"""From a function to its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intarsia.ir import DType, Function
from intarsia.native.graph.channel_shuffle import channel_shuffles
from intarsia.native.graph.convolution_algorithm import BY_ESTIMATE, ConvolutionAlgorithms
from intarsia.native.graph.cut_values import cut_steps
from intarsia.native.graph.fusion_groups import fusion_groups
from intarsia.native.graph.joined_values import joinable_steps, within
from intarsia.native.graph.kernel_sequence import KernelSequence
from intarsia.native.graph.memory_plan import lifetimes
from intarsia.native.graph.region_plan import RegionPlan
from intarsia.native.graph.straight_line import StraightLine
from intarsia.native.graph.weight_storage import WeightStorage, WeightStore
from intarsia.native.machine.isa import Isa
from intarsia.support.arena import plan_arena_by_size

_CACHE_LINE = 64


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a region is planned.

    Attributes:
        blocked: Whether convolutions, and pools and elementwise operators behind them, work on tensors with
            neighbouring channels side by side, a vector of them. Their weights are packed in the plan.
        fused: Whether operators that follow each other become one kernel where that is possible.
        convolutions: The algorithms of those that can be computed in several ways.
        weights: In which type weights are stored that matrix products wait for.
        attention: Whether the products of attention and the softmax between them become one kernel, if
            operators are fused at all.
    """

    blocked: bool = True
    fused: bool = True
    convolutions: ConvolutionAlgorithms = BY_ESTIMATE
    weights: WeightStorage = WeightStorage.F32
    attention: bool = True


def plan_region(function: Function, isa: Isa, options: PlanOptions | None = None) -> RegionPlan:
    """The kernels of a function whose calls are of operators with native kernels.

    Linear in the function, but for the memory plan, and the packing of weights.

    Args:
        function: Typed, with static shapes; calls of operators, tuples, constants, lets, and composite
            functions called in place.
        isa: What the kernels will run on.
        options: The default if not given.

    Raises:
        CompileError: A call has no native kernel; the message names the operator and why.
    """
    chosen = options or PlanOptions()
    line, alignment = StraightLine.of(function), max(isa.vector_bytes, _CACHE_LINE)
    lanes = isa.vector_bytes // DType.FLOAT32.numpy.itemsize if chosen.blocked else 0
    store = WeightStore(chosen.weights)
    sequence = KernelSequence(list(line.values), lanes, alignment, chosen.convolutions, store)
    joined, shuffles = joinable_steps(line), channel_shuffles(line) if lanes else {}
    cut = cut_steps(line, sorted(joined))
    special = {line.steps[place].outputs[0]: place for place in (*joined, *cut, *shuffles)}
    alone = special.values() if chosen.fused else range(len(line.steps))
    for steps in fusion_groups(line, alone, attention=chosen.attention):
        place = special.get(steps[-1].outputs[0], -1)
        if place in joined and sequence.join(steps[-1]):
            continue
        if place in cut and sequence.take(steps[-1], cut[place]):
            continue
        if place not in shuffles or not sequence.permute(shuffles[place]):
            sequence.add(steps)
    results = tuple(map(sequence.plain, line.results))
    sequence.drop_unneeded(results)
    arena, size = _arena(sequence, results, alignment)
    return RegionPlan(tuple(sequence.values), tuple(sequence.kernels), line.params, results, arena, size)


def _arena(
    sequence: KernelSequence, results: tuple[int, ...], alignment: int
) -> tuple[Mapping[int, int], int]:
    """Where what kernels write is, apart from results of the region, and how large the arena is."""
    values = sequence.values
    written = {number for kernel in sequence.kernels for number in kernel.outputs}
    made = written | sequence.joined.keys() | sequence.cut.keys()
    returned = {values[number].same_as for number in results}
    places = sequence.places
    found = {number: within(places, number) for number in sorted(made - returned)}
    wholes = {number: whole for number, (whole, _) in found.items()}
    alive = lifetimes(sequence.kernels, values, wholes)
    plan = plan_arena_by_size(list(alive.values()), alignment)
    offsets = dict(zip(alive, plan.offsets, strict=True))
    return {
        number: offsets[whole] + begin for number, (whole, begin) in found.items() if whole in offsets
    }, plan.size
