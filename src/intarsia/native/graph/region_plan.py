"""Plans of regions: kernels in order, the values between them, and their memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from intarsia.ir import Call, TensorType
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.library_product import LibraryProduct
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class RegionValue:
    """A tensor of a region; its number is its index in the plan's list.

    Attributes:
        type: Tensor type with a static shape.
        constant: Elements of a constant, C-contiguous and not copied; None for other values.
        same_as: Number of the value with the same memory, in the same order of elements; the value's own
            number if it has separate memory. Never a chain: the named value has separate memory.
        order: Order of its channels in blocks (te.operators.blocked_layout); None for a plain layout.
            Parameters and results of a region are plain.
    """

    type: TensorType
    same_as: int
    constant: Array | None = field(default=None, repr=False)
    order: ChannelOrder | None = None

    @property
    def lanes(self) -> int:
        """Number of channels of a block; 0 for a plain layout."""
        return self.order.lanes if self.order else 0

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape that kernels use: (N, blocks, spatial ..., lanes) if blocked, else the type's.

        A kernel may use the same elements with fewer dimensions.
        """
        shape = self.type.static_shape
        if self.order is None:
            return shape
        return (shape[0], self.order.blocks, *shape[2:], self.order.lanes)

    @property
    def size_bytes(self) -> int:
        """Size of its elements in bytes, with the padding of the last block."""
        return math.prod(self.stored_shape) * self.type.dtype.numpy.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class KernelPlan:
    """A call of a kernel.

    Attributes:
        dag: Computation of the kernel. Calls of equal kernels have the same object.
        inputs: Number of the value that each placeholder reads, by the name of the placeholder.
        constants: Elements of each constant placeholder, C-contiguous, by name. `inputs` and `constants`
            together contain each of `dag.placeholders` once.
        outputs: Number of the value that each of `dag.outputs` is written to; each has separate memory.
        name: Operators, and the beginning of the DAG's key; the same for equal DAGs.
        product: Call of a library that computes the DAG; None if loops do.
        group: Key of the fusion group that it computes, or for which it converts a layout; "" for results.
        rule_group: Key of the group that the rules would make of its last step, without a decision.
        threads: Number of threads that it is compiled for; None for those of the region.
        nodes: Names of the nodes of the source that it computes, from the spans of their calls.
        is_conversion: Whether it copies a value into another layout, which no node of the source says.
    """

    dag: ComputeDAG
    inputs: Mapping[str, int]
    constants: Mapping[str, Array] = field(repr=False)
    outputs: tuple[int, ...]
    name: str
    product: LibraryProduct | None = None
    group: str = ""
    rule_group: str = ""
    threads: int | None = None
    nodes: tuple[str, ...] = ()
    is_conversion: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RuleGroup:
    """A fusion group as the rules make it.

    Attributes:
        calls: Calls of its operators, in order.
        anchors: Positions of those with loops of their own: convolutions, products, reductions.
    """

    calls: tuple[Call, ...]
    anchors: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """A region as a table of kernels.

    Attributes:
        values: Tensors of the region.
        kernels: Kernels in the order in which they run.
        params: Numbers of the parameters, in order.
        results: Numbers of the results, in order, tuples flattened; a value may occur twice, and may be a
            parameter or a constant.
        arena: Offsets in the arena, in bytes, of roots that are neither parameters nor results. Roots overlap
            if they are not live at the same time, or if one is a part of the other: the arguments of a Concat
            are often written in place, without a kernel.
        arena_bytes: Size of the arena, in bytes.
        rule_groups: Groups that the rules make, without decisions on borders, by key.
        costs: Costs of the machine by which algorithms were estimated.
    """

    values: tuple[RegionValue, ...]
    kernels: tuple[KernelPlan, ...]
    params: tuple[int, ...]
    results: tuple[int, ...]
    arena: Mapping[int, int]
    arena_bytes: int
    rule_groups: Mapping[str, RuleGroup] = field(default_factory=dict, repr=False)
    costs: RelativeCosts = REFERENCE_COSTS

    def root(self, value: int) -> int:
        """Return the number of the value whose memory a value shares."""
        return self.values[value].same_as

    @cached_property
    def written_results(self) -> Mapping[int, int]:
        """Index of the first result that shares the memory of each root that a kernel writes.

        The kernel writes into the caller's buffer.
        """
        written = {value for kernel in self.kernels for value in kernel.outputs}
        first_results: dict[int, int] = {}
        for position, value in enumerate(self.results):
            if self.root(value) in written:
                first_results.setdefault(self.root(value), position)
        return MappingProxyType(first_results)

    @cached_property
    def copied_results(self) -> tuple[tuple[int, int], ...]:
        """Results that no kernel writes: pairs (position, number of the root to copy from).

        The root is a parameter, a constant, or one of `written_results`.
        """
        written = set(self.written_results.values())
        return tuple(
            (position, self.root(value))
            for position, value in enumerate(self.results)
            if position not in written
        )
