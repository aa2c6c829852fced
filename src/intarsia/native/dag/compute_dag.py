"""A computation as a graph of tensor operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from intarsia.native.dag.flop_count import flop_count, products_of_lane
from intarsia.native.dag.loop_name import loop_name
from intarsia.native.dag.op_order import default_order
from intarsia.native.dag.print_dag import dag_text
from intarsia.native.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from intarsia.support.errors import UsageError


@dataclass(frozen=True, eq=False)
class ComputeDAG:
    """A computation, without any decision on its schedule (seed ansor_minimum).

    Attributes:
        tensors: Tensors that the caller passes and receives: placeholders and results.
        ops: Every operation that the results need, in topological order. Its index is the number of its
            stage.

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
        """The placeholders in the order of the operations, listed in `tensors` or not."""
        return tuple(Tensor(op) for op in self.ops if isinstance(op, PlaceholderOp))

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that are computed for the caller, read by other operations or not.

        First the results in `tensors`, in its order, then the results of operations without readers that
        `tensors` does not mention.
        """
        listed = [tensor for tensor in self.tensors if not isinstance(tensor.op, PlaceholderOp)]
        listed_or_read = {tensor.op for tensor in listed} | {
            tensor.op for op in self.ops for tensor in op.inputs
        }
        rest = [op for op in self.ops if op not in listed_or_read and not isinstance(op, PlaceholderOp)]
        return (*dict.fromkeys(listed), *(Tensor(op, i) for op in rest for i in range(len(op.buffers))))

    @cached_property
    def op_ids(self) -> Mapping[Operation, int]:
        """The index of each operation in `ops`."""
        return MappingProxyType({op: op_id for op_id, op in enumerate(self.ops)})

    @cached_property
    def readers(self) -> Mapping[Operation, tuple[Operation, ...]]:
        """The operations that read each operation's results, in the order of `ops`."""
        readers_by_op: dict[Operation, list[Operation]] = {op: [] for op in self.ops}
        for op in self.ops:
            for producer in dict.fromkeys(tensor.op for tensor in op.inputs):
                readers_by_op[producer].append(op)
        return MappingProxyType({op: tuple(readers) for op, readers in readers_by_op.items()})

    def is_output(self, op: Operation) -> bool:
        """Return whether a result of the operation is an output."""
        return op in self._output_ops

    @cached_property
    def _output_ops(self) -> frozenset[Operation]:
        return frozenset(tensor.op for tensor in self.outputs)

    @cached_property
    def flop_ct(self) -> int:
        """Number of floating-point operations; -1 if unknown."""
        return flop_count(self.ops)

    @property
    def lane_flop_ct(self) -> int:
        """Number of operations if a dot of words is one product, as some machines have it as one instruction.

        A roofline of multiply-adds in float32 bounds the time of these from below; 0 or less if unknown.
        """
        return -(-self.flop_ct // products_of_lane(self.ops))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle operations in order: recursion along long chains would exceed the interpreter's limit."""
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
    op_ids = {op: op_id for op_id, op in enumerate(ops)}
    for tensor in tensors:
        if tensor.op not in op_ids:
            raise UsageError(f"tensor {tensor.buffer.name} is no result of the operations given")
    for op in ops:
        for tensor in op.inputs:
            if op_ids.get(tensor.op, len(ops)) >= op_ids[op]:
                raise UsageError(
                    f"operation {op.name} reads {tensor.buffer.name}, which is not computed before"
                )
