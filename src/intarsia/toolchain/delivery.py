"""Results of an engine that allocates by itself, copied into the caller's buffers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.runtime.kernel import Array, Value
from intarsia.support.errors import ExecutionError


def deliver(value: Value, into: Array | None) -> Value:
    """The value itself, or the array `into` after the value has been copied there.

    Raises:
        ExecutionError: The value is no array of the shape and element type that the caller expects.
    """
    if into is None:
        return value
    if not isinstance(value, np.ndarray):
        raise ExecutionError(f"a result is {type(value).__name__}; expected an array of shape {into.shape}")
    if value.shape != into.shape or value.dtype != into.dtype:
        raise ExecutionError(
            f"a result has type {value.dtype}{list(value.shape)}; expected {into.dtype}{list(into.shape)}"
        )
    np.copyto(into, value)
    return into


def deliver_all(values: Sequence[Value], into: Sequence[Array | None]) -> list[Value]:
    """`deliver` for each result.

    Raises:
        ExecutionError: As `deliver`.
    """
    return [deliver(value, array) for value, array in zip(values, into, strict=True)]
