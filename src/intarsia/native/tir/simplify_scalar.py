"""Scalars in fewer operations, with exactly the same value, NaN and the sign of zero included."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp
from typing import TypeAlias

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import LEAVES, operands, with_operands
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.native.tir.affine import Affine, Range, affine, as_scalar, bounds, fits
from intarsia.native.tir.integer_rules import equal, floor_div, floor_mod, joined_divisions, less
from intarsia.native.tir.scalar_math import literal_of_number, number_of_literal, operation
from intarsia.support.errors import ExecutionError

_SIGNED = frozenset({DType.INT64, DType.INT32, DType.INT16, DType.INT8})
_LINEAR = frozenset({ArithOp.ADD, ArithOp.SUB, ArithOp.MUL})
_TRUE, _FALSE = Literal(True, DType.BOOL), Literal(False, DType.BOOL)


_Facts: TypeAlias = tuple[tuple[tuple[LoopVar, Range], ...], tuple[tuple[Scalar, bool], ...]]


@dataclass(slots=True)
class ScalarSimplifier:
    """Simplifies scalars where something is known.

    Attributes:
        ranges: Values of counters; one that has a single value is replaced by it.
        known: Conditions that are known, by what they are.
    """

    ranges: dict[LoopVar, Range] = field(default_factory=dict)
    known: dict[Scalar, bool] = field(default_factory=dict)
    _loads: dict[int, tuple[Load, Scalar]] = field(default_factory=dict, repr=False)
    _indices: dict[int, tuple[Scalar, Scalar]] = field(default_factory=dict, repr=False)
    """What was simplified, by identity, and what it is then: both stay alive."""
    _inside: dict[_Facts, ScalarSimplifier] = field(default_factory=dict, repr=False)

    def knowing(self, ranges: dict[LoopVar, Range], known: dict[Scalar, bool]) -> ScalarSimplifier:
        """The simplifier that knows more: one for all places that know the same, so that it remembers."""
        facts = tuple(ranges.items()), tuple(known.items())
        found = self._inside.get(facts)
        if found is None:
            found = ScalarSimplifier({**self.ranges, **ranges}, {**self.known, **known})
            self._inside[facts] = found
        return found

    def index(self, scalar: Scalar) -> Scalar:
        """As `simplified`, remembered: written out loops have the same indices over and over."""
        if isinstance(scalar, LEAVES):
            return self.simplified(scalar)
        found = self._indices.get(id(scalar))
        if found is None:
            found = self._indices[id(scalar)] = scalar, self.simplified(scalar)
        return found[1]

    def _load(self, load: Load) -> Scalar:
        found = self._loads.get(id(load))
        if found is None:
            found = load, with_operands(load, tuple(map(self.index, load.indices)))
            self._loads[id(load)] = found
        return found[1]

    def simplified(self, scalar: Scalar) -> Scalar:
        """The scalar in fewer operations; the same object if there is nothing to save."""
        if isinstance(scalar, Literal):
            return scalar
        if isinstance(scalar, LoopVar):
            found = self.ranges.get(scalar)
            return Literal(found[0], DType.INT64) if found and found[0] == found[1] else scalar
        if isinstance(scalar, Load):
            return self._load(scalar)
        if isinstance(scalar, Arith) and self._is_simple(scalar):
            return scalar
        match scalar:
            case Arith(op=op) if op in _LINEAR and (dtype := scalar_dtype(scalar)) in _SIGNED:
                assert dtype is not None
                after = as_scalar(self.linear(scalar), dtype)
                return scalar if after == scalar else after
            case _:
                after = with_operands(scalar, tuple(map(self.simplified, operands(scalar))))
                return after if _is_plain_sum_or_product(after) else self._rule(after)

    def _is_simple(self, scalar: Arith) -> bool:
        """Whether it is i * n or i * n + m: most indices, for which there is nothing to save."""
        if scalar.op is ArithOp.ADD:
            multiple, number = scalar.operands
            if not (isinstance(number, Literal) and number.dtype is DType.INT64 and number.value > 0):
                return False
            if not isinstance(multiple, Arith) or multiple.op is not ArithOp.MUL:
                return False
            scalar = multiple
        if scalar.op is not ArithOp.MUL:
            return False
        counter, factor = scalar.operands
        if not (isinstance(counter, LoopVar) and isinstance(factor, Literal) and factor.value > 1):
            return False
        low, high = self.ranges.get(counter, (0, 1))
        return low < high

    def linear(self, scalar: Scalar) -> Affine:
        """A scalar of a signed integer type, simplified, as a sum of multiples."""
        return joined_divisions(self._sum(scalar))

    def _sum(self, scalar: Scalar) -> Affine:
        match scalar:
            case Arith(op=ArithOp.ADD, operands=(left, right)):
                return self._sum(left).plus(self._sum(right))
            case Arith(op=ArithOp.SUB, operands=(left, right)):
                return self._sum(left).plus(self._sum(right), -1)
            case Arith(op=ArithOp.MUL, operands=(left, right)):
                one, other = self.linear(left), self.linear(right)
                if not one.terms or not other.terms:
                    return other.times(one.constant) if not one.terms else one.times(other.constant)
                dtype = scalar_dtype(scalar)
                assert dtype is not None
                product = Arith(ArithOp.MUL, (as_scalar(one, dtype), as_scalar(other, dtype)))
                return Affine({scalar if product == scalar else product: 1})
            case _:
                return affine(self.simplified(scalar))

    def _rule(self, scalar: Scalar) -> Scalar:
        """A scalar whose operands are simplified."""
        folded = _folded(scalar)
        if folded is not None:
            return folded
        match scalar:
            case Cast():
                return _cast(scalar)
            case Arith():
                after = self._arith(scalar)
                if scalar_dtype(after) is DType.BOOL and self.known and after in self.known:
                    return _TRUE if self.known[after] else _FALSE
                return scalar if after == scalar else after
            case LoopVar() | Literal() | Load() | Intrinsic():
                return scalar

    def _arith(self, scalar: Arith) -> Scalar:
        dtype = scalar_dtype(scalar.operands[-1])
        match scalar.op:
            case ArithOp.AND | ArithOp.OR:
                return _joined(scalar.op, *scalar.operands)
            case ArithOp.NOT:
                return self._negated(scalar)
            case ArithOp.SELECT:
                return _selected(*scalar.operands)
            case _ if dtype in _SIGNED:
                assert dtype is not None
                return self._integer(scalar, dtype)
            case ArithOp.MIN | ArithOp.MAX if scalar.operands[0] == scalar.operands[1]:
                return scalar.operands[0]
            case _ if dtype is not None and dtype.is_float:
                return _float(scalar, dtype)
            case _:
                return scalar

    def _negated(self, scalar: Arith) -> Scalar:
        (inner,) = scalar.operands
        match inner:
            case Arith(op=ArithOp.NOT, operands=(twice,)):
                return twice
            case Arith(op=ArithOp.EQ | ArithOp.NE, operands=both):
                return Arith(ArithOp.NE if inner.op is ArithOp.EQ else ArithOp.EQ, both)
            case Arith(op=ArithOp.LT | ArithOp.LE, operands=(left, right)) if scalar_dtype(left) in _SIGNED:
                op = ArithOp.LE if inner.op is ArithOp.LT else ArithOp.LT
                return self._rule(Arith(op, (right, left)))
            case _:
                return scalar

    def _integer(self, scalar: Arith, dtype: DType) -> Scalar:
        left, right = scalar.operands
        one, other = affine(left), affine(right)
        match scalar.op:
            case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD:
                if not isinstance(right, Literal) or right.value <= 0:
                    return scalar
                rule = floor_div if scalar.op is ArithOp.FLOOR_DIV else floor_mod
                found = rule(one, int(right.value), dtype, self.ranges)
                return scalar if found is None else as_scalar(joined_divisions(found), dtype)
            case ArithOp.MIN | ArithOp.MAX:
                return self._extreme(scalar, one.plus(other, -1))
            case ArithOp.LT | ArithOp.LE | ArithOp.EQ | ArithOp.NE:
                both = (bounds(one, self.ranges), bounds(other, self.ranges))
                if not all(fits(found, dtype) for found in both):
                    return scalar
                return self._comparison(scalar, one.plus(other, -1), dtype)
            case _:
                return scalar

    def _extreme(self, scalar: Arith, difference: Affine) -> Scalar:
        """The least or the greatest of two where it is known which that is."""
        left, right = scalar.operands
        dtype = scalar_dtype(left)
        assert dtype is not None
        if not all(fits(bounds(affine(one), self.ranges), dtype) for one in scalar.operands):
            return scalar
        low, high = bounds(difference, self.ranges)
        if low >= 0:
            return left if scalar.op is ArithOp.MAX else right
        if high <= 0:
            return right if scalar.op is ArithOp.MAX else left
        return scalar

    def _comparison(self, scalar: Arith, difference: Affine, dtype: DType) -> Scalar:
        if scalar.op in (ArithOp.LT, ArithOp.LE):
            if scalar.op is ArithOp.LE:
                difference = Affine(difference.terms, difference.constant - 1)
            found = less(difference, dtype, self.ranges)
            if isinstance(found, bool):
                return _TRUE if found else _FALSE
            return scalar if found is None else found
        sides = equal(difference, dtype, self.ranges)
        if isinstance(sides, bool):
            return _TRUE if sides == (scalar.op is ArithOp.EQ) else _FALSE
        return scalar if sides is None else Arith(scalar.op, sides)


def _is_plain_sum_or_product(scalar: Scalar) -> bool:
    """Whether it is one of floats or of unsigned integers without a number, for which there is no rule."""
    if not isinstance(scalar, Arith) or scalar.op not in _LINEAR or scalar_dtype(scalar) in _SIGNED:
        return False
    return not any(isinstance(one, Literal) for one in scalar.operands)


def _folded(scalar: Scalar) -> Scalar | None:
    """The number that a scalar over numbers is; None if it is undefined, or no such scalar."""
    if not isinstance(scalar, (Arith, Cast, Intrinsic)):
        return None
    below = operands(scalar)
    numbers = tuple(number_of_literal(one) for one in below if isinstance(one, Literal))
    dtype = scalar_dtype(scalar)
    if len(numbers) != len(below) or dtype is None:
        return None
    try:
        return literal_of_number(operation(scalar, numbers, dtype), dtype)
    except ExecutionError:
        return None


def _cast(scalar: Cast) -> Scalar:
    """A cast to the type that there is, or there and back through a type that holds every value."""
    source = scalar_dtype(scalar.value)
    if source is scalar.dtype:
        return scalar.value
    if isinstance(scalar.value, Cast) and source is not None:
        first = scalar_dtype(scalar.value.value)
        if first is scalar.dtype and (first, source) in _WIDENING:
            return scalar.value.value
    return scalar


_FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)
_WIDENING = frozenset(
    {
        *((small, wide) for small in _FLOATS[:2] for wide in _FLOATS[2:]),
        (DType.FLOAT32, DType.FLOAT64),
        *(
            (small, wide)
            for small in _SIGNED
            for wide in _SIGNED
            if small.numpy.itemsize < wide.numpy.itemsize
        ),
    }
)


def _joined(op: ArithOp, left: Scalar, right: Scalar) -> Scalar:
    """`and` and `or` with an operand that decides, or does not count."""
    decides = op is ArithOp.OR
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal):
            return one if one.value is decides else other
    return left if left == right else Arith(op, (left, right))


def _selected(cond: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
    if isinstance(cond, Literal):
        return then if cond.value else otherwise
    if then == otherwise:
        return then
    if isinstance(cond, Arith) and cond.op is ArithOp.NOT:
        return Arith(ArithOp.SELECT, (cond.operands[0], otherwise, then))
    return Arith(ArithOp.SELECT, (cond, then, otherwise))


def _float(scalar: Arith, dtype: DType) -> Scalar:
    """Operations on floats with a number that changes no bit; -0.0 is added, 0.0 is taken away."""
    left, right = scalar.operands
    match scalar.op:
        case ArithOp.ADD:
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Literal) and one == Literal(-0.0, dtype):
                    return other
        case ArithOp.SUB if isinstance(right, Literal) and right == Literal(0.0, dtype):
            return left
        case ArithOp.MUL:
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Literal) and one == Literal(1.0, dtype):
                    return other
        case ArithOp.DIV if isinstance(right, Literal):
            return _divided(scalar, left, right, dtype)
        case _:
            pass
    return scalar


def _divided(scalar: Scalar, left: Scalar, right: Literal, dtype: DType) -> Scalar:
    """A quotient by a power of two is a product, exactly, if its inverse is a normal number of the type."""
    if right.value == 1:
        return left
    number = float(right.value)
    if not 2.0**-14 <= abs(number) <= 2.0**14 or abs(frexp(number)[0]) != 0.5:
        return scalar
    return Arith(ArithOp.MUL, (left, Literal(1 / number, dtype)))
