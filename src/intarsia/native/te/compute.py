"""Declarations of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
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
"""An element: a value, a reduction, or a value for each of several tensors."""

_LETTERS = "ijklmnop"


def placeholder(
    shape: Sequence[int],
    dtype: DType = DType.FLOAT32,
    name: str = "placeholder",
    attrs: Mapping[str, AttrValue] = NO_ATTRS,
) -> Tensor:
    """Declare a tensor that is an input."""
    return Tensor(PlaceholderOp(name, tuple(shape), dtype, Attrs(attrs)))


def reduce_axis(extent: int, name: str) -> IterVar:
    """Declare an axis to reduce over; with extent 0 the result is the neutral element."""
    return IterVar(name, extent, IterKind.REDUCTION)


def compute(
    shape: Sequence[int],
    element: Callable[..., Element],
    name: str = "compute",
    axis_names: Sequence[str] = (),
    attrs: Mapping[str, AttrValue] = NO_ATTRS,
) -> Tensor:
    """Declare a tensor by a function from indices to an element.

    Args:
        shape: Extents, outermost first; () is a scalar.
        element: Function of an int64 expression for each dimension. It is called once, or twice if an
            argument has the name of an axis of its reduction.
        name: Name that is unique among the operations of a DAG.
        axis_names: Names of the axes; without, those of the function's arguments, if it has one for each
            dimension, else i, j, k, l ...
        attrs: Facts for the scheduler.

    Raises:
        UsageError: The element is several values (`compute_many`), or axes have one name twice.
    """
    (tensor,) = compute_many(shape, element, name, axis_names, attrs, count=1)
    return tensor


def compute_many(
    shape: Sequence[int],
    element: Callable[..., Element],
    name: str = "compute",
    axis_names: Sequence[str] = (),
    attrs: Mapping[str, AttrValue] = NO_ATTRS,
    count: int | None = None,
) -> tuple[Tensor, ...]:
    """Declare tensors of one shape by a function from indices to several values (see `compute`).

    Raises:
        UsageError: Not `count` values, or axes have one name twice.
    """
    letters = tuple(axis_names) or tuple(_default_names(len(shape)))
    if len(letters) != len(shape):
        raise UsageError(f"{name}: found {len(letters)} names of axes; expected {len(shape)}")
    names = tuple(axis_names) or _argument_names(element, len(shape)) or letters
    axes, declared = _declare(shape, element, names, letters)
    if not axis_names and _reduces_over(declared, names):
        axes, declared = _declare(shape, element, letters, letters)
    reduction = declared if isinstance(declared, Reduction) else None
    values = _values(declared)
    reduce_axes = reduction.axes if reduction is not None else ()
    _check_names(name, [axis_name.name for axis_name in (*axes, *reduce_axes)])
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


def _declare(
    shape: Sequence[int], element: Callable[..., Element], names: Sequence[str], key_names: Sequence[str]
) -> tuple[tuple[IterVar, ...], Element]:
    """Return axes with names, and the element that a function makes of them."""
    axes = tuple(
        IterVar(name, extent, key_name="" if name == key_name else key_name)
        for name, key_name, extent in zip(names, key_names, shape, strict=True)
    )
    return axes, element(*(axis.expression for axis in axes))


def _argument_names(element: Callable[..., Element], rank: int) -> tuple[str, ...]:
    """Return the names of a function's arguments without defaults, if there are `rank` of them; else ()."""
    try:
        parameters = signature(element).parameters.values()
    except (TypeError, ValueError):  # some functions of C have no signature
        return ()
    names = tuple(
        item.name
        for item in parameters
        if item.kind in {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
        and item.default is Parameter.empty
    )
    is_starred = any(item.kind is Parameter.VAR_POSITIONAL for item in parameters)
    return () if is_starred or len(names) != rank or any(name.startswith("_") for name in names) else names


def _reduces_over(declared: Element, names: Sequence[str]) -> bool:
    return isinstance(declared, Reduction) and any(axis.name in names for axis in declared.axes)


def extern(
    buffers: Sequence[Buffer], inputs: Sequence[Tensor], body: Statement, name: str
) -> tuple[Tensor, ...]:
    """Declare tensors written by a loop statement.

    Args:
        buffers: Buffers of the tensors, named `name`, or `name`.v0, `name`.v1 ...
        inputs: Tensors that the statement reads.
        body: Statement that reads the inputs' buffers and writes every element of `buffers`.
        name: Name that is unique among the operations of a DAG.
    """
    op = ExternOp(name, tuple(buffers), body, tuple(dict.fromkeys(inputs)))
    return tuple(Tensor(op, position) for position in range(len(op.buffers)))


def _values(value: Element) -> tuple[Expression, ...]:
    match value:
        case Expression():
            return (value,)
        case Reduction():
            return value.sources
        case _:
            return tuple(value)


def _check_names(name: str, names: Sequence[str]) -> None:
    twice = sorted({candidate for candidate in names if names.count(candidate) > 1})
    if twice:
        raise UsageError(f"{name}: several axes are named {', '.join(twice)}")


def _default_names(rank: int) -> list[str]:
    return [_LETTERS[i] if i < len(_LETTERS) else f"i{i}" for i in range(rank)]
