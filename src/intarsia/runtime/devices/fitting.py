"""Copies of values into the memory of a device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.ownership import shares_memory
from intarsia.support.errors import ExecutionError


def copied_into(into: Array, value: Value) -> Array:
    """Copy a value into an array and return the array.

    Raises:
        ExecutionError: The value is no array of that shape and element type.
    """
    if not isinstance(value, np.ndarray) or (value.shape, value.dtype) != (into.shape, into.dtype):
        found = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else "no array"
        raise ExecutionError(f"a copy between devices is {found}, expected {into.dtype}{list(into.shape)}")
    np.copyto(into, value)
    return into


def own_results(
    results: Sequence[Value], inputs: Sequence[Value], outputs: Sequence[Array | None]
) -> list[Value]:
    """Return the results of a kernel, with a copy of each that is a view of an input."""
    return [
        result.copy()
        if given is None and isinstance(result, np.ndarray) and shares_memory(result, inputs)
        else result
        for result, given in zip(results, outputs, strict=True)
    ]
