"""A group of calls as one graph of tensor operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from intarsia.ir.rule_errors import named_node
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import Step
from intarsia.native.te import Tensor, placeholder
from intarsia.native.te.operators import compute, compute_call_of


class SourceForm(Enum):
    """In which layout a kernel reads a value."""

    AS_IT_IS = "as it is"
    """Whatever layout it has."""
    PLAIN = "plain"
    """As its type says."""
    BLOCKED = "blocked"
    """With channels in blocks."""
    ONE_CHANNEL = "one channel"
    """With an axis of extent 1 behind the others, so that it is stretched over blocked tensors."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What a placeholder is.

    Attributes:
        number: Of the value; -1 if it is an array.
        form: Its layout.
        array: A packed constant.
        order: Of the channels, if they are in blocks; None for one after the other.
    """

    number: int
    form: SourceForm = SourceForm.PLAIN
    array: Array | None = field(default=None, repr=False)
    order: ChannelOrder | None = None


@dataclass(frozen=True, slots=True, eq=False)
class KernelDag:
    """What a group computes.

    Attributes:
        dag: The operations; names are the group's own, so that equal groups make equal DAGs.
        sources: What each of the DAG's placeholders is.
    """

    dag: ComputeDAG
    sources: tuple[Source, ...]


def kernel_dag(
    steps: Sequence[Step],
    values: Sequence[RegionValue],
    outputs: Sequence[int],
    declared: Mapping[int, Tensor] = MappingProxyType({}),
    sources: Mapping[Tensor, Source] = MappingProxyType({}),
) -> KernelDag:
    """The rules of calls applied one after another, on plain tensors.

    Args:
        steps: In order; a step may read what those before it make.
        values: All values of the region.
        outputs: Numbers of values that the steps make and that others need.
        declared: Values of the group that other rules have made, plain.
        sources: What their placeholders are.

    Raises:
        NotCoveredError: A call has no rule, or its rule does not cover it.
    """
    made = dict(declared)
    given: dict[int, Tensor] = {}
    count: Counter[str] = Counter()
    for step in steps:
        inputs = tuple(None if arg is None else _tensor(arg, values, made, given) for arg in step.args)
        constants = tuple(None if arg is None else values[arg].constant for arg in step.args)
        described = compute_call_of(step.call, step_name(step, count))
        with named_node(step.call):
            results = compute(replace(described, inputs=inputs, constants=constants))
        made |= dict(zip(step.outputs, results, strict=True))
    found = {**sources, **{tensor: Source(number) for number, tensor in given.items()}}
    return with_placeholders(tuple(made[number] for number in outputs), found)


def with_placeholders(results: tuple[Tensor, ...], sources: Mapping[Tensor, Source]) -> KernelDag:
    """The DAG of results, whose tensors are the placeholders that it reads, then the results.

    Args:
        results: What is computed.
        sources: What the placeholders are; of some nothing may be read.
    """
    dag = ComputeDAG((*ComputeDAG(results).placeholders, *results))
    return KernelDag(dag, tuple(sources[tensor] for tensor in dag.placeholders))


def _tensor(
    number: int, values: Sequence[RegionValue], made: Mapping[int, Tensor], given: dict[int, Tensor]
) -> Tensor:
    """The tensor of a value: one that the group makes, or a placeholder."""
    if number in made:
        return made[number]
    if number not in given:
        value = values[number]
        attrs = {} if value.constant is None else {"constant": 1}
        name = f"x{len(given)}" if value.constant is None else f"c{len(given)}"
        given[number] = placeholder(value.type.static_shape, value.type.dtype, name, attrs)
    return given[number]


def step_name(step: Step, count: Counter[str]) -> str:
    """The operator, with a number from the second one on."""
    name = step.op.name.lower()
    count[name] += 1
    return name if count[name] == 1 else f"{name}_{count[name]}"
