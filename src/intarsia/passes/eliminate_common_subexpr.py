"""Equal expressions are evaluated once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Op,
    Tuple,
    TupleGetItem,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.ir.canonical import attribute_key
from intarsia.ir.constant_digest import constant_digest
from intarsia.ir.scope import CLOSED, Scope, ScopedProgram, is_atom, place
from intarsia.op.known_value import record_known_value
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of
from intarsia.op.purity import impure_calls
from intarsia.transform import FunctionPass, PassContext, register_pass

_SAMPLES: Final = 64
"""Elements of two constants that are compared before all of their elements are read."""


@register_pass
@dataclass(frozen=True)
class EliminateCommonSubexpr(FunctionPass, opt_level=3, required=("InferType",)):
    """Merges equal expressions where one of them is evaluated in a scope that encloses the other's.

    Expressions are equal if they are of the same kind, on equal expressions, and agree in attributes, type
    and virtual device; constants are if their bytes are. The outermost is kept, of several in one scope the
    first, with its span. Two in different branches of an If stay, because one value for both would be
    computed before the condition is known. So do impure calls (`op.purity`), functions and lets, which are
    distinguished by their variables; nothing outside of a function with Compiler or Primitive is used
    inside.

    Value numbers, then a walk over the scopes with a scoped table: linear in the function.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Add(Relu(%x), Relu(%x)) }
    After:
        def @main(%x: Tensor[(2,), float32]) {
          %0 = Relu(%x);
          Add(%0, %0)
        }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with equal expressions merged."""
        order = list(post_order(function))
        numbers = _Numbering(impure_calls(function, mod), _constant_keys(order))
        for expr in order:
            numbers.add(expr)
        if not numbers.has_equals:
            return function
        survivors = {**_first_constants(order, numbers), **_survivors(place(function), numbers)}
        after = _merged(order, numbers, survivors)
        assert isinstance(after, Function)
        return after


@dataclass(slots=True)
class _Numbering:
    """Value numbers: equal expressions have the same, children smaller ones than what they are in.

    Attributes:
        unique: Expressions that are equal to no other.
        constants: Keys of the constants.
        of: The number of each expression.
        has_equals: Whether two expressions that could be merged have one number.
    """

    unique: set[Expr]
    constants: dict[Expr, object]
    of: dict[Expr, int] = field(default_factory=dict)
    has_equals: bool = False
    _keys: dict[object, int] = field(default_factory=dict)

    def add(self, expr: Expr) -> None:
        """Number an expression whose children have their numbers."""
        next_number = len(self._keys)
        self.of[expr] = number = self._keys.setdefault(self._key(expr), next_number)
        if number < next_number and (isinstance(expr, Constant) or not is_atom(expr)):
            self.has_equals = True

    def _key(self, expr: Expr) -> object:
        own_key = self._own(expr)
        if own_key is None or expr in self.unique:
            return expr
        below = tuple(self.of[child] for child in children(expr))
        match expr:
            case Call(op=Op() as op) if facts_of(op).has(OperatorTrait.COMMUTATIVE):
                below = (below[0], *sorted(below[1:]))
        return type(expr), own_key, expr.checked_type, expr.virtual_device, below

    def _own(self, expr: Expr) -> object:
        """Key of an expression among others of its kind on the same children; None if all differ."""
        match expr:
            case Call():
                return attribute_key(expr.attrs)
            case TupleGetItem():
                return expr.index
            case Op():
                return expr.domain, expr.name
            case GlobalVar():
                return expr.name
            case Constant():
                return self.constants[expr]
            case Tuple() | If():
                return ()
            case _:
                return None


def _constant_keys(order: list[Expr]) -> dict[Expr, object]:
    """Keys of constants, equal for those of equal bytes; all is read only of those with an equal sample."""
    alike: defaultdict[object, list[Constant]] = defaultdict(list)
    for expr in order:
        if isinstance(expr, Constant):
            alike[expr.data.dtype.str, expr.data.shape, _sample(expr)].append(expr)
    keys: dict[Expr, object] = {}
    for constants in alike.values():
        for constant in constants:
            keys[constant] = constant_digest(constant) if len(constants) > 1 else id(constant)
    return keys


def _sample(constant: Constant) -> bytes:
    """Some elements of a constant, from its first to its last."""
    data = constant.data
    if data.dtype.hasobject or not data.size:
        return b""
    positions = np.linspace(0, data.size - 1, min(data.size, _SAMPLES)).astype(np.intp)
    return data.flat[positions].tobytes()


def _first_constants(order: list[Expr], numbers: _Numbering) -> dict[Expr, Expr]:
    """For each constant the first that is equal; constants have no scope."""
    first: dict[int, Expr] = {}
    constants = (expr for expr in order if isinstance(expr, Constant))
    return {expr: first.setdefault(numbers.of[expr], expr) for expr in constants}


def _survivors(placed: ScopedProgram, numbers: _Numbering) -> dict[Expr, Expr]:
    """For each compound expression the one that is evaluated instead: the outermost equal one, or itself."""
    survivors: dict[Expr, Expr] = {}
    met: dict[tuple[int, int], Expr] = {}
    left: dict[Scope, list[tuple[int, int]]] = {}
    for scope, region in _walk(placed):
        if scope in left:
            for key in left[scope]:
                del met[key]
            continue
        left[scope] = []
        for expr in placed.members[scope]:
            key = region, numbers.of[expr]
            if key not in met:
                met[key] = expr
                left[scope].append(key)
            survivors[expr] = met[key]
    return survivors


def _walk(placed: ScopedProgram) -> Iterator[tuple[Scope, int]]:
    """Every scope twice: before all scopes in it and after them; and the number of its region.

    The body of a closed function begins a region: what is outside of it may not be used there.
    """
    inside: defaultdict[Scope | None, list[Scope]] = defaultdict(list)
    for scope in placed.members:
        inside[scope.parent].append(scope)
    closed = {scope for (opener, _), scope in placed.inner.items() if _is_closed(opener)}
    regions = count(1)
    waiting = [(placed.outermost, 0, False)]
    while waiting:
        scope, region, is_left = waiting.pop()
        if not is_left:
            region = next(regions) if scope in closed else region
            waiting.append((scope, region, True))
            waiting.extend((inner, region, False) for inner in inside[scope])
        yield scope, region


def _is_closed(expr: Expr) -> bool:
    return isinstance(expr, Function) and any(name in expr.attrs for name in CLOSED)


def _merged(order: list[Expr], numbers: _Numbering, survivors: dict[Expr, Expr]) -> Expr:
    """The last expression, over survivors only; they are rebuilt by number, so that children come first."""
    kept = [expr for expr in order if survivors.get(expr, expr) is expr]
    done: dict[Expr, Expr] = {}
    for expr in sorted(kept, key=numbers.of.__getitem__):
        below = tuple(done[survivors.get(child, child)] for child in children(expr))
        done[expr] = new = with_fields(with_children(expr, below), checked_type=expr.checked_type)
        if isinstance(new, Call) and new is not expr:
            record_known_value(new)
    return done[order[-1]]
