"""Short loops whose number of iterations is known become what they compute."""

from __future__ import annotations

from collections.abc import Callable
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
from intarsia.op.control_flow import scan_axes
from intarsia.op.known_value import known_value
from intarsia.op.purity import is_pure
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import DiagnosticLevel, FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class UnrollLoops(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces a Loop or Scan by its iterations, one after another, where their number is known and small.

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
        unrolled: Callable[[Call, Function, int], Expr]
        match expr:
            case Call(op=Op(name="Loop", domain=""), args=(trips, condition, *_, Function() as body)):
                count, unrolled = _loop_count(trips, condition, body), _unrolled_loop
            case Call(op=Op(name="Scan", domain=""), args=(*_, Function() as body)):
                count, unrolled = _scan_count(expr, body), _unrolled_scan
            case _:
                return expr
        calls = sum(isinstance(inner, Call) for inner in post_order(body.body))
        reason = self._obstacle(count, calls, body)
        if not reason:
            return unrolled(expr, body, count)
        ctx.diagnose(expr, DiagnosticLevel.MISSED, f"is not unrolled: {reason}")
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


def _loop_count(trips: Expr, condition: Expr, body: Function) -> int:
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


def _scan_count(scan: Call, body: Function) -> int:
    """The number of iterations; 0 if it is not known or there are none."""
    if not isinstance(body.body, Tuple):
        return 0
    scanned = _scanned(scan)
    axes = scan_axes(scan.attrs, "scan_input_axes", len(scanned))
    types = [value.checked_type for value in scanned]
    counts = {
        type_.shape[axis] if isinstance(type_, TensorType) and type_.shape else None
        for type_, axis in zip(types, axes, strict=True)
    }
    count = counts.pop()
    return count if isinstance(count, int) and not counts else 0


def _scanned(scan: Call) -> tuple[Expr, ...]:
    """The arguments that a Scan takes slice by slice."""
    count = scan.attrs["num_scan_inputs"]
    assert isinstance(count, int)
    return scan.args[len(scan.args) - 1 - count : -1]


def _unrolled_loop(loop: Call, body: Function, count: int) -> Expr:
    """The results of a Loop: its last states, then the rows of each iteration one after another."""
    states: tuple[Expr, ...] = loop.args[2:-1]
    number_of_states = len(states)
    rows: list[tuple[Expr, ...]] = []
    for number in range(count):
        arguments = (_scalar(number, body.params[0]), _scalar(True, body.params[1]), *states)
        _, *results = _iteration(body, arguments)
        states = tuple(results[:number_of_states])
        rows.append(tuple(results[number_of_states:]))
    return _results(loop, states, [_stacked(column, 0) for column in zip(*rows, strict=True)])


def _unrolled_scan(scan: Call, body: Function, count: int) -> Expr:
    """The results of a Scan: its last states, then the rows of each iteration, in its order or reversed."""
    scanned = _scanned(scan)
    states: tuple[Expr, ...] = scan.args[: -1 - len(scanned)]
    number_of_states = len(states)
    axes = scan_axes(scan.attrs, "scan_input_axes", len(scanned))
    is_reversed = scan_axes(scan.attrs, "scan_input_directions", len(scanned))
    rows: list[tuple[Expr, ...]] = []
    for number in range(count):
        slices = (
            _slice(value, count - 1 - number if backward else number, axis)
            for value, axis, backward in zip(scanned, axes, is_reversed, strict=True)
        )
        results = _iteration(body, (*states, *slices))
        states = results[:number_of_states]
        rows.append(results[number_of_states:])
    columns = tuple(zip(*rows, strict=True))
    axes = scan_axes(scan.attrs, "scan_output_axes", len(columns))
    is_reversed = scan_axes(scan.attrs, "scan_output_directions", len(columns))
    stacks = [
        _stacked(column[::-1] if backward else column, axis)
        for column, axis, backward in zip(columns, axes, is_reversed, strict=True)
    ]
    return _results(scan, states, stacks)


def _iteration(body: Function, arguments: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """What a body returns for some arguments."""
    after = substitute(body.body, dict(zip(body.params, arguments, strict=True)))
    assert isinstance(after, Tuple)
    return after.fields


def _results(loop: Call, states: tuple[Expr, ...], stacks: list[Expr]) -> Tuple:
    """The results of a loop that are used."""
    assert isinstance(loop.checked_type, TupleType)
    return Tuple((*states, *stacks)[: len(loop.checked_type.fields)])


def _slice(value: Expr, number: int, axis: int) -> Expr:
    """A slice of a value along an axis, without the axis."""
    return Call(Op("Gather"), (value, Constant(np.array(number, np.int64))), Attrs({"axis": axis}))


def _scalar(value: int | bool, param: Var) -> Constant:
    """A number in place of a parameter of a body, which may be of shape () or (1,)."""
    type_ = param.checked_type
    is_list = isinstance(type_, TensorType) and type_.shape == (1,)
    dtype = np.bool_ if isinstance(value, bool) else np.int64
    return Constant(np.full((1,) if is_list else (), value, dtype))


def _stacked(rows: tuple[Expr, ...], axis: int) -> Expr:
    """Rows along a new axis; their types are inferred where they are put into the program."""
    axes = Constant(np.array([axis], np.int64))
    parts = tuple(Call(Op("Unsqueeze"), (row, axes)) for row in rows)
    return parts[0] if len(parts) == 1 else Call(Op("Concat"), parts, Attrs({"axis": axis}))


def _is_absent(expr: Expr) -> bool:
    return isinstance(expr, Tuple) and not expr.fields


def _is_true(expr: Expr) -> bool:
    value = known_value(expr)
    return value is not None and bool(value.all())
