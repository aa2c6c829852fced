"""Parameters of kernels and packings of constants as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.ir import DType
from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.runtime.json_record import as_count, as_list, as_shape, as_text, as_truth

if TYPE_CHECKING:
    from intarsia.native.packing import Packing


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The name of an element type."""
    return DType.of(np.empty(0, dtype)).value


def dtype_of(value: object) -> np.dtype[Any]:
    """The element type of a name; ValueError if it is none whose elements are plain bytes."""
    dtype = DType(as_text(value, "an element type"))
    if dtype is DType.STRING:
        raise ValueError("kernels compute no texts")
    return dtype.numpy


def parameter_record(parameter: ArrayParameter) -> list[Any]:
    """A parameter as JSON."""
    shape, dtype = list(parameter.shape), dtype_text(parameter.dtype)
    return [parameter.name, shape, dtype, parameter.is_written, parameter.alignment]


def parameter_of(record: object) -> ArrayParameter:
    """The parameter of a record.

    Raises:
        ArtifactError: It is no such record.
        ValueError: It has too few or too many parts, or an unknown element type.
    """
    name, shape, dtype, is_written, alignment = as_list(record, "a parameter")
    return ArrayParameter(
        as_text(name, "a parameter's name"),
        as_shape(shape, "a parameter's shape"),
        dtype_of(dtype),
        as_truth(is_written, "whether a parameter is written"),
        as_count(alignment, "a parameter's alignment"),
    )


def packing_record(packing: Packing) -> list[Any]:
    """A packing as JSON."""
    parts = [[part.axis, part.extent] for part in packing.parts]
    return [packing.tensor_name, list(packing.shape), parts]


def packing_of(record: object) -> Packing:
    """The packing of a record.

    Raises:
        ArtifactError: It is no such record.
        ValueError: It has too few or too many parts.
    """
    from intarsia.native.packing import Packing, Part

    name, original, parts = as_list(record, "a packing")
    return Packing(
        as_text(name, "a packing's tensor"),
        as_shape(original, "a packing's shape"),
        tuple(
            Part(as_count(axis, "a packed axis"), as_count(extent, "a packed extent"))
            for axis, extent in (as_list(part, "a packed part") for part in as_list(parts, "packed parts"))
        ),
    )
