"""Matrix products with one left operand become one product with more columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, Call, Constant, Expr, Function, IRModule, Op
from intarsia.passes.parallel.channel_arguments import joined
from intarsia.passes.parallel.parallel_branches import ParallelOperator, check_branch_count, combine_parallel
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class CombineParallelMatMul(FunctionPass, opt_level=4, required=("InferType",)):
    """Combines products with one left operand, and equal operators after them, and splits the result.

    MatMul calls are combined with each other, and Gemm calls with each other. Their right operands must be
    constants of equal shape but for the number of columns (so of equal batch axes), Gemm's other attributes
    the same. Biases and activations that follow are combined as well, as in `CombineParallelConv2D`. This
    makes one product of the three projections of an attention (seed relax_pass_infra,
    CombineParallelMatmul).

    Raises:
        UsageError: `min_num_branches` is below 2.

    Attributes:
        min_num_branches: Smallest number of products to combine.

    Before:
        def @main(%x: Tensor[(5, 4), float32]) {
          %q = Add(MatMul(%x, meta[Constant][0]), meta[Constant][1]);
          %k = Add(MatMul(%x, meta[Constant][0]), meta[Constant][1]);
          %v = Add(MatMul(%x, meta[Constant][2]), meta[Constant][3]);
          (%q, %k, %v)
        }
    After:
        def @main(%x: Tensor[(5, 4), float32]) {
          %y = Add(MatMul(%x, meta[Constant][4]), meta[Constant][5]);
          %s = Split(%y, meta[Constant][6], axis=-1, outputs=3);
          (%s.0, %s.1, %s.2)
        }
    Constants:
        zeros(4, 2) zeros(2) zeros(4, 3) zeros(3) zeros(4, 7) zeros(7) [2, 2, 3]
    """

    min_num_branches: int = 3

    def __post_init__(self) -> None:
        """Check the option."""
        check_branch_count(self.min_num_branches)

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with parallel products combined; linear in the program."""
        return combine_parallel(function, _PRODUCT, self.min_num_branches, ctx)


def _agreement(call: Call) -> Hashable | None:
    """Everything that decides what a product computes, but its right operand and number of columns."""
    if not isinstance(call.op, Op) or call.op.domain or len(call.args) < 2:
        return None
    right = call.args[1]
    if call.op.name not in ("MatMul", "Gemm") or not isinstance(right, Constant) or right.data.ndim < 2:
        return None
    if call.op.name == "Gemm" and not all(_is_row(bias, _outputs(call)) for bias in call.args[2:]):
        return None
    axis = _column_axis(call)
    rest = right.data.shape[:axis] + right.data.shape[axis:][1:]
    return (call.op.name, call.op.virtual_device, call.attrs, rest, right.data.dtype)


def _column_axis(call: Call) -> int:
    """The axis of the right operand that counts columns of the result."""
    right = call.args[1]
    assert isinstance(right, Constant)
    return 0 if call.attrs.get("transB", 0) else right.data.ndim - 1


def _is_row(bias: Expr, columns: int) -> bool:
    """Whether Gemm's third operand is absent, or the same for each row of the result."""
    if not isinstance(bias, Constant):
        return bias.checked_type == ABSENT
    shape = bias.data.shape
    return len(shape) <= 2 and shape[:-1] in ((), (1,)) and shape[-1:] in ((), (1,), (columns,))


def _outputs(call: Call) -> int:
    right = call.args[1]
    assert isinstance(right, Constant)
    return int(right.data.shape[_column_axis(call)])


def _arguments(calls: Sequence[Call]) -> tuple[Constant, ...]:
    """The right operands side by side, and the rows that Gemm adds if some call has one."""
    operands = [call.args[1] for call in calls]
    constants = [item for item in operands if isinstance(item, Constant)]
    right = joined(constants, [item.data for item in constants], _column_axis(calls[0]))
    given = [call.args[2] if len(call.args) > 2 else None for call in calls]
    biases = [bias for bias in given if isinstance(bias, Constant)]
    if not biases:
        return (right,)
    rows = [_row(bias, _outputs(call), right) for bias, call in zip(given, calls, strict=True)]
    return right, joined(biases, rows, 0)


def _row(bias: Expr | None, columns: int, right: Constant) -> npt.NDArray[np.generic]:
    array = bias.data.reshape(-1) if isinstance(bias, Constant) else np.zeros(1, right.data.dtype)
    return np.broadcast_to(array, (columns,))


_PRODUCT = ParallelOperator(_agreement, _outputs, _arguments, channel_axis=-1)
