"""Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import ZERO
from intarsia.native.te.tensor import Tensor

_DOTS = "..."


@compute_rule("Einsum")
@in_float32
def einsum(call: ComputeCall) -> Sequence[Tensor]:
    """Declare products of elements, summed over the letters that the result lacks."""
    tensors = [call.input(position) for position in range(len(call.inputs))]
    terms, result = _labels(call, [len(tensor.shape) for tensor in tensors])
    extents: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        for label, extent in zip(term, tensor.shape, strict=True):
            extents[label] = extent if extents.get(label, 1) == 1 else extents[label]
    summed = {
        label: reduce_axis(n, f"r{i}") for i, (label, n) in enumerate(extents.items()) if label not in result
    }

    def element(*i: Expression) -> Expression:
        index = {
            **dict(zip(result, i, strict=True)),
            **{label: axis.expression for label, axis in summed.items()},
        }
        factors = [
            tensor[
                tuple(ZERO if n == 1 else index[label] for label, n in zip(term, tensor.shape, strict=True))
            ]
            for term, tensor in zip(terms, tensors, strict=True)
        ]
        return reduce(lambda so_far, factor: so_far * factor, factors)

    axes = list(summed.values())
    return [compute(call.shape, lambda *i: te_sum(element(*i), axes) if axes else element(*i), call.name)]


def _labels(call: ComputeCall, ranks: Sequence[int]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the labels of each operand and of the result; an ellipsis gives its positions from the back."""
    left, arrow, right = call.text("equation").replace(" ", "").partition("->")
    texts = left.split(",")
    terms = [
        _spread(text, rank - len(text.replace(_DOTS, ""))) for text, rank in zip(texts, ranks, strict=True)
    ]
    widest = max(
        (rank - len(text.replace(_DOTS, "")) for text, rank in zip(texts, ranks, strict=True)), default=0
    )
    if arrow:
        return terms, _spread(right, widest if _DOTS in right else 0)
    letters = left.replace(_DOTS, "").replace(",", "")
    once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
    return terms, (*(_spread(_DOTS, widest) if _DOTS in left else ()), *once)


def _spread(text: str, dots: int) -> tuple[str, ...]:
    before, found, behind = text.partition(_DOTS)
    return (*before, *(f"{position}" for position in range(-dots, 0) if found), *behind)
