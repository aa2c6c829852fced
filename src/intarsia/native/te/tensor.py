"""Tensors, and the operations that declare them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from intarsia.ir import DType
from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.prim_func import Buffer, Load, Scalar, Statement
from intarsia.native.te.combiner import Combiner
from intarsia.native.te.expression import Expression, literal
from intarsia.native.te.iter_var import IterVar
from intarsia.support.errors import UsageError
from intarsia.support.post_order import post_order_of


@dataclass(frozen=True, slots=True, eq=False)
class PlaceholderOp:
    """The operation of a tensor that is an input.

    Attributes:
        name: Unique among the operations of a DAG.
        shape: Extents, outermost first.
        dtype: Element type.
        attrs: Facts such as that it is constant.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    attrs: Attrs = NO_ATTRS

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Nothing is read."""
        return ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffer of the tensor."""
        return (Buffer(self.name, self.shape, self.dtype),)


@dataclass(frozen=True, slots=True, eq=False)
class ComputeOp:
    """Tensors of one shape, declared by what their elements are.

    Attributes:
        name: Unique among the operations of a DAG.
        axes: One spatial axis for each dimension; their variables stand in the bodies.
        reduce_axes: Axes that the bodies are combined over, in loop order; () if there is no combiner.
        bodies: The element of each tensor, or with a combiner what is combined.
        combiner: Combiner of a reduction; None for other operations.
        inputs: Tensors that the bodies read, each once.
        attrs: Facts for schedulers, such as `layout_free_placeholders` (names of what it reads).
    """

    name: str
    axes: tuple[IterVar, ...]
    reduce_axes: tuple[IterVar, ...]
    bodies: tuple[Scalar, ...]
    combiner: Combiner | None
    dtypes: tuple[DType, ...]
    inputs: tuple[Tensor, ...]
    attrs: Attrs = NO_ATTRS

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the spatial axes."""
        return tuple(axis.extent for axis in self.axes)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers of the tensors: "name", or "name.v0", "name.v1" ... if there are several."""
        return tuple(
            Buffer(name, self.shape, dtype)
            for name, dtype in zip(output_names(self.name, len(self.dtypes)), self.dtypes, strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ExternOp:
    """Tensors written by a loop statement, for operators that are no function of one element, such as CumSum.

    Attributes:
        name: Unique among the operations of a DAG.
        buffers: Buffers of the tensors.
        body: Statement that reads the buffers of the inputs and writes each element of its own.
        inputs: Tensors that the statement reads, each once.
        attrs: Facts.
    """

    name: str
    buffers: tuple[Buffer, ...]
    body: Statement
    inputs: tuple[Tensor, ...]
    attrs: Attrs = NO_ATTRS


Operation: TypeAlias = PlaceholderOp | ComputeOp | ExternOp


@dataclass(frozen=True, slots=True)
class Tensor:
    """A result of an operation; equal if the operation and the position are the same.

    Attributes:
        op: Operation that computes the tensor.
        position: Position among the results of the operation.
    """

    op: Operation
    position: int = 0
    buffer: Buffer = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Find the buffer once."""
        object.__setattr__(self, "buffer", self.op.buffers[self.position])

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, outermost first."""
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.buffer.dtype

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Expression:
        """Return an element; each index is an int64 expression, an axis or a number, and must lie inside.

        Raises:
            UsageError: Their number or types do not fit.
        """
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.shape):
            text = f"tensor {self.buffer.name} has {len(self.shape)} dimensions; found {len(given)} indices"
            raise UsageError(text)
        expressions = tuple(_index(index, self.buffer.name) for index in given)
        tensors = (self, *(tensor for index in expressions for tensor in index.tensors))
        load = Load(self.buffer, tuple(index.scalar for index in expressions))
        return Expression(load, tuple(dict.fromkeys(tensors)))


Index: TypeAlias = Expression | IterVar | int


def output_names(name: str, count: int) -> tuple[str, ...]:
    """Return the names of the buffers of an operation with `count` results."""
    return (name,) if count == 1 else tuple(f"{name}.v{i}" for i in range(count))


def _index(value: Index, name: str) -> Expression:
    if isinstance(value, IterVar):
        return value.expression
    index = literal(value, DType.INT64) if isinstance(value, int) else value
    if index.dtype is not DType.INT64:
        raise UsageError(f"an index of tensor {name} is {index.dtype.value}; expected int64 (use astype)")
    return index


def operations(ops: Iterable[Operation]) -> list[Operation]:
    """Return operations and all that they need, each once and after those that it reads."""
    return list(post_order_of(ops, lambda op: [tensor.op for tensor in op.inputs]))
