"""Run several calls as one: their inputs are joined along the first axis, the results are cut apart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import ExecutionPlan, TensorInfo
from intarsia.runtime.tensor_info import is_tensor


@dataclass(frozen=True, slots=True)
class BatchKey:
    """What two calls must have in common to be run as one.

    Attributes:
        items: Number of items of the call.
        form: Element types and shapes of an item of each input.
    """

    items: int
    form: Hashable


def joining_complaint(plan: ExecutionPlan) -> str:
    """Return why calls of a program cannot be joined, or the empty string.

    That items do not depend on one another cannot be seen in a plan: it has to be known, or measured.
    """
    infos = (*plan.inputs, *plan.outputs)
    symbols = {_first_dim(info) for info in infos}
    if len(symbols) == 1 and isinstance(next(iter(symbols)), str):
        return ""
    without = next((info for info in infos if not isinstance(_first_dim(info), str)), infos[0])
    return (
        f"calls cannot be joined: all inputs and outputs must begin with the same symbolic dimension, and "
        f'"{without.name}" does not'
    )


def batch_key(inputs: Sequence[Value]) -> BatchKey | None:
    """Return what calls that this one may be joined with have in common; None if it runs by itself."""
    arrays = [value for value in inputs if isinstance(value, np.ndarray) and value.ndim]
    counts = {array.shape[0] for array in arrays}
    if len(arrays) != len(inputs) or len(counts) != 1:
        return None
    return BatchKey(counts.pop(), tuple((array.dtype.str, array.shape[1:]) for array in arrays))


def run_joined(run: Callable[..., list[Value]], calls: Sequence[Sequence[Any]]) -> list[list[Value]]:
    """Run calls as one and return the results of each.

    Args:
        run: Function that runs the program and returns its results as a flat list.
        calls: Inputs of each call, which have the same `BatchKey.form`.

    Raises:
        ValueError: A result has another number of items than the inputs.
    """
    counts = [call[0].shape[0] for call in calls]
    results = run(*(np.concatenate(arrays) for arrays in zip(*calls, strict=True)))
    ends = np.cumsum(counts)
    for result in results:
        if not isinstance(result, np.ndarray) or result.ndim == 0 or result.shape[0] != ends[-1]:
            raise ValueError("a result of joined calls does not have as many items as their inputs")
    return [
        [_copy_rows(result, int(end) - count, int(end)) for result in results]
        for end, count in zip(ends, counts, strict=True)
    ]


def _copy_rows(result: Value, start: int, end: int) -> Array:
    assert isinstance(result, np.ndarray)
    return result[start:end].copy()  # a view would keep the results of all calls alive


def _first_dim(info: TensorInfo) -> int | str | None:
    return info.shape[0] if is_tensor(info) and info.shape else None
