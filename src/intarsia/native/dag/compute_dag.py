"""A computation as a graph of tensor operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from intarsia.native.dag.flop_count import flop_count
from intarsia.native.dag.loop_name import loop_name
from intarsia.native.dag.op_order import default_order
from intarsia.native.dag.print_dag import dag_text
from intarsia.native.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from intarsia.support.errors import UsageError


@dataclass(frozen=True, eq=False)
class ComputeDAG:
    """What is computed, without any decision about how (seed ansor_minimum).

    Attributes:
        tensors: What the caller passes and gets: placeholders and results.
        ops: Every operation that the results need, each after what it reads. Its place is its stage's number.

    Raises:
        UsageError: Two operations have one name, or two axes of an operation, or a given tensor is not among
            the operations.
    """

    tensors: tuple[Tensor, ...]
    ops: tuple[Operation, ...] = field(default=())

    def __post_init__(self) -> None:
        """Find the operations where only tensors are given, and check names."""
        object.__setattr__(self, "tensors", tuple(self.tensors))
        object.__setattr__(self, "ops", tuple(self.ops) or default_order(self.tensors))
        _check_names(self.ops)
        _check_complete(self.tensors, self.ops)

    @cached_property
    def placeholders(self) -> tuple[Tensor, ...]:
        """What is given, in the order of the operations, whether or not `tensors` lists it."""
        return tuple(Tensor(op) for op in self.ops if isinstance(op, PlaceholderOp))

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """What is computed for the caller, whoever else reads it.

        First what `tensors` lists, in its order, then the results of operations that nobody reads and of
        which nothing is listed.
        """
        listed = [tensor for tensor in self.tensors if not isinstance(tensor.op, PlaceholderOp)]
        known = {tensor.op for tensor in listed} | {tensor.op for op in self.ops for tensor in op.inputs}
        rest = [op for op in self.ops if op not in known and not isinstance(op, PlaceholderOp)]
        return (*dict.fromkeys(listed), *(Tensor(op, i) for op in rest for i in range(len(op.buffers))))

    @cached_property
    def op_ids(self) -> Mapping[Operation, int]:
        """The place of each operation in `ops`."""
        return MappingProxyType({op: place for place, op in enumerate(self.ops)})

    @cached_property
    def readers(self) -> Mapping[Operation, tuple[Operation, ...]]:
        """Who reads each operation's results, in the order of the operations."""
        found: dict[Operation, list[Operation]] = {op: [] for op in self.ops}
        for op in self.ops:
            for producer in dict.fromkeys(tensor.op for tensor in op.inputs):
                found[producer].append(op)
        return MappingProxyType({op: tuple(readers) for op, readers in found.items()})

    def is_output(self, op: Operation) -> bool:
        """Whether the caller gets a result of it."""
        return op in self._output_ops

    @cached_property
    def _output_ops(self) -> frozenset[Operation]:
        return frozenset(tensor.op for tensor in self.outputs)

    @cached_property
    def flop_ct(self) -> int:
        """The number of floating-point operations; -1 if it is not known."""
        return flop_count(self.ops)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle operations in order, so that long chains do not nest."""
        return _unpickled, (self.ops, self.tensors)

    def __str__(self) -> str:
        return dag_text(self.ops)


def _unpickled(ops: tuple[Operation, ...], tensors: tuple[Tensor, ...]) -> ComputeDAG:
    return ComputeDAG(tensors, ops)


def _check_names(ops: Iterable[Operation]) -> None:
    seen: set[str] = set()
    for op in ops:
        if op.name in seen:
            help_text = "give each operation a name of its own"
            raise UsageError(f"two operations are named {op.name}; expected different names", help=help_text)
        seen.add(op.name)
        if isinstance(op, ComputeOp):
            _check_axes(op)


def _check_axes(op: ComputeOp) -> None:
    names = [loop_name(axis.name) for axis in (*op.axes, *op.reduce_axes)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        text = f"operation {op.name}: several axes are named {', '.join(twice)}"
        raise UsageError(text, help="rename axes; `.` and `@` count as `_`")


def _check_complete(tensors: Iterable[Tensor], ops: tuple[Operation, ...]) -> None:
    places = {op: place for place, op in enumerate(ops)}
    for tensor in tensors:
        if tensor.op not in places:
            raise UsageError(f"tensor {tensor.buffer.name} is no result of the operations given")
    for op in ops:
        for tensor in op.inputs:
            if places.get(tensor.op, len(ops)) >= places[op]:
                raise UsageError(
                    f"operation {op.name} reads {tensor.buffer.name}, which is not computed before"
                )
