"""What an element reads, and what it is, where the axes have other values: indices as sums of multiples."""

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
"""Factors above this are left in scalars, which wrap around as they do."""


class ElementForms:
    """The scalars of an operation's elements with values for the axes.

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
        """What is loaded: the buffer and its indices, None where an index depends on what is loaded."""
        for order in self._order:
            for scalar in order:
                if isinstance(scalar, Load):
                    yield scalar.buffer, tuple(self._forms.get(id(each)) for each in scalar.indices)

    def scalars(self, tiles: Mapping[str, Tile]) -> list[Scalar]:
        """The elements.

        Args:
            tiles: For buffers by name what stands for them, and the index where that begins.
        """
        made: dict[int, Scalar] = {}
        for order in self._order:
            for scalar in order:
                if id(scalar) not in made:
                    made[id(scalar)] = self._scalar(scalar, made, tiles)
        return [made[id(root)] for root in self._roots]

    def _form(self, scalar: Scalar) -> Affine | None:
        match scalar:
            case LoopVar():
                return self._axes[scalar.name]
            case Literal(dtype=DType.INT64, value=value):
                return Affine({}, int(value)) if abs(value) <= _LARGEST else None
            case Arith() if scalar.op not in COMPARISONS:
                parts = [self._forms.get(id(each)) for each in scalar.operands]
                known = [part for part in parts if part is not None]
                return self._arithmetic(scalar.op, known) if len(known) == len(parts) else None
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
                found = rule(parts[0], parts[1].constant, DType.INT64, self._ranges)
                return _atom(op, parts) if found is None else found
            case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD | ArithOp.MIN | ArithOp.MAX:
                return _atom(op, parts)
            case _:
                return None

    def _scalar(self, scalar: Scalar, made: dict[int, Scalar], tiles: Mapping[str, Tile]) -> Scalar:
        form = self._forms.get(id(scalar))
        if form is not None:
            return as_scalar(form, DType.INT64)
        if isinstance(scalar, Load):
            return self._load(scalar, made, tiles)
        parts = operands(scalar)
        if not parts:
            return scalar
        return self._folded(with_operands(scalar, [made[id(each)] for each in parts]), parts)

    def _load(self, load: Load, made: dict[int, Scalar], tiles: Mapping[str, Tile]) -> Scalar:
        tile = tiles.get(load.buffer.name)
        if tile is None:
            return with_operands(load, [made[id(each)] for each in load.indices])
        indices: list[Scalar] = []
        for each, begin in zip(load.indices, tile[1], strict=True):
            form = self._forms.get(id(each))
            if form is not None:
                indices.append(as_scalar(form.plus(begin, -1), DType.INT64))
            else:
                assert begin == Affine(), "what is not known is there as a whole"
                indices.append(made[id(each)])
        return Load(tile[0], tuple(indices))

    def _folded(self, scalar: Scalar, before: Sequence[Scalar]) -> Scalar:
        """What is known of conditions."""
        match scalar:
            case Arith(op=ArithOp.LT | ArithOp.LE):
                left, right = (self._forms.get(id(each)) for each in before)
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
        if high < limit or low >= limit:
            return Literal(high < limit, DType.BOOL)
        return scalar


def _connected(scalar: Arith, first: Scalar, second: Scalar) -> Scalar:
    """`and` and `or` where one side is known."""
    deciding = scalar.op is ArithOp.OR
    for known, other in ((first, second), (second, first)):
        if isinstance(known, Literal):
            return known if known.value == deciding else other
    return scalar


def _product(left: Affine, right: Affine) -> Affine | None:
    if left.terms and right.terms:
        return _atom(ArithOp.MUL, (left, right))
    factor, form = (right.constant, left) if not right.terms else (left.constant, right)
    found = form.times(factor)
    is_small = all(abs(each) <= _LARGEST for each in (found.constant, *found.terms.values()))
    return found if is_small else None


def _atom(op: ArithOp, parts: Sequence[Affine]) -> Affine:
    return Affine({Arith(op, tuple(as_scalar(part, DType.INT64) for part in parts)): 1})
