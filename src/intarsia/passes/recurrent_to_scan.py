"""RNN, GRU and LSTM of any length as a Scan over their steps."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, IRModule, TupleGetItem
from intarsia.op import rewrite_typed
from intarsia.passes.decompose_recurrent import recurrent_obstacle
from intarsia.passes.recurrent.direction import directions_of
from intarsia.passes.recurrent.form import is_recurrent, recurrent_form
from intarsia.passes.recurrent.repetition import joined_results, scanned
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class RecurrentToScan(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces RNN, GRU and LSTM by a product of all inputs, and a Scan whose body is one step.

    This is for layers of many steps, or of a number of steps that is known only at run time: the program
    does not grow with it. What `recurrent_form` refuses stays as it is.

    Before:
        def @main(%x: Tensor[(2, 1, 3), float32], %w: Tensor[(1, 4, 3), float32],
                  %r: Tensor[(1, 4, 4), float32]) {
          RNN(%x, %w, %r, hidden_size=4)
        }
    After:
        def @main(%x: Tensor[(2, 1, 3), float32], %w: Tensor[(1, 4, 3), float32],
                  %r: Tensor[(1, 4, 4), float32]) {
          %start = Squeeze(meta[Constant][2], meta[Constant][0]);
          %inputs = MatMul(%x, Transpose(Squeeze(Slice(%w, meta[Constant][0], meta[Constant][1],
              meta[Constant][0]), meta[Constant][0]), perm=[1, 0]));
          %recurrent = Transpose(Squeeze(Slice(%r, meta[Constant][0], meta[Constant][1],
              meta[Constant][0]), meta[Constant][0]), perm=[1, 0]);
          %step = fn (%h: Tensor[(1, 4), float32], %x0: Tensor[(1, 4), float32]) {
            %after = Tanh(Add(MatMul(%h, %recurrent), %x0));
            (%after, %after)
          };
          %scan = Scan(%start, %inputs, %step, num_scan_inputs=1, outputs=2, scan_input_directions=[0],
              scan_output_directions=[0]);
          Unsqueeze(%scan.1, meta[Constant][1])
        }
    Constants:
        [0] [1] zeros(1, 1, 4)

    Attributes:
        most_steps: Layers of up to so many steps in all directions stay as they are.
    """

    most_steps: int = 0

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with recurrent layers as scans."""
        after = rewrite_typed(function, self._rewritten)
        assert isinstance(after, Function)
        return after

    def _rewritten(self, expr: Expr) -> Expr:
        if isinstance(expr, TupleGetItem):
            return tuple_field(expr)
        if not isinstance(expr, Call) or not is_recurrent(expr):
            return expr
        form = recurrent_form(expr)
        if isinstance(form, str) or (recurrent_obstacle(expr) is None and form.count <= self.most_steps):
            return expr
        return joined_results(expr, form, [scanned(part) for part in directions_of(expr, form)])
