"""The features by which answers of other models are compared with a question on kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from intarsia.ir import Call, Expr, TensorType
from intarsia.tune.kernels.kernel_group import KernelGroup
from intarsia.tune.kernels.kernel_question import KernelQuestion

_COMPARED: Final = 4
"""Number of dimensions of a result and of its weights that are compared."""


def choice_subject(question: KernelQuestion, choice: str, groups: Iterable[KernelGroup]) -> str:
    """Return what a choice decides, as a text that is the same for all models."""
    operators = "+".join(sorted({group.operators[0] for group in groups}))
    return f"{question.name.partition(' ')[0]}: {choice} for {operators}"


def kernel_features(groups: Sequence[KernelGroup]) -> tuple[float, ...]:
    """Return the features of the kernels of a question: logarithms to the base 2 of what the first computes.

    They are the operations and the bytes of a call, the threads, the channels of a block, and the dimensions
    of the result and of the largest weights of its main operator.
    """
    group = groups[0]
    calls = max(1, group.calls)
    main = max(group.rule.calls, key=_most_weights)
    weights = max((arg for arg in main.args), key=_elements, default=None)
    sizes = [*_dimensions(main), *([0] * _COMPARED if weights is None else _dimensions(weights))]
    numbers = [group.flop // calls, group.bytes_moved // calls, group.threads, group.lanes, *sizes]
    return tuple(math.log2(1 + number) for number in numbers)


def _most_weights(call: Call) -> int:
    return max((_elements(arg) for arg in call.args[1:]), default=0)


def _elements(expr: Expr) -> int:
    """Return the number of elements of a tensor; 0 if it is unknown, or no tensor."""
    sizes = _sizes(expr)
    return math.prod(sizes) if sizes else 0


def _dimensions(expr: Expr) -> list[int]:
    """Return the first dimensions of a tensor, filled up with zeros."""
    return [*_sizes(expr), *([0] * _COMPARED)][:_COMPARED]


def _sizes(expr: Expr) -> list[int]:
    """Return the dimensions of a tensor, 0 for symbolic ones; none of another value."""
    kind = expr.checked_type
    shape = (kind.shape or ()) if isinstance(kind, TensorType) else ()
    return [size if isinstance(size, int) else 0 for size in shape]
