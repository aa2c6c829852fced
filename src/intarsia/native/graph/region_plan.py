"""What a region runs: kernels in order, the values between them, and where these are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from intarsia.ir import TensorType
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph.channel_order import ChannelOrder

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class RegionValue:
    """A tensor of a region; its number is its place in the plan's list.

    Attributes:
        type: With a static shape.
        constant: Its elements, C-contiguous, if they are known when the region is planned. Nothing is copied.
        same_as: The number of the value whose memory it is, in the same order of elements; its own number if
            it has memory of its own. Never a chain: what is named there has memory of its own.
        order: How its channels lie in blocks (te.operators.blocked_layout); None if the layout is plain.
            Parameters and results of a region are plain.
    """

    type: TensorType
    same_as: int
    constant: Array | None = field(default=None, repr=False)
    order: ChannelOrder | None = None

    @property
    def lanes(self) -> int:
        """How many channels lie side by side; 0 if the layout is plain."""
        return self.order.lanes if self.order else 0

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape that kernels see: (N, blocks, spatial ..., lanes) if blocked, else the type's.

        A kernel may see the same elements with fewer dimensions.
        """
        shape = self.type.static_shape
        if self.order is None:
            return shape
        return (shape[0], self.order.blocks, *shape[2:], self.order.lanes)

    @property
    def size_bytes(self) -> int:
        """How much memory its elements take, with those that fill the last block."""
        return math.prod(self.stored_shape) * self.type.dtype.numpy.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class KernelPlan:
    """One call of a kernel.

    Attributes:
        dag: What it computes. Calls of equal kernels have the same object.
        inputs: By the name of a placeholder of the DAG, the number of the value it reads.
        constants: By the name of a placeholder, its elements, C-contiguous. `inputs` and `constants` together
            name each of `dag.placeholders` once.
        outputs: For each of `dag.outputs`, the number of the value it writes; each has memory of its own.
        name: The operators, and the beginning of the DAG's key: the same for equal DAGs.
    """

    dag: ComputeDAG
    inputs: Mapping[str, int]
    constants: Mapping[str, Array] = field(repr=False)
    outputs: tuple[int, ...]
    name: str


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """A region as a table of kernels.

    Attributes:
        values: Every tensor.
        kernels: In the order in which they run.
        params: The value of each parameter, in order.
        results: The value of each result, in order, tuples flattened; one may stand there twice, and may be a
            parameter or a constant.
        arena: For roots that are neither given nor returned, where they begin in the arena, in bytes. They
            overlap if they are not needed at the same time, or if one is a part of the other: what is put
            together by Concat is often written where it belongs, and needs no kernel.
        arena_bytes: How large the arena is.
    """

    values: tuple[RegionValue, ...]
    kernels: tuple[KernelPlan, ...]
    params: tuple[int, ...]
    results: tuple[int, ...]
    arena: Mapping[int, int]
    arena_bytes: int

    def root(self, value: int) -> int:
        """The number of the value whose memory a value is."""
        return self.values[value].same_as

    @cached_property
    def written_results(self) -> Mapping[int, int]:
        """By the number of a value that a kernel writes (a root), the first result that it is the memory of.

        The kernel writes into the caller's buffer.
        """
        made = {value for kernel in self.kernels for value in kernel.outputs}
        found: dict[int, int] = {}
        for position, value in enumerate(self.results):
            if self.root(value) in made:
                found.setdefault(self.root(value), position)
        return MappingProxyType(found)

    @cached_property
    def copied_results(self) -> tuple[tuple[int, int], ...]:
        """Results that no kernel writes: (position, number of the root) of what is copied there at the end.

        The root is a parameter, a constant, or one of `written_results`.
        """
        written = set(self.written_results.values())
        return tuple(
            (position, self.root(value))
            for position, value in enumerate(self.results)
            if position not in written
        )
