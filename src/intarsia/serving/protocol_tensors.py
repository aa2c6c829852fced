"""Tensors of the Open Inference Protocol v2 as arrays, checked before anything is computed.

Shapes, types and numbers come from strangers. NumPy would turn 1.5 into the integer 1, null into NaN and a
shape of -1 into any other; here each of these is an error of the client.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.runtime.kernel import Array
from intarsia.runtime.plan import TensorInfo
from intarsia.runtime.tensor_info import is_tensor
from intarsia.support.errors import InputError, UsageError

_DATATYPES: Final = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
}
_FITTING_KINDS: Final = {"b": "b", "u": "iu", "i": "iu", "f": "iuf"}
"""For the kind of an element type, the kinds of numbers in JSON that it takes."""


def datatype_of(info: TensorInfo) -> str:
    """Return the protocol's name of the type of an input or output.

    Raises:
        UsageError: The protocol has no such type.
    """
    if not is_tensor(info) or info.dtype not in _DATATYPES:
        raise UsageError(f'the protocol has no type for "{info.name}", which is {info.dtype}')
    return _DATATYPES[info.dtype]


def shape_of(info: TensorInfo) -> list[int]:
    """Return a shape as the protocol writes it: -1 for an unknown extent."""
    return [dim if isinstance(dim, int) else -1 for dim in info.shape or ()]


def read_tensor(info: TensorInfo, datatype: str, shape: Sequence[object], data: object) -> Array:
    """Return the array of an input.

    Args:
        info: Name and type of the input.
        datatype: Type that the request states.
        shape: Shape that the request states.
        data: Elements as bytes or as nested lists, in row-major order.

    Raises:
        InputError: The type is not that of the input, the shape is none, or the elements do not fit them.
    """
    expected = datatype_of(info)
    if datatype != expected:
        raise InputError(f'input "{info.name}" has the datatype {datatype}, expected {expected}')
    if not all(isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0 for dim in shape):
        raise InputError(f'input "{info.name}" has the shape {list(shape)}, expected numbers from 0 on')
    extents = tuple(int(dim) for dim in shape)  # type: ignore[call-overload]  # checked above
    dtype, size = DType(info.dtype).numpy, math.prod(extents)
    array = _from_bytes(info, dtype, data) if isinstance(data, bytes) else _from_numbers(info, dtype, data)
    if array.size != size:
        raise InputError(f'input "{info.name}" has {array.size} elements, its shape {list(shape)} has {size}')
    try:
        return array.reshape(extents)
    except (ValueError, OverflowError) as error:  # more axes or larger extents than arrays have
        raise InputError(
            f'input "{info.name}" has a shape of {len(extents)} axes that no array has: {error}'
        ) from error


def has_json_form(array: Array) -> bool:
    """Return whether JSON can express the elements: it lacks NaN and infinities, and the protocol FP16."""
    return array.dtype != np.float16 and (array.dtype.kind != "f" or bool(np.isfinite(array).all()))


def _from_bytes(info: TensorInfo, dtype: np.dtype[Any], data: bytes) -> Array:
    if len(data) % dtype.itemsize:
        size = dtype.itemsize
        raise InputError(f'input "{info.name}" has {len(data)} bytes, which is no multiple of {size}')
    return np.frombuffer(data, dtype)


def _from_numbers(info: TensorInfo, dtype: np.dtype[Any], data: object) -> Array:
    try:
        given = np.asarray(data)
    except (ValueError, TypeError, OverflowError) as error:  # ragged lists
        raise InputError(f'input "{info.name}" is no array of numbers') from error
    if given.size == 0:
        return np.empty(0, dtype)
    if given.dtype.kind not in _FITTING_KINDS[dtype.kind]:
        raise InputError(f'input "{info.name}" has elements that are no numbers of {_DATATYPES[info.dtype]}')
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if int(given.min()) < limits.min or int(given.max()) > limits.max:
            raise InputError(f'input "{info.name}" has numbers beyond {_DATATYPES[info.dtype]}')
    elif given.dtype.kind == "f" and not np.isfinite(given).all():
        raise InputError(f'input "{info.name}" has NaN or infinity, which JSON lacks')
    with np.errstate(over="ignore"):
        array: Array = given.astype(dtype)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f'input "{info.name}" has numbers beyond {_DATATYPES[info.dtype]}')
    return array
