"""From a function to its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intarsia.ir import DType, Function
from intarsia.native.graph.fusion_groups import fusion_groups
from intarsia.native.graph.joined_values import JoinedValues
from intarsia.native.graph.kernel_sequence import KernelSequence
from intarsia.native.graph.memory_plan import lifetimes, plan_memory
from intarsia.native.graph.region_plan import RegionPlan
from intarsia.native.graph.straight_line import StraightLine
from intarsia.native.llvm.isa import Isa

_CACHE_LINE = 64


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a region is planned.

    Attributes:
        blocked: Whether convolutions, and pools and elementwise operators behind them, work on tensors with
            neighbouring channels side by side, a vector of them. Their weights are packed in the plan.
    """

    blocked: bool = True


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
    sequence = KernelSequence(list(line.values), lanes)
    joined = JoinedValues.of(line, alignment)
    wholes = {line.steps[place].outputs[0] for place in joined.steps}
    for steps in fusion_groups(line, joined.steps):
        if steps[-1].outputs[0] not in wholes or not sequence.join(steps[-1]):
            sequence.add(steps)
    results = tuple(map(sequence.plain, line.results))
    sequence.drop_unneeded(results)
    arena, size = _arena(sequence, results, joined.only(sequence.joined), alignment)
    return RegionPlan(tuple(sequence.values), tuple(sequence.kernels), line.params, results, arena, size)


def _arena(
    sequence: KernelSequence, results: tuple[int, ...], joined: JoinedValues, alignment: int
) -> tuple[Mapping[int, int], int]:
    """Where what kernels write is, apart from results of the region, and how large the arena is."""
    values = sequence.values
    made = {number for kernel in sequence.kernels for number in kernel.outputs} | sequence.joined.keys()
    returned = {values[number].same_as for number in results}
    within = {number: joined.within(number) for number in sorted(made - returned)}
    wholes = {number: whole for number, (whole, _) in within.items()}
    offsets, size = plan_memory(lifetimes(sequence.kernels, values, wholes), alignment)
    return {
        number: offsets[whole] + begin for number, (whole, begin) in within.items() if whole in offsets
    }, size
