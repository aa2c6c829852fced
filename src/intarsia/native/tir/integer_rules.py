"""Division, remainder and comparison of sums of multiples whose ranges are known."""

from __future__ import annotations

from math import gcd

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, Scalar
from intarsia.native.tir.affine import Affine, Ranges, affine, as_scalar, bounds, fits


def floor_div(form: Affine, by: int, dtype: DType, ranges: Ranges) -> Affine | None:
    """Return the quotient by a positive number as a sum, or None if nothing is known about it.

    The sum is by * q + r; its quotient is q plus that of r. The quotient of (g * x + s) by g * b is that of x
    by b if s lies from 0 to g - 1.
    """
    if not fits(bounds(form, ranges), dtype):
        return None
    whole = Affine({s: n // by for s, n in form.terms.items() if n % by == 0}, form.constant // by)
    rest = Affine({s: n for s, n in form.terms.items() if n % by}, form.constant % by)
    low, high = bounds(rest, ranges)
    if low // by == high // by:
        return Affine(whole.terms, whole.constant + low // by)
    if not fits((low, high), dtype):
        return None
    for factor in _factors(rest, by):
        parts = _parts(rest, factor, ranges)
        if parts is not None:
            inner = parts[0]
            if factor == by:
                return whole.plus(inner)
            return whole.plus(_quotient(inner, by // factor, dtype))
    return whole.plus(_quotient(rest, by, dtype))


def _quotient(form: Affine, by: int, dtype: DType) -> Affine:
    """Return the quotient as one scalar; a quotient of a quotient becomes one division by the product."""
    number = as_scalar(form, dtype)
    match number:
        # floor(floor(x / a) / b) == floor(x / (a * b)) for positive a and b; the product must fit the type.
        case Arith(op=ArithOp.FLOOR_DIV, operands=(inner, Literal(value=int(first)))) if first > 0 and fits(
            (0, first * by), dtype
        ):
            return Affine({Arith(ArithOp.FLOOR_DIV, (inner, Literal(first * by, dtype))): 1})
        case _:
            return Affine({Arith(ArithOp.FLOOR_DIV, (number, Literal(by, dtype))): 1})


def floor_mod(form: Affine, by: int, dtype: DType, ranges: Ranges) -> Affine | None:
    """Return the remainder by a positive number as a sum, or None if nothing is known about it."""
    if not fits(bounds(form, ranges), dtype):
        return None
    rest = Affine({s: n for s, n in form.terms.items() if n % by}, form.constant % by)
    low, high = bounds(rest, ranges)
    if low // by == high // by:
        return Affine(rest.terms, rest.constant - by * (low // by))
    if not fits((low, high), dtype):
        return None
    for factor in _factors(rest, by):
        parts = _parts(rest, factor, ranges)
        if parts is not None:
            inner, left = parts
            remainder = Affine() if factor == by else _remainder(inner, by // factor, dtype)
            return remainder.times(factor).plus(left)
    return _remainder(rest, by, dtype)


def _remainder(form: Affine, by: int, dtype: DType) -> Affine:
    number = as_scalar(form, dtype)
    match number:
        # (x mod a) mod b == x mod b where b divides a.
        case Arith(op=ArithOp.FLOOR_MOD, operands=(inner, Literal(value=int(first)))) if (
            first > 0 and first % by == 0
        ):
            number = inner
        case _:
            pass
    return Affine({Arith(ArithOp.FLOOR_MOD, (number, Literal(by, dtype))): 1})


def _factors(form: Affine, of: int) -> list[int]:
    """Return the numbers above 1 that divide `of`, and of which some terms are multiples, largest first."""
    common = of
    for factor in form.terms.values():
        common = gcd(common, factor)
    factors = {common, *(gcd(of, factor) for factor in form.terms.values())}
    return sorted((factor for factor in factors if factor > 1), reverse=True)


def _parts(form: Affine, factor: int, ranges: Ranges) -> tuple[Affine, Affine] | None:
    """Return x and s with factor * x + s equal to the sum and 0 <= s < factor, or None if there are none."""
    left = Affine({s: n for s, n in form.terms.items() if n % factor}, form.constant % factor)
    low, high = bounds(left, ranges)
    if low < 0 or high >= factor:
        return None
    terms = {s: n // factor for s, n in form.terms.items() if n % factor == 0}
    return (Affine(terms, form.constant // factor), left) if terms else None


def joined_divisions(form: Affine) -> Affine:
    """Return the sum with (x floordiv c) * c + x mod c replaced by x."""
    for scalar, factor in form.terms.items():
        if not isinstance(scalar, Arith):
            continue
        match scalar:
            case Arith(op=ArithOp.FLOOR_MOD, operands=(inner, Literal(value=int(by)) as divisor)):
                quotient = Arith(ArithOp.FLOOR_DIV, (inner, divisor))
                if by and form.factor_of(quotient) == factor * by:
                    terms = {s: n for s, n in form.terms.items() if s not in (scalar, quotient)}
                    return joined_divisions(Affine(terms, form.constant).plus(affine(inner), factor))
            case _:
                pass
    return form


def less(difference: Affine, dtype: DType, ranges: Ranges) -> Scalar | bool | None:
    """Return whether a difference is below 0, or a comparison that decides it; None if a side overflows."""
    low, high = bounds(difference, ranges)
    if high < 0 or low >= 0:
        return high < 0
    # factor * x + s < 0 with 0 <= s < factor holds exactly where x < 0.
    for factor in sorted({abs(n) for n in difference.terms.values() if abs(n) > 1}, reverse=True):
        parts = _parts(difference, factor, ranges)
        if parts is not None:
            difference = parts[0]
            break
    sides = _sides(difference, dtype, ranges)
    return None if sides is None else Arith(ArithOp.LT, sides)


def equal(difference: Affine, dtype: DType, ranges: Ranges) -> tuple[Scalar, Scalar] | bool | None:
    """Return whether a difference is 0, or two sides whose equality decides it; None if one overflows."""
    low, high = bounds(difference, ranges)
    if low > 0 or high < 0:
        return False
    if low == high:
        return True
    common = gcd(*difference.terms.values())
    if difference.constant % common:
        return False
    terms = {s: n // common for s, n in difference.terms.items()}
    return _sides(Affine(terms, difference.constant // common), dtype, ranges)


def _sides(difference: Affine, dtype: DType, ranges: Ranges) -> tuple[Scalar, Scalar] | None:
    """Return the positive and the negative terms; the constant is on the right unless the left is empty."""
    left = Affine({s: n for s, n in difference.terms.items() if n > 0})
    right = Affine({s: -n for s, n in difference.terms.items() if n < 0})
    if left.terms:
        right.constant = -difference.constant
    else:
        left.constant = difference.constant
    if not (fits(bounds(left, ranges), dtype) and fits(bounds(right, ranges), dtype)):
        return None
    return as_scalar(left, dtype), as_scalar(right, dtype)
