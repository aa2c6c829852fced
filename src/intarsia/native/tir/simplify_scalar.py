"""Scalars in fewer operations, with exactly the same value, NaN and the sign of zero included."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp
from typing import TypeAlias

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import operands, with_operands
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
    """Simplifies scalars under facts: ranges of counters, and values of conditions.

    Attributes:
        ranges: Range of each counter; one that has a single value is replaced by it.
        facts: Value of each condition that is known.
    """

    ranges: dict[LoopVar, Range] = field(default_factory=dict)
    facts: dict[Scalar, bool] = field(default_factory=dict)
    _done: dict[int, tuple[Scalar, Scalar]] = field(default_factory=dict, repr=False)
    """Simplified scalars by identity of the original, and the original, which keeps the identity unique."""
    _inside: dict[_Facts, ScalarSimplifier] = field(default_factory=dict, repr=False)

    def with_facts(self, ranges: dict[LoopVar, Range], facts: dict[Scalar, bool]) -> ScalarSimplifier:
        """Return a simplifier with more facts; equal facts give the same simplifier with its cache."""
        key = tuple(ranges.items()), tuple(facts.items())
        simplifier = self._inside.get(key)
        if simplifier is None:
            simplifier = ScalarSimplifier({**self.ranges, **ranges}, {**self.facts, **facts})
            self._inside[key] = simplifier
        return simplifier

    def simplified(self, scalar: Scalar) -> Scalar:
        """Return the scalar in fewer operations; the same object if there is nothing to save.

        The result is cached by identity: what unrolled loops repeat is one object.
        """
        if isinstance(scalar, Literal):
            return scalar
        if isinstance(scalar, LoopVar):
            values = self.ranges.get(scalar)
            return Literal(values[0], DType.INT64) if values and values[0] == values[1] else scalar
        cached = self._done.get(id(scalar))
        if cached is None:
            cached = self._done[id(scalar)] = scalar, self._simplify(scalar)
        return cached[1]

    def _simplify(self, scalar: Scalar) -> Scalar:
        is_linear = isinstance(scalar, Arith) and scalar.op in _LINEAR
        if is_linear:
            assert isinstance(scalar, Arith)
            if self._is_simple(scalar):
                return scalar
            dtype = scalar_dtype(scalar)
            if dtype in _SIGNED:
                assert dtype is not None
                after = as_scalar(self.linear(scalar), dtype)
                return scalar if after == scalar else after
        below = tuple(map(self.simplified, operands(scalar)))
        after = with_operands(scalar, below)
        if isinstance(scalar, Load):
            return after
        if is_linear and not any(isinstance(operand, Literal) for operand in below):
            return after  # on floats or unsigned integers: no rule applies
        return self._apply_rules(after)

    def _is_simple(self, scalar: Arith) -> bool:
        """Return whether it is i * n or i * n + m: most indices, for which there is nothing to save."""
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
        """Return a scalar of a signed integer type, simplified, as a sum of multiples."""
        return joined_divisions(self._linear_sum(scalar))

    def _linear_sum(self, scalar: Scalar) -> Affine:
        if not isinstance(scalar, Arith) or scalar.op not in _LINEAR:
            return affine(self.simplified(scalar))
        left, right = scalar.operands
        if scalar.op is not ArithOp.MUL:
            sign = 1 if scalar.op is ArithOp.ADD else -1
            return self._linear_sum(left).add(self._linear_sum(right), sign)
        left_sum, right_sum = self.linear(left), self.linear(right)
        if not left_sum.terms:
            return right_sum.times(left_sum.constant)
        if not right_sum.terms:
            return left_sum.times(right_sum.constant)
        dtype = scalar_dtype(scalar)
        assert dtype is not None
        product = Arith(ArithOp.MUL, (as_scalar(left_sum, dtype), as_scalar(right_sum, dtype)))
        return Affine({scalar if product == scalar else product: 1})

    def _apply_rules(self, scalar: Scalar) -> Scalar:
        """Simplify a scalar whose operands are simplified."""
        folded = _folded(scalar)
        if folded is not None:
            return folded
        match scalar:
            case Cast():
                return _simplify_cast(scalar)
            case Arith():
                after = self._simplify_arith(scalar)
                if scalar_dtype(after) is DType.BOOL and self.facts and after in self.facts:
                    return _TRUE if self.facts[after] else _FALSE
                return scalar if after == scalar else after
            case LoopVar() | Literal() | Load() | Intrinsic():
                return scalar

    def _simplify_arith(self, scalar: Arith) -> Scalar:
        dtype = scalar_dtype(scalar.operands[-1])
        match scalar.op:
            case ArithOp.AND | ArithOp.OR:
                return _simplify_and_or(scalar.op, *scalar.operands)
            case ArithOp.NOT:
                return self._simplify_not(scalar)
            case ArithOp.SELECT:
                return _simplify_select(*scalar.operands)
            case _ if dtype in _SIGNED:
                assert dtype is not None
                return self._simplify_integer(scalar, dtype)
            case ArithOp.MIN | ArithOp.MAX if scalar.operands[0] == scalar.operands[1]:
                return scalar.operands[0]
            case _ if dtype is not None and dtype.is_float:
                return _simplify_float(scalar, dtype)
            case _:
                return scalar

    def _simplify_not(self, scalar: Arith) -> Scalar:
        (inner,) = scalar.operands
        match inner:
            case Arith(op=ArithOp.NOT, operands=(twice,)):
                return twice
            case Arith(op=ArithOp.EQ | ArithOp.NE, operands=both):
                return Arith(ArithOp.NE if inner.op is ArithOp.EQ else ArithOp.EQ, both)
            case Arith(op=ArithOp.LT | ArithOp.LE, operands=(left, right)) if scalar_dtype(left) in _SIGNED:
                op = ArithOp.LE if inner.op is ArithOp.LT else ArithOp.LT
                return self._apply_rules(Arith(op, (right, left)))
            case _:
                return scalar

    def _simplify_integer(self, scalar: Arith, dtype: DType) -> Scalar:
        left, right = scalar.operands
        left_sum, right_sum = affine(left), affine(right)
        match scalar.op:
            case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD:
                if not isinstance(right, Literal) or right.value <= 0:
                    return scalar
                rule = floor_div if scalar.op is ArithOp.FLOOR_DIV else floor_mod
                quotient = rule(left_sum, int(right.value), dtype, self.ranges)
                return scalar if quotient is None else as_scalar(joined_divisions(quotient), dtype)
            case ArithOp.MIN | ArithOp.MAX:
                return self._simplify_extreme(scalar, left_sum.plus(right_sum, -1))
            case ArithOp.LT | ArithOp.LE | ArithOp.EQ | ArithOp.NE:
                ranges = (bounds(left_sum, self.ranges), bounds(right_sum, self.ranges))
                if not all(fits(quotient, dtype) for quotient in ranges):
                    return scalar
                return self._simplify_comparison(scalar, left_sum.plus(right_sum, -1), dtype)
            case _:
                return scalar

    def _simplify_extreme(self, scalar: Arith, difference: Affine) -> Scalar:
        """Return the operand that a minimum or maximum always is; the scalar itself if that is open."""
        left, right = scalar.operands
        dtype = scalar_dtype(left)
        assert dtype is not None
        if not all(fits(bounds(affine(operand), self.ranges), dtype) for operand in scalar.operands):
            return scalar
        low, high = bounds(difference, self.ranges)
        if low >= 0:
            return left if scalar.op is ArithOp.MAX else right
        if high <= 0:
            return right if scalar.op is ArithOp.MAX else left
        return scalar

    def _simplify_comparison(self, scalar: Arith, difference: Affine, dtype: DType) -> Scalar:
        if scalar.op in (ArithOp.LT, ArithOp.LE):
            if scalar.op is ArithOp.LE:
                difference = Affine(difference.terms, difference.constant - 1)
            is_less = less(difference, dtype, self.ranges)
            if isinstance(is_less, bool):
                return _TRUE if is_less else _FALSE
            return scalar if is_less is None else is_less
        sides = equal(difference, dtype, self.ranges)
        if isinstance(sides, bool):
            return _TRUE if sides == (scalar.op is ArithOp.EQ) else _FALSE
        return scalar if sides is None else Arith(scalar.op, sides)


def _folded(scalar: Scalar) -> Scalar | None:
    """Return a scalar over literals as a literal; None if it is undefined, or has other operands."""
    if not isinstance(scalar, (Arith, Cast, Intrinsic)):
        return None
    numbers = []
    for operand in operands(scalar):
        if not isinstance(operand, Literal):
            return None
        numbers.append(number_of_literal(operand))
    dtype = scalar_dtype(scalar)
    if dtype is None:
        return None
    try:
        return literal_of_number(operation(scalar, tuple(numbers), dtype), dtype)
    except ExecutionError:
        return None


def _simplify_cast(scalar: Cast) -> Scalar:
    """Drop a cast to the same type, or there and back through a type that holds every value."""
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


def _simplify_and_or(op: ArithOp, left: Scalar, right: Scalar) -> Scalar:
    """Simplify `and` and `or` with a literal operand, which decides or drops out."""
    decides = op is ArithOp.OR
    for literal, other in ((left, right), (right, left)):
        if isinstance(literal, Literal):
            return literal if literal.value is decides else other
    return left if left == right else Arith(op, (left, right))


def _simplify_select(cond: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
    if isinstance(cond, Literal):
        return then if cond.value else otherwise
    if then == otherwise:
        return then
    if isinstance(cond, Arith) and cond.op is ArithOp.NOT:
        return Arith(ArithOp.SELECT, (cond.operands[0], otherwise, then))
    return Arith(ArithOp.SELECT, (cond, then, otherwise))


def _simplify_float(scalar: Arith, dtype: DType) -> Scalar:
    """Drop float operations that change no bit: x + -0.0, x - 0.0, x * 1.0."""
    left, right = scalar.operands
    match scalar.op:
        case ArithOp.ADD:
            # x + 0.0 is not x for x = -0.0, but x + -0.0 is.
            for literal, other in ((left, right), (right, left)):
                if isinstance(literal, Literal) and literal == Literal(-0.0, dtype):
                    return other
        case ArithOp.SUB if isinstance(right, Literal) and right == Literal(0.0, dtype):
            return left
        case ArithOp.MUL:
            for literal, other in ((left, right), (right, left)):
                if isinstance(literal, Literal) and literal == Literal(1.0, dtype):
                    return other
        case ArithOp.DIV if isinstance(right, Literal):
            return _simplify_quotient(scalar, left, right, dtype)
        case _:
            pass
    return scalar


def _simplify_quotient(scalar: Scalar, left: Scalar, right: Literal, dtype: DType) -> Scalar:
    """Replace a quotient by a power of two by a product: exact if the inverse is a normal number."""
    if right.value == 1:
        return left
    number = float(right.value)
    # float16 has the narrowest normal range: down to 2**-14. frexp gives 0.5 for powers of two only.
    if not 2.0**-14 <= abs(number) <= 2.0**14 or abs(frexp(number)[0]) != 0.5:
        return scalar
    return Arith(ArithOp.MUL, (left, Literal(1 / number, dtype)))
