"""Indices as affine sums of loop variables, in which the parts of a split counter are recombined.

A loop over fused axes reads `x[i floordiv 8, i mod 8]`: in a row-major buffer of rows of 8 this is element i.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Final, NamedTuple, TypeAlias

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, Literal, LoopVar, Scalar


class AccessPlan(NamedTuple):
    """Offset of an element: `const + coefficient * loop variable + ...`, in elements."""

    const: int
    terms: tuple[tuple[str, int], ...]


class _Part(NamedTuple):
    """The floor quotient or remainder of a sum by a positive number."""

    whole: _Form
    divisor: int
    is_quotient: bool


class _Form(NamedTuple):
    """A sum of multiples of loop variables and of parts of such sums."""

    const: int
    terms: tuple[tuple[_Unit, int], ...]


_Unit: TypeAlias = str | _Part

_AFFINE: Final = frozenset({ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD})
"""Operators of which an index in forms consists."""

Forms: TypeAlias = dict[int, "_Form | None"]
"""Cache of analysed indices by identity: expanded loops repeat the same ones."""


def access_plan(
    buffer: Buffer, indices: tuple[Scalar, ...], known_forms: Forms | None = None
) -> AccessPlan | None:
    """Return the offset of an access; None if it is not affine in loop variables.

    Args:
        buffer: Accessed buffer.
        indices: Indices of the element.
        known_forms: Cache of earlier calls, whose indices must be alive; this call adds to it.
    """
    forms = {} if known_forms is None else known_forms
    const, has_parts = 0, False
    sums: dict[_Unit, int] = {}
    for index, stride in zip(reversed(indices), _reversed_strides(buffer.shape), strict=True):
        if isinstance(index, LoopVar):  # most indices are a counter or a number
            sums[index.name] = sums.get(index.name, 0) + stride
        elif isinstance(index, Literal) and index.dtype is DType.INT64:
            const += stride * int(index.value)
        else:
            number = id(index)
            form = forms[number] if number in forms else forms.setdefault(number, _form(index))
            if form is None:
                return None
            first, terms = form
            const += stride * first
            for unit, coefficient in terms:
                sums[unit] = sums.get(unit, 0) + stride * coefficient
                has_parts = has_parts or not isinstance(unit, str)
    left = tuple(sums.items()) if all(sums.values()) else tuple([item for item in sums.items() if item[1]])
    if has_parts:
        const, left = _joined(_Form(const, left))
        if not all(isinstance(unit, str) for unit, _ in left):
            return None
    return AccessPlan(const, left)  # type: ignore[arg-type]  # no part is left


def is_divided(indices: tuple[Scalar, ...], counter: LoopVar) -> bool:
    """Return whether an index is, or contains, a quotient or a remainder of a sum with a counter."""
    return any(
        isinstance(part, Arith)
        and part.op in (ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD)
        and counter in inner_scalars(part)
        for index in indices
        for part in inner_scalars(index)
    )


@lru_cache(maxsize=4096)
def _reversed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distance in elements of neighbours along each dimension, innermost first."""
    return tuple(accumulate(reversed(shape[1:]), mul, initial=1)) if shape else ()


def _form(root: Scalar) -> _Form | None:
    if isinstance(root, LoopVar):
        return _Form(0, ((root.name, 1),))
    if isinstance(root, Literal):
        is_whole = root.dtype is DType.INT64 and isinstance(root.value, int)
        return _Form(int(root.value), ()) if is_whole else None
    if not isinstance(root, Arith) or root.op not in _AFFINE:
        return None
    first, second = root.operands
    left = _form(first)
    right = None if left is None else _form(second)
    if left is None or right is None:
        return None
    if root.op is ArithOp.MUL:
        return _product(left, right)
    if root.op is ArithOp.FLOOR_DIV or root.op is ArithOp.FLOOR_MOD:
        return _part(left, right, root.op is ArithOp.FLOOR_DIV)
    return _sum(left, right, 1 if root.op is ArithOp.ADD else -1)


def _part(left: _Form, right: _Form, is_quotient: bool) -> _Form | None:
    if right.terms or right.const <= 0:
        return None
    whole = _joined(left)
    part = _quotient(whole, right.const) if is_quotient else _Part(whole, right.const, is_quotient)
    return _Form(0, ((part, 1),))


def _quotient(whole: _Form, divisor: int) -> _Part:
    """Return a floor quotient; that of a floor quotient is one by the product of both divisors."""
    if whole.const == 0 and len(whole.terms) == 1:
        ((unit, coefficient),) = whole.terms
        if isinstance(unit, _Part) and unit.is_quotient and coefficient == 1:
            return _Part(unit.whole, unit.divisor * divisor, is_quotient=True)
    return _Part(whole, divisor, is_quotient=True)


def _joined(form: _Form) -> _Form:
    """Replace `divisor * quotient + remainder` by the dividend."""
    changed = not all(isinstance(unit, str) for unit, _ in form.terms)
    while changed:
        changed = False
        sums = dict(form.terms)
        for unit, coefficient in form.terms:
            if isinstance(unit, str) or unit.is_quotient:
                continue
            quotient = _quotient(unit.whole, unit.divisor)
            if sums.get(quotient) == coefficient * unit.divisor:
                rest = tuple(item for item in form.terms if item[0] not in (unit, quotient))
                form, changed = _sum(_Form(form.const, rest), unit.whole, coefficient), True
                break
    return form


def _sum(left: _Form, right: _Form, factor: int) -> _Form:
    """Return `left + factor * right`."""
    if not right.terms:
        return _Form(left.const + factor * right.const, left.terms)
    sums = dict(left.terms)
    for unit, coefficient in right.terms:
        sums[unit] = sums.get(unit, 0) + factor * coefficient
    return _Form(left.const + factor * right.const, tuple(item for item in sums.items() if item[1]))


def _product(left: _Form, right: _Form) -> _Form | None:
    if left.terms and right.terms:
        return None
    if left.terms:
        left, right = right, left
    factor = left.const
    if not factor:
        return _Form(0, ())
    return _Form(factor * right.const, tuple([(unit, factor * count) for unit, count in right.terms]))
