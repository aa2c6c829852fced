"""Branches that take less time than the decision between them become a choice of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    post_order,
)
from intarsia.op import call, rewrite_typed
from intarsia.op.constant_argument import has_open_shape
from intarsia.op.purity import is_pure
from intarsia.op.work import reduction_length
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import DiagnosticLevel, FunctionPass, PassContext, register_pass

_CHECKED: Final = frozenset(
    {
        *("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "TensorScatter"),
        *("Mod", "NonMaxSuppression", "OneHot", "ReverseSequence", "Unique"),
    }
)
"""Operators that refuse some values of their arguments, which a branch may be there to prevent."""


@register_pass
@dataclass(frozen=True)
class SelectBranches(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces an If by both branches and a Where, if both take little work and cannot fail.

    An interpreter needs more time for a branch than small ones take, and regions end at each: this is what
    compilers of loops call if-conversion. Branches stay that draw random numbers, call functions, have
    control flow that is not converted, or compute indices or quotients of integers, which may be wrong in the
    branch that is not taken. Linear.

    Before:
        def @main(%x: Tensor[(4,), float32], %goes: Tensor[(), bool]) {
          if (%goes) { Relu(%x) } else { Neg(%x) }
        }
    After:
        def @main(%x: Tensor[(4,), float32], %goes: Tensor[(), bool]) {
          Where(%goes, Relu(%x), Neg(%x))
        }

    Attributes:
        most_work: Largest number of additions, products and other elementary operations of both branches.
    """

    most_work: int = 100_000

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without such branches."""
        after = rewrite_typed(function, partial(self._rewritten, ctx))
        assert isinstance(after, Function)
        return after

    def _rewritten(self, ctx: PassContext, expr: Expr) -> Expr:
        match expr:
            case TupleGetItem():
                return tuple_field(expr)
            case If():
                reason = self._obstacle(expr)
                if not reason:
                    return _selected(expr)
                ctx.diagnose(expr, DiagnosticLevel.MISSED, f"stays a branch: {reason}")
                return expr
            case _:
                return expr

    def _obstacle(self, branch: If) -> str:
        """Why a branch is not converted; "" if it is."""
        if not _is_choice(branch):
            return "its condition or results have no static types, or other ones in each branch"
        before = set(post_order(branch.cond))
        computed = [
            expr for expr in post_order(branch.true_branch, branch.false_branch) if expr not in before
        ]
        work = 0
        for expr in computed:
            if reason := _refusal(expr):
                return reason
            work += _work(expr)
        if work > self.most_work:
            return f"both branches take {work} operations, most_work={self.most_work}"
        return ""


def _is_choice(branch: If) -> bool:
    """Whether the condition is one value, and the results are tensors of the same static types."""
    cond = branch.cond.checked_type
    is_one = isinstance(cond, TensorType) and cond.is_static and prod(cond.static_shape) == 1
    taken, other = _fields(branch.true_branch.checked_type), _fields(branch.false_branch.checked_type)
    return is_one and taken == other and all(map(_is_static, taken))


def _fields(type_: object) -> tuple[object, ...]:
    return type_.fields if isinstance(type_, TupleType) else (type_,)


def _is_static(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.is_static


def _refusal(expr: Expr) -> str:
    """Why an expression is not computed where its value may not be needed; "" if it is."""
    if isinstance(expr, If):
        return "it contains a branch that stays"
    if not isinstance(expr, Call):
        return ""
    if not isinstance(expr.op, Op) or expr.op.domain or any(isinstance(arg, Function) for arg in expr.args):
        return f"it calls {expr.op}"
    if not is_pure(expr):
        return "it draws random numbers"
    type_ = expr.checked_type
    if not all(map(_is_static, _fields(type_))):
        return f"operator {expr.op} has a result of a size that is known only at run time"
    is_quotient = expr.op.name == "Div" and isinstance(type_, TensorType) and not type_.dtype.is_float
    if is_quotient or has_open_shape(expr) or expr.op.name in _CHECKED:
        return f"operator {expr.op} may refuse its arguments"
    return ""


def _work(expr: Expr) -> int:
    if not isinstance(expr, Call):
        return 0
    types = [type_ for type_ in _fields(expr.checked_type) if isinstance(type_, TensorType)]
    return sum(prod(type_.static_shape) for type_ in types) * reduction_length(expr)


def _selected(branch: If) -> Expr:
    """The results of both branches, one of which is chosen for each."""
    cond = branch.cond
    type_ = cond.checked_type
    assert isinstance(type_, TensorType)
    if type_.shape != ():
        cond = call("Reshape", cond, Constant(np.zeros(0, np.int64)))
    chosen = [
        call("Where", cond, taken, other)
        for taken, other in zip(_results(branch.true_branch), _results(branch.false_branch), strict=True)
    ]
    return Tuple(tuple(chosen)) if isinstance(branch.checked_type, TupleType) else chosen[0]


def _results(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Tuple():
            yield from expr.fields
        case _ if isinstance(expr.checked_type, TupleType):
            yield from (TupleGetItem(expr, index) for index in range(len(expr.checked_type.fields)))
        case _:
            yield expr
