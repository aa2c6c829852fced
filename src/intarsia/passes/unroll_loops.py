"""Short loops whose number of iterations is known become what they compute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    post_order,
    substitute,
)
from intarsia.op import rewrite_typed
from intarsia.op.known_value import known_value
from intarsia.op.purity import is_pure
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import DiagnosticLevel, FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class UnrollLoops(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces a Loop by its iterations, one after another, where their number is known and small.

    What depends on the number of the iteration is known then: where a slice begins, for example, and so the
    shapes of what is computed from it. Loops that may end before, and those whose body draws random numbers,
    stay. Linear in the program that results.

    Before:
        def @main(%x: Tensor[(4,), float32], %w: Tensor[(2, 4), float32]) {
          %step = fn (%i: Tensor[(), int64], %goes: Tensor[(), bool], %s: Tensor[(4,), float32]) {
            (%goes, Add(%s, Gather(%w, %i)))
          };
          Loop(meta[Constant][0], meta[Constant][1], %x, %step, outputs=1)
        }
    After:
        def @main(%x: Tensor[(4,), float32], %w: Tensor[(2, 4), float32]) {
          %first = Add(%x, Gather(%w, meta[Constant][2]));
          (Add(%first, Gather(%w, meta[Constant][3])),)
        }
    Constants:
        2 True 0 1

    Attributes:
        most_iterations: Longer loops stay as they are.
        most_calls: Largest number of calls that a loop may become.
    """

    most_iterations: int = 64
    most_calls: int = 1024

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without such loops."""
        after = rewrite_typed(function, partial(self._rewritten, ctx))
        assert isinstance(after, Function)
        return after

    def _rewritten(self, ctx: PassContext, expr: Expr) -> Expr:
        if isinstance(expr, TupleGetItem):
            return tuple_field(expr)
        match expr:
            case Call(op=Op(name="Loop", domain=""), args=(trips, condition, *initial, Function() as body)):
                count = _count(trips, condition, body)
                calls = sum(isinstance(inner, Call) for inner in post_order(body.body))
                reason = self._obstacle(count, calls, body)
                if not reason:
                    return _unrolled(expr, body, initial, count)
                ctx.diagnose(expr, DiagnosticLevel.MISSED, f"is not unrolled: {reason}")
                return expr
            case _:
                return expr

    def _obstacle(self, count: int, calls: int, body: Function) -> str:
        """Why a loop is not unrolled; "" if it is."""
        if count == 0:
            return "the number of its iterations is not known, or 0"
        if count > self.most_iterations:
            return f"it has {count} iterations, most_iterations={self.most_iterations}"
        if count * calls > self.most_calls:
            return f"it would become {count * calls} calls, most_calls={self.most_calls}"
        return "" if is_pure(body) else "its body draws random numbers"


def _count(trips: Expr, condition: Expr, body: Function) -> int:
    """The number of iterations; 0 if it is not known or there are none."""
    number = known_value(trips)
    if number is None or not isinstance(body.body, Tuple):
        return 0
    goes_on = body.body.fields[0]
    while isinstance(goes_on, Call) and str(goes_on.op) == "Identity":
        goes_on = goes_on.args[0]
    starts = _is_absent(condition) or _is_true(condition)
    ends_by_number = starts and (goes_on is body.params[1] or _is_true(goes_on))
    return max(0, int(number.reshape(-1)[0])) if ends_by_number else 0


def _unrolled(loop: Call, body: Function, initial: list[Expr], count: int) -> Expr:
    """The results of a loop: its last states, then the rows of each iteration one after another."""
    states: tuple[Expr, ...] = tuple(initial)
    rows: list[tuple[Expr, ...]] = []
    for number in range(count):
        given = (_scalar(number, body.params[0]), _scalar(True, body.params[1]), *states)
        after = substitute(body.body, dict(zip(body.params, given, strict=True)))
        assert isinstance(after, Tuple)
        states, rest = after.fields[1 : 1 + len(initial)], after.fields[1 + len(initial) :]
        rows.append(rest)
    results = (*states, *(_stacked(column) for column in zip(*rows, strict=True)))
    assert isinstance(loop.checked_type, TupleType)
    return Tuple(results[: len(loop.checked_type.fields)])


def _scalar(value: int | bool, param: Var) -> Constant:
    """A number in place of a parameter of a body, which may be of shape () or (1,)."""
    type_ = param.checked_type
    is_list = isinstance(type_, TensorType) and type_.shape == (1,)
    dtype = np.bool_ if isinstance(value, bool) else np.int64
    return Constant(np.full((1,) if is_list else (), value, dtype))


def _stacked(rows: tuple[Expr, ...]) -> Expr:
    """Rows along a new first axis; their types are inferred where they are put into the program."""
    axis = Constant(np.array([0], np.int64))
    parts = tuple(Call(Op("Unsqueeze"), (row, axis)) for row in rows)
    return parts[0] if len(parts) == 1 else Call(Op("Concat"), parts, Attrs({"axis": 0}))


def _is_absent(expr: Expr) -> bool:
    return isinstance(expr, Tuple) and not expr.fields


def _is_true(expr: Expr) -> bool:
    value = known_value(expr)
    return value is not None and bool(value.all())
