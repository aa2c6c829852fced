"""RNN, GRU and LSTM of a known length as the operators of their steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir import ABSENT, Call, Expr, Function, IRModule, TensorType, TupleGetItem, post_order
from intarsia.op import rewrite_typed
from intarsia.passes.recurrent.direction import directions_of
from intarsia.passes.recurrent.form import RecurrentForm, is_recurrent, recurrent_form
from intarsia.passes.recurrent.repetition import joined_results, unrolled
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import FunctionPass, PassContext, register_pass
from intarsia.transform.diagnostic import DiagnosticLevel

MOST_STEPS: Final = 256
"""Most steps of all directions of a layer that are written one after another: each is some ten operators."""


@register_pass
@dataclass(frozen=True)
class DecomposeRecurrent(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces RNN, GRU and LSTM by a product of all inputs, and by a product and the gates of each step.

    What `recurrent_obstacle` names stays as it is. Weights that are constants stay in the program once: each
    step reads the same transposed matrix. A sequence that ends before the others (`sequence_lens`) keeps its
    states from there on, and its outputs are zero.

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
          %o0 = Sigmoid(Slice(%first, meta[Constant][3], meta[Constant][4], meta[Constant][7]));
          %i0 = Sigmoid(Slice(%first, meta[Constant][0], meta[Constant][3], meta[Constant][7]));
          %c0 = Mul(%i0, Tanh(Slice(%first, meta[Constant][5], meta[Constant][6], meta[Constant][7])));
          %h0 = Mul(%o0, Tanh(%c0));
          %recurrent = Transpose(Squeeze(Slice(%r, meta[Constant][0], meta[Constant][1],
              meta[Constant][0]), meta[Constant][0]), perm=[1, 0]);
          %second = Add(MatMul(%h0, %recurrent), Slice(%gates, meta[Constant][1], meta[Constant][2],
              meta[Constant][0]));
          %o1 = Sigmoid(Slice(%second, meta[Constant][3], meta[Constant][4], meta[Constant][7]));
          %f1 = Sigmoid(Slice(%second, meta[Constant][4], meta[Constant][5], meta[Constant][7]));
          %i1 = Sigmoid(Slice(%second, meta[Constant][0], meta[Constant][3], meta[Constant][7]));
          %c1 = Add(Mul(%f1, %c0), Mul(%i1, Tanh(Slice(%second, meta[Constant][5], meta[Constant][6],
              meta[Constant][7]))));
          Unsqueeze(Concat(%h0, Mul(%o1, Tanh(%c1)), axis=0), meta[Constant][1])
        }
    Constants:
        [0] [1] [2] [4] [8] [12] [16] [-1]
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with recurrent layers as the operators of their steps."""
        if ctx.is_diagnosing:
            _diagnose(function, ctx)
        after = rewrite_typed(function, _decomposed)
        assert isinstance(after, Function)
        return after


def _diagnose(function: Function, ctx: PassContext) -> None:
    """Diagnose the layers that stay."""
    for expr in post_order(function):
        if isinstance(expr, Call) and is_recurrent(expr) and (obstacle := recurrent_obstacle(expr)):
            text = f"is not written as the operators of its steps: {obstacle}"
            ctx.diagnose(expr, DiagnosticLevel.MISSED, text)


def recurrent_obstacle(layer: Call) -> str | None:
    """Why a typed call of RNN, GRU or LSTM is not written as the operators of its steps; None if it is."""
    given = [arg.checked_type for arg in layer.args if arg.checked_type != ABSENT]
    if not all(isinstance(type_, TensorType) and type_.is_static for type_ in given):
        return f"{layer.op} of a shape that is known only at run time"
    form = recurrent_form(layer)
    if isinstance(form, str):
        return form
    return None if _is_short(form) else f"{layer.op} of {form.count} steps, and not 1 to {MOST_STEPS}"


def is_short_layer(layer: Call) -> bool:
    """Whether a recurrent layer of any batch has few enough steps to be written one after another."""
    form = recurrent_form(layer)
    return not isinstance(form, str) and _is_short(form)


def _is_short(form: RecurrentForm) -> bool:
    return 1 <= form.count <= MOST_STEPS


def _decomposed(expr: Expr) -> Expr:
    match expr:
        case Call() if is_recurrent(expr) and recurrent_obstacle(expr) is None:
            form = recurrent_form(expr)
            assert not isinstance(form, str)
            assert form.steps is not None
            steps = form.steps
            return joined_results(expr, form, [unrolled(part, steps) for part in directions_of(expr, form)])
        case TupleGetItem():
            return tuple_field(expr)
        case _:
            return expr
