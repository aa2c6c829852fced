"""Values of the operators that simplification leaves behind on constants, without onnx's reference.

Importing that takes as long as simplifying a small program. NumPy computes these operators in the same way
there, so that the values are the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Op

Array: TypeAlias = npt.NDArray[Any]

_FLOATING: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType(
    {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sqrt": np.sqrt, "Sub": np.subtract}
)
"""Functions of float32 and float64; others, such as the quotient of integers, round differently."""
_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))


def plain_value(call: Call, values: Sequence[Array]) -> Array | None:
    """Return the value of a call on constants; None if onnx's reference has to compute it.

    Args:
        call: Call of an operator of ONNX in its newest version, without absent arguments.
        values: Values of its arguments.

    Raises:
        ValueError: The shapes do not fit.
        IndexError: An index is out of range.
    """
    assert isinstance(call.op, Op)
    name = call.op.name
    if call.op.domain:
        return None
    if name in _FLOATING and all(value.dtype in _FLOATS for value in values):
        return np.asarray(_FLOATING[name](*values))
    if name == "Unsqueeze" and len(values) == 2:
        return np.expand_dims(values[0], tuple(int(axis) for axis in values[1].reshape(-1)))
    if name == "Gather" and values[0].dtype.kind in "fiub":
        axis = call.attrs.get("axis", 0)
        assert isinstance(axis, int)
        return np.take(values[0], values[1], axis)
    if name == "GatherElements":
        axis = call.attrs.get("axis", 0)
        assert isinstance(axis, int)
        return gathered_elements(values[0], values[1], axis)
    return None


def gathered_elements(data: Array, indices: Array, axis: int) -> Array:
    """Return for each index the element at that position of the axis, and at its own of the others.

    onnx 1.23's reference fails where indices cover a part of the data, and beyond 32 elements of the axis.

    Raises:
        IndexError: An index is out of range.
    """
    positions: list[Array] = list(np.indices(indices.shape, sparse=True))
    positions[axis] = indices
    return np.asarray(data[tuple(positions)])
