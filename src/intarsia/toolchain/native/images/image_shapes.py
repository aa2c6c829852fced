"""Shape arithmetic on extents that are expressions of the sizes of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr, Op, TensorType
from intarsia.native.execution.size_table import Linear, SizeTableBuilder, added, constant


@dataclass(frozen=True, slots=True)
class Numbers:
    """The elements of a small integer tensor.

    Attributes:
        items: The elements in order.
        is_scalar: Whether the tensor has no axis; else it has one.
    """

    items: tuple[Linear, ...]
    is_scalar: bool = False


def numbers_of(expr: Expr) -> Numbers | None:
    """Return the elements of a constant with whole numbers; None for others."""
    if not isinstance(expr, Constant) or expr.data.ndim > 1 or expr.data.dtype.kind not in "iuf":
        return None
    data = expr.data.reshape(-1)
    if not np.array_equal(data, np.floor(data)):
        return None
    return Numbers(tuple(constant(int(item)) for item in data), expr.data.ndim == 0)


def evaluated(
    call: Call,
    elements: Mapping[Expr, Numbers],
    shape: Sequence[Linear] | None,
    table: SizeTableBuilder,
) -> Numbers | None:
    """Return the elements of a call of shape arithmetic; None for other calls.

    Args:
        call: The call.
        elements: The elements of its arguments, as far as they are known.
        shape: Extents of its first argument, where that is an image.
        table: Table that gets quotients.
    """
    op = call.op
    if not isinstance(op, Op) or op.domain:
        return None
    if op.name == "Shape":
        if shape is None:
            return None
        start, end = call.attrs.get("start", 0), call.attrs.get("end")
        assert isinstance(start, int)
        assert end is None or isinstance(end, int)
        return Numbers(tuple(shape)[start:end])
    rule = _quotient_rule(call, table) if op.name == "Div" else _RULES.get(op.name)
    args = [elements.get(arg) or numbers_of(arg) for arg in call.args]
    if rule is None or any(arg is None for arg in args):
        return None
    return rule(call, [arg for arg in args if arg is not None])


def plain_numbers(numbers: Numbers | None) -> tuple[int, ...] | None:
    """Return elements that do not depend on sizes; None if they do."""
    if numbers is None or any(terms for _, terms in numbers.items):
        return None
    return tuple(number for number, _ in numbers.items)


def _same(_: Call, args: list[Numbers]) -> Numbers | None:
    return args[0]


def _joined(_: Call, args: list[Numbers]) -> Numbers | None:
    if any(arg.is_scalar for arg in args):
        return None
    return Numbers(tuple(item for arg in args for item in arg.items))


def _gathered(call: Call, args: list[Numbers]) -> Numbers | None:
    data, indices = args[0], plain_numbers(args[1])
    if indices is None or data.is_scalar or call.attrs.get("axis", 0) != 0:
        return None
    return Numbers(tuple(data.items[index] for index in indices), args[1].is_scalar)


def _sliced(_: Call, args: list[Numbers]) -> Numbers | None:
    ends = [plain_numbers(arg) for arg in args[1:]]
    if any(item is None or len(item) != 1 for item in ends):
        return None
    start, end, *others = [item[0] for item in ends if item is not None]
    step = others[1] if len(others) > 1 else 1
    return Numbers(args[0].items[start:end]) if step == 1 and (not others or others[0] in (0, -1)) else None


def _to_vector(_: Call, args: list[Numbers]) -> Numbers | None:
    return Numbers(args[0].items) if args[0].is_scalar else None


def _to_scalar(_: Call, args: list[Numbers]) -> Numbers | None:
    return Numbers(args[0].items, is_scalar=True) if len(args[0].items) == 1 else None


def _reshaped(_: Call, args: list[Numbers]) -> Numbers | None:
    shape = plain_numbers(args[1])
    if shape is None or len(shape) > 1 or shape not in ((), (-1,), (len(args[0].items),)):
        return None
    return Numbers(args[0].items, is_scalar=not shape) if shape or len(args[0].items) == 1 else None


def _elementwise(combine: Callable[[Linear, Linear], Linear | None]) -> _Rule:
    def rule(_: Call, args: list[Numbers]) -> Numbers | None:
        left, right = args
        count = max(len(left.items), len(right.items))
        if any(len(arg.items) not in (1, count) for arg in args):
            return None
        pairs = zip(*(arg.items * (count if len(arg.items) == 1 else 1) for arg in args), strict=True)
        items = [combine(*pair) for pair in pairs]
        present = tuple(item for item in items if item is not None)
        return Numbers(present, left.is_scalar and right.is_scalar) if len(present) == count else None

    return rule


def _quotient_rule(call: Call, table: SizeTableBuilder) -> _Rule | None:
    """Return the rule of a division of whole numbers; none is negative, so that all are rounded down."""
    type_ = call.checked_type
    if not isinstance(type_, TensorType) or type_.dtype not in (DType.INT32, DType.INT64):
        return None

    def quotient(dividend: Linear, divisor: Linear) -> Linear | None:
        number, terms = divisor
        return (
            table.quotient(dividend, number)
            if not terms and number > 0 and table.is_natural(dividend)
            else None
        )

    return _elementwise(quotient)


def _product(left: Linear, right: Linear) -> Linear | None:
    if left[1]:
        left, right = right, left
    return None if left[1] else added(constant(0), right, left[0])


_Rule = Callable[[Call, list[Numbers]], Numbers | None]
_RULES: Final[Mapping[str, _Rule]] = {
    "Add": _elementwise(added),
    "Cast": _same,
    "Concat": _joined,
    "Floor": _same,
    "Gather": _gathered,
    "Identity": _same,
    "Mul": _elementwise(_product),
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Squeeze": _to_scalar,
    "Sub": _elementwise(lambda left, right: added(left, right, -1)),
    "Unsqueeze": _to_vector,
}
