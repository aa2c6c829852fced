"""The order in which a tensor's dimensions lie in memory.

Programs return contiguous arrays. Where eager mode returns a transposed tensor or one in channels_last, code
behind a graph break may call `view` in a way that only that order allows. So results keep it: the program
returns the dimensions in the order of memory, and a view permutes them back.
"""

from __future__ import annotations

from typing import Any


def memory_order(tensor: Any) -> tuple[int, ...] | None:
    """Return the dimensions of a tensor from the largest stride to the smallest.

    Args:
        tensor: Tensor, which may have symbolic sizes.

    Returns:
        The order; None if the tensor is contiguous, or no permutation of a contiguous one.
    """
    sizes, strides = _hints(tensor.shape), _hints(tensor.stride())
    if sizes is None or strides is None:
        return None
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], axis))
    if _are_dense(sizes, strides, range(len(sizes))) or not _are_dense(sizes, strides, order):
        return None
    return tuple(order)


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation that undoes another one."""
    return tuple(order.index(axis) for axis in range(len(order)))


def _are_dense(sizes: list[int], strides: list[int], order: Any) -> bool:
    """Whether elements lie without gaps if the dimensions are in this order."""
    step = 1
    for axis in reversed(order):
        if sizes[axis] != 1 and strides[axis] != step:
            return False
        step *= sizes[axis]
    return step > 0


def _hints(values: Any) -> list[int] | None:
    """The numbers, symbols replaced by their values in the first call; None if one has no value yet."""
    numbers = []
    for value in values:
        node = getattr(value, "node", None)
        if node is not None and not node.has_hint():
            return None
        numbers.append(int(value if node is None else node.hint))
    return numbers
