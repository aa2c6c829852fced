"""Queries and builders for replacements: axes, permutations, constants, concatenations, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import AttrValue, Call, Constant, Dim, Expr, TensorType, Tuple
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, int_attr, ints_attr, operator_name

ELEMENTWISE: Final = (
    *(
        "Abs",
        "Ceil",
        "Cos",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Log",
        "Neg",
    ),
    *("Reciprocal", "Relu", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Tanh"),
    "ThresholdedRelu",
)
"""Operators of one tensor that treat each element alike."""

BINARY: Final = ("Add", "Sub", "Mul", "Div", "Max", "Min")
"""Operators of two tensors that treat each pair of elements alike."""


def called(name: str, attrs: Mapping[str, AttrValue], *args: Expr) -> Call:
    """A call of an operator with the attributes of another call."""
    return call(name, *args, **attrs)  # type: ignore[arg-type]  # `outputs` is one of the attributes


def rank_of(expr: Expr) -> int:
    """The rank of a tensor; -1 where it is not known."""
    dims = dims_of(expr)
    return -1 if dims is None else len(dims)


def axis_of(call_: Expr, rank: int, default: int = 0) -> int:
    """The attribute `axis`, counted from the front."""
    assert isinstance(call_, Call)
    axis = int_attr(call_.attrs, "axis", default)
    return axis + rank if axis < 0 else axis


def size_along(expr: Expr, axis: int) -> int | None:
    """Return the size of a tensor along an axis; None if it is symbolic or unknown."""
    dims = dims_of(expr)
    if dims is None or not -len(dims) <= axis < len(dims):
        return None
    dim = dims[axis]
    return dim if isinstance(dim, int) else None


def is_float(expr: Expr) -> bool:
    """Whether a tensor holds floating-point numbers."""
    dtype = dtype_of(expr)
    return dtype is not None and dtype.is_float


def permutation(call_: Expr) -> tuple[int, ...] | None:
    """Return the permutation of a Transpose, default filled in; None if the rank is unknown."""
    assert isinstance(call_, Call)
    given, rank = ints_attr(call_.attrs, "perm"), rank_of(call_.args[0])
    return tuple(reversed(range(rank))) if given is None and rank >= 0 else given


def swap_of(rank: int) -> tuple[int, ...]:
    """The permutation that exchanges the last two axes."""
    return (*range(rank - 2), rank - 1, rank - 2)


def swapped(expr: Expr) -> Expr:
    """Transpose the matrices of a stack."""
    return call("Transpose", expr, perm=swap_of(rank_of(expr)))


def ints(*values: int) -> Constant:
    """A constant of shapes, axes, pads or sizes."""
    return Constant(np.array(values, np.int64))


def like(expr: Expr, array: npt.ArrayLike) -> Constant:
    """A constant of the element type of a tensor."""
    dtype = dtype_of(expr)
    assert dtype is not None
    return Constant(np.asarray(array).astype(dtype.numpy, copy=False))


def constant_of(expr: Expr) -> npt.NDArray[Any] | None:
    """The value of a constant."""
    return expr.data if isinstance(expr, Constant) else None


def is_scalar_constant(expr: Expr) -> bool:
    """Whether it is one number, which does not raise the rank of what it is combined with."""
    return isinstance(expr, Constant) and expr.data.shape in ((), (1,)) and is_float(expr)


def part(expr: Expr, axis: int, start: int, size: int) -> Expr:
    """Slice `size` elements of a tensor along an axis."""
    return call("Slice", expr, ints(start), ints(start + size), ints(axis))


def concatenated(tensors: Sequence[Expr], axis: int) -> Expr:
    """Concatenate tensors along an axis."""
    return call("Concat", *tensors, axis=axis)


def argument_calls(name: str | Sequence[str], root: Call) -> list[Call]:
    """The arguments of a call, if all call one operator with the same attributes and device; else none."""
    names = (name,) if isinstance(name, str) else name
    calls = [expr for expr in root.args if isinstance(expr, Call) and operator_name(expr) in names]
    if len(calls) < len(root.args) or not calls:
        return []
    facts = {(operator_name(expr), expr.attrs) for expr in calls}
    devices = {root.virtual_device, *(expr.virtual_device for expr in calls)}
    return calls if len(facts) == len(devices) == 1 else []


def same_dims(left: Expr, right: Expr, but: int | None = None) -> bool:
    """Whether two tensors certainly have the same shape, but for one axis that may differ."""
    first, second = dims_of(left), dims_of(right)
    if first is None or second is None or len(first) != len(second):
        return False
    pairs = zip(first, second, strict=True)
    return all(a == b and is_sure(a) for at, (a, b) in enumerate(pairs) if at != but)


def is_sure(dim: Dim) -> bool:
    """Whether a dimension is a number or has a name: two of the name are the same."""
    return isinstance(dim, int) or dim.name != "?"


def is_absent(expr: Expr) -> bool:
    """Whether an argument is left out."""
    return isinstance(expr, Tuple) and not expr.fields


def shape_sizes(expr: Expr) -> tuple[int, ...] | None:
    """The shape of a tensor, if all of it is known."""
    type_ = expr.checked_type
    return type_.static_shape if isinstance(type_, TensorType) and type_.is_static else None
