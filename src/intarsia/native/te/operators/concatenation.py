"""Concat and Split."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import if_then_else
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO, Indices, front, scaled
from intarsia.native.te.tensor import Tensor


@compute_rule("Concat")
def concat(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a concatenation; the tensor of an element is found by binary search."""
    tensors = [call.input(position) for position in range(len(call.inputs))]
    return [concatenated(tensors, front(call.integer("axis"), len(call.shape)), call.name)]


def concatenated(tensors: Sequence[Tensor], axis: int, name: str) -> Tensor:
    """Declare tensors concatenated along an axis."""
    shape = list(tensors[0].shape)
    shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
    filled = [tensor for tensor in tensors if tensor.shape[axis]] or list(tensors[:1])
    starts = [0, *accumulate(tensor.shape[axis] for tensor in filled)]

    def element(indices: Indices, first: int, last: int) -> Expression:
        if last - first == 1:
            index = scaled(indices[axis], 1, -starts[first]) if 0 not in shape else ZERO
            return filled[first][(*indices[:axis], index, *indices[axis + 1 :])]
        middle = (first + last) // 2
        lower, upper = element(indices, first, middle), element(indices, middle, last)
        return if_then_else(indices[axis] < starts[middle], lower, upper)

    return compute(shape, lambda *i: element(i, 0, len(filled)), name)


@compute_rule("Split")
def split(call: ComputeCall) -> Sequence[Tensor]:
    """Declare parts of a tensor, each a stage of its own."""
    x = call.input(0)
    axis = front(call.integer("axis"), len(x.shape))
    lengths = [type_.static_shape[axis] for type_ in call.output_types]
    starts = [0, *accumulate(lengths)]
    return [
        _part(x, axis, starts[i], type_.static_shape, call.name if i == 0 else f"{call.name}.out{i}")
        for i, type_ in enumerate(call.output_types)
    ]


def _part(x: Tensor, axis: int, start: int, shape: tuple[int, ...], name: str) -> Tensor:
    return compute(shape, lambda *i: x[(*i[:axis], scaled(i[axis], 1, start), *i[axis + 1 :])], name)
