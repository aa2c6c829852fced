"""An interpreter of loop functions, one scalar at a time: the reference for what they mean (ir.prim_func)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Buffer, PrimFunc, Store
from intarsia.native.tir.generated_python import python_function
from intarsia.support.errors import InputError

Array = npt.NDArray[Any]


def interpret(prim_func: PrimFunc, arrays: Sequence[Array] | Mapping[str, Array]) -> None:
    """Run a loop function that passes `verify` on arrays, which it changes in place.

    Every operation rounds or wraps around in its type. All loops run in order, on one thread. Elements of a
    new buffer hold a sentinel: NaN, a number a third of the way from the least to the greatest, or true.
    Half a million operations take about a second.

    Args:
        prim_func: The function.
        arrays: An array for each parameter, in their order or by name, of its shape and element type.

    Raises:
        ExecutionError: An index outside of its buffer, a division of integers by zero, a float cast to an
            integer type that cannot hold it, a shift by the width of the type or more; threads of a GPU that
            race, wait at different barriers, or copy or multiply what they may not.
        InputError: An array is missing, unknown, or of another shape or type.
    """
    given = _in_order(prim_func.params, arrays)
    memory = [_elements(array) for array in given]
    with np.errstate(all="ignore"):
        python_function(prim_func)(*memory)
    stored = {
        visit.statement.buffer
        for visit in walk(prim_func.body)
        if visit.event is Event.ENTER and isinstance(visit.statement, Store)
    }
    for param, array, values in zip(prim_func.params, given, memory, strict=True):
        if param in stored:
            array[...] = np.array(values, array.dtype).reshape(array.shape)


def _elements(array: Array) -> list[Any]:
    """Return the elements in order: floats as NumPy scalars of their type, others as Python numbers."""
    flat = array.ravel()
    return flat.tolist() if array.dtype.kind in "biu" else list(flat)


def _in_order(params: tuple[Buffer, ...], arrays: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
    if isinstance(arrays, Mapping):
        names = {param.name for param in params}
        if set(arrays) != names:
            raise InputError(f"found arrays for {_listed(arrays)}; expected {_listed(names)}")
        arrays = [arrays[param.name] for param in params]
    if len(arrays) != len(params):
        raise InputError(f"found {len(arrays)} arrays; expected {len(params)}, one for each parameter")
    for param, array in zip(params, arrays, strict=True):
        if array.shape != param.shape or DType.of(array) is not param.dtype:
            raise InputError(f"the array for {param.name} is {array.dtype}{array.shape}; expected {param}")
    return list(arrays)


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"
