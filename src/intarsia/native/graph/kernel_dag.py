"""Graphs of tensor operations for groups of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from intarsia.ir import Attrs, TensorType
from intarsia.ir.rule_errors import named_node
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph.batched_integers import BatchedIntegers, BatchedStep
from intarsia.native.graph.bfloat_matrices import DeclaredPairs, PairProduct
from intarsia.native.graph.bfloat_steps import BfloatStep, PlainBfloats
from intarsia.native.graph.block_steps import BlockStep, PlainBlocks
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.integer_steps import IntegerStep, WordProduct
from intarsia.native.graph.plain_integers import PlainIntegers
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.step_declaration import StepDeclaration
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Tensor, placeholder
from intarsia.native.te.operators import compute, compute_call_of

NarrowStep: TypeAlias = BatchedStep | BfloatStep | BlockStep | IntegerStep | PairProduct | WordProduct
"""A step with a declaration of its own."""


class SourceForm(Enum):
    """Layout in which a kernel reads a value."""

    AS_IT_IS = "as it is"
    """Read the value in any layout."""
    PLAIN = "plain"
    """Read the value in the plain layout of its type."""
    BLOCKED = "blocked"
    """Read the value with channels in blocks."""
    ONE_CHANNEL = "one channel"
    """Read the value with a last axis of extent 1, so that it is broadcast over blocked tensors."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The value or constant that a placeholder reads.

    Attributes:
        number: Number of the value; -1 for an array.
        form: Layout in which the kernel reads it.
        array: Elements of a packed constant.
        order: Order of blocked channels; None for consecutive channels.
    """

    number: int
    form: SourceForm = SourceForm.PLAIN
    array: Array | None = field(default=None, repr=False)
    order: ChannelOrder | None = None


@dataclass(frozen=True, slots=True, eq=False)
class KernelDag:
    """The computation of a group.

    Attributes:
        dag: DAG of the operations; names are local to the group, so that equal groups have equal DAGs.
        sources: Sources of the DAG's placeholders, in order.
    """

    dag: ComputeDAG
    sources: tuple[Source, ...]


def kernel_dag(
    steps: Sequence[KernelStep],
    values: Sequence[RegionValue],
    outputs: Sequence[int],
    declared: Mapping[int, Tensor] = MappingProxyType({}),
    sources: Mapping[Tensor, Source] = MappingProxyType({}),
    shapes: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
    attrs: Mapping[int, Attrs] = MappingProxyType({}),
    constants: Mapping[int, Array] = MappingProxyType({}),
) -> KernelDag:
    """Declare consecutive calls on plain tensors.

    Args:
        steps: Steps in order; a step may read results of earlier steps.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.
        declared: Plain tensors of the group's values that are declared already.
        sources: Sources of the placeholders of `declared`.
        shapes: Other shapes of the same elements, in which the kernel sees some values.
        attrs: Attributes that differ because of these shapes, with all others, by position of the step.
        constants: Other elements of constants, likewise, by number.

    Raises:
        NotCoveredError: A call has no rule, or its rule does not cover it.
    """
    seen = {
        number: replace(values[number], type=TensorType(shape, values[number].type.dtype))
        for number, shape in shapes.items()
    }
    for number, array in constants.items():
        type_ = TensorType(array.shape, values[number].type.dtype)
        seen[number] = replace(values[number], type=type_, constant=array)
    tensors = dict(declared)
    placeholders: dict[int, Tensor] = {}
    packed: dict[Tensor, Source] = {}
    count: Counter[str] = Counter()
    for position, step in enumerate(steps):
        read = [None if arg is None else seen.get(arg, values[arg]) for arg in step.args]
        if isinstance(step, NarrowStep):
            declaration = _declaration(step, step_name(step, count), read, tensors)
            tensors[step.outputs[0]] = declaration.result()
            packed |= {tensor: Source(number) for tensor, number in declaration.numbers.items()}
            packed |= {tensor: Source(-1, array=array) for tensor, array in declaration.arrays.items()}
            continue
        inputs = tuple(
            None if arg is None or value is None else _tensor(arg, value, tensors, placeholders)
            for arg, value in zip(step.args, read, strict=True)
        )
        elements = tuple(None if value is None else _elements(value) for value in read)
        described = compute_call_of(step.call, step_name(step, count))
        if shapes:
            types = tuple(seen.get(number, values[number]).type for number in step.outputs)
            described = replace(described, output_types=types)
        if position in attrs:
            described = replace(described, attrs=described.attrs.updated(**attrs[position]))
        with named_node(step.call):
            results = compute(replace(described, inputs=inputs, constants=elements))
        tensors |= dict(zip(step.outputs, results, strict=True))
    all_sources = {**sources, **packed, **{tensor: Source(number) for number, tensor in placeholders.items()}}
    return with_placeholders(tuple(tensors[number] for number in outputs), all_sources)


def _declaration(
    step: NarrowStep,
    name: str,
    read: Sequence[RegionValue | None],
    tensors: Mapping[int, Tensor],
) -> StepDeclaration:
    match step:
        case BatchedStep():
            return BatchedIntegers(step, name, read, tensors)
        case PairProduct():
            return DeclaredPairs(step, name, read, tensors)
        case BfloatStep():
            return PlainBfloats(step, name, read, tensors)
        case BlockStep():
            return PlainBlocks(step, name, read, tensors)
        case _:
            return PlainIntegers(step, name, read, tensors)


def with_placeholders(results: tuple[Tensor, ...], sources: Mapping[Tensor, Source]) -> KernelDag:
    """Return the kernel of results; the DAG's tensors are the placeholders that it reads, then the results.

    Args:
        results: Tensors that the kernel computes.
        sources: Sources of placeholders, including unused ones.
    """
    dag = ComputeDAG((*ComputeDAG(results).placeholders, *results))
    return KernelDag(dag, tuple(sources[tensor] for tensor in dag.placeholders))


def _elements(value: RegionValue) -> Array | None:
    """Return the elements of a constant in the shape in which the kernel sees it; None for other values."""
    return None if value.constant is None else value.constant.reshape(value.type.static_shape)


def _tensor(
    number: int, value: RegionValue, tensors: Mapping[int, Tensor], placeholders: dict[int, Tensor]
) -> Tensor:
    """Return the tensor of a value: computed by the group, or a placeholder."""
    if number in tensors:
        return tensors[number]
    if number not in placeholders:
        attrs = {} if value.constant is None else {"constant": 1}
        name = f"x{len(placeholders)}" if value.constant is None else f"c{len(placeholders)}"
        placeholders[number] = placeholder(value.type.static_shape, value.type.dtype, name, attrs)
    return placeholders[number]


def step_name(step: KernelStep, count: Counter[str]) -> str:
    """Return the name of the operator, with a number from its second occurrence on."""
    name = step.op.name.lower()
    count[name] += 1
    return name if count[name] == 1 else f"{name}_{count[name]}"
