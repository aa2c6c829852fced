"""LSTM of a known length as the operators of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.ir import (
    ABSENT,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
)
from intarsia.op import absent, call, rewrite_typed
from intarsia.op.node import OUTPUTS
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import FunctionPass, PassContext, register_pass

MOST_STEPS = 256
"""Of all directions of an LSTM: each step is some ten operators."""

_INPUTS = 8
_ATTRIBUTES = frozenset({"hidden_size", "direction", "layout", "input_forget", OUTPUTS})
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@register_pass
@dataclass(frozen=True)
class DecomposeLstm(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces LSTM by a product of all its inputs, and by a product and the gates of each step.

    What `lstm_obstacle` names stays as it is. Weights that are constants stay in the program once: each step
    reads the same transposed matrix.

    Before:
        def @main(%x: Tensor[(2, 1, 3), float32], %w: Tensor[(1, 16, 3), float32],
                  %r: Tensor[(1, 16, 4), float32]) {
          LSTM(%x, %w, %r, hidden_size=4)
        }
    After:
        def @main(%x: Tensor[(2, 1, 3), float32], %w: Tensor[(1, 16, 3), float32],
                  %r: Tensor[(1, 16, 4), float32]) {
          %gates = MatMul(%x, Transpose(Squeeze(Slice(%w, meta[Constant][0], meta[Constant][1],
              meta[Constant][0]), meta[Constant][0]), perm=[1, 0]));
          %first = Slice(%gates, meta[Constant][0], meta[Constant][1], meta[Constant][0]);
          %o0 = Sigmoid(Slice(%first, meta[Constant][3], meta[Constant][4], meta[Constant][2]));
          %i0 = Sigmoid(Slice(%first, meta[Constant][0], meta[Constant][3], meta[Constant][2]));
          %c0 = Mul(%i0, Tanh(Slice(%first, meta[Constant][5], meta[Constant][6], meta[Constant][2])));
          %h0 = Mul(%o0, Tanh(%c0));
          %recurrent = Transpose(Squeeze(Slice(%r, meta[Constant][0], meta[Constant][1],
              meta[Constant][0]), meta[Constant][0]), perm=[1, 0]);
          %second = Add(MatMul(%h0, %recurrent), Slice(%gates, meta[Constant][1], meta[Constant][2],
              meta[Constant][0]));
          %o1 = Sigmoid(Slice(%second, meta[Constant][3], meta[Constant][4], meta[Constant][2]));
          %f1 = Sigmoid(Slice(%second, meta[Constant][4], meta[Constant][5], meta[Constant][2]));
          %i1 = Sigmoid(Slice(%second, meta[Constant][0], meta[Constant][3], meta[Constant][2]));
          %c1 = Add(Mul(%f1, %c0), Mul(%i1, Tanh(Slice(%second, meta[Constant][5], meta[Constant][6],
              meta[Constant][2]))));
          Unsqueeze(Concat(%h0, Mul(%o1, Tanh(%c1)), axis=0), meta[Constant][1])
        }
    Constants:
        [0] [1] [2] [4] [8] [12] [16]
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with LSTMs as the operators of their steps."""
        after = rewrite_typed(function, _decomposed)
        assert isinstance(after, Function)
        return after


def lstm_obstacle(lstm: Call) -> str | None:
    """Why a typed call of LSTM is not decomposed; None if it is."""
    given = [arg.checked_type for arg in lstm.args if arg.checked_type != ABSENT]
    types = [type_ for type_ in given if isinstance(type_, TensorType) and type_.is_static]
    other = sorted(lstm.attrs.keys() - _ATTRIBUTES)
    if len(types) < len(given):
        return "LSTM of a shape that is known only at run time"
    if types[0].dtype not in (DType.FLOAT32, DType.FLOAT64):
        return f"LSTM of {types[0].dtype.value}"
    if other or lstm.attrs.get("layout", 0) or lstm.attrs.get("input_forget", 0):
        return f"LSTM with {', '.join(other) or 'layout or input_forget'}"
    if any(arg.checked_type != ABSENT for arg in (*lstm.args[4:5], *lstm.args[7:8])):
        return "LSTM with lengths of sequences or peepholes"
    steps = types[0].static_shape[0] * types[1].static_shape[0]
    return None if 1 <= steps <= MOST_STEPS else f"LSTM of {steps} steps, and not 1 to {MOST_STEPS}"


def _decomposed(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(name="LSTM", domain="")) if lstm_obstacle(expr) is None:
            return _results(expr)
        case TupleGetItem():
            return tuple_field(expr)
        case _:
            return expr


def _results(lstm: Call) -> Expr:
    """Y, and Y_h and Y_c if they are asked for."""
    direction = lstm.attrs.get("direction", "forward")
    assert isinstance(direction, str)
    args = [*lstm.args, *(absent() for _ in range(_INPUTS - len(lstm.args)))]
    made = [_direction(args, at, backward) for at, backward in enumerate(_DIRECTIONS[direction])]
    fields = tuple(
        parts[0] if len(parts) == 1 else call("Concat", *parts, axis=axis)
        for parts, axis in zip(zip(*made, strict=True), (1, 0, 0), strict=True)
    )
    count = lstm.attrs.get(OUTPUTS, 1)
    assert isinstance(count, int)
    return Tuple(fields[:count]) if OUTPUTS in lstm.attrs else fields[0]


def _direction(args: Sequence[Expr], at: int, backward: bool) -> tuple[Expr, Expr, Expr]:
    """Y, Y_h and Y_c of one direction; ONNX has its gates in the order i, o, f, c."""
    x, weights, recurrences, biases, _, first_h, first_c, _ = args
    shapes = [each.checked_type for each in (x, recurrences)]
    assert isinstance(shapes[0], TensorType)
    assert isinstance(shapes[1], TensorType)
    steps, width = shapes[0].static_shape[0], shapes[1].static_shape[2]
    recurrent = _transposed(recurrences, at)
    gates = call("MatMul", x, _transposed(weights, at))
    if biases.checked_type != ABSENT:
        bias = call("Squeeze", _part(biases, at, at + 1, 0), _numbers(0))
        halves = (_part(bias, begin, begin + 4 * width, 0) for begin in (0, 4 * width))
        gates = call("Add", gates, call("Add", *halves))
    h = None if first_h.checked_type == ABSENT else _part(first_h, at, at + 1, 0)
    c = None if first_c.checked_type == ABSENT else _part(first_c, at, at + 1, 0)
    states: list[Expr] = []
    for t in reversed(range(steps)) if backward else range(steps):
        step = _part(gates, t, t + 1, 0)
        if h is not None:
            step = call("Add", call("MatMul", h, recurrent), step)
        i, o, f, g = (_part(step, gate * width, (gate + 1) * width, 2) for gate in range(4))
        new = call("Mul", call("Sigmoid", i), call("Tanh", g))
        c = new if c is None else call("Add", call("Mul", call("Sigmoid", f), c), new)
        h = call("Mul", call("Sigmoid", o), call("Tanh", c))
        states.append(h)
    assert h is not None
    assert c is not None
    whole = call("Concat", *(states[::-1] if backward else states), axis=0)
    return call("Unsqueeze", whole, _numbers(1)), h, c


def _transposed(matrices: Expr, at: int) -> Expr:
    return call("Transpose", call("Squeeze", _part(matrices, at, at + 1, 0), _numbers(0)), perm=(1, 0))


def _part(value: Expr, begin: int, end: int, axis: int) -> Expr:
    return call("Slice", value, _numbers(begin), _numbers(end), _numbers(axis))


def _numbers(*numbers: int) -> Constant:
    return Constant(np.array(numbers, np.int64))
