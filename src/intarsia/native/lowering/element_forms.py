"""The scalars of an operation's elements at given values of its axes, with affine indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.ir.loop_walk import operands, with_operands
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.ir.scalar_types import COMPARISONS
from intarsia.native.te import IF_THEN_ELSE
from intarsia.native.tir.affine import Affine, Ranges, as_scalar, bounds
from intarsia.native.tir.integer_rules import floor_div, floor_mod
from intarsia.support.post_order import post_order_of

Tile: TypeAlias = tuple[Buffer, tuple[Affine, ...]]
_LARGEST: Final = 2**40
"""Largest factor of an affine form: larger ones stay in scalars, whose wrap-around they keep."""


class ElementForms:
    """The scalars of an operation's elements, with affine forms in place of its axes.

    Indices are brought into the form of sums as far as they depend on nothing that is loaded.
    """

    def __init__(self, roots: Sequence[Scalar], axes: Mapping[str, Affine], ranges: Ranges) -> None:
        self._axes = axes
        self._ranges = ranges
        self._forms: dict[int, Affine] = {}
        self._order = [list(post_order_of((root,), operands)) for root in roots]
        self._roots = roots
        for order in self._order:
            for scalar in order:
                if id(scalar) not in self._forms:
                    form = self._form(scalar)
                    if form is not None:
                        self._forms[id(scalar)] = form

    def reads(self) -> Iterator[tuple[Buffer, tuple[Affine | None, ...]]]:
        """Yield each loaded buffer and its indices; None for an index that depends on a load."""
        for order in self._order:
            for scalar in order:
                if isinstance(scalar, Load):
                    yield scalar.buffer, tuple(self._forms.get(id(index)) for index in scalar.indices)

    def scalars(self, tiles: Mapping[str, Tile]) -> list[Scalar]:
        """Return the scalars of the elements.

        Args:
            tiles: Tile that replaces each buffer, by the name of the buffer, and the tile's first index.
        """
        scalars_by_id: dict[int, Scalar] = {}
        for order in self._order:
            for scalar in order:
                if id(scalar) not in scalars_by_id:
                    scalars_by_id[id(scalar)] = self._scalar(scalar, scalars_by_id, tiles)
        return [scalars_by_id[id(root)] for root in self._roots]

    def _form(self, scalar: Scalar) -> Affine | None:
        match scalar:
            case LoopVar():
                return self._axes[scalar.name]
            case Literal(dtype=DType.INT64, value=value):
                return Affine({}, int(value)) if abs(value) <= _LARGEST else None
            case Arith() if scalar.op not in COMPARISONS:
                parts = [self._forms.get(id(operand)) for operand in scalar.operands]
                affine_parts = [part for part in parts if part is not None]
                return self._arithmetic(scalar.op, affine_parts) if len(affine_parts) == len(parts) else None
            case _:
                return None

    def _arithmetic(self, op: ArithOp, parts: Sequence[Affine]) -> Affine | None:
        match op:
            case ArithOp.ADD:
                return parts[0].plus(parts[1])
            case ArithOp.SUB:
                return parts[0].plus(parts[1], -1)
            case ArithOp.MUL:
                return _product(parts[0], parts[1])
            case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD if not parts[1].terms and parts[1].constant > 0:
                rule = floor_div if op is ArithOp.FLOOR_DIV else floor_mod
                quotient = rule(parts[0], parts[1].constant, DType.INT64, self._ranges)
                return _atom(op, parts) if quotient is None else quotient
            case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD | ArithOp.MIN | ArithOp.MAX:
                return _atom(op, parts)
            case _:
                return None

    def _scalar(self, scalar: Scalar, scalars_by_id: dict[int, Scalar], tiles: Mapping[str, Tile]) -> Scalar:
        form = self._forms.get(id(scalar))
        if form is not None:
            return as_scalar(form, DType.INT64)
        if isinstance(scalar, Load):
            return self._load(scalar, scalars_by_id, tiles)
        parts = operands(scalar)
        if not parts:
            return scalar
        return self._folded(with_operands(scalar, [scalars_by_id[id(part)] for part in parts]), parts)

    def _load(self, load: Load, scalars_by_id: dict[int, Scalar], tiles: Mapping[str, Tile]) -> Scalar:
        tile = tiles.get(load.buffer.name)
        if tile is None:
            return with_operands(load, [scalars_by_id[id(index)] for index in load.indices])
        indices: list[Scalar] = []
        for index, begin in zip(load.indices, tile[1], strict=True):
            # A tile holds part of a tensor: its index is that in the tensor, less the tile's begin.
            form = self._forms.get(id(index))
            if form is not None:
                indices.append(as_scalar(form.plus(begin, -1), DType.INT64))
            else:
                assert begin == Affine(), "a dimension with an unknown index is not tiled"
                indices.append(scalars_by_id[id(index)])
        return Load(tile[0], tuple(indices))

    def _folded(self, scalar: Scalar, before: Sequence[Scalar]) -> Scalar:
        """Fold conditions and choices whose value is known."""
        match scalar:
            case Arith(op=ArithOp.LT | ArithOp.LE):
                left, right = (self._forms.get(id(operand)) for operand in before)
                if left is not None and right is not None:
                    return self._compared(scalar, left.plus(right, -1))
            case Arith(op=ArithOp.AND | ArithOp.OR, operands=(first, second)):
                return _connected(scalar, first, second)
            case Arith(op=ArithOp.NOT, operands=(Literal(value=value),)):
                return Literal(not value, DType.BOOL)
            case Arith(op=ArithOp.SELECT, operands=(Literal(value=value), then, otherwise)):
                return then if value else otherwise
            case Intrinsic(name=name, args=(Literal(value=value), then, otherwise)) if name == IF_THEN_ELSE:
                return then if value else otherwise
        return scalar

    def _compared(self, scalar: Arith, difference: Affine) -> Scalar:
        low, high = bounds(difference, self._ranges)
        limit = 0 if scalar.op is ArithOp.LT else 1
        # All of the range lies on one side of the limit: the comparison is constant.
        if high < limit or low >= limit:
            return Literal(high < limit, DType.BOOL)
        return scalar


def _connected(scalar: Arith, first: Scalar, second: Scalar) -> Scalar:
    """Simplify `and` and `or` where one side is a literal."""
    deciding = scalar.op is ArithOp.OR
    for literal, other in ((first, second), (second, first)):
        if isinstance(literal, Literal):
            return literal if literal.value == deciding else other
    return scalar


def _product(left: Affine, right: Affine) -> Affine | None:
    if left.terms and right.terms:
        return _atom(ArithOp.MUL, (left, right))
    factor, form = (right.constant, left) if not right.terms else (left.constant, right)
    product = form.times(factor)
    is_small = all(
        abs(factor_of_term) <= _LARGEST for factor_of_term in (product.constant, *product.terms.values())
    )
    return product if is_small else None


def _atom(op: ArithOp, parts: Sequence[Affine]) -> Affine:
    return Affine({Arith(op, tuple(as_scalar(part, DType.INT64) for part in parts)): 1})
