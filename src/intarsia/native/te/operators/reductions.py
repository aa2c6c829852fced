"""Reductions over axes that are known: ReduceSum, ReduceMean, ReduceLogSumExp and their kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, exp, log, select, sqrt
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.reduced_axes import (
    Combine,
    Prepare,
    all_of,
    any_of,
    kept_shape,
    normalized_axis,
    reduce_over,
    reduced_element,
    unchanged,
)
from intarsia.native.te.operators.scalar_functions import absolute, truncating_quotient
from intarsia.native.te.tensor import Tensor

Finish = Callable[[Expression], Expression]


@dataclass(frozen=True)
class _Form:
    """A reduction with what is done to each element before and after it."""

    combine: Combine
    prepare: Prepare = unchanged
    finish: Finish = unchanged
    takes_integers: bool = True


_FORMS = {
    "ReduceSum": _Form(functions.sum),
    "ReduceProd": _Form(functions.prod),
    "ReduceMax": _Form(functions.max),
    "ReduceMin": _Form(functions.min),
    "ReduceL1": _Form(functions.sum, absolute),
    "ReduceL2": _Form(functions.sum, lambda x: x * x, sqrt, takes_integers=False),
    "ReduceSumSquare": _Form(functions.sum, lambda x: x * x),
    "ReduceLogSum": _Form(functions.sum, finish=log, takes_integers=False),
}
_OF_BOOLS = {"ReduceMax": _Form(any_of), "ReduceMin": _Form(all_of)}


@compute_rule(*_FORMS)
@in_float32
def reduction(call: ComputeCall) -> Sequence[Tensor]:
    """Declare one reduction; roots and logarithms of floats only."""
    dtype = call.output_type.dtype
    form = (_OF_BOOLS if dtype is DType.BOOL else _FORMS)[call.op_name]
    if not form.takes_integers and not dtype.is_float:
        raise call.not_covered("integers")
    return [_reduced(call, form)]


@compute_rule("ReduceMean")
@in_float32
def reduce_mean(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the sum by the number of elements; of integers towards zero."""
    shape = call.input(0).shape
    count = math.prod(shape[axis] for axis in axes_of(call))
    if call.output_type.dtype.is_float:
        return [_reduced(call, _Form(functions.sum, finish=lambda x: x / float(count)))]
    number = const(count, call.output_type.dtype)
    return [_reduced(call, _Form(functions.sum, finish=lambda x: truncating_quotient(x, number)))]


@compute_rule("ReduceLogSumExp")
@in_float32
def reduce_log_sum_exp(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the logarithm of the sum of exponentials, after subtracting the maximum against overflow."""
    if not call.output_type.dtype.is_float:
        raise call.not_covered("integers")
    x, axes = call.input(0), axes_of(call)
    largest = reduce_over(x, axes, functions.max, f"{call.name}.max")
    offset = compute(largest.shape, lambda *i: _finite(largest[i]), f"{call.name}.offset")
    exponentials = compute(
        x.shape, lambda *i: exp(x[i] - reduced_element(offset, i, axes)), f"{call.name}.exp"
    )
    total = reduce_over(exponentials, axes, functions.sum, f"{call.name}.sum")
    return [_finished(call, axes, lambda at: log(total[at]) + offset[at])]


def axes_of(call: ComputeCall) -> tuple[int, ...]:
    """Return the axes of a reduction: argument 1, else all, or none with `noop_with_empty_axes`.

    Raises:
        NotCoveredError: They are computed.
    """
    rank = len(call.input(0).shape)
    axes = call.known_ints(1)
    if not axes:
        return () if call.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted({normalized_axis(axis, rank) for axis in axes}))


def _reduced(call: ComputeCall, form: _Form) -> Tensor:
    x, axes = call.input(0), axes_of(call)
    if form.finish is unchanged and len(call.shape) == len(x.shape) - len(axes):
        return reduce_over(x, axes, form.combine, call.name, form.prepare)
    total = reduce_over(x, axes, form.combine, f"{call.name}.reduced", form.prepare)
    return _finished(call, axes, lambda at: form.finish(total[at]))


def _finished(
    call: ComputeCall, axes: Sequence[int], element: Callable[[tuple[Expression, ...]], Expression]
) -> Tensor:
    """Declare the last stage of a reduction; `element` is called with the indices that are left."""
    has_kept = call.shape == kept_shape(call.input(0).shape, axes) and bool(call.integer("keepdims", 1))

    def result(*indices: Expression) -> Expression:
        at = indices if not has_kept else tuple(i for n, i in enumerate(indices) if n not in axes)
        return element(at)

    return compute(call.shape, result, call.name)


def _finite(largest: Expression) -> Expression:
    """Return what is subtracted before exponentials: 0 for infinity, since inf - inf is NaN."""
    is_infinite = equal(absolute(largest), math.inf)
    return select(is_infinite, const(0.0, largest.dtype), largest)
