"""Declaring tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from intarsia.ir import DType
from intarsia.ir.attributes import NO_ATTRS, Attrs, AttrValue
from intarsia.ir.prim_func import Buffer, Statement
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.expression import Expression
from intarsia.native.te.iter_var import IterKind, IterVar
from intarsia.native.te.tensor import ComputeOp, ExternOp, PlaceholderOp, Tensor
from intarsia.support.errors import UsageError

Element: TypeAlias = Expression | Reduction | Sequence[Expression]
"""What an element is: a value, a reduction, or a value for each of several tensors."""

_LETTERS = "ijklmnop"


def placeholder(
    shape: Sequence[int],
    dtype: DType = DType.FLOAT32,
    name: str = "placeholder",
    attrs: Mapping[str, AttrValue] = NO_ATTRS,
) -> Tensor:
    """A tensor that is given."""
    return Tensor(PlaceholderOp(name, tuple(shape), dtype, Attrs(attrs)))


def reduce_axis(extent: int, name: str) -> IterVar:
    """An axis to reduce over; with extent 0 the result is the neutral element."""
    return IterVar(name, extent, IterKind.REDUCTION)


def compute(
    shape: Sequence[int],
    element: Callable[..., Element],
    name: str = "compute",
    axis_names: Sequence[str] = (),
    attrs: Mapping[str, AttrValue] = NO_ATTRS,
) -> Tensor:
    """A tensor by a function from indices to an element.

    Args:
        shape: Extents, outermost first; () is a scalar.
        element: Called once, with an int64 expression a dimension.
        name: Unique among the operations of a DAG.
        axis_names: Names of the axes; without, i, j, k, l ...
        attrs: Facts for the scheduler.

    Raises:
        UsageError: The element is several values (`compute_many`), or axes have one name twice.
    """
    (found,) = compute_many(shape, element, name, axis_names, attrs, count=1)
    return found


def compute_many(
    shape: Sequence[int],
    element: Callable[..., Element],
    name: str = "compute",
    axis_names: Sequence[str] = (),
    attrs: Mapping[str, AttrValue] = NO_ATTRS,
    count: int | None = None,
) -> tuple[Tensor, ...]:
    """As `compute`, for an element of several values: tensors of one shape, made together.

    Raises:
        UsageError: Not `count` values, or axes have one name twice.
    """
    names = tuple(axis_names) or tuple(_default_names(len(shape)))
    if len(names) != len(shape):
        raise UsageError(f"{name}: found {len(names)} names of axes; expected {len(shape)}")
    axes = tuple(IterVar(each, extent) for each, extent in zip(names, shape, strict=True))
    made = element(*(axis.expression for axis in axes))
    reduction = made if isinstance(made, Reduction) else None
    values = _values(made)
    reduce_axes = reduction.axes if reduction is not None else ()
    _check_names(name, [each.name for each in (*axes, *reduce_axes)])
    if count is not None and len(values) != count:
        raise UsageError(f"{name}: an element is {len(values)} values; expected {count}")
    op = ComputeOp(
        name,
        axes,
        reduce_axes,
        tuple(value.scalar for value in values),
        reduction.combiner if reduction is not None else None,
        tuple(value.dtype for value in values),
        tuple(dict.fromkeys(tensor for value in values for tensor in value.tensors)),
        Attrs(attrs),
    )
    return tuple(Tensor(op, position) for position in range(len(values)))


def extern(
    buffers: Sequence[Buffer], inputs: Sequence[Tensor], body: Statement, name: str
) -> tuple[Tensor, ...]:
    """Tensors written by a loop statement.

    Args:
        buffers: Where they are; named `name`, or `name`.v0, `name`.v1 ...
        inputs: What the statement reads.
        body: Reads the inputs' buffers and writes every element of `buffers`.
        name: Unique among the operations of a DAG.
    """
    op = ExternOp(name, tuple(buffers), body, tuple(dict.fromkeys(inputs)))
    return tuple(Tensor(op, position) for position in range(len(op.buffers)))


def _values(made: Element) -> tuple[Expression, ...]:
    match made:
        case Expression():
            return (made,)
        case Reduction():
            return made.sources
        case _:
            return tuple(made)


def _check_names(name: str, names: Sequence[str]) -> None:
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise UsageError(f"{name}: several axes are named {', '.join(twice)}")


def _default_names(rank: int) -> list[str]:
    return [_LETTERS[i] if i < len(_LETTERS) else f"i{i}" for i in range(rank)]
