"""ScatterElements, ScatterND and TensorScatter: a copy of a tensor with some elements changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.ir import DType
from intarsia.ir.prim_func import Block, Buffer, Statement
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import maximum, minimum
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import Indices, front, wrapped
from intarsia.native.te.operators.loop_nest import build_copy, declare_written, load, loop_nest, store
from intarsia.native.te.tensor import Tensor

Reduction = Callable[[Expression, Expression], Expression]


@compute_rule("ScatterElements")
def scatter_elements(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a copy with updates at indices along an axis, applied in order."""
    x, indices, updates = call.input(0), call.input(1), call.input(2)
    axis = front(call.integer("axis", 0), len(x.shape))
    call.refuse_outside(1, x.shape[axis : axis + 1])

    def target(i: Indices) -> Indices:
        return (*i[:axis], wrapped(indices[i], x.shape[axis]), *i[axis + 1 :])

    return [_scattered(call, x, [indices, updates], updates, target)]


@compute_rule("ScatterND")
def scatter_nd(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a copy with slices of updates at index tuples, applied in order."""
    x, indices, updates = call.input(0), call.input(1), call.input(2)
    count, rank = indices.shape[-1], len(indices.shape) - 1
    call.refuse_outside(1, x.shape[:count])

    def target(i: Indices) -> Indices:
        return (*(wrapped(indices[(*i[:rank], k)], x.shape[k]) for k in range(count)), *i[rank:])

    return [_scattered(call, x, [indices, updates], updates, target)]


@compute_rule("TensorScatter")
def tensor_scatter(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a copy with consecutive updates along an axis, from an index of each batch on: a key cache."""
    x, updates = call.input(0), call.input(1)
    axis = front(call.integer("axis", -2), len(x.shape))
    extent = x.shape[axis]
    firsts = call.input(2) if call.has_input(2) else None
    is_circular = call.text("mode", "linear") == "circular"
    if not is_circular:
        call.refuse_beyond(2, extent - updates.shape[axis], "the first place")

    def target(i: Indices) -> Indices:
        index = i[axis] if firsts is None else i[axis] + firsts[i[0]].astype(DType.INT64)
        index = index % extent if is_circular else wrapped(index, extent)
        return (*i[:axis], index, *i[axis + 1 :])

    return [_scattered(call, x, [updates] if firsts is None else [updates, firsts], updates, target)]


def _scattered(
    call: ComputeCall,
    x: Tensor,
    others: Sequence[Tensor],
    updates: Tensor,
    target: Callable[[Indices], Indices],
) -> Tensor:
    reduction = _reduction(call, x.dtype)
    result = Buffer(call.name, x.shape, x.dtype)

    def update(i: Indices) -> Statement:
        index, value = target(i), updates[i]
        return store(result, index, value if reduction is None else reduction(load(result, index), value))

    body = Block((build_copy(result, x), loop_nest("u", updates.shape, update)))
    return declare_written(result, [x, *others], body)


def _reduction(call: ComputeCall, dtype: DType) -> Reduction | None:
    name = call.text("reduction", "none")
    if name != "none" and dtype is DType.BOOL:
        raise call.not_covered("reductions of bool")
    match name:
        case "none":
            return None
        case "add":
            return lambda found, value: found + value
        case "mul":
            return lambda found, value: found * value
        case "max":
            return maximum
        case "min":
            return minimum
        case _:
            raise call.not_covered(f"the reduction {name}")
