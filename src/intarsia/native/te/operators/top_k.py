"""TopK."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.ir.prim_func import Block, Buffer, For, LoopVar, Statement
from intarsia.native.te.compute import extern
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, logical_and, logical_not, logical_or, not_equal
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import Indices, front
from intarsia.native.te.operators.loop_nest import load, loop_nest, store, when
from intarsia.native.te.tensor import Tensor


@compute_rule("TopK")
def top_k(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the k best elements, by selection: each is the best after the one before; NaN is the largest.

    Takes k passes over each line. Of equal values the one that stands first comes first.
    """
    x = call.input(0)
    if x.dtype is DType.BOOL:
        raise call.not_covered("bool")
    axis = front(call.integer("axis", -1), len(x.shape))
    is_largest = bool(call.integer("largest", 1))
    values = Buffer(f"{call.name}.v0", call.shape, x.dtype)
    indices = Buffer(f"{call.name}.v1", call.shape, DType.INT64)
    rank_var, step_var = LoopVar("p"), LoopVar("s")
    rank, step = Expression(rank_var), Expression(step_var)

    def line(i: Indices) -> Statement:
        before, behind = i[:axis], i[axis:]
        result, candidate = (*before, rank, *behind), x[(*before, step, *behind)]
        last = (*before, rank - 1, *behind)
        takes = Block((store(values, result, candidate), store(indices, result, step)))
        best, best_index = load(values, result), load(indices, result)
        is_best = logical_or(best_index < 0, _comes_before(candidate, best, is_largest))
        is_left = logical_or(
            _comes_before(load(values, last), candidate, is_largest),
            logical_and(_is_same(load(values, last), candidate), step > load(indices, last)),
        )
        # Candidates are those after the previous result in the order; the first pass takes all.
        first = when(is_best, takes)
        later = when(is_left, first)
        scan = For(step_var, x.shape[axis], when(equal(rank, 0), first, later))
        return For(rank_var, call.shape[axis], Block((store(indices, result, const(-1, DType.INT64)), scan)))

    outer = (*x.shape[:axis], *x.shape[axis + 1 :])
    body = loop_nest("o", outer, line) if call.shape[axis] else Block(())
    return extern((values, indices), [x], body, call.name)[: len(call.output_types)]


def _comes_before(lhs: Expression, rhs: Expression, is_largest: bool) -> Expression:
    greater, less = (lhs, rhs) if is_largest else (rhs, lhs)
    if not lhs.dtype.is_float:
        return greater > less
    is_nan_above = logical_and(not_equal(greater, greater), equal(less, less))
    return logical_or(greater > less, is_nan_above)


def _is_same(lhs: Expression, rhs: Expression) -> Expression:
    if not lhs.dtype.is_float:
        return equal(lhs, rhs)
    return logical_or(equal(lhs, rhs), logical_not(logical_or(equal(lhs, lhs), equal(rhs, rhs))))
